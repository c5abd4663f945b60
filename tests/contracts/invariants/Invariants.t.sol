// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {JobId, Slash, SlashStatus} from "contracts/Types.sol";
import {CLIENTS, Handler} from "./Handler.sol";

/// @dev The handler hashes its dice, so values from storage and code would only cost time.
/// forge-config: default.invariant.include-storage = false
/// forge-config: default.invariant.include-push-bytes = false
/// forge-config: ci.invariant.include-storage = false
/// forge-config: ci.invariant.include-push-bytes = false
contract InvariantsTest is Test {
    Handler internal handler;

    function setUp() public {
        handler = new Handler();
        handler.setUp();
        bytes4[] memory selectors = new bytes4[](12);
        selectors[0] = Handler.waitBlocks.selector;
        selectors[1] = Handler.advance.selector;
        selectors[2] = Handler.advanceTwice.selector;
        selectors[3] = Handler.request.selector;
        selectors[4] = Handler.accuseFalsely.selector;
        selectors[5] = Handler.veto.selector;
        selectors[6] = Handler.execute.selector;
        selectors[7] = Handler.penalise.selector;
        selectors[8] = Handler.topUp.selector;
        selectors[9] = Handler.unbond.selector;
        selectors[10] = Handler.withdraw.selector;
        selectors[11] = Handler.withdrawCredit.selector;
        targetContract(address(handler));
        targetSelector(FuzzSelector(address(handler), selectors));
    }

    function invariant_DepositsAreBackedByBalance() public view {
        assertEq(handler.balance(), handler.liabilities());
    }

    function invariant_SlashedNeverExceedsCaptured() public view {
        for (uint256 i = 0; i < handler.chargeCount(); ++i) {
            (Handler.Charge memory charge, Slash memory slash) = handler.chargeAt(i);
            assertLe(slash.captured, charge.depositBefore);
            assertLe(slash.captured, charge.penalty);
        }
        assertEq(handler.distributedAndFound(), handler.distributed());
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            JobId job = handler.allJobs(j);
            for (uint256 client = 0; client < CLIENTS; ++client) {
                assertEq(handler.lossOf(job, client), handler.purseOf(job, client).charged);
            }
        }
    }

    function invariant_NoDoubleSlash() public view {
        assertFalse(handler.slashedTwice());
        for (uint256 i = 0; i < handler.chargeCount(); ++i) {
            (Handler.Charge memory charge, Slash memory slash) = handler.chargeAt(i);
            assertEq(handler.requests(charge.round, charge.client), 1);
            assertEq(charge.executions, slash.status == SlashStatus.Executed ? 1 : 0);
            assertEq(charge.vetoes, slash.status == SlashStatus.Vetoed ? 1 : 0);
        }
    }

    function invariant_NobodyWithdrawsWhileAnOpenAuditCouldSlashThem() public view {
        assertFalse(handler.withdrewDuringAudit());
        assertFalse(handler.slashedAfterWithdrawal());
    }

    function invariant_ClientWhoseAuditsPassNeverLosesMoney() public view {
        assertFalse(handler.slashedWithoutFault());
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            JobId job = handler.allJobs(j);
            for (uint256 client = 0; client < CLIENTS; ++client) {
                if (handler.purseOf(job, client).everFaulted) continue;
                assertEq(handler.lossOf(job, client), 0);
            }
        }
    }

    /// @dev When everything is resolved and everyone has withdrawn, burn and treasury are left.
    function afterInvariant() public {
        handler.resolveEverything();
        assertEq(handler.balance(), handler.dues());
    }

    /// @dev The invariants mean nothing if the handler never gets to where money moves.
    function test_Handler_ReachesEveryOutcome() public {
        string[37] memory outcomes = _outcomes();
        uint256[37] memory reached;
        uint256 start = vm.snapshotState();
        for (uint256 run = 0; run < 48; ++run) {
            for (uint256 i = 0; i < 128; ++i) {
                handler.act(run << 128 | i);
            }
            for (uint256 i = 0; i < outcomes.length; ++i) {
                reached[i] += handler.count(outcomes[i]);
            }
            vm.revertToState(start);
        }
        for (uint256 i = 0; i < outcomes.length; ++i) {
            emit log_named_uint(outcomes[i], reached[i]);
        }
        for (uint256 i = 0; i < outcomes.length; ++i) {
            assertGt(reached[i], 0, outcomes[i]);
        }
    }

    function _outcomes() private pure returns (string[37] memory) {
        return [
            "waited",
            "job started",
            "opened",
            "committed directly",
            "committed in a batch",
            "beacon by aggregate",
            "beacon by partials",
            "beacon withheld",
            "decided",
            "undecided",
            "finalised",
            "voided",
            "requested on a direct commitment",
            "requested on a leaf",
            "late request refused",
            "charge of non-delivery before the deadline refused",
            "second request refused",
            "request on a leaver's leaf refused",
            "capture clamped",
            "false accusation refused",
            "vetoed by receipts",
            "vetoed by acquittals",
            "late veto refused",
            "executed",
            "early execution refused",
            "penalised for withholding",
            "penalised for dissent",
            "penalised for silence",
            "penalty refused",
            "deposit topped up",
            "stake topped up",
            "reinstated",
            "client left",
            "member left",
            "client withdrew",
            "member withdrew",
            "credit withdrawn"
        ];
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {VmSafe} from "forge-std/Vm.sol";

import {Charge, ChargeStatus, JobId} from "contracts/Types.sol";
import {CLIENTS, Handler, HONEST} from "./Handler.sol";

/// @dev The handler hashes its dice, so values from storage and code would only cost time.
/// forge-config: default.invariant.include-storage = false
/// forge-config: default.invariant.include-push-bytes = false
/// forge-config: ci.invariant.include-storage = false
/// forge-config: ci.invariant.include-push-bytes = false
contract InvariantsTest is Test {
    uint256 internal constant ROSTER = 5;

    Handler internal handler;

    function setUp() public {
        handler = new Handler();
        handler.setUp();
        bytes4[] memory selectors = new bytes4[](13);
        selectors[0] = Handler.waitBlocks.selector;
        selectors[1] = Handler.advance.selector;
        selectors[2] = Handler.advanceTwice.selector;
        selectors[3] = bytes4(keccak256("hold(uint256)"));
        selectors[4] = Handler.decideAudit.selector;
        selectors[5] = Handler.attack.selector;
        selectors[6] = Handler.penalise.selector;
        selectors[7] = bytes4(keccak256("changeSeat(uint256)"));
        selectors[8] = bytes4(keccak256("claim(uint256)"));
        selectors[9] = Handler.refund.selector;
        selectors[10] = Handler.topUpOrLeave.selector;
        selectors[11] = Handler.withdraw.selector;
        selectors[12] = Handler.unlock.selector;
        targetContract(address(handler));
        targetSelector(FuzzSelector(address(handler), selectors));
    }

    function invariant_MoneyIsStakesHoldsBudgetsCreditsAndBurn() public view {
        assertEq(handler.balance(), handler.liabilities());
    }

    function invariant_WhatCameInAndDidNotGoOutIsThere() public view {
        assertEq(handler.balance(), handler.received() - handler.sent());
    }

    function invariant_NoClientPaysTwiceForARound() public view {
        assertEq(handler.breaches("second charge"), 0);
        for (uint256 i = 0; i < handler.failureCount(); ++i) {
            (Handler.Failure memory failure, Charge memory charge) = handler.failureAt(i);
            assertEq(failure.charges, charge.status == ChargeStatus.Charged ? 1 : 0);
            bool released =
                charge.status == ChargeStatus.Acquitted || charge.status == ChargeStatus.Unlocked;
            assertEq(failure.releases, released ? 1 : 0);
        }
    }

    function invariant_NoClientPaysWithoutTwoSignatures() public view {
        assertEq(handler.breaches("charge with one signature"), 0);
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            JobId job = handler.allJobs(j);
            for (uint256 client = 0; client < CLIENTS; ++client) {
                assertEq(handler.lossOf(job, client), handler.chargedOf(job, client));
            }
        }
    }

    function invariant_HonestClientsLoseNothing() public view {
        assertEq(handler.breaches("hold of who did not fail"), 0);
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            JobId job = handler.allJobs(j);
            for (uint256 client = 0; client < HONEST; ++client) {
                assertEq(handler.lossOf(job, client), 0);
            }
            for (uint256 client = 0; client < 2; ++client) {
                assertEq(handler.heldOf(job, client), 0);
            }
        }
    }

    function invariant_AHeldDepositDoesNotLeave() public view {
        assertEq(handler.breaches("held amount"), 0);
        assertEq(handler.breaches("withdrawal"), 0);
        assertEq(handler.breaches("early withdrawal"), 0);
        assertEq(handler.breaches("unlock that is not due"), 0);
    }

    function invariant_NobodyIsPaidTwiceForARound() public view {
        assertEq(handler.breaches("claim of nothing"), 0);
        assertEq(handler.breaches("pay"), 0);
    }

    function invariant_EarningsNeverExceedTheBudget() public view {
        assertEq(handler.breaches("refund of an open job"), 0);
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            assertTrue(handler.earnedWithin(handler.allJobs(j)));
        }
    }

    function invariant_SeatsAreThreeDifferentStakedAccounts() public view {
        assertEq(handler.breaches("seat with one signature"), 0);
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            assertTrue(handler.seatsAreSound(handler.allJobs(j)));
        }
    }

    function invariant_AVerdictIsWhatTwoHonestMembersAttestAndNeverChanges() public view {
        assertEq(handler.breaches("verdict"), 0);
        assertTrue(handler.verdictsStand());
    }

    function invariant_NoRollAndNoResultWithOneSignature() public view {
        assertEq(handler.breaches("roll with one signature"), 0);
        assertEq(handler.breaches("result with one signature"), 0);
    }

    function invariant_HonestMembersLoseNothing() public view {
        assertEq(handler.breaches("penalty of an honest member"), 0);
        for (uint256 j = 0; j < handler.jobCount(); ++j) {
            JobId job = handler.allJobs(j);
            for (uint256 member = 0; member < ROSTER; ++member) {
                if (!handler.isBad(job, member)) assertEq(handler.stakeLossOf(job, member), 0);
            }
        }
    }

    function invariant_MembersServeUntilTheJobIsClosed() public view {
        assertEq(handler.breaches("member left early"), 0);
    }

    function invariant_ClosedJobsOpenNoRounds() public view {
        assertEq(handler.breaches("round of a closed job"), 0);
        assertTrue(handler.closedStayClosed());
    }

    /// @dev When everything is resolved and everyone has withdrawn, burn and treasury are left.
    function afterInvariant() public {
        handler.resolveEverything();
        assertEq(handler.balance(), handler.dues());
    }

    /// @dev The invariants mean nothing if the handler never gets to where money moves.
    function test_Handler_ReachesEveryOutcome() public {
        // Instrumented code without the optimizer needs more gas than a test has.
        vm.skip(vm.isContext(VmSafe.ForgeContext.Coverage));
        string[47] memory outcomes = _outcomes();
        uint256[47] memory reached;
        uint256 start = vm.snapshotState();
        for (uint256 run = 0; run < 32; ++run) {
            for (uint256 i = 0; i < 240; ++i) {
                handler.act((run << 128) | i);
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

    function _outcomes() private pure returns (string[47] memory) {
        return [
            "waited",
            "job started",
            "opened",
            "rolled",
            "beacon by aggregate",
            "beacon by partials",
            "beacon withheld",
            "lied",
            "decided",
            "finalised",
            "voided",
            "job closed",
            "held",
            "held what was left",
            "acquitted",
            "charged",
            "charged late",
            "unlocked",
            "fault 0",
            "fault 1",
            "fault 3",
            "equivocated",
            "absent",
            "false",
            "seat changed",
            "contribution claimed",
            "service claimed",
            "refunded",
            "topped up",
            "client left",
            "member left",
            "deposit withdrawn",
            "stake withdrawn",
            "credit withdrawn",
            "refused: hold of who did not fail",
            "refused: charge with one signature",
            "refused: second charge",
            "refused: penalty of an honest member",
            "refused: unlock that is not due",
            "refused: roll with one signature",
            "refused: result with one signature",
            "refused: seat with one signature",
            "refused: claim of nothing",
            "refused: early withdrawal",
            "refused: round of a closed job",
            "refused: refund of an open job",
            "refused: member left early"
        ];
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {CommitLedger, CommitLedgers} from "contracts/libraries/CommitLedger.sol";
import {JobId, roundOf, RoundId} from "contracts/Types.sol";

contract CommitLedgerTest is Test {
    RoundId internal constant ROUND = RoundId.wrap((7 << 32) | 3);

    function test_Opened_WhenRoundJobOrModelDiffers_Differs() public view {
        bytes28 original = CommitLedgers.opened(ROUND, "model", 9).accumulator();
        RoundId nextRound = roundOf(JobId.wrap(7), 4);
        RoundId nextJob = roundOf(JobId.wrap(8), 3);
        assertEq(CommitLedgers.opened(ROUND, "model", 10).accumulator(), original);
        assertNotEq(CommitLedgers.opened(ROUND, "other", 9).accumulator(), original);
        assertNotEq(CommitLedgers.opened(nextRound, "model", 9).accumulator(), original);
        assertNotEq(CommitLedgers.opened(nextJob, "model", 9).accumulator(), original);
    }

    function testFuzz_Opened_PacksHashAndDeadline(
        uint64 job,
        uint32 number,
        bytes32 model,
        uint32 deadline
    ) public view {
        CommitLedger ledger =
            CommitLedgers.opened(roundOf(JobId.wrap(job), number), model, deadline);
        bytes32 hash = keccak256(
            abi.encode(keccak256("opfl.v1.round"), block.chainid, address(this), job, number, model)
        );
        assertEq(ledger.accumulator(), bytes28(hash));
        assertEq(ledger.deadline(), deadline);
    }

    function testFuzz_WithDirect_EqualsThePackedEncoding(
        bytes32 word,
        address client,
        bytes32 commitment
    ) public pure {
        CommitLedger ledger = CommitLedger.wrap(word);
        CommitLedger next = ledger.withDirect(client, commitment);
        bytes32 hash =
            keccak256(abi.encodePacked(uint8(1), ledger.accumulator(), client, commitment));
        assertEq(next.accumulator(), bytes28(hash));
        assertEq(next.deadline(), ledger.deadline());
    }

    function test_WithDirect_WhenAddressHasDirtyUpperBits_IgnoresThem() public pure {
        CommitLedger ledger = CommitLedger.wrap(keccak256("ledger"));
        address clean = address(uint160(0xc11e47));
        address dirty;
        assembly ("memory-safe") {
            dirty := or(clean, shl(160, 0xdead))
        }
        assertEq(
            ledger.withDirect(dirty, "gradient").accumulator(),
            ledger.withDirect(clean, "gradient").accumulator()
        );
    }

    function testFuzz_WithBatch_EqualsThePackedEncoding(bytes32 word, bytes32 root, uint32 count)
        public
        pure
    {
        CommitLedger ledger = CommitLedger.wrap(word);
        CommitLedger next = ledger.withBatch(root, count);
        bytes32 hash = keccak256(abi.encodePacked(uint8(2), ledger.accumulator(), root, count));
        assertEq(next.accumulator(), bytes28(hash));
        assertEq(next.deadline(), ledger.deadline());
    }

    function test_WithDirectAndBatch_WhenValuesAreEqual_GivesDifferentAccumulators() public pure {
        CommitLedger ledger = CommitLedger.wrap(keccak256("ledger"));
        CommitLedger direct = ledger.withDirect(address(1), "same");
        CommitLedger batch = ledger.withBatch("same", 1);
        assertNotEq(direct.accumulator(), batch.accumulator());
    }
}

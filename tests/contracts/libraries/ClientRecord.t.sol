// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {ClientRecord, ClientRecords} from "contracts/libraries/ClientRecord.sol";
import {ClientStatus, JobId, roundOf, RoundId} from "contracts/Types.sol";

contract ClientRecordTest is Test {
    uint32 internal constant WINDOW = 128;

    /// @dev The naive model: the rounds of all commitments.
    mapping(uint32 => bool) internal committed;

    function testFuzz_Enrolled_HasTheIndexAndNoHistory(uint32 index, uint32 number) public pure {
        ClientRecord record = ClientRecords.enrolled(index);
        assertEq(record.index(), index);
        assertEq(record.nextRound(), 0);
        assertEq(uint8(record.status()), uint8(ClientStatus.Active));
        assertFalse(record.committedIn(_round(number)));
    }

    function testFuzz_WithStatus_ChangesNothingElse(uint32 index, uint32 number, uint8 status)
        public
        pure
    {
        number = uint32(bound(number, 0, type(uint32).max - 1));
        ClientStatus changed = ClientStatus(bound(status, 0, uint8(type(ClientStatus).max)));
        ClientRecord record = ClientRecords.enrolled(index).withCommitment(_round(number));
        ClientRecord other = record.withStatus(changed);
        assertEq(uint8(other.status()), uint8(changed));
        assertEq(other.index(), index);
        assertEq(other.nextRound(), number + 1);
        assertTrue(other.committedIn(_round(number)));
        assertEq(
            ClientRecord.unwrap(other.withStatus(ClientStatus.Active)), ClientRecord.unwrap(record)
        );
    }

    function test_WithCommitment_WhenGapIsLongerThanTheWindow_ForgetsWhatCameBefore() public pure {
        ClientRecord record = ClientRecords.enrolled(5).withCommitment(_round(3));
        uint32[3] memory gaps = [WINDOW, 256, type(uint32).max - 4];
        for (uint256 i = 0; i < gaps.length; ++i) {
            ClientRecord later = record.withCommitment(_round(3 + gaps[i]));
            assertFalse(later.committedIn(_round(3)));
            assertTrue(later.committedIn(_round(3 + gaps[i])));
            assertEq(later.index(), 5);
            assertEq(uint8(later.status()), uint8(ClientStatus.Active));
        }
    }

    function test_WithCommitment_WhenWindowSlides_ForgetsExactlyTheOldest() public pure {
        ClientRecord record = ClientRecords.enrolled(0);
        for (uint32 number = 0; number < WINDOW; ++number) {
            record = record.withCommitment(_round(number));
        }
        assertTrue(record.committedIn(_round(0)));
        record = record.withCommitment(_round(WINDOW));
        assertFalse(record.committedIn(_round(0)));
        for (uint32 number = 1; number <= WINDOW; ++number) {
            assertTrue(record.committedIn(_round(number)));
        }
    }

    function testFuzz_WithCommitment_AgreesWithANaiveModel(
        uint32 index,
        uint32 start,
        uint8[24] memory gaps
    ) public {
        ClientRecord record = ClientRecords.enrolled(index);
        uint32 last = uint32(bound(start, 0, type(uint32).max - 20_000));
        uint32 first = last;
        for (uint256 i = 0; i < gaps.length; ++i) {
            // Most gaps are short, some are longer than the window.
            last += gaps[i] < 200 ? gaps[i] % 8 + 1 : uint32(gaps[i]);
            record = record.withCommitment(_round(last));
            committed[last] = true;
        }
        assertEq(record.index(), index);
        assertEq(record.nextRound(), last + 1);
        assertEq(uint8(record.status()), uint8(ClientStatus.Active));
        uint32 oldest = last - first > 300 ? last - 300 : first;
        for (uint32 number = oldest; number <= last + 3; ++number) {
            bool known = committed[number] && last - number < WINDOW;
            assertEq(record.committedIn(_round(number)), known);
        }
    }

    function test_CommittedIn_WhenRoundIsInTheFuture_IsFalse() public pure {
        ClientRecord record = ClientRecords.enrolled(0).withCommitment(_round(7));
        assertFalse(record.committedIn(_round(8)));
        assertFalse(record.committedIn(_round(type(uint32).max)));
    }

    function _round(uint32 number) private pure returns (RoundId) {
        return roundOf(JobId.wrap(1), number);
    }
}

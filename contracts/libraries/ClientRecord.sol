// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClientStatus, RoundId} from "../Types.sol";

/// @dev A client of a job in one word, because every direct commitment reads and writes it:
/// status (8 bits), index in verdicts (32), one more than the last round in which the client
/// committed directly (32), and a bit for each of the 128 rounds up to that one (128).
type ClientRecord is uint256;

using ClientRecords for ClientRecord global;

/// @title Reading and changing client records
library ClientRecords {
    /// @dev How many rounds back direct commitments are remembered.
    uint256 internal constant WINDOW = 128;

    uint256 private constant INDEX_SHIFT = 8;
    uint256 private constant NEXT_ROUND_SHIFT = 40;
    uint256 private constant HISTORY_SHIFT = 72;
    uint256 private constant LOW_BITS = (1 << NEXT_ROUND_SHIFT) - 1;

    /// @notice The record of a client that has just enrolled.
    function enrolled(uint32 index_) internal pure returns (ClientRecord) {
        return
            ClientRecord.wrap(
                (uint256(index_) << INDEX_SHIFT) | uint256(uint8(ClientStatus.Active))
            );
    }

    function status(ClientRecord record) internal pure returns (ClientStatus) {
        return ClientStatus(uint8(ClientRecord.unwrap(record)));
    }

    /// @notice The client's bit in verdicts.
    function index(ClientRecord record) internal pure returns (uint32) {
        return uint32(ClientRecord.unwrap(record) >> INDEX_SHIFT);
    }

    /// @notice The first round in which the client can still commit directly.
    function nextRound(ClientRecord record) internal pure returns (uint32) {
        return uint32(ClientRecord.unwrap(record) >> NEXT_ROUND_SHIFT);
    }

    /// @notice Whether the client committed directly in `round`.
    function committedIn(ClientRecord record, RoundId round) internal pure returns (bool) {
        uint256 next = uint256(round.number()) + 1;
        if (next > record.nextRound()) return false;
        uint256 age = record.nextRound() - next;
        uint256 history = ClientRecord.unwrap(record) >> HISTORY_SHIFT;
        return age < WINDOW && (history >> age) & 1 == 1;
    }

    function withStatus(ClientRecord record, ClientStatus status_)
        internal
        pure
        returns (ClientRecord)
    {
        uint256 rest = ClientRecord.unwrap(record) & ~uint256(type(uint8).max);
        return ClientRecord.wrap(rest | uint256(uint8(status_)));
    }

    /// @notice Notes a direct commitment in `round`, which is not before `nextRound`.
    function withCommitment(ClientRecord record, RoundId round)
        internal
        pure
        returns (ClientRecord)
    {
        uint256 word = ClientRecord.unwrap(record);
        // No number of 32 bits overflows here, and `round` is not before `nextRound`.
        unchecked {
            uint256 next = uint256(round.number()) + 1;
            // Shifts of 256 and more give zero: what is older than the window is forgotten.
            uint256 history = uint128((word >> HISTORY_SHIFT) << (next - record.nextRound())) | 1;
            return ClientRecord.wrap(
                (history << HISTORY_SHIFT) | (next << NEXT_ROUND_SHIFT) | (word & LOW_BITS)
            );
        }
    }
}

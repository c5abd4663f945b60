// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RoundId} from "../Types.sol";

/// @dev The commit phase of a round in one word, because every direct commitment reads and writes
/// it: the accumulator (28 bytes), and the last block of the phase (4 bytes), zero before the round
/// is open.
type CommitLedger is bytes32;

using CommitLedgers for CommitLedger global;

/// @title The rolling hash over all commitments of a round, in the order in which they arrived
/// @notice Direct and batched commitments enter the same hash under different prefixes.
library CommitLedgers {
    bytes32 private constant TAG = keccak256("opfl.v1.round");
    uint8 private constant DIRECT = 1;
    uint8 private constant BATCH = 2;

    /// @notice The ledger of a round that has just been opened.
    function opened(RoundId round, bytes32 modelHash, uint32 deadline_)
        internal
        view
        returns (CommitLedger)
    {
        return _pack(
            keccak256(
                abi.encode(
                    TAG, block.chainid, address(this), round.job(), round.number(), modelHash
                )
            ),
            deadline_
        );
    }

    /// @notice The commitments so far.
    function accumulator(CommitLedger ledger) internal pure returns (bytes28) {
        return bytes28(CommitLedger.unwrap(ledger));
    }

    /// @notice The last block of the commit phase; zero for a round that is not open.
    function deadline(CommitLedger ledger) internal pure returns (uint32) {
        return uint32(uint256(CommitLedger.unwrap(ledger)));
    }

    /// @notice The ledger after a client's direct commitment.
    /// @dev The hash of abi.encodePacked(DIRECT, accumulator, client, commitment), in assembly
    /// because this is what every client pays for in every round.
    function withDirect(CommitLedger ledger, address client, bytes32 commitment)
        internal
        pure
        returns (CommitLedger)
    {
        bytes32 hash;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore8(free, DIRECT)
            mstore(add(free, 1), ledger)
            mstore(add(free, 29), shl(96, client))
            mstore(add(free, 49), commitment)
            hash := keccak256(free, 81)
        }
        return _pack(hash, ledger.deadline());
    }

    /// @notice The ledger after a batch of `count` commitments with this Merkle root.
    function withBatch(CommitLedger ledger, bytes32 root, uint32 count)
        internal
        pure
        returns (CommitLedger)
    {
        return _pack(
            keccak256(abi.encodePacked(BATCH, ledger.accumulator(), root, count)), ledger.deadline()
        );
    }

    function _pack(bytes32 hash, uint32 deadline_) private pure returns (CommitLedger) {
        return CommitLedger.wrap(bytes32(bytes28(hash)) | bytes32(uint256(deadline_)));
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobId, MemberFault, Outcome, RoundId} from "../Types.sol";

/// @title The EIP-712 structs that clients and members sign off chain
/// @notice All are signed under the domain of the Jobs contract. The opening of a round binds chain,
/// contract, job, number and model.
library Statements {
    bytes32 private constant CONTRIBUTION = keccak256(
        "Contribution(uint64 job,uint32 round,bytes32 opening,address client,bytes32 contentHash)"
    );
    bytes32 private constant ROLL = keccak256(
        "Roll(uint64 job,uint32 round,bytes32 opening,bytes32 root,uint32 count,bytes32 pairsHash)"
    );
    bytes32 private constant ROUND_RESULT = keccak256(
        "RoundResult(uint64 job,uint32 round,bytes32 opening,bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)"
    );
    bytes32 private constant AUDIT_OUTCOME = keccak256(
        "AuditOutcome(uint64 job,uint32 round,bytes32 opening,address client,uint8 outcome)"
    );
    bytes32 private constant MEMBER_MESSAGE = keccak256(
        "MemberMessage(uint64 job,uint32 round,bytes32 opening,uint32 slot,bytes32 contentHash)"
    );
    bytes32 private constant MEMBER_FAULT = keccak256(
        "MemberFault(uint64 job,uint32 round,bytes32 opening,address member,uint8 fault)"
    );
    bytes32 private constant SEAT_CHANGE =
        keccak256("SeatChange(uint64 job,uint8 epoch,uint8 seat,address standby)");

    /// @notice Signed by a client: its contribution to a round.
    function contribution(RoundId round, bytes32 opening, address client, bytes32 contentHash)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(CONTRIBUTION, round.job(), round.number(), opening, client, contentHash)
        );
    }

    /// @notice Signed by a member: who is in the round.
    function roll(RoundId round, bytes32 opening, bytes32 root, uint32 count, bytes32 pairsHash)
        internal
        pure
        returns (bytes32)
    {
        return
            keccak256(
                abi.encode(ROLL, round.job(), round.number(), opening, root, count, pairsHash)
            );
    }

    /// @notice Signed by a member: what the round's accepted contributions add up to.
    function roundResult(
        RoundId round,
        bytes32 opening,
        bytes32 verdictHash,
        bytes32 aggregateHash,
        bytes32 modelHash
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                ROUND_RESULT,
                round.job(),
                round.number(),
                opening,
                verdictHash,
                aggregateHash,
                modelHash
            )
        );
    }

    /// @notice Signed by a member: how the audit of a client ended.
    function auditOutcome(RoundId round, bytes32 opening, address client, Outcome outcome)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(AUDIT_OUTCOME, round.job(), round.number(), opening, client, outcome)
        );
    }

    /// @notice Signed by a member: what it says to the others in a slot of a round.
    function memberMessage(RoundId round, bytes32 opening, uint32 slot, bytes32 contentHash)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(MEMBER_MESSAGE, round.job(), round.number(), opening, slot, contentHash)
        );
    }

    /// @notice Signed by a member: another one was away, or lied.
    function memberFault(RoundId round, bytes32 opening, address member, MemberFault fault)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(MEMBER_FAULT, round.job(), round.number(), opening, member, fault)
        );
    }

    /// @notice Signed by a member: a standby takes a seat.
    function seatChange(JobId job, uint8 epoch, uint8 seat, address standby)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(SEAT_CHANGE, job, epoch, seat, standby));
    }
}

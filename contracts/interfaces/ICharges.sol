// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Charge, ChargeStatus, JobId, MemberFault, Outcome, RollEntry, RoundId} from "../Types.sol";

/// @title Charges: what audits and faults cost
/// @notice An audited contribution that did not pass is held: the penalty is set aside until two
/// members sign how its audit ended. Nothing is taken because time passed, and nothing on one
/// party's word. A member's fault shows on chain, or two others sign it, or the member itself did.
interface ICharges {
    /// @notice The penalty of an audited contribution that did not pass was set aside.
    event AuditHeld(RoundId indexed round, address indexed client, uint96 held);

    /// @notice The audit ended against the client, which paid what was set aside.
    event ClientCharged(
        RoundId indexed round, address indexed client, Outcome outcome, uint96 amount
    );

    /// @notice The audit passed after all, and what was set aside went back.
    event ClientAcquitted(RoundId indexed round, address indexed client, uint96 released);

    /// @notice Nobody was left to decide the audit, and what was set aside went back.
    event AuditUnlocked(RoundId indexed round, address indexed client, uint96 released);

    /// @notice A member paid for a fault.
    event MemberPenalised(
        RoundId indexed round, address indexed member, MemberFault fault, uint96 amount
    );

    /// @notice The contracts do not point at each other.
    error Miswired();

    /// @notice The round has no verdict.
    error RoundUndecided(RoundId round);

    /// @notice The verdict is not the one that was decided.
    error WrongVerdict(bytes32 given, bytes32 decided);

    /// @notice The verdict says that the client passed.
    error ClientPassed(RoundId round, address client);

    /// @notice The client was not selected for audit.
    error ClientNotAudited(RoundId round, address client);

    /// @notice The contribution is not on the roll.
    error NotOnRoll(RoundId round, address client);

    /// @notice The contribution was not signed by the client.
    error NotSignedByClient(address signer, address client);

    /// @notice An audit is held once.
    error AlreadyHeld(RoundId round, address client);

    /// @notice The audit is not held, or was decided.
    error NotHeld(RoundId round, address client, ChargeStatus status);

    /// @notice A charge says that the contribution is outside, or was not answered for.
    error NotAgainstClient(Outcome outcome);

    /// @notice The client can still answer.
    error ResponseWindowOpen(uint32 deadline, uint256 currentBlock);

    /// @notice A held deposit is freed only in a job without a standby, after the delay.
    error NotUnlockable(RoundId round, address client);

    /// @notice The member is not at fault, or this fault is shown in another way.
    error NoFault(RoundId round, address member, MemberFault fault);

    /// @notice The two messages are the same.
    error SameMessage(bytes32 contentHash);

    /// @notice The message was not signed by the member.
    error NotSignedByMember(address signer, address member);

    /// @notice The member has paid for this already.
    error AlreadyPenalised(RoundId round, address member, MemberFault fault);

    /// @notice Sets the penalty of an audited contribution aside that is on the roll and not among
    /// those that passed. Anyone may.
    /// @param passes The decided verdict.
    function hold(RoundId round, address client, bytes calldata passes, RollEntry calldata entry)
        external;

    /// @notice Charges a client whose audit is held, with the signatures of two seats over
    /// `AuditOutcome`. One that did not answer is charged after the response window.
    function charge(RoundId round, address client, Outcome outcome, bytes[2] calldata signatures)
        external;

    /// @notice Gives back what was set aside, with the signatures of two seats over `AuditOutcome`.
    function acquit(RoundId round, address client, bytes[2] calldata signatures) external;

    /// @notice Gives back what was set aside, in a job without a standby, when the delay is over.
    function unlock(RoundId round, address client) external;

    /// @notice Takes the penalty for a fault that shows on chain: silence, dissent, or a withheld
    /// beacon. Anyone may.
    function penalise(RoundId round, address member, MemberFault fault) external;

    /// @notice Takes the penalty for absence or a false statement, with the signatures of two others
    /// of the roster over `MemberFault`.
    function penaliseCertified(
        RoundId round,
        address member,
        MemberFault fault,
        bytes[2] calldata signatures
    ) external;

    /// @notice Takes the stake of a member that signed two messages for one slot.
    function penaliseEquivocation(
        RoundId round,
        address member,
        uint32 slot,
        bytes32[2] calldata contentHashes,
        bytes[2] calldata signatures
    ) external;

    /// @notice The charge of a client for a round.
    function chargeOf(RoundId round, address client) external view returns (Charge memory);

    /// @notice True if a member has paid for a fault.
    function isPenalised(RoundId round, address member, MemberFault fault)
        external
        view
        returns (bool);
}

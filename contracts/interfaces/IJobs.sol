// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobId, Round, RoundId, Schedule, Verdict} from "../Types.sol";
import {IEnrolment} from "./IEnrolment.sol";

/// @title Jobs: the rounds of a job, from the first commitment to the next model
/// @notice Anyone may make any transition that is due.
interface IJobs is IEnrolment {
    /// @notice A round opened on the model with this hash.
    event RoundOpened(RoundId indexed round, bytes32 modelHash, uint32 commitDeadline);

    /// @notice A client committed to its gradient.
    event GradientCommitted(RoundId indexed round, address indexed client, bytes32 commitment);

    /// @notice The relayer committed `count` signed commitments under one Merkle root.
    event BatchCommitted(RoundId indexed round, bytes32 root, uint32 count);

    /// @notice A member attested its verdict.
    event VerdictAttested(RoundId indexed round, address indexed member, Verdict verdict);

    /// @notice Two members attested the same verdict.
    event VerdictDecided(RoundId indexed round, bytes32 verdictHash);

    /// @notice The next model is agreed.
    event RoundFinalised(RoundId indexed round, bytes32 aggregateHash, bytes32 modelHash);

    /// @notice The round is over and the model stays as it was.
    event RoundVoided(RoundId indexed round, bool decided);

    /// @notice No further round can open.
    event JobClosed(JobId indexed job, uint32 rounds);

    /// @notice The round is not open.
    error UnknownRound(RoundId round);

    /// @notice The job has ended.
    error JobAlreadyClosed(JobId job);

    /// @notice The first round opens after the enrolment deadline.
    error EnrolmentStillOpen(JobId job, uint32 deadline, uint256 currentBlock);

    /// @notice A job starts with all members staked and at least one client.
    error JobNotReady(JobId job, uint8 joined, uint32 clients);

    /// @notice The round before is not over.
    error RoundInProgress(RoundId round);

    /// @notice Commitments are accepted until the deadline.
    error CommitPhaseOver(RoundId round, uint32 deadline, uint256 currentBlock);

    /// @notice The client may not commit: it is unknown, suspended or leaving.
    error ClientNotActive(JobId job, address client);

    /// @notice A client commits once in a round.
    error AlreadyCommitted(RoundId round, address client);

    /// @notice A commitment must not be zero.
    error EmptyCommitment();

    /// @notice Only the job's relayer posts batches.
    error NotRelayer(JobId job, address account);

    /// @notice The relayer posts one batch a round.
    error BatchAlreadyCommitted(RoundId round);

    /// @notice Verdicts are attested when it is known who is audited, until the deadline.
    error NotInAttestPhase(RoundId round, uint256 currentBlock);

    /// @notice A member attests once in a round.
    error AlreadyAttested(RoundId round, address member);

    /// @notice The round has no verdict, or is over.
    error NotDecided(RoundId round);

    /// @notice The round was not finalised in time.
    error FinalisePhaseOver(RoundId round, uint32 deadline, uint256 currentBlock);

    /// @notice Two different members must sign.
    error SameSigner(address member);

    /// @notice The round can still be decided or finalised, or is over.
    error NotVoidable(RoundId round, uint256 currentBlock);

    /// @notice Opens the next round on the current model.
    function openRound(JobId job) external returns (RoundId round);

    /// @notice Commits the calling client to its gradient of the round.
    function commitGradient(RoundId round, bytes32 commitment) external;

    /// @notice Commits to the root of a Merkle tree of `count` signed commitments. Only the relayer.
    /// @dev A direct commitment of a client overrides its leaf.
    function commitBatch(RoundId round, bytes32 root, uint32 count) external;

    /// @notice Attests the calling member's verdict. Two equal ones decide.
    function attest(RoundId round, Verdict calldata verdict) external;

    /// @notice Sets the next model, with the signatures of two members over `RoundResult`.
    function finalise(
        RoundId round,
        bytes32 aggregateHash,
        bytes32 modelHash,
        bytes[2] calldata signatures
    ) external;

    /// @notice Ends a round that was not decided or not finalised in time.
    function voidRound(RoundId round) external;

    /// @notice The state of a round.
    function round(RoundId id) external view returns (Round memory);

    /// @notice The commitments of a round so far.
    function accumulator(RoundId id) external view returns (bytes28);

    /// @notice The last block of every phase of a round. Reverts for a round that is not open.
    function schedule(RoundId id) external view returns (Schedule memory);

    /// @notice The EIP-712 digest of a struct under this contract's domain.
    function statementDigest(bytes32 structHash) external view returns (bytes32);

    /// @notice Reverts unless two different members signed the struct.
    function requireTwoMembers(JobId job, bytes32 structHash, bytes[2] calldata signatures)
        external
        view;
}

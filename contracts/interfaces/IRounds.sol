// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {COMMITTEE_SIZE, JobId, Progress, Round, RoundId, Schedule} from "../Types.sol";

/// @title Rounds: the rounds of a job, from the roll to the next model
/// @notice Anyone may make any transition that is due.
interface IRounds {
    /// @notice A round opened on the model with this hash. The seats hold for the whole round.
    event RoundOpened(RoundId indexed round, bytes32 modelHash, bytes32 opening, uint8 epoch);

    /// @notice The roll of a round is agreed. `pairs` has 36 bytes for each contribution, the client's
    /// index and its commitment, or is empty if the terms keep it off the chain.
    event RollCommitted(RoundId indexed round, bytes32 root, uint32 count, bytes pairs);

    /// @notice A member attested its verdict.
    event VerdictAttested(RoundId indexed round, address indexed member, bytes passes);

    /// @notice Two members attested the same verdict, by which `passed` contributions are accepted.
    event VerdictDecided(RoundId indexed round, bytes32 verdictHash, uint32 passed);

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

    /// @notice A job starts with all seats staked and at least one client.
    error JobNotReady(JobId job, uint8 joined, uint32 clients);

    /// @notice The round before is not over.
    error RoundInProgress(RoundId round);

    /// @notice The roll is committed once, until the deadline.
    error NotInRollPhase(RoundId round, uint256 currentBlock);

    /// @notice A roll has at least one contribution, and not more than the job has places.
    error BadRollCount(uint32 count, uint32 places);

    /// @notice The pairs have another length than the terms and the count say.
    error BadPairsLength(uint256 length, uint256 expected);

    /// @notice Verdicts are attested when it is known who is audited, until the deadline.
    error NotInAttestPhase(RoundId round, uint256 currentBlock);

    /// @notice The round was opened again since, on another chain or model.
    error WrongOpening(bytes32 given, bytes32 current);

    /// @notice A member attests once in a round.
    error AlreadyAttested(RoundId round, address member);

    /// @notice More contributions passed than are on the roll.
    error TooManyPasses(uint256 passed, uint32 count);

    /// @notice The round has no verdict, or is over.
    error NotDecided(RoundId round);

    /// @notice The round was not finalised in time.
    error FinalisePhaseOver(RoundId round, uint32 deadline, uint256 currentBlock);

    /// @notice The round can still be decided or finalised, or is over.
    error NotVoidable(RoundId round, uint256 currentBlock);

    /// @notice Opens the next round on the current model.
    function openRound(JobId job) external returns (RoundId round);

    /// @notice Commits to the contributions of a round, with the signatures of two seats over `Roll`.
    /// @param root Merkle root over clients and content hashes.
    /// @param pairs As in `RollCommitted`.
    function commitRoll(
        RoundId round,
        bytes32 root,
        uint32 count,
        bytes calldata pairs,
        bytes[2] calldata signatures
    ) external;

    /// @notice Attests the calling member's verdict. Two equal ones decide; the third may still come,
    /// until the deadline, even if the round was finalised meanwhile.
    /// @param opening Opening of the round that was judged: a transaction that a reorganisation took
    /// back counts for no other.
    /// @param passes Bitmap of the clients whose contributions are accepted.
    function attest(RoundId round, bytes32 opening, bytes calldata passes) external;

    /// @notice Sets the next model, with the signatures of two seats over `RoundResult`.
    function finalise(
        RoundId round,
        bytes32 aggregateHash,
        bytes32 modelHash,
        bytes[2] calldata signatures
    ) external;

    /// @notice Ends a round that has no roll, or was not decided or not finalised in time.
    function voidRound(RoundId round) external;

    /// @notice Progress of a job.
    function progress(JobId job) external view returns (Progress memory);

    /// @notice The state of a round.
    function round(RoundId id) external view returns (Round memory);

    /// @notice The opening and the roll of a round. Zero without them.
    function rollOf(RoundId id) external view returns (bytes32 opening, bytes32 root);

    /// @notice Facts that a beacon needs of its round: opening and roll, the seat changes before the round
    /// opened, which say whose key signs, and the last block for it. Zero without them.
    function beaconTermsOf(RoundId id)
        external
        view
        returns (bytes32 opening, bytes32 root, uint8 epoch, uint32 deadline);

    /// @notice The hash of the decided verdict; zero before the decision.
    function verdictHashOf(RoundId id) external view returns (bytes32);

    /// @notice Bit s: seat s attested what was decided.
    function majorityOf(RoundId id) external view returns (uint8);

    /// @notice Holders of the seats when the round opened.
    function seatsOf(RoundId id) external view returns (address[COMMITTEE_SIZE] memory);

    /// @notice The seat of an account in a round. Reverts for everyone else.
    function seatOf(RoundId id, address account) external view returns (uint8);

    /// @notice The last block of every phase of a round. Reverts for a round that is not open.
    function schedule(RoundId id) external view returns (Schedule memory);
}

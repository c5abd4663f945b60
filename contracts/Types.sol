// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @dev The identifier of a job. Jobs count from one, so that zero is never a job.
type JobId is uint64;

/// @dev The identifier of a round: the job (64 bits), then the round's number in it (32 bits),
/// counting from zero.
type RoundId is uint96;

using RoundIds for RoundId global;

/// @title The parts of a round's identifier
library RoundIds {
    /// @notice The job that the round belongs to.
    function job(RoundId round) internal pure returns (JobId) {
        return JobId.wrap(uint64(RoundId.unwrap(round) >> 32));
    }

    /// @notice The number of the round in its job.
    function number(RoundId round) internal pure returns (uint32) {
        return uint32(RoundId.unwrap(round));
    }
}

/// @dev The round of a job with this number.
function roundOf(JobId job, uint32 number) pure returns (RoundId) {
    return RoundId.wrap((uint96(JobId.unwrap(job)) << 32) | number);
}

/// @dev How many members a committee has. ABY3 is a three-party protocol.
uint256 constant COMMITTEE_SIZE = 3;

/// @dev An audit rate of one: every contribution is audited.
uint128 constant AUDIT_ALWAYS = 1 << 64;

/// @dev What a stake answers for. One address can hold both stakes in one job.
enum Role {
    Client,
    Member
}

/// @dev The lengths of all phases, in blocks.
struct Phases {
    /// members join and clients enrol, counted from the creation of the job
    uint32 enrol;
    /// gradient commitments, counted from the opening of the round
    uint32 commit;
    /// the members sign the beacon
    uint32 beacon;
    /// clients deliver shares to the members, off chain
    uint32 deliver;
    /// members attest the verdict
    uint32 attest;
    /// the aggregate and the next model are finalised
    uint32 finalise;
    /// slashes are requested, counted from the end of the attest phase
    uint32 request;
    /// a requested slash can be vetoed
    uint32 veto;
}

/// @dev What each offence costs, in wei. Never more than the stake that it is taken from.
struct Penalties {
    uint96 commitmentMismatch;
    uint96 notDelivered;
    uint96 inputNotCommitted;
    uint96 replayOutside;
    uint96 beaconWithheld;
    uint96 verdictDissent;
    uint96 verdictSilence;
}

/// @dev Where slashed money goes, in basis points that add up to 10,000.
struct Split {
    uint16 burn;
    uint16 treasury;
    uint16 committee;
}

/// @dev Everything that is agreed before a job starts. Nothing of it ever changes.
struct JobTerms {
    /// keccak256 of the canonical JSON of the training policy
    bytes32 policyHash;
    /// keccak256 of the canonical JSON of the discrepancy boundary
    bytes32 boundaryHash;
    /// hash of the model that round 0 starts from
    bytes32 modelHash;
    address[COMMITTEE_SIZE] members;
    /// who may post batches of signed commitments; zero for nobody
    address relayer;
    address treasury;
    uint96 clientDeposit;
    uint96 memberStake;
    /// the probability that a contribution is audited, times 2^64
    uint128 auditRate;
    uint32 rounds;
    /// blocks between asking for a stake and getting it
    uint32 unbondingDelay;
    Phases phases;
    Penalties penalties;
    Split split;
}

enum ClientStatus {
    Unknown,
    /// may commit
    Active,
    /// its deposit fell below the required one; it may commit again after a top-up
    Suspended,
    /// has asked for its deposit; never commits again
    Leaving
}

/// @dev What is known of a client of a job.
struct Client {
    ClientStatus status;
    /// the client's bit in verdicts
    uint32 index;
    /// the first round in which the client can still commit directly
    uint32 nextRound;
    bytes32 datasetRoot;
}

/// @dev How far a job has come.
struct JobProgress {
    /// the last block in which members join and clients enrol
    uint32 enrolDeadline;
    uint32 clientCount;
    /// the round that opens next, which is how many have been opened
    uint32 nextRound;
    /// void rounds since the last one that was finalised
    uint8 voidStreak;
    /// bit m: member m has staked
    uint8 joined;
    /// no further round can open
    bool closed;
    /// hash of the current model
    bytes32 modelHash;
}

enum RoundStatus {
    None,
    /// commitments, beacon, delivery and attestation
    Open,
    /// two equal attestations: the verdict stands
    Decided,
    /// the next model is agreed
    Finalised,
    /// the model stays as it was
    Void
}

struct Round {
    RoundStatus status;
    /// bit m: member m has attested
    uint8 attested;
    /// bit m: member m attested what was decided
    uint8 majority;
    uint32 decidedAt;
    /// Merkle root of the relayed commitments; zero without a batch
    bytes32 batchRoot;
    /// hash of the decided verdict; zero before the decision
    bytes32 verdictHash;
    bytes32[COMMITTEE_SIZE] attestations;
}

/// @dev The last block of every phase of one round.
struct Schedule {
    uint32 commit;
    uint32 beacon;
    uint32 deliver;
    uint32 attest;
    uint32 finalise;
    uint32 request;
}

/// @dev Why a client is slashed. The values stand in verdicts.
enum Reason {
    None,
    CommitmentMismatch,
    NotDelivered,
    InputNotCommitted,
    ReplayOutside
}

/// @dev Why a member is penalised.
enum MemberFault {
    BeaconWithheld,
    VerdictDissent,
    VerdictSilence
}

enum SlashStatus {
    None,
    Requested,
    Vetoed,
    Executed
}

struct Slash {
    SlashStatus status;
    Reason reason;
    /// the first block in which it can be executed, and no longer vetoed
    uint32 executableAt;
    /// what was set aside from the deposit
    uint96 captured;
}

/// @dev What the members attested: who passed, and why the others did not.
struct Verdict {
    /// bit (i & 7), lowest first, of byte (i >> 3): client i passed
    bytes passes;
    /// five bytes a fault: the client's index, then the reason
    bytes faults;
}

/// @dev Evidence that a client committed in a round through a batch. Empty for a direct commitment.
struct BatchProof {
    bytes32 commitment;
    bytes32[] path;
    /// the client's EIP-712 signature of `GradientCommitment`
    bytes signature;
}

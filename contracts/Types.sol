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

/// @dev Number of seats of a committee. ABY3 is a three-party protocol.
uint256 constant COMMITTEE_SIZE = 3;

/// @dev Most standbys that a job may name.
uint256 constant MAX_STANDBYS = 5;

/// @dev Seats: the roster's number of every seat, in eight bits each, lowest first.
type Seats is uint24;

using SeatNumbers for Seats global;

/// @title The numbers of the seats
library SeatNumbers {
    /// @notice The number of a seat.
    function numberAt(Seats seats, uint256 seat) internal pure returns (uint8) {
        return uint8(Seats.unwrap(seats) >> (8 * seat));
    }

    /// @notice The numbers of all seats.
    function toArray(Seats seats) internal pure returns (uint8[COMMITTEE_SIZE] memory) {
        return [seats.numberAt(0), seats.numberAt(1), seats.numberAt(2)];
    }
}

/// @dev The seats with these numbers.
function packSeats(uint8[COMMITTEE_SIZE] memory numbers) pure returns (Seats) {
    return Seats.wrap(uint24(numbers[0]) | (uint24(numbers[1]) << 8) | (uint24(numbers[2]) << 16));
}

/// @dev An audit rate of one: every contribution is audited.
uint128 constant AUDIT_ALWAYS = 1 << 64;

/// @dev Role that a stake answers for. One address can hold both stakes in one job.
enum Role {
    Client,
    Member
}

/// @dev The lengths of all phases, in blocks, one after the other from the opening of a round.
struct Phases {
    /// members and standbys join and clients enrol, counted from the creation of the job
    uint32 enrol;
    /// clients deliver their contributions to the members, off chain
    uint32 deliver;
    /// the members agree on the roll
    uint32 roll;
    /// the members sign the beacon
    uint32 beacon;
    /// audited clients answer, off chain
    uint32 answer;
    /// members attest the verdict
    uint32 attest;
    /// the aggregate and the next model are finalised
    uint32 finalise;
    /// an audited client that was away can still answer, counted from the end of the attest phase
    uint32 response;
}

/// @dev Cost of each offence, in wei. A false statement and two statements in one slot cost the
/// whole stake.
struct Penalties {
    /// an audited contribution is outside the boundary, or was not answered for in time
    uint96 client;
    /// a member attested nothing
    uint96 silence;
    /// a member attested something else than what was decided
    uint96 dissent;
    /// a member was away from an audit
    uint96 absence;
    /// a member withheld its part of the beacon
    uint96 withheld;
}

/// @dev Pay of work, in wei, for each round.
struct Pay {
    /// a contribution that was accepted
    uint96 client;
    /// a seat that attested what was decided
    uint96 member;
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
    /// who takes a seat that becomes free, in this order
    address[] standbys;
    address treasury;
    uint96 clientDeposit;
    uint96 memberStake;
    /// the probability that a contribution is audited, times 2^64
    uint128 auditRate;
    uint32 rounds;
    uint32 maxClients;
    /// a sum of fewer contributions is never opened
    uint32 fewestContributions;
    /// blocks between asking for a stake and getting it
    uint32 unbondingDelay;
    /// blocks after which a held deposit is free again, in a job that nobody on a bench can save
    uint32 unlockDelay;
    /// the part of a penalty, in basis points, that goes to the treasury; the rest is burnt
    uint16 treasuryShare;
    /// whether the pairs of client and commitment are on chain, or only the root over them
    bool publicRoll;
    Phases phases;
    Penalties penalties;
    Pay pay;
}

enum ClientStatus {
    Unknown,
    /// may contribute
    Active,
    /// its deposit fell below the required one, or an audit of it is undecided
    Suspended,
    /// has asked for its deposit; never contributes again
    Leaving
}

/// @dev Record of a client of a job.
struct Client {
    ClientStatus status;
    /// the client's bit in verdicts
    uint32 index;
    /// audits of it that are held and undecided
    uint32 undecided;
    bytes32 datasetRoot;
}

/// @dev Participants of a job.
struct Participants {
    /// the last block in which members join and clients enrol
    uint32 enrolDeadline;
    uint32 clientCount;
    /// audits of clients that are held and undecided
    uint32 undecided;
    /// bit n: number n of the roster has staked
    uint8 joined;
    /// seat changes so far
    uint8 epoch;
    /// who sits where: numbers of the roster, that is members, then standbys
    uint8[COMMITTEE_SIZE] seats;
}

/// @dev Progress of a job.
struct Progress {
    /// the round that opens next, which is how many have been opened
    uint32 nextRound;
    /// void rounds since the last one that was finalised
    uint8 voidStreak;
    /// no further round can open
    bool closed;
    /// wei that the decided rounds have earned
    uint128 earned;
    /// hash of the current model; zero before the first round
    bytes32 modelHash;
}

enum RoundStatus {
    None,
    /// contributions are delivered and the roll is agreed
    Open,
    /// the roll is on chain: beacon, answers and attestation
    Rolled,
    /// two equal attestations: the verdict stands
    Decided,
    /// the next model is agreed
    Finalised,
    /// the model stays as it was
    Void
}

struct Round {
    RoundStatus status;
    /// bit s: seat s has attested
    uint8 attested;
    /// bit s: seat s attested what was decided
    uint8 majority;
    uint32 openedAt;
    /// contributions on the roll
    uint32 count;
    /// seat changes before the round opened
    uint8 epoch;
    /// who sat where when the round opened: numbers of the roster
    uint8[COMMITTEE_SIZE] seats;
    /// differs whenever the round is opened again on another chain or model
    bytes32 opening;
    /// Merkle root of the roll; zero before it is agreed
    bytes32 root;
    /// hash of the decided verdict; zero before the decision
    bytes32 verdictHash;
    /// hashes of the verdicts that were attested before the decision
    bytes32[COMMITTEE_SIZE] attestations;
}

/// @dev The last block of every phase of one round.
struct Schedule {
    uint32 deliver;
    uint32 roll;
    uint32 beacon;
    uint32 answer;
    uint32 attest;
    uint32 finalise;
    uint32 response;
}

/// @dev End of the audit of a contribution. Members sign it.
enum Outcome {
    None,
    Passed,
    Outside,
    Unanswered
}

enum ChargeStatus {
    None,
    /// set aside until the audit is decided
    Held,
    Charged,
    Acquitted,
    /// free again, because nobody was left to decide
    Unlocked
}

struct Charge {
    ChargeStatus status;
    uint32 heldAt;
    /// what was set aside from the deposit
    uint96 held;
}

/// @dev Evidence that a client contributed in a round.
struct RollEntry {
    bytes32 commitment;
    /// hash of the rest of the client's bundle; with the commitment it makes up the content hash
    bytes32 restHash;
    bytes32[] path;
    /// the client's EIP-712 signature of `Contribution`
    bytes signature;
}

/// @dev Why a member is penalised.
enum MemberFault {
    Silence,
    Dissent,
    Absence,
    Withheld,
    Falsehood,
    Equivocation
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    Client,
    ClientStatus,
    COMMITTEE_SIZE,
    JobId,
    JobTerms,
    Participants,
    Pay,
    Phases,
    Seats
} from "../Types.sol";

/// @title Jobs: their terms, their committees and their clients
/// @notice The roster of a job is its members, then its standbys; a number is a place in it. Three
/// of the roster have a seat.
interface IJobs {
    /// @notice A job was created, and `budget` escrowed for work. Its terms never change; `policy` and
    /// `boundary` are the bytes whose hashes stand in the terms.
    event JobCreated(
        JobId indexed job,
        address indexed creator,
        JobTerms terms,
        uint256 budget,
        bytes policy,
        bytes boundary
    );

    /// @notice A member or standby staked. `sealingKey` is the compressed point that clients seal to.
    event MemberJoined(JobId indexed job, address indexed member, uint8 number, bytes sealingKey);

    /// @notice A member or standby said where it is reached. The last one that it announced counts.
    event EndpointAnnounced(JobId indexed job, address indexed member, string url);

    /// @notice A standby took a seat, for all rounds that open from now on.
    event SeatChanged(JobId indexed job, uint8 indexed seat, address from, address to, uint8 epoch);

    /// @notice A client locked its deposit; its bit in verdicts is `index`.
    event ClientEnrolled(JobId indexed job, address indexed client, uint32 index, bytes32 root);

    /// @notice A client replaced its data set root, before the first round.
    event DatasetRootReplaced(JobId indexed job, address indexed client, bytes32 root);

    /// @notice The status of a client has changed: whether it may contribute, and why not.
    event ClientStatusChanged(JobId indexed job, address indexed client, ClientStatus status);

    /// @notice Only the Charges contract may call this.
    error NotAuthorised(address caller);

    /// @notice The hash in the terms is not that of the bytes.
    error HashMismatch(bytes32 stated, bytes32 actual);

    /// @notice There is no such job.
    error UnknownJob(JobId job);

    /// @notice The address is not on the job's roster, or has not staked.
    error NotMember(JobId job, address account);

    /// @notice The address has no seat, or has not staked.
    error NotSeated(JobId job, address account);

    /// @notice The address has a seat already.
    error AlreadySeated(JobId job, address account);

    /// @notice There is no such seat.
    error UnknownSeat(uint8 seat);

    /// @notice The member has staked already.
    error AlreadyJoined(JobId job, address member);

    /// @notice A sealing key is a compressed point of secp256k1, which has 33 bytes.
    error BadSealingKey(uint256 length);

    /// @notice The URL of an endpoint has more bytes than are allowed.
    error EndpointTooLong(uint256 length, uint256 allowed);

    /// @notice The address is not a client of the job.
    error NotClient(JobId job, address account);

    /// @notice The client is enrolled already.
    error AlreadyEnrolled(JobId job, address client);

    /// @notice All places for clients are taken.
    error JobFull(JobId job, uint32 maxClients);

    /// @notice The client has asked for its deposit.
    error ClientLeaving(JobId job, address client);

    /// @notice Members join and clients enrol until the deadline.
    error EnrolmentClosed(JobId job, uint32 deadline, uint256 currentBlock);

    /// @notice A data set root is fixed once the first round is open.
    error DatasetRootFixed(JobId job, address client);

    /// @notice A data set root must not be zero.
    error EmptyDatasetRoot();

    /// @notice Less was sent than is required.
    error DepositTooSmall(uint256 sent, uint256 required);

    /// @notice Members serve until the job is closed and every audit decided, or the job cannot start.
    error CommitteeInService(JobId job);

    /// @notice Two different accounts must sign.
    error SameSigner(address member);

    /// @notice An account does not certify its own fault.
    error OwnFault(address member);

    /// @notice Creates a job, and escrows the value sent to pay for work. Anyone may.
    /// @param policy Canonical JSON of the training policy.
    /// @param boundary Canonical JSON of the discrepancy boundary.
    function createJob(JobTerms calldata terms, bytes calldata policy, bytes calldata boundary)
        external
        payable
        returns (JobId job);

    /// @notice Locks the caller's member stake. The caller is on the roster and has registered a BLS key.
    /// @param sealingKey A compressed point of secp256k1, which clients seal shares to.
    function joinCommittee(JobId job, bytes calldata sealingKey) external payable;

    /// @notice Says where the caller, on the roster, is reached; at any time and as often as its
    /// endpoint moves. Nothing is stored: whoever wants to know reads the events.
    /// @param url At most 200 bytes. An empty one says that the member is not to be reached.
    function announceEndpoint(JobId job, string calldata url) external;

    /// @notice Gives a seat to a standby that has staked, with the signatures of two seats over
    /// `SeatChange`. It counts for rounds that open from now on. Forms the group key anew.
    function changeSeat(JobId job, uint8 seat, address standby, bytes[2] calldata signatures)
        external;

    /// @notice Locks the caller's client deposit and records the root of its data set.
    function enrol(JobId job, bytes32 root) external payable;

    /// @notice Replaces the root of the caller's data set, before the first round opens.
    function replaceDatasetRoot(JobId job, bytes32 root) external;

    /// @notice Adds the value sent to the caller's client deposit.
    function topUpDeposit(JobId job) external payable;

    /// @notice Adds the value sent to the caller's member stake.
    function topUpStake(JobId job) external payable;

    /// @notice The calling client stops contributing and gets its deposit after the delay.
    function unbondDeposit(JobId job) external;

    /// @notice The caller, on the roster, gets its stake after the delay.
    function unbondStake(JobId job) external;

    /// @notice Notes that an audit of a client was held, or decided, and that its deposit is now
    /// `balance`. Only Charges.
    function noteAudit(JobId job, address client, uint96 balance, bool held) external;

    /// @notice Number of jobs.
    function jobCount() external view returns (uint64);

    /// @notice Terms that were agreed.
    function terms(JobId job) external view returns (JobTerms memory);

    /// @notice Creator of the job, who gets the rest of its budget.
    function creatorOf(JobId job) external view returns (address);

    /// @notice The probability that a contribution is audited, times 2^64.
    function auditRate(JobId job) external view returns (uint128);

    /// @notice The lengths of the phases that were agreed.
    function phases(JobId job) external view returns (Phases memory);

    /// @notice Pay of work.
    function pay(JobId job) external view returns (Pay memory);

    /// @notice Number of rounds that were agreed.
    function roundCount(JobId job) external view returns (uint32);

    /// @notice Most contributions of a roll, and whether its pairs are on chain.
    function rollLimits(JobId job) external view returns (uint32 places, bool publicRoll);

    /// @notice Participants of the job.
    function participants(JobId job) external view returns (Participants memory);

    /// @notice True if the job can never start.
    function isStillborn(JobId job) external view returns (bool);

    /// @notice Holders of the seats at present.
    function seats(JobId job) external view returns (address[COMMITTEE_SIZE] memory);

    /// @notice The account with a number.
    function rosterAt(JobId job, uint8 number) external view returns (address);

    /// @notice The number of an account that has staked. Reverts for everyone else.
    function numberOf(JobId job, address account) external view returns (uint8);

    /// @notice A client of the job. Reverts for everyone else.
    function client(JobId job, address account) external view returns (Client memory);

    /// @notice The bit of a client in verdicts. Reverts for everyone else.
    function indexOf(JobId job, address account) external view returns (uint32);

    /// @notice The EIP-712 digest of a struct under this contract's domain.
    function statementDigest(bytes32 structHash) external view returns (bytes32);

    /// @notice The seat of an account among these. Reverts for everyone else.
    function seatAmong(JobId job, Seats among, address account) external view returns (uint8);

    /// @notice Reverts unless two different accounts with these seats signed the struct.
    function requireTwoAmong(
        JobId job,
        Seats among,
        bytes32 structHash,
        bytes[2] calldata signatures
    ) external view;

    /// @notice Reverts unless two different accounts that have a seat now signed the struct.
    function requireTwoSeats(JobId job, bytes32 structHash, bytes[2] calldata signatures)
        external
        view;

    /// @notice Reverts unless two different accounts of the roster, both staked and neither of them
    /// `accused`, signed the struct.
    function requireTwoOthers(
        JobId job,
        address accused,
        bytes32 structHash,
        bytes[2] calldata signatures
    ) external view;
}

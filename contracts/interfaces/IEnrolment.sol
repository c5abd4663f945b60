// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    Client,
    ClientStatus,
    COMMITTEE_SIZE,
    JobId,
    JobProgress,
    JobTerms,
    RoundId
} from "../Types.sol";

/// @title Enrolment: jobs, their committees and their clients
interface IEnrolment {
    /// @notice A job was created. Its terms never change; `policy` and `boundary` are the bytes
    /// whose hashes stand in the terms.
    event JobCreated(
        JobId indexed job, address indexed creator, JobTerms terms, bytes policy, bytes boundary
    );

    /// @notice A member staked; its bit in masks is `index`.
    event MemberJoined(JobId indexed job, address indexed member, uint8 index);

    /// @notice A member said where clients reach it. The last one that it announced counts.
    event EndpointAnnounced(JobId indexed job, address indexed member, string url);

    /// @notice A client locked its deposit; its bit in verdicts is `index`.
    event ClientEnrolled(JobId indexed job, address indexed client, uint32 index, bytes32 root);

    /// @notice A client replaced its data set root, before the first round.
    event DatasetRootReplaced(JobId indexed job, address indexed client, bytes32 root);

    /// @notice Whether and why a client may or may not commit has changed.
    event ClientStatusChanged(JobId indexed job, address indexed client, ClientStatus status);

    /// @notice Only the Slashing contract may call this.
    error NotAuthorised(address caller);

    /// @notice The hash in the terms is not that of the bytes.
    error HashMismatch(bytes32 stated, bytes32 actual);

    /// @notice There is no such job.
    error UnknownJob(JobId job);

    /// @notice The address is not in the job's committee.
    error NotMember(JobId job, address account);

    /// @notice The member has staked already.
    error AlreadyJoined(JobId job, address member);

    /// @notice The URL of an endpoint has more bytes than are allowed.
    error EndpointTooLong(uint256 length, uint256 allowed);

    /// @notice The address is not a client of the job.
    error NotClient(JobId job, address account);

    /// @notice The client is enrolled already.
    error AlreadyEnrolled(JobId job, address client);

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

    /// @notice Members serve until the job is closed, or cannot start any more.
    error CommitteeInService(JobId job);

    /// @notice Creates a job. Anyone may.
    /// @param policy Canonical JSON of the training policy.
    /// @param boundary Canonical JSON of the discrepancy boundary.
    function createJob(JobTerms calldata terms, bytes calldata policy, bytes calldata boundary)
        external
        returns (JobId job);

    /// @notice Locks the caller's member stake. The caller must have registered a BLS key.
    function joinCommittee(JobId job) external payable;

    /// @notice Says where clients reach the caller, a member; staked or not, at any time and as often
    /// as its endpoint moves. Nothing is stored: whoever wants to know reads the events.
    /// @param url At most 200 bytes. An empty one says that the member is not to be reached.
    function announceEndpoint(JobId job, string calldata url) external;

    /// @notice Locks the caller's client deposit and records the root of its data set.
    function enrol(JobId job, bytes32 root) external payable;

    /// @notice Replaces the root of the caller's data set, before the first round opens.
    function replaceDatasetRoot(JobId job, bytes32 root) external;

    /// @notice Adds the value sent to the caller's client deposit.
    function topUpDeposit(JobId job) external payable;

    /// @notice Adds the value sent to the caller's member stake.
    function topUpStake(JobId job) external payable;

    /// @notice The calling client stops committing and gets its deposit after the delay.
    function unbondDeposit(JobId job) external;

    /// @notice The calling member gets its stake after the delay.
    function unbondStake(JobId job) external;

    /// @notice Suspends or reinstates a client whose deposit is now `balance`. Only Slashing.
    function noteDeposit(JobId job, address client, uint96 balance) external;

    /// @notice How many jobs there are.
    function jobCount() external view returns (uint64);

    /// @notice What was agreed.
    function terms(JobId job) external view returns (JobTerms memory);

    /// @notice The probability that a contribution is audited, times 2^64.
    function auditRate(JobId job) external view returns (uint128);

    /// @notice How far the job has come.
    function progress(JobId job) external view returns (JobProgress memory);

    /// @notice The committee.
    function members(JobId job) external view returns (address[COMMITTEE_SIZE] memory);

    /// @notice A member's bit in masks. Reverts for everyone else.
    function memberIndex(JobId job, address account) external view returns (uint8);

    /// @notice A client of the job. Reverts for everyone else.
    function client(JobId job, address account) external view returns (Client memory);

    /// @notice Whether the client committed directly in a round. Rounds that are too long ago for a
    /// slash are forgotten.
    function committedDirectly(RoundId round, address account) external view returns (bool);
}

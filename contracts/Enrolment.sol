// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";
import {IDeposits} from "./interfaces/IDeposits.sol";
import {IEnrolment} from "./interfaces/IEnrolment.sol";
import {ClientRecord, ClientRecords} from "./libraries/ClientRecord.sol";
import {Terms} from "./libraries/Terms.sol";
import {
    Client,
    ClientStatus,
    COMMITTEE_SIZE,
    JobId,
    JobProgress,
    JobTerms,
    Role,
    RoundId
} from "./Types.sol";

/// @title Enrolment
/// @dev `IEnrolment` says what everything means.
abstract contract Enrolment is IEnrolment {
    /// @dev What is stored of a client.
    struct ClientEntry {
        ClientRecord record;
        bytes32 datasetRoot;
    }

    uint8 internal constant ALL_JOINED = uint8((1 << COMMITTEE_SIZE) - 1);

    /// @dev In bytes. Long enough for a host name, a port and a path.
    uint256 private constant MAX_ENDPOINT_LENGTH = 200;

    /// @notice Holds the stakes.
    IDeposits public immutable DEPOSITS;

    /// @notice Holds the members' keys.
    IBeacon public immutable BEACON;

    /// @notice May suspend clients.
    address public immutable SLASHING;

    /// @inheritdoc IEnrolment
    uint64 public jobCount;

    mapping(JobId => JobTerms) internal _terms;
    mapping(JobId => JobProgress) internal _progress;
    mapping(JobId => mapping(address => ClientEntry)) internal _clients;

    constructor(IDeposits deposits, IBeacon beacon, address slashing) {
        DEPOSITS = deposits;
        BEACON = beacon;
        SLASHING = slashing;
    }

    /// @inheritdoc IEnrolment
    function createJob(JobTerms calldata terms_, bytes calldata policy, bytes calldata boundary)
        external
        returns (JobId job)
    {
        Terms.validate(terms_);
        _requireHash(terms_.policyHash, policy);
        _requireHash(terms_.boundaryHash, boundary);
        job = JobId.wrap(++jobCount);
        _terms[job] = terms_;
        _progress[job].enrolDeadline = uint32(block.number) + terms_.phases.enrol;
        _progress[job].modelHash = terms_.modelHash;
        emit JobCreated(job, msg.sender, terms_, policy, boundary);
    }

    /// @inheritdoc IEnrolment
    function joinCommittee(JobId job) external payable {
        JobProgress storage state = _enrolling(job);
        uint8 index = memberIndex(job, msg.sender);
        uint8 bit = uint8(1 << index);
        if (state.joined & bit != 0) revert AlreadyJoined(job, msg.sender);
        _requireAmount(_terms[job].memberStake);
        if (BEACON.keyOf(msg.sender).length == 0) revert IBeacon.KeyMissing(msg.sender);
        state.joined |= bit;
        emit MemberJoined(job, msg.sender, index);
        DEPOSITS.lock{value: msg.value}(job, Role.Member, msg.sender);
    }

    /// @inheritdoc IEnrolment
    function announceEndpoint(JobId job, string calldata url) external {
        memberIndex(job, msg.sender);
        uint256 length = bytes(url).length;
        if (length > MAX_ENDPOINT_LENGTH) revert EndpointTooLong(length, MAX_ENDPOINT_LENGTH);
        emit EndpointAnnounced(job, msg.sender, url);
    }

    /// @inheritdoc IEnrolment
    function enrol(JobId job, bytes32 root) external payable {
        JobProgress storage state = _enrolling(job);
        ClientEntry storage entry = _clients[job][msg.sender];
        if (entry.record.status() != ClientStatus.Unknown) {
            revert AlreadyEnrolled(job, msg.sender);
        }
        if (root == 0) revert EmptyDatasetRoot();
        _requireAmount(_terms[job].clientDeposit);
        uint32 index = state.clientCount++;
        entry.record = ClientRecords.enrolled(index);
        entry.datasetRoot = root;
        emit ClientEnrolled(job, msg.sender, index, root);
        DEPOSITS.lock{value: msg.value}(job, Role.Client, msg.sender);
    }

    /// @inheritdoc IEnrolment
    function replaceDatasetRoot(JobId job, bytes32 root) external {
        ClientEntry storage entry = _enrolled(job, msg.sender);
        if (_progress[job].nextRound != 0) revert DatasetRootFixed(job, msg.sender);
        if (root == 0) revert EmptyDatasetRoot();
        entry.datasetRoot = root;
        emit DatasetRootReplaced(job, msg.sender, root);
    }

    /// @inheritdoc IEnrolment
    function topUpDeposit(JobId job) external payable {
        _enrolled(job, msg.sender);
        uint96 balance = DEPOSITS.lock{value: msg.value}(job, Role.Client, msg.sender);
        _noteDeposit(job, msg.sender, balance);
    }

    /// @inheritdoc IEnrolment
    function topUpStake(JobId job) external payable {
        _requireJoined(job, msg.sender);
        DEPOSITS.lock{value: msg.value}(job, Role.Member, msg.sender);
    }

    /// @inheritdoc IEnrolment
    function unbondDeposit(JobId job) external {
        ClientEntry storage leaver = _enrolled(job, msg.sender);
        if (leaver.record.status() == ClientStatus.Leaving) revert ClientLeaving(job, msg.sender);
        _setStatus(job, msg.sender, leaver, ClientStatus.Leaving);
        DEPOSITS.startUnbonding(job, Role.Client, msg.sender, _unbondedAt(job));
    }

    /// @inheritdoc IEnrolment
    function unbondStake(JobId job) external {
        _requireJoined(job, msg.sender);
        JobProgress storage state = _progress[job];
        if (!state.closed && !_isStillborn(state)) revert CommitteeInService(job);
        DEPOSITS.startUnbonding(job, Role.Member, msg.sender, _unbondedAt(job));
    }

    /// @inheritdoc IEnrolment
    function noteDeposit(JobId job, address account, uint96 balance) external {
        if (msg.sender != SLASHING) revert NotAuthorised(msg.sender);
        _noteDeposit(job, account, balance);
    }

    /// @inheritdoc IEnrolment
    function terms(JobId job) external view returns (JobTerms memory) {
        _requireJob(job);
        return _terms[job];
    }

    /// @inheritdoc IEnrolment
    function auditRate(JobId job) external view returns (uint128) {
        return _terms[job].auditRate;
    }

    /// @inheritdoc IEnrolment
    function progress(JobId job) external view returns (JobProgress memory) {
        _requireJob(job);
        return _progress[job];
    }

    /// @inheritdoc IEnrolment
    function members(JobId job) external view returns (address[COMMITTEE_SIZE] memory) {
        return _terms[job].members;
    }

    /// @inheritdoc IEnrolment
    function client(JobId job, address account) external view returns (Client memory) {
        ClientEntry storage entry = _enrolled(job, account);
        ClientRecord record = entry.record;
        return Client({
            status: record.status(),
            index: record.index(),
            nextRound: record.nextRound(),
            datasetRoot: entry.datasetRoot
        });
    }

    /// @inheritdoc IEnrolment
    function committedDirectly(RoundId round, address account) external view returns (bool) {
        return _clients[round.job()][account].record.committedIn(round);
    }

    /// @inheritdoc IEnrolment
    function memberIndex(JobId job, address account) public view returns (uint8) {
        address[COMMITTEE_SIZE] storage committee = _terms[job].members;
        for (uint8 i = 0; i < COMMITTEE_SIZE; ++i) {
            if (committee[i] == account) return i;
        }
        revert NotMember(job, account);
    }

    /// @dev Ready to start but for time: past enrolment, such a job can only stay as it is.
    function _canStart(JobProgress storage state) internal view returns (bool) {
        return state.joined == ALL_JOINED && state.clientCount != 0;
    }

    function _requireJob(JobId job) internal view {
        if (_progress[job].enrolDeadline == 0) revert UnknownJob(job);
    }

    function _noteDeposit(JobId job, address account, uint96 balance) private {
        ClientEntry storage entry = _clients[job][account];
        ClientStatus before = entry.record.status();
        if (before == ClientStatus.Leaving) return;
        ClientStatus status =
            balance < _terms[job].clientDeposit ? ClientStatus.Suspended : ClientStatus.Active;
        if (before != status) _setStatus(job, account, entry, status);
    }

    function _setStatus(JobId job, address account, ClientEntry storage entry, ClientStatus status)
        private
    {
        entry.record = entry.record.withStatus(status);
        emit ClientStatusChanged(job, account, status);
    }

    function _isStillborn(JobProgress storage state) private view returns (bool) {
        return state.nextRound == 0 && block.number > state.enrolDeadline && !_canStart(state);
    }

    function _unbondedAt(JobId job) private view returns (uint32) {
        return uint32(block.number) + _terms[job].unbondingDelay;
    }

    function _enrolling(JobId job) private view returns (JobProgress storage state) {
        _requireJob(job);
        state = _progress[job];
        if (block.number > state.enrolDeadline) {
            revert EnrolmentClosed(job, state.enrolDeadline, block.number);
        }
    }

    function _enrolled(JobId job, address account)
        private
        view
        returns (ClientEntry storage found)
    {
        found = _clients[job][account];
        if (found.record.status() == ClientStatus.Unknown) revert NotClient(job, account);
    }

    function _requireJoined(JobId job, address account) private view {
        uint256 bit = 1 << memberIndex(job, account);
        if (_progress[job].joined & bit == 0) revert NotMember(job, account);
    }

    function _requireAmount(uint96 required) private view {
        if (msg.value < required) revert DepositTooSmall(msg.value, required);
    }

    function _requireHash(bytes32 stated, bytes calldata data) private pure {
        bytes32 actual = keccak256(data);
        if (stated != actual) revert HashMismatch(stated, actual);
    }
}

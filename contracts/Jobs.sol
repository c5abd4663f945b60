// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {IBeacon} from "./interfaces/IBeacon.sol";
import {IDeposits} from "./interfaces/IDeposits.sol";
import {IJobs} from "./interfaces/IJobs.sol";
import {IRounds} from "./interfaces/IRounds.sol";
import {Statements} from "./libraries/Statements.sol";
import {Terms} from "./libraries/Terms.sol";
import {
    Client,
    ClientStatus,
    COMMITTEE_SIZE,
    JobId,
    JobTerms,
    packSeats,
    Participants,
    Pay,
    Phases,
    Role,
    Seats
} from "./Types.sol";

/// @title Jobs
/// @dev `IJobs` says what everything means.
contract Jobs is IJobs, EIP712 {
    uint8 private constant ALL_SEATED = uint8((1 << COMMITTEE_SIZE) - 1);

    /// @dev In bytes. Long enough for a host name, a port and a path.
    uint256 private constant MAX_ENDPOINT_LENGTH = 200;

    uint256 private constant SEALING_KEY_LENGTH = 33;

    /// @notice Holds the stakes.
    IDeposits public immutable DEPOSITS;

    /// @notice Holds the members' keys.
    IBeacon public immutable BEACON;

    /// @notice Knows how far jobs have come.
    IRounds public immutable ROUNDS;

    /// @notice May suspend clients.
    address public immutable CHARGES;

    /// @inheritdoc IJobs
    uint64 public jobCount;

    /// @inheritdoc IJobs
    mapping(JobId => address) public creatorOf;

    mapping(JobId => JobTerms) private _terms;
    mapping(JobId => Participants) private _participants;
    mapping(JobId => mapping(address => Client)) private _clients;

    /// @dev Numbers of those who have staked, plus one.
    mapping(JobId => mapping(address => uint8)) private _places;

    constructor(IDeposits deposits, IBeacon beacon, IRounds rounds, address charges)
        EIP712("opfl_chain", "2")
    {
        DEPOSITS = deposits;
        BEACON = beacon;
        ROUNDS = rounds;
        CHARGES = charges;
    }

    /// @inheritdoc IJobs
    function createJob(JobTerms calldata terms_, bytes calldata policy, bytes calldata boundary)
        external
        payable
        returns (JobId job)
    {
        Terms.validate(terms_, msg.value);
        _requireHash(terms_.policyHash, policy);
        _requireHash(terms_.boundaryHash, boundary);
        job = JobId.wrap(++jobCount);
        creatorOf[job] = msg.sender;
        _terms[job] = terms_;
        Participants storage state = _participants[job];
        state.enrolDeadline = uint32(block.number) + terms_.phases.enrol;
        state.seats = [0, 1, 2];
        emit JobCreated(job, msg.sender, terms_, msg.value, policy, boundary);
        DEPOSITS.fund{value: msg.value}(job);
    }

    /// @inheritdoc IJobs
    function joinCommittee(JobId job, bytes calldata sealingKey) external payable {
        Participants storage state = _enrolling(job);
        uint8 number = _rosterNumber(job, msg.sender);
        if (_places[job][msg.sender] != 0) revert AlreadyJoined(job, msg.sender);
        if (sealingKey.length != SEALING_KEY_LENGTH) revert BadSealingKey(sealingKey.length);
        _requireAmount(_terms[job].memberStake);
        if (BEACON.keyOf(msg.sender).length == 0) revert IBeacon.KeyMissing(msg.sender);
        state.joined |= uint8(1 << number);
        _places[job][msg.sender] = number + 1;
        emit MemberJoined(job, msg.sender, number, sealingKey);
        DEPOSITS.lock{value: msg.value}(job, Role.Member, msg.sender);
    }

    /// @inheritdoc IJobs
    function announceEndpoint(JobId job, string calldata url) external {
        _rosterNumber(job, msg.sender);
        uint256 length = bytes(url).length;
        if (length > MAX_ENDPOINT_LENGTH) revert EndpointTooLong(length, MAX_ENDPOINT_LENGTH);
        emit EndpointAnnounced(job, msg.sender, url);
    }

    /// @inheritdoc IJobs
    function changeSeat(JobId job, uint8 seat, address standby, bytes[2] calldata signatures)
        external
    {
        Participants storage state = _participants[job];
        if (seat >= COMMITTEE_SIZE) revert UnknownSeat(seat);
        uint8 number = numberOf(job, standby);
        if (_isSeated(state, number)) revert AlreadySeated(job, standby);
        uint8 epoch = state.epoch;
        requireTwoSeats(job, Statements.seatChange(job, epoch, seat, standby), signatures);

        address from = rosterAt(job, state.seats[seat]);
        state.seats[seat] = number;
        state.epoch = ++epoch;
        emit SeatChanged(job, seat, from, standby, epoch);
        BEACON.formGroup(job, epoch, seats(job));
    }

    /// @inheritdoc IJobs
    function enrol(JobId job, bytes32 root) external payable {
        Participants storage state = _enrolling(job);
        Client storage entry = _clients[job][msg.sender];
        if (entry.status != ClientStatus.Unknown) revert AlreadyEnrolled(job, msg.sender);
        if (root == 0) revert EmptyDatasetRoot();
        _requireAmount(_terms[job].clientDeposit);
        uint32 places = _terms[job].maxClients;
        if (state.clientCount == places) revert JobFull(job, places);
        uint32 index = state.clientCount++;
        entry.status = ClientStatus.Active;
        entry.index = index;
        entry.datasetRoot = root;
        emit ClientEnrolled(job, msg.sender, index, root);
        DEPOSITS.lock{value: msg.value}(job, Role.Client, msg.sender);
    }

    /// @inheritdoc IJobs
    function replaceDatasetRoot(JobId job, bytes32 root) external {
        Client storage entry = _enrolled(job, msg.sender);
        if (_hasStarted(job)) revert DatasetRootFixed(job, msg.sender);
        if (root == 0) revert EmptyDatasetRoot();
        entry.datasetRoot = root;
        emit DatasetRootReplaced(job, msg.sender, root);
    }

    /// @inheritdoc IJobs
    function topUpDeposit(JobId job) external payable {
        Client storage entry = _enrolled(job, msg.sender);
        uint96 balance = DEPOSITS.lock{value: msg.value}(job, Role.Client, msg.sender);
        _updateStatus(job, msg.sender, entry, balance);
    }

    /// @inheritdoc IJobs
    function topUpStake(JobId job) external payable {
        numberOf(job, msg.sender);
        DEPOSITS.lock{value: msg.value}(job, Role.Member, msg.sender);
    }

    /// @inheritdoc IJobs
    function unbondDeposit(JobId job) external {
        Client storage leaver = _enrolled(job, msg.sender);
        if (leaver.status == ClientStatus.Leaving) revert ClientLeaving(job, msg.sender);
        _setStatus(job, msg.sender, leaver, ClientStatus.Leaving);
        DEPOSITS.startUnbonding(job, Role.Client, msg.sender, _unbondedAt(job));
    }

    /// @inheritdoc IJobs
    function unbondStake(JobId job) external {
        numberOf(job, msg.sender);
        bool over = ROUNDS.progress(job).closed && _participants[job].undecided == 0;
        if (!over && !isStillborn(job)) revert CommitteeInService(job);
        DEPOSITS.startUnbonding(job, Role.Member, msg.sender, _unbondedAt(job));
    }

    /// @inheritdoc IJobs
    function noteAudit(JobId job, address account, uint96 balance, bool held) external {
        if (msg.sender != CHARGES) revert NotAuthorised(msg.sender);
        Client storage entry = _clients[job][account];
        Participants storage state = _participants[job];
        if (held) {
            entry.undecided += 1;
            state.undecided += 1;
        } else {
            entry.undecided -= 1;
            state.undecided -= 1;
        }
        _updateStatus(job, account, entry, balance);
    }

    /// @inheritdoc IJobs
    function terms(JobId job) external view returns (JobTerms memory) {
        _requireJob(job);
        return _terms[job];
    }

    /// @inheritdoc IJobs
    function auditRate(JobId job) external view returns (uint128) {
        return _terms[job].auditRate;
    }

    /// @inheritdoc IJobs
    function phases(JobId job) external view returns (Phases memory) {
        return _terms[job].phases;
    }

    /// @inheritdoc IJobs
    function pay(JobId job) external view returns (Pay memory) {
        return _terms[job].pay;
    }

    /// @inheritdoc IJobs
    function roundCount(JobId job) external view returns (uint32) {
        return _terms[job].rounds;
    }

    /// @inheritdoc IJobs
    function rollLimits(JobId job) external view returns (uint32 places, bool publicRoll) {
        JobTerms storage agreed = _terms[job];
        return (agreed.maxClients, agreed.publicRoll);
    }

    /// @inheritdoc IJobs
    function participants(JobId job) external view returns (Participants memory) {
        _requireJob(job);
        return _participants[job];
    }

    /// @inheritdoc IJobs
    function client(JobId job, address account) external view returns (Client memory) {
        return _enrolled(job, account);
    }

    /// @inheritdoc IJobs
    function indexOf(JobId job, address account) external view returns (uint32) {
        return _enrolled(job, account).index;
    }

    /// @inheritdoc IJobs
    function isStillborn(JobId job) public view returns (bool) {
        Participants storage state = _participants[job];
        bool ready = state.joined & ALL_SEATED == ALL_SEATED && state.clientCount != 0;
        return !ready && block.number > state.enrolDeadline && !_hasStarted(job);
    }

    /// @inheritdoc IJobs
    function seats(JobId job) public view returns (address[COMMITTEE_SIZE] memory accounts) {
        uint8[COMMITTEE_SIZE] storage numbers = _participants[job].seats;
        for (uint256 seat = 0; seat < COMMITTEE_SIZE; ++seat) {
            accounts[seat] = rosterAt(job, numbers[seat]);
        }
    }

    /// @inheritdoc IJobs
    function rosterAt(JobId job, uint8 number) public view returns (address) {
        JobTerms storage agreed = _terms[job];
        return
            number < COMMITTEE_SIZE
                ? agreed.members[number]
                : agreed.standbys[number - COMMITTEE_SIZE];
    }

    /// @inheritdoc IJobs
    function numberOf(JobId job, address account) public view returns (uint8) {
        uint8 place = _places[job][account];
        if (place == 0) revert NotMember(job, account);
        return place - 1;
    }

    /// @inheritdoc IJobs
    function statementDigest(bytes32 structHash) public view returns (bytes32) {
        return _hashTypedDataV4(structHash);
    }

    /// @inheritdoc IJobs
    function seatAmong(JobId job, Seats among, address account) public view returns (uint8) {
        uint8 place = _places[job][account];
        for (uint8 seat = 0; seat < COMMITTEE_SIZE; ++seat) {
            if (among.numberAt(seat) + 1 == place) return seat;
        }
        revert NotSeated(job, account);
    }

    /// @inheritdoc IJobs
    function requireTwoAmong(
        JobId job,
        Seats among,
        bytes32 structHash,
        bytes[2] calldata signatures
    ) public view {
        (address first, address second) = _signers(structHash, signatures);
        seatAmong(job, among, first);
        seatAmong(job, among, second);
    }

    /// @inheritdoc IJobs
    function requireTwoSeats(JobId job, bytes32 structHash, bytes[2] calldata signatures)
        public
        view
    {
        requireTwoAmong(job, packSeats(_participants[job].seats), structHash, signatures);
    }

    /// @inheritdoc IJobs
    function requireTwoOthers(
        JobId job,
        address accused,
        bytes32 structHash,
        bytes[2] calldata signatures
    ) external view {
        (address first, address second) = _signers(structHash, signatures);
        if (first == accused || second == accused) revert OwnFault(accused);
        numberOf(job, first);
        numberOf(job, second);
    }

    function _hasStarted(JobId job) private view returns (bool) {
        return ROUNDS.progress(job).nextRound != 0;
    }

    function _requireJob(JobId job) private view {
        if (_participants[job].enrolDeadline == 0) revert UnknownJob(job);
    }

    function _signers(bytes32 structHash, bytes[2] calldata signatures)
        private
        view
        returns (address first, address second)
    {
        bytes32 digest = statementDigest(structHash);
        first = ECDSA.recoverCalldata(digest, signatures[0]);
        second = ECDSA.recoverCalldata(digest, signatures[1]);
        if (first == second) revert SameSigner(first);
    }

    function _updateStatus(JobId job, address account, Client storage entry, uint96 balance)
        private
    {
        if (entry.status == ClientStatus.Leaving) return;
        bool fit = balance >= _terms[job].clientDeposit && entry.undecided == 0;
        ClientStatus status = fit ? ClientStatus.Active : ClientStatus.Suspended;
        if (entry.status != status) _setStatus(job, account, entry, status);
    }

    function _setStatus(JobId job, address account, Client storage entry, ClientStatus status)
        private
    {
        entry.status = status;
        emit ClientStatusChanged(job, account, status);
    }

    function _isSeated(Participants storage state, uint8 number) private view returns (bool) {
        for (uint256 seat = 0; seat < COMMITTEE_SIZE; ++seat) {
            if (state.seats[seat] == number) return true;
        }
        return false;
    }

    function _rosterNumber(JobId job, address account) private view returns (uint8) {
        uint256 size = COMMITTEE_SIZE + _terms[job].standbys.length;
        for (uint8 number = 0; number < size; ++number) {
            if (rosterAt(job, number) == account) return number;
        }
        revert NotMember(job, account);
    }

    function _unbondedAt(JobId job) private view returns (uint32) {
        return uint32(block.number) + _terms[job].unbondingDelay;
    }

    function _enrolling(JobId job) private view returns (Participants storage state) {
        _requireJob(job);
        state = _participants[job];
        if (block.number > state.enrolDeadline) {
            revert EnrolmentClosed(job, state.enrolDeadline, block.number);
        }
    }

    function _enrolled(JobId job, address account) private view returns (Client storage found) {
        found = _clients[job][account];
        if (found.status == ClientStatus.Unknown) revert NotClient(job, account);
    }

    function _requireAmount(uint96 required) private view {
        if (msg.value < required) revert DepositTooSmall(msg.value, required);
    }

    function _requireHash(bytes32 stated, bytes calldata data) private pure {
        bytes32 actual = keccak256(data);
        if (stated != actual) revert HashMismatch(stated, actual);
    }
}

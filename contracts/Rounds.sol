// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";
import {IJobs} from "./interfaces/IJobs.sol";
import {IRounds} from "./interfaces/IRounds.sol";
import {Statements} from "./libraries/Statements.sol";
import {Terms} from "./libraries/Terms.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {
    COMMITTEE_SIZE,
    JobId,
    packSeats,
    Participants,
    Pay,
    Progress,
    Round,
    roundOf,
    RoundId,
    RoundStatus,
    Schedule,
    Seats
} from "./Types.sol";

/// @title Rounds
/// @dev `IRounds` says what everything means.
contract Rounds is IRounds {
    bytes32 private constant ROUND_TAG = keccak256("opfl.v2.round");

    /// @dev Bytes of a client's index and its commitment.
    uint256 private constant PAIR_BYTES = 36;

    /// @dev A committee that cannot decide so many times in a row is gone, and the job with it.
    uint8 public constant MAX_VOID_STREAK = 8;

    /// @notice Participants and terms of jobs.
    IJobs public immutable JOBS;

    /// @notice Knows when it is settled who is audited.
    IBeacon public immutable BEACON;

    /// @dev A round, and what its hot paths need of the terms: all before the opening are one slot.
    struct State {
        RoundStatus status;
        uint8 attested;
        uint8 majority;
        uint8 epoch;
        Seats seats;
        bool publicRoll;
        uint32 openedAt;
        uint32 rollDeadline;
        uint32 beaconDeadline;
        uint32 attestDeadline;
        uint32 count;
        uint32 places;
        bytes32 opening;
        bytes32 root;
        bytes32 verdictHash;
        bytes32[COMMITTEE_SIZE] attestations;
    }

    mapping(JobId => Progress) private _progress;
    mapping(RoundId => State) private _rounds;

    constructor(IJobs jobs, IBeacon beacon) {
        JOBS = jobs;
        BEACON = beacon;
    }

    /// @inheritdoc IRounds
    function openRound(JobId job) external returns (RoundId id) {
        Participants memory present = JOBS.participants(job);
        Progress storage state = _progress[job];
        if (state.closed) revert JobAlreadyClosed(job);
        uint32 number = state.nextRound;
        if (number == 0) _start(job, state, present);
        else _requireOver(roundOf(job, number - 1));

        id = roundOf(job, number);
        state.nextRound = number + 1;
        State storage current = _rounds[id];
        Schedule memory deadlines = Terms.schedule(JOBS.phases(job), uint32(block.number));
        (uint32 places, bool publicRoll) = JOBS.rollLimits(job);
        current.status = RoundStatus.Open;
        current.epoch = present.epoch;
        current.seats = packSeats(present.seats);
        current.publicRoll = publicRoll;
        current.openedAt = uint32(block.number);
        current.rollDeadline = deadlines.roll;
        current.beaconDeadline = deadlines.beacon;
        current.attestDeadline = deadlines.attest;
        current.places = places;
        current.opening = _opening(id, state.modelHash);
        emit RoundOpened(id, state.modelHash, current.opening, present.epoch);
    }

    /// @inheritdoc IRounds
    function commitRoll(
        RoundId id,
        bytes32 root,
        uint32 count,
        bytes calldata pairs,
        bytes[2] calldata signatures
    ) external {
        State storage current = _rounds[id];
        if (current.status != RoundStatus.Open || block.number > current.rollDeadline) {
            revert NotInRollPhase(id, block.number);
        }
        uint32 places = current.places;
        if (root == 0 || count == 0 || count > places) revert BadRollCount(count, places);
        uint256 expected = current.publicRoll ? PAIR_BYTES * count : 0;
        if (pairs.length != expected) revert BadPairsLength(pairs.length, expected);
        bytes32 statement = Statements.roll(id, current.opening, root, count, keccak256(pairs));
        JOBS.requireTwoAmong(id.job(), current.seats, statement, signatures);

        current.status = RoundStatus.Rolled;
        current.count = count;
        current.root = root;
        emit RollCommitted(id, root, count, pairs);
    }

    /// @inheritdoc IRounds
    function attest(RoundId id, bytes32 opening, bytes calldata passes) external {
        // Also when two have finalised already: who comes third is paid, not penalised for silence.
        State storage current = _rounds[id];
        if (block.number > current.attestDeadline || !BEACON.isSettled(id)) {
            revert NotInAttestPhase(id, block.number);
        }
        if (opening != current.opening) revert WrongOpening(opening, current.opening);
        JobId job = id.job();
        uint8 seat = JOBS.seatAmong(job, current.seats, msg.sender);
        uint8 bit = uint8(1 << seat);
        if (current.attested & bit != 0) revert AlreadyAttested(id, msg.sender);
        uint256 passed = Verdicts.count(passes);
        if (passed > current.count) revert TooManyPasses(passed, current.count);

        bytes32 verdictHash = keccak256(passes);
        bytes32 decided = current.verdictHash;
        current.attested |= bit;
        emit VerdictAttested(id, msg.sender, passes);

        if (decided == 0) {
            _recordOrDecide(id, current, seat, verdictHash, uint32(passed));
        } else if (decided == verdictHash) {
            current.majority |= bit;
            _progress[job].earned += JOBS.pay(job).member;
        }
    }

    /// @inheritdoc IRounds
    function finalise(
        RoundId id,
        bytes32 aggregateHash,
        bytes32 modelHash,
        bytes[2] calldata signatures
    ) external {
        State storage current = _rounds[id];
        if (current.status != RoundStatus.Decided) revert NotDecided(id);
        uint32 deadline = schedule(id).finalise;
        if (block.number > deadline) revert FinalisePhaseOver(id, deadline, block.number);
        JobId job = id.job();
        bytes32 statement = Statements.roundResult(
            id, current.opening, current.verdictHash, aggregateHash, modelHash
        );
        JOBS.requireTwoAmong(job, current.seats, statement, signatures);

        Progress storage state = _progress[job];
        current.status = RoundStatus.Finalised;
        state.modelHash = modelHash;
        state.voidStreak = 0;
        emit RoundFinalised(id, aggregateHash, modelHash);
        if (state.nextRound == JOBS.roundCount(job)) _close(job, state);
    }

    /// @inheritdoc IRounds
    function voidRound(RoundId id) external {
        Schedule memory deadlines = schedule(id);
        State storage current = _rounds[id];
        RoundStatus status = current.status;
        bool due = (status == RoundStatus.Open && block.number > deadlines.roll)
            || (status == RoundStatus.Rolled && block.number > deadlines.attest)
            || (status == RoundStatus.Decided && block.number > deadlines.finalise);
        if (!due) revert NotVoidable(id, block.number);

        JobId job = id.job();
        Progress storage state = _progress[job];
        current.status = RoundStatus.Void;
        state.voidStreak += 1;
        emit RoundVoided(id, status == RoundStatus.Decided);
        if (state.nextRound == JOBS.roundCount(job) || state.voidStreak == MAX_VOID_STREAK) {
            _close(job, state);
        }
    }

    /// @inheritdoc IRounds
    function progress(JobId job) external view returns (Progress memory) {
        return _progress[job];
    }

    /// @inheritdoc IRounds
    function round(RoundId id) external view returns (Round memory) {
        State storage found = _rounds[id];
        return Round({
            status: found.status,
            attested: found.attested,
            majority: found.majority,
            openedAt: found.openedAt,
            count: found.count,
            epoch: found.epoch,
            seats: found.seats.toArray(),
            opening: found.opening,
            root: found.root,
            verdictHash: found.verdictHash,
            attestations: found.attestations
        });
    }

    /// @inheritdoc IRounds
    function rollOf(RoundId id) external view returns (bytes32 opening, bytes32 root) {
        return (_rounds[id].opening, _rounds[id].root);
    }

    /// @inheritdoc IRounds
    function beaconTermsOf(RoundId id)
        external
        view
        returns (bytes32 opening, bytes32 root, uint8 epoch, uint32 deadline)
    {
        State storage found = _rounds[id];
        return (found.opening, found.root, found.epoch, found.beaconDeadline);
    }

    /// @inheritdoc IRounds
    function verdictHashOf(RoundId id) external view returns (bytes32) {
        return _rounds[id].verdictHash;
    }

    /// @inheritdoc IRounds
    function majorityOf(RoundId id) external view returns (uint8) {
        return _rounds[id].majority;
    }

    /// @inheritdoc IRounds
    function seatsOf(RoundId id) external view returns (address[COMMITTEE_SIZE] memory accounts) {
        JobId job = id.job();
        for (uint256 seat = 0; seat < COMMITTEE_SIZE; ++seat) {
            accounts[seat] = JOBS.rosterAt(job, _rounds[id].seats.numberAt(seat));
        }
    }

    /// @inheritdoc IRounds
    function seatOf(RoundId id, address account) external view returns (uint8) {
        return JOBS.seatAmong(id.job(), _rounds[id].seats, account);
    }

    /// @inheritdoc IRounds
    function schedule(RoundId id) public view returns (Schedule memory) {
        uint32 openedAt = _rounds[id].openedAt;
        if (openedAt == 0) revert UnknownRound(id);
        return Terms.schedule(JOBS.phases(id.job()), openedAt);
    }

    /// @dev The verdict stands as soon as another member has attested the same.
    function _recordOrDecide(
        RoundId id,
        State storage current,
        uint8 seat,
        bytes32 verdictHash,
        uint32 passed
    ) private {
        for (uint8 other = 0; other < COMMITTEE_SIZE; ++other) {
            if (current.attestations[other] != verdictHash) continue;
            JobId job = id.job();
            current.verdictHash = verdictHash;
            current.status = RoundStatus.Decided;
            current.majority = uint8((1 << seat) | (1 << other));
            Pay memory pay = JOBS.pay(job);
            // All of it is escrowed, so it is less than 2^128.
            _progress[job].earned += uint128(pay.client) * passed + 2 * uint128(pay.member);
            emit VerdictDecided(id, verdictHash, passed);
            return;
        }
        current.attestations[seat] = verdictHash;
    }

    function _close(JobId job, Progress storage state) private {
        state.closed = true;
        emit JobClosed(job, state.nextRound);
    }

    /// @dev The hash of the block before is another one on another chain.
    function _opening(RoundId id, bytes32 modelHash) private view returns (bytes32) {
        return keccak256(
            abi.encode(
                ROUND_TAG,
                block.chainid,
                address(this),
                id.job(),
                id.number(),
                modelHash,
                blockhash(block.number - 1)
            )
        );
    }

    function _start(JobId job, Progress storage state, Participants memory present) private {
        if (block.number <= present.enrolDeadline) {
            revert EnrolmentStillOpen(job, present.enrolDeadline, block.number);
        }
        if (JOBS.isStillborn(job)) revert JobNotReady(job, present.joined, present.clientCount);
        state.modelHash = JOBS.terms(job).modelHash;
        BEACON.formGroup(job, present.epoch, JOBS.seats(job));
    }

    function _requireOver(RoundId id) private view {
        RoundStatus status = _rounds[id].status;
        if (status != RoundStatus.Finalised && status != RoundStatus.Void) {
            revert RoundInProgress(id);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {Enrolment} from "./Enrolment.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IDeposits} from "./interfaces/IDeposits.sol";
import {IJobs} from "./interfaces/IJobs.sol";
import {ClientRecord} from "./libraries/ClientRecord.sol";
import {CommitLedger, CommitLedgers} from "./libraries/CommitLedger.sol";
import {Statements} from "./libraries/Statements.sol";
import {Terms} from "./libraries/Terms.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {
    ClientStatus,
    COMMITTEE_SIZE,
    JobId,
    JobProgress,
    Round,
    roundOf,
    RoundId,
    RoundStatus,
    Schedule,
    Verdict
} from "./Types.sol";

/// @title Jobs
/// @dev `IJobs` says what everything means.
contract Jobs is IJobs, Enrolment, EIP712 {
    /// @dev What is stored of a round.
    struct RoundEntry {
        CommitLedger ledger;
        Round state;
    }

    /// @dev A committee that cannot decide so many times in a row is gone, and the job with it.
    uint8 public constant MAX_VOID_STREAK = 8;

    mapping(RoundId => RoundEntry) private _rounds;

    constructor(IDeposits deposits, IBeacon beacon, address slashing)
        Enrolment(deposits, beacon, slashing)
        EIP712("opfl_chain", "1")
    {}

    /// @inheritdoc IJobs
    function openRound(JobId job) external returns (RoundId id) {
        _requireJob(job);
        JobProgress storage state = _progress[job];
        if (state.closed) revert JobAlreadyClosed(job);
        uint32 number = state.nextRound;
        if (number == 0) _requireStart(job, state);
        else _requireOver(roundOf(job, number - 1));

        id = roundOf(job, number);
        state.nextRound = number + 1;
        RoundEntry storage entry = _rounds[id];
        entry.state.status = RoundStatus.Open;
        uint32 deadline = uint32(block.number) + _terms[job].phases.commit;
        entry.ledger = CommitLedgers.opened(id, state.modelHash, deadline);
        emit RoundOpened(id, state.modelHash, deadline);
        if (number == 0) BEACON.formGroup(job, _terms[job].members);
    }

    /// @inheritdoc IJobs
    function commitGradient(RoundId id, bytes32 commitment) external {
        RoundEntry storage entry = _rounds[id];
        CommitLedger ledger = _requireCommitting(id, entry);
        if (commitment == 0) revert EmptyCommitment();
        JobId job = id.job();
        ClientEntry storage client_ = _clients[job][msg.sender];
        ClientRecord record = client_.record;
        if (record.status() != ClientStatus.Active) revert ClientNotActive(job, msg.sender);
        // Rounds open in order, so the last commitment tells about all.
        if (record.nextRound() > id.number()) revert AlreadyCommitted(id, msg.sender);
        client_.record = record.withCommitment(id);
        entry.ledger = ledger.withDirect(msg.sender, commitment);
        emit GradientCommitted(id, msg.sender, commitment);
    }

    /// @inheritdoc IJobs
    function commitBatch(RoundId id, bytes32 root, uint32 count) external {
        RoundEntry storage entry = _rounds[id];
        CommitLedger ledger = _requireCommitting(id, entry);
        JobId job = id.job();
        if (msg.sender != _terms[job].relayer) revert NotRelayer(job, msg.sender);
        if (entry.state.batchRoot != 0) revert BatchAlreadyCommitted(id);
        if (root == 0) revert EmptyCommitment();
        entry.state.batchRoot = root;
        entry.ledger = ledger.withBatch(root, count);
        emit BatchCommitted(id, root, count);
    }

    /// @inheritdoc IJobs
    function attest(RoundId id, Verdict calldata verdict) external {
        uint8 index = memberIndex(id.job(), msg.sender);
        uint8 bit = uint8(1 << index);
        Round storage current = _rounds[id].state;
        if (block.number > schedule(id).attest || !BEACON.isSettled(id)) {
            revert NotInAttestPhase(id, block.number);
        }
        if (current.attested & bit != 0) revert AlreadyAttested(id, msg.sender);

        bytes32 verdictHash = Verdicts.hash(verdict);
        current.attested |= bit;
        current.attestations[index] = verdictHash;
        emit VerdictAttested(id, msg.sender, verdict);

        if (current.verdictHash == verdictHash) current.majority |= bit;
        else if (current.verdictHash == 0) _decide(id, current, index, verdictHash);
    }

    /// @inheritdoc IJobs
    function finalise(
        RoundId id,
        bytes32 aggregateHash,
        bytes32 modelHash,
        bytes[2] calldata signatures
    ) external {
        Round storage current = _rounds[id].state;
        if (current.status != RoundStatus.Decided) revert NotDecided(id);
        uint32 deadline = schedule(id).finalise;
        if (block.number > deadline) revert FinalisePhaseOver(id, deadline, block.number);
        JobId job = id.job();
        requireTwoMembers(
            job,
            Statements.roundResult(id, current.verdictHash, aggregateHash, modelHash),
            signatures
        );

        JobProgress storage state = _progress[job];
        current.status = RoundStatus.Finalised;
        state.modelHash = modelHash;
        state.voidStreak = 0;
        emit RoundFinalised(id, aggregateHash, modelHash);
        if (state.nextRound == _terms[job].rounds) _close(job, state);
    }

    /// @inheritdoc IJobs
    function voidRound(RoundId id) external {
        Schedule memory deadlines = schedule(id);
        Round storage current = _rounds[id].state;
        bool decided = current.status == RoundStatus.Decided;
        bool undecided = current.status == RoundStatus.Open;
        bool due = (undecided && block.number > deadlines.attest)
            || (decided && block.number > deadlines.finalise);
        if (!due) revert NotVoidable(id, block.number);

        JobId job = id.job();
        JobProgress storage state = _progress[job];
        current.status = RoundStatus.Void;
        state.voidStreak += 1;
        emit RoundVoided(id, decided);
        if (state.nextRound == _terms[job].rounds || state.voidStreak == MAX_VOID_STREAK) {
            _close(job, state);
        }
    }

    /// @inheritdoc IJobs
    function round(RoundId id) external view returns (Round memory) {
        return _rounds[id].state;
    }

    /// @inheritdoc IJobs
    function accumulator(RoundId id) external view returns (bytes28) {
        return _rounds[id].ledger.accumulator();
    }

    /// @inheritdoc IJobs
    function schedule(RoundId id) public view returns (Schedule memory) {
        uint32 commitDeadline = _rounds[id].ledger.deadline();
        if (commitDeadline == 0) revert UnknownRound(id);
        return Terms.schedule(_terms[id.job()].phases, commitDeadline);
    }

    /// @inheritdoc IJobs
    function statementDigest(bytes32 structHash) public view returns (bytes32) {
        return _hashTypedDataV4(structHash);
    }

    /// @inheritdoc IJobs
    function requireTwoMembers(JobId job, bytes32 structHash, bytes[2] calldata signatures)
        public
        view
    {
        bytes32 digest = statementDigest(structHash);
        address first = ECDSA.recoverCalldata(digest, signatures[0]);
        address second = ECDSA.recoverCalldata(digest, signatures[1]);
        if (first == second) revert SameSigner(first);
        memberIndex(job, first);
        memberIndex(job, second);
    }

    /// @dev The verdict stands as soon as another member has attested the same.
    function _decide(RoundId id, Round storage current, uint8 index, bytes32 verdictHash) private {
        for (uint8 other = 0; other < COMMITTEE_SIZE; ++other) {
            if (other == index || current.attestations[other] != verdictHash) continue;
            current.verdictHash = verdictHash;
            current.status = RoundStatus.Decided;
            current.majority = uint8((1 << index) | (1 << other));
            current.decidedAt = uint32(block.number);
            emit VerdictDecided(id, verdictHash);
            return;
        }
    }

    function _close(JobId job, JobProgress storage state) private {
        state.closed = true;
        emit JobClosed(job, state.nextRound);
    }

    function _requireCommitting(RoundId id, RoundEntry storage entry)
        private
        view
        returns (CommitLedger ledger)
    {
        ledger = entry.ledger;
        uint32 deadline = ledger.deadline();
        if (deadline == 0) revert UnknownRound(id);
        if (block.number > deadline) revert CommitPhaseOver(id, deadline, block.number);
    }

    function _requireStart(JobId job, JobProgress storage state) private view {
        if (block.number <= state.enrolDeadline) {
            revert EnrolmentStillOpen(job, state.enrolDeadline, block.number);
        }
        if (!_canStart(state)) revert JobNotReady(job, state.joined, state.clientCount);
    }

    function _requireOver(RoundId id) private view {
        RoundStatus status = _rounds[id].state.status;
        if (status != RoundStatus.Finalised && status != RoundStatus.Void) {
            revert RoundInProgress(id);
        }
    }
}

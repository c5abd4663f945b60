// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";

import {Beacon} from "./Beacon.sol";
import {Deposits} from "./Deposits.sol";
import {ICharges} from "./interfaces/ICharges.sol";
import {Jobs} from "./Jobs.sol";
import {Rounds} from "./Rounds.sol";
import {Statements} from "./libraries/Statements.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {
    Charge,
    ChargeStatus,
    COMMITTEE_SIZE,
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Role,
    RollEntry,
    Round,
    RoundId
} from "./Types.sol";

/// @title Charges
/// @dev `ICharges` says what everything means.
contract Charges is ICharges {
    /// @notice Where the stakes are.
    Deposits public immutable DEPOSITS;

    /// @notice Participants and terms of jobs.
    Jobs public immutable JOBS;

    /// @notice Where rolls and verdicts are.
    Rounds public immutable ROUNDS;

    /// @notice Knows who was audited.
    Beacon public immutable BEACON;

    mapping(RoundId => mapping(address => Charge)) private _charges;
    mapping(RoundId => mapping(address => mapping(MemberFault => bool))) private _penalised;

    constructor(Deposits deposits, Jobs jobs, Rounds rounds, Beacon beacon) {
        DEPOSITS = deposits;
        JOBS = jobs;
        ROUNDS = rounds;
        BEACON = beacon;
    }

    /// @inheritdoc ICharges
    function hold(RoundId round, address client, bytes calldata passes, RollEntry calldata entry)
        external
    {
        Charge storage held = _charges[round][client];
        if (held.status != ChargeStatus.None) revert AlreadyHeld(round, client);
        _requireNotPassed(round, client, passes);
        if (!BEACON.isAudited(round, client)) revert ClientNotAudited(round, client);
        _requireOnRoll(round, client, entry);

        JobId job = round.job();
        held.status = ChargeStatus.Held;
        held.heldAt = uint32(block.number);
        (uint96 captured, uint96 balance) =
            DEPOSITS.capture(job, Role.Client, client, JOBS.terms(job).penalties.client);
        held.held = captured;
        emit AuditHeld(round, client, captured);
        JOBS.noteAudit(job, client, balance, true);
    }

    /// @inheritdoc ICharges
    function charge(RoundId round, address client, Outcome outcome, bytes[2] calldata signatures)
        external
    {
        Charge storage held = _held(round, client);
        if (outcome == Outcome.Unanswered) {
            uint32 deadline = ROUNDS.schedule(round).response;
            if (block.number <= deadline) revert ResponseWindowOpen(deadline, block.number);
        } else if (outcome != Outcome.Outside) {
            revert NotAgainstClient(outcome);
        }
        _requireOutcome(round, client, outcome, signatures);

        held.status = ChargeStatus.Charged;
        emit ClientCharged(round, client, outcome, held.held);
        JobId job = round.job();
        JobTerms memory terms = JOBS.terms(job);
        DEPOSITS.distribute(
            job, held.held, new address[](0), 0, terms.treasury, terms.treasuryShare
        );
        uint96 balance = DEPOSITS.account(job, Role.Client, client).balance;
        JOBS.noteAudit(job, client, balance, false);
    }

    /// @inheritdoc ICharges
    function acquit(RoundId round, address client, bytes[2] calldata signatures) external {
        Charge storage held = _held(round, client);
        _requireOutcome(round, client, Outcome.Passed, signatures);
        held.status = ChargeStatus.Acquitted;
        emit ClientAcquitted(round, client, held.held);
        _release(round, client, held.held);
    }

    /// @inheritdoc ICharges
    function unlock(RoundId round, address client) external {
        Charge storage held = _held(round, client);
        JobId job = round.job();
        bool hasStandby = JOBS.participants(job).joined >> COMMITTEE_SIZE != 0;
        bool early = block.number <= uint256(held.heldAt) + JOBS.terms(job).unlockDelay;
        if (hasStandby || early) revert NotUnlockable(round, client);
        held.status = ChargeStatus.Unlocked;
        emit AuditUnlocked(round, client, held.held);
        _release(round, client, held.held);
    }

    /// @inheritdoc ICharges
    function penalise(RoundId round, address member, MemberFault fault) external {
        uint8 seat = ROUNDS.seatOf(round, member);
        Round memory judged = ROUNDS.round(round);
        bool decided = judged.verdictHash != 0;
        bool attested = (judged.attested >> seat) & 1 == 1;
        bool agreed = (judged.majority >> seat) & 1 == 1;
        bool faulty;
        if (fault == MemberFault.Withheld) {
            faulty = BEACON.hasWithheld(round, member);
        } else if (fault == MemberFault.Dissent) {
            faulty = decided && attested && !agreed;
        } else if (fault == MemberFault.Silence) {
            faulty = decided && !attested && block.number > ROUNDS.schedule(round).attest;
        }
        if (!faulty) revert NoFault(round, member, fault);
        _penalise(round, member, fault);
    }

    /// @inheritdoc ICharges
    function penaliseCertified(
        RoundId round,
        address member,
        MemberFault fault,
        bytes[2] calldata signatures
    ) external {
        JobId job = round.job();
        JOBS.numberOf(job, member);
        if (fault != MemberFault.Absence && fault != MemberFault.Falsehood) {
            revert NoFault(round, member, fault);
        }
        (bytes32 opening,) = ROUNDS.rollOf(round);
        bytes32 statement = Statements.memberFault(round, opening, member, fault);
        JOBS.requireTwoOthers(job, member, statement, signatures);
        _penalise(round, member, fault);
    }

    /// @inheritdoc ICharges
    function penaliseEquivocation(
        RoundId round,
        address member,
        uint32 slot,
        bytes32[2] calldata contentHashes,
        bytes[2] calldata signatures
    ) external {
        JOBS.numberOf(round.job(), member);
        if (contentHashes[0] == contentHashes[1]) revert SameMessage(contentHashes[0]);
        (bytes32 opening,) = ROUNDS.rollOf(round);
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 statement = Statements.memberMessage(round, opening, slot, contentHashes[i]);
            address signer = ECDSA.recoverCalldata(JOBS.statementDigest(statement), signatures[i]);
            if (signer != member) revert NotSignedByMember(signer, member);
        }
        _penalise(round, member, MemberFault.Equivocation);
    }

    /// @inheritdoc ICharges
    function chargeOf(RoundId round, address client) external view returns (Charge memory) {
        return _charges[round][client];
    }

    /// @inheritdoc ICharges
    function isPenalised(RoundId round, address member, MemberFault fault)
        external
        view
        returns (bool)
    {
        return _penalised[round][member][fault];
    }

    /// @dev The other seats of the round are paid first what the fault may have cost them.
    function _penalise(RoundId round, address member, MemberFault fault) private {
        if (_penalised[round][member][fault]) revert AlreadyPenalised(round, member, fault);
        _penalised[round][member][fault] = true;
        JobId job = round.job();
        JobTerms memory terms = JOBS.terms(job);
        (uint96 captured,) = DEPOSITS.capture(job, Role.Member, member, _penaltyFor(terms, fault));
        emit MemberPenalised(round, member, fault, captured);

        address[COMMITTEE_SIZE] memory seats = ROUNDS.seatsOf(round);
        address[] memory others = new address[](COMMITTEE_SIZE);
        uint256 count;
        for (uint256 seat = 0; seat < COMMITTEE_SIZE; ++seat) {
            if (seats[seat] != member) others[count++] = seats[seat];
        }
        assembly ("memory-safe") {
            mstore(others, count)
        }
        DEPOSITS.distribute(
            job, captured, others, terms.pay.member, terms.treasury, terms.treasuryShare
        );
    }

    function _release(RoundId round, address client, uint96 amount) private {
        JobId job = round.job();
        uint96 balance = DEPOSITS.release(job, Role.Client, client, amount);
        JOBS.noteAudit(job, client, balance, false);
    }

    function _held(RoundId round, address client) private view returns (Charge storage held) {
        held = _charges[round][client];
        if (held.status != ChargeStatus.Held) revert NotHeld(round, client, held.status);
    }

    function _requireOutcome(
        RoundId round,
        address client,
        Outcome outcome,
        bytes[2] calldata signatures
    ) private view {
        (bytes32 opening,) = ROUNDS.rollOf(round);
        bytes32 statement = Statements.auditOutcome(round, opening, client, outcome);
        JOBS.requireTwoSeats(round.job(), statement, signatures);
    }

    function _requireNotPassed(RoundId round, address client, bytes calldata passes) private view {
        bytes32 decided = ROUNDS.verdictHashOf(round);
        if (decided == 0) revert RoundUndecided(round);
        bytes32 given = keccak256(passes);
        if (given != decided) revert WrongVerdict(given, decided);
        uint32 index = JOBS.indexOf(round.job(), client);
        if (Verdicts.passed(passes, index)) revert ClientPassed(round, client);
    }

    function _requireOnRoll(RoundId round, address client, RollEntry calldata entry) private view {
        (bytes32 opening, bytes32 root) = ROUNDS.rollOf(round);
        bytes32 contentHash = keccak256(abi.encode(entry.commitment, entry.restHash));
        bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(client, contentHash))));
        if (!MerkleProof.verifyCalldata(entry.path, root, leaf)) revert NotOnRoll(round, client);
        bytes32 statement = Statements.contribution(round, opening, client, contentHash);
        address signer = ECDSA.recoverCalldata(JOBS.statementDigest(statement), entry.signature);
        if (signer != client) revert NotSignedByClient(signer, client);
    }

    function _penaltyFor(JobTerms memory terms, MemberFault fault) private pure returns (uint96) {
        if (fault == MemberFault.Silence) return terms.penalties.silence;
        if (fault == MemberFault.Dissent) return terms.penalties.dissent;
        if (fault == MemberFault.Absence) return terms.penalties.absence;
        if (fault == MemberFault.Withheld) return terms.penalties.withheld;
        return terms.memberStake;
    }
}

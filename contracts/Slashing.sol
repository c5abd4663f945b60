// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";

import {Beacon} from "./Beacon.sol";
import {Deposits} from "./Deposits.sol";
import {ISlashing} from "./interfaces/ISlashing.sol";
import {Jobs} from "./Jobs.sol";
import {Statements} from "./libraries/Statements.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {
    BatchProof,
    COMMITTEE_SIZE,
    JobId,
    JobTerms,
    MemberFault,
    Penalties,
    Reason,
    Role,
    Round,
    RoundId,
    Schedule,
    Slash,
    SlashStatus,
    Verdict
} from "./Types.sol";

/// @title Slashing
/// @dev `ISlashing` says what everything means.
contract Slashing is ISlashing {
    using Verdicts for Verdict;

    /// @notice Where the stakes are.
    Deposits public immutable DEPOSITS;

    /// @notice Where the verdicts are.
    Jobs public immutable JOBS;

    /// @notice Knows who was audited.
    Beacon public immutable BEACON;

    mapping(RoundId => mapping(address => Slash)) private _slashes;
    mapping(RoundId => mapping(address => mapping(MemberFault => bool))) private _penalised;

    /// @dev Deployed last: the others were given its address, and it checks that all agree.
    constructor(Deposits deposits, Jobs jobs, Beacon beacon) {
        DEPOSITS = deposits;
        JOBS = jobs;
        BEACON = beacon;
        bool wired = deposits.JOBS() == address(jobs) && deposits.SLASHING() == address(this)
            && address(jobs.DEPOSITS()) == address(deposits)
            && address(jobs.BEACON()) == address(beacon) && jobs.SLASHING() == address(this)
            && address(beacon.JOBS()) == address(jobs);
        if (!wired) revert Miswired();
    }

    /// @inheritdoc ISlashing
    function request(
        RoundId round,
        address client,
        Verdict calldata verdict,
        uint256 position,
        BatchProof calldata proof
    ) external {
        Slash storage slash = _slashes[round][client];
        if (slash.status != SlashStatus.None) revert AlreadyRequested(round, client);
        Reason reason = _requireFault(round, client, verdict, position);
        _requireCommitted(round, client, proof);

        JobId job = round.job();
        JobTerms memory terms = JOBS.terms(job);
        slash.status = SlashStatus.Requested;
        slash.reason = reason;
        slash.executableAt = uint32(block.number) + terms.phases.veto;
        (uint96 captured, uint96 balance) =
            DEPOSITS.capture(job, Role.Client, client, _penaltyFor(terms.penalties, reason));
        slash.captured = captured;
        emit SlashRequested(round, client, reason, captured, slash.executableAt);
        JOBS.noteDeposit(job, client, balance);
    }

    /// @inheritdoc ISlashing
    function vetoWithReceipts(RoundId round, address client, bytes[2] calldata signatures)
        external
    {
        Reason reason = _slashes[round][client].reason;
        if (reason != Reason.NotDelivered) revert ReceiptsDoNotApply(reason);
        bool audited = BEACON.isAudited(round, client);
        _veto(round, client, Statements.deliveryReceipt(round, client, audited), signatures);
    }

    /// @inheritdoc ISlashing
    function vetoWithAcquittals(RoundId round, address client, bytes[2] calldata signatures)
        external
    {
        _veto(round, client, Statements.acquittal(round, client), signatures);
    }

    /// @inheritdoc ISlashing
    function execute(RoundId round, address client) external {
        Slash storage slash = _pending(round, client);
        if (block.number < slash.executableAt) {
            revert VetoPhaseOpen(slash.executableAt, block.number);
        }
        slash.status = SlashStatus.Executed;
        emit SlashExecuted(round, client, slash.captured);
        _distribute(round, slash.captured, address(0));
    }

    /// @inheritdoc ISlashing
    function penaliseMember(RoundId round, address member, MemberFault fault) external {
        if (_penalised[round][member][fault]) {
            revert AlreadyPenalised(round, member, fault);
        }
        _requireMemberFault(round, member, fault);
        _penalised[round][member][fault] = true;
        JobId job = round.job();
        uint96 penalty = _penaltyFor(JOBS.terms(job).penalties, fault);
        (uint96 captured,) = DEPOSITS.capture(job, Role.Member, member, penalty);
        emit MemberPenalised(round, member, fault, captured);
        _distribute(round, captured, member);
    }

    /// @inheritdoc ISlashing
    function slashOf(RoundId round, address client) external view returns (Slash memory) {
        return _slashes[round][client];
    }

    /// @inheritdoc ISlashing
    function isPenalised(RoundId round, address member, MemberFault fault)
        external
        view
        returns (bool)
    {
        return _penalised[round][member][fault];
    }

    function _veto(RoundId round, address client, bytes32 statement, bytes[2] calldata signatures)
        private
    {
        Slash storage slash = _pending(round, client);
        if (block.number >= slash.executableAt) {
            revert VetoPhaseOver(slash.executableAt, block.number);
        }
        JobId job = round.job();
        JOBS.requireTwoMembers(job, statement, signatures);
        slash.status = SlashStatus.Vetoed;
        emit SlashVetoed(round, client, slash.captured);
        uint96 balance = DEPOSITS.release(job, Role.Client, client, slash.captured);
        JOBS.noteDeposit(job, client, balance);
    }

    /// @dev To the members of the majority, except the one who pays.
    function _distribute(RoundId round, uint96 amount, address payer) private {
        JobTerms memory terms = JOBS.terms(round.job());
        uint8 majority = JOBS.round(round).majority;
        address[] memory recipients = new address[](COMMITTEE_SIZE);
        uint256 count;
        for (uint256 i = 0; i < COMMITTEE_SIZE; ++i) {
            bool rewarded = (majority >> i) & 1 == 1 && terms.members[i] != payer;
            if (rewarded) recipients[count++] = terms.members[i];
        }
        assembly ("memory-safe") {
            mstore(recipients, count)
        }
        DEPOSITS.distribute(round.job(), amount, terms.split, terms.treasury, recipients);
    }

    function _requireFault(
        RoundId round,
        address client,
        Verdict calldata verdict,
        uint256 position
    ) private view returns (Reason reason) {
        Schedule memory deadlines = JOBS.schedule(round);
        Round memory judged = JOBS.round(round);
        if (judged.verdictHash == 0) revert RoundUndecided(round);
        if (block.number > deadlines.request) {
            revert RequestPhaseOver(deadlines.request, block.number);
        }
        bytes32 given = verdict.hash();
        if (given != judged.verdictHash) revert WrongVerdict(given, judged.verdictHash);

        uint32 clientIndex = JOBS.client(round.job(), client).index;
        uint32 faultIndex;
        (faultIndex, reason) = verdict.faultAt(position);
        if (faultIndex != clientIndex) revert FaultOfAnotherClient(faultIndex, clientIndex);
        if (verdict.passed(clientIndex)) revert ClientPassed(round, client);

        if (reason == Reason.NotDelivered && judged.decidedAt <= deadlines.deliver) {
            revert DecidedBeforeDelivery(judged.decidedAt, deadlines.deliver);
        }
        bool replayed = reason == Reason.InputNotCommitted || reason == Reason.ReplayOutside;
        if (replayed && !BEACON.isAudited(round, client)) {
            revert ClientNotAudited(round, client);
        }
    }

    function _requireCommitted(RoundId round, address client, BatchProof calldata proof)
        private
        view
    {
        if (JOBS.committedDirectly(round, client)) return;
        bytes32 leaf = keccak256(
            bytes.concat(
                keccak256(abi.encode(round.job(), round.number(), client, proof.commitment))
            )
        );
        bytes32 root = JOBS.round(round).batchRoot;
        bool included = root != 0 && MerkleProof.verifyCalldata(proof.path, root, leaf);
        if (!included || _leftBefore(round, client)) {
            revert NotInBatch(round, client);
        }
        bytes32 digest =
            JOBS.statementDigest(Statements.gradientCommitment(round, client, proof.commitment));
        address signer = ECDSA.recoverCalldata(digest, proof.signature);
        if (signer != client) revert NotSignedByClient(signer, client);
    }

    /// @dev Whether the client asked for its deposit before the round opened. Such a client takes no
    /// part, whatever it signed: the delay is counted for the rounds that were open when it asked.
    function _leftBefore(RoundId round, address client) private view returns (bool) {
        JobId job = round.job();
        uint256 withdrawableAt = DEPOSITS.account(job, Role.Client, client).withdrawableAt;
        if (withdrawableAt == 0) return false;
        JobTerms memory terms = JOBS.terms(job);
        uint256 openedAt = JOBS.schedule(round).commit - terms.phases.commit;
        return withdrawableAt < openedAt + terms.unbondingDelay;
    }

    function _requireMemberFault(RoundId round, address member, MemberFault fault) private view {
        uint8 index = JOBS.memberIndex(round.job(), member);
        Round memory judged = JOBS.round(round);
        if (judged.verdictHash == 0) revert RoundUndecided(round);
        bool attested = (judged.attested >> index) & 1 == 1;
        bool agreed = (judged.majority >> index) & 1 == 1;
        bool faulty;
        if (fault == MemberFault.BeaconWithheld) {
            faulty = BEACON.hasWithheld(round, member);
        } else if (fault == MemberFault.VerdictDissent) {
            faulty = attested && !agreed;
        } else {
            faulty = !attested && block.number > JOBS.schedule(round).attest;
        }
        if (!faulty) revert NoFault(round, member, fault);
    }

    function _pending(RoundId round, address client) private view returns (Slash storage slash) {
        slash = _slashes[round][client];
        if (slash.status != SlashStatus.Requested) revert NotPending(round, client);
    }

    function _penaltyFor(Penalties memory penalties, Reason reason) private pure returns (uint96) {
        if (reason == Reason.CommitmentMismatch) return penalties.commitmentMismatch;
        if (reason == Reason.NotDelivered) return penalties.notDelivered;
        if (reason == Reason.InputNotCommitted) return penalties.inputNotCommitted;
        return penalties.replayOutside;
    }

    function _penaltyFor(Penalties memory penalties, MemberFault fault)
        private
        pure
        returns (uint96)
    {
        if (fault == MemberFault.BeaconWithheld) return penalties.beaconWithheld;
        if (fault == MemberFault.VerdictDissent) return penalties.verdictDissent;
        return penalties.verdictSilence;
    }
}

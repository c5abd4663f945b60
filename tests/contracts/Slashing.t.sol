// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {Beacon} from "contracts/Beacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IEnrolment} from "contracts/interfaces/IEnrolment.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {ISlashing} from "contracts/interfaces/ISlashing.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Verdicts} from "contracts/libraries/Verdicts.sol";
import {Slashing} from "contracts/Slashing.sol";
import {
    AUDIT_ALWAYS,
    BatchProof,
    ClientStatus,
    JobId,
    JobTerms,
    MemberFault,
    Reason,
    Role,
    roundOf,
    RoundId,
    Slash,
    SlashStatus,
    Verdict
} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";

contract SlashingTest is Protocol {
    JobId internal job;
    RoundId internal round;

    /// @dev Everyone is audited, unless a test starts another job.
    function setUp() public override {
        super.setUp();
        _startJob(AUDIT_ALWAYS);
    }

    // ---- constructor ----

    function test_Constructor_WhenContractsDisagree_Reverts() public {
        vm.expectRevert(ISlashing.Miswired.selector);
        new Slashing(deposits, jobs, beacon);
        Beacon other = new Beacon(IJobs(address(1)));
        vm.expectRevert(ISlashing.Miswired.selector);
        new Slashing(deposits, jobs, other);
    }

    // ---- request ----

    function test_Request_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 3);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, unknown));
        requestSlash(unknown, 0, faultOf(0, Reason.ReplayOutside));
    }

    function test_Request_WhenRoundIsUndecided_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        commit(round, 0);
        publishBeacon(round);
        attest(round, 0, verdict);
        attest(round, 1, noFaults(hex"07"));
        _expectRequestRevert(
            verdict, abi.encodeWithSelector(ISlashing.RoundUndecided.selector, round)
        );
    }

    function test_Request_WhenRoundIsVoidWithoutAVerdict_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        commit(round, 0);
        publishBeacon(round);
        attest(round, 0, verdict);
        voidUndecided(round);
        _expectRequestRevert(
            verdict, abi.encodeWithSelector(ISlashing.RoundUndecided.selector, round)
        );
    }

    function test_Request_WhenRoundIsVoidAfterAVerdict_Captures() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        vm.roll(jobs.schedule(round).finalise + 1);
        jobs.voidRound(round);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    function test_Request_WhenAfterDeadline_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        uint32 deadline = jobs.schedule(round).request;
        vm.roll(deadline + 1);
        _expectRequestRevert(
            verdict,
            abi.encodeWithSelector(ISlashing.RequestPhaseOver.selector, deadline, deadline + 1)
        );
    }

    function test_Request_WhenInLastBlock_Captures() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        vm.roll(jobs.schedule(round).request);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    function test_Request_WhenVerdictIsNotTheDecidedOne_Reverts() public {
        Verdict memory decided = noFaults(hex"07");
        playRound(round, 3, decided);
        Verdict memory forged = faultOf(0, Reason.ReplayOutside);
        _expectRequestRevert(forged, _wrongVerdict(forged, decided));
    }

    function test_Request_WhenVerdictIsTheDissenters_Reverts() public {
        Verdict memory decided = noFaults(hex"07");
        Verdict memory dissent = faultOf(0, Reason.ReplayOutside);
        commit(round, 0);
        publishBeacon(round);
        rollPast(jobs.schedule(round).deliver);
        attest(round, 0, dissent);
        attest(round, 1, decided);
        attest(round, 2, decided);
        _expectRequestRevert(dissent, _wrongVerdict(dissent, decided));
    }

    function test_Request_WhenAccountIsNotAClient_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotClient.selector, job, stranger.addr));
        slashing.request(round, stranger.addr, verdict, 0, noProof());
    }

    function test_Request_WhenPositionIsBeyondTheFaults_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, 1, 1));
        slashing.request(round, clients[0].addr, verdict, 1, noProof());
    }

    function test_Request_WhenFaultIsAnotherClients_Reverts() public {
        Verdict memory verdict = faultOf(1, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        _expectRequestRevert(
            verdict, abi.encodeWithSelector(ISlashing.FaultOfAnotherClient.selector, 1, 0)
        );
    }

    function test_Request_WhenClientPassedAsWell_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        verdict.passes = hex"01";
        playRound(round, 3, verdict);
        _expectRequestRevert(
            verdict, abi.encodeWithSelector(ISlashing.ClientPassed.selector, round, clients[0].addr)
        );
    }

    function test_Request_WhenReasonDoesNotExist_Reverts() public {
        Verdict memory verdict = Verdict({passes: "", faults: hex"0000000005"});
        playRound(round, 3, verdict);
        _expectRequestRevert(verdict, abi.encodeWithSelector(Verdicts.UnknownReason.selector, 5));
    }

    function test_Request_WhenNotAuditedAndReplayFailed_Reverts() public {
        _expectNotAudited(Reason.ReplayOutside);
    }

    function test_Request_WhenNotAuditedAndInputFailed_Reverts() public {
        _expectNotAudited(Reason.InputNotCommitted);
    }

    function test_Request_WhenNotAuditedAndCommitmentFailed_Captures() public {
        _startJob(0);
        Verdict memory verdict = faultOf(0, Reason.CommitmentMismatch);
        playRound(round, 3, verdict);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.CommitmentMismatch, 0.4 ether);
    }

    function test_Request_WhenDecidedBeforeDeliveryWasOver_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.NotDelivered);
        uint32 deadline = jobs.schedule(round).deliver;
        commit(round, 0);
        publishBeacon(round);
        attest(round, 0, verdict);
        vm.roll(deadline);
        attest(round, 1, verdict);
        vm.roll(deadline + 1);
        attest(round, 2, verdict);
        _expectRequestRevert(
            verdict,
            abi.encodeWithSelector(ISlashing.DecidedBeforeDelivery.selector, deadline, deadline)
        );
    }

    function test_Request_WhenDecidedRightAfterDelivery_Captures() public {
        Verdict memory verdict = faultOf(0, Reason.NotDelivered);
        playRound(round, 3, verdict);
        assertEq(block.number, jobs.schedule(round).deliver + 1);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.NotDelivered, 0.1 ether);
    }

    function test_Request_WhenClientDidNotCommit_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        publishBeacon(round);
        decide(round, verdict);
        _expectRequestRevert(verdict, _notInBatch(0));
    }

    function test_Request_WhenClientCommittedOnlyInAnotherRound_Reverts() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, noFaults(hex"07"));
        finalise(round);
        round = jobs.openRound(job);
        publishBeacon(round);
        decide(round, verdict);
        _expectRequestRevert(verdict, _notInBatch(0));
    }

    function test_Request_WhenCommittedDirectly_NeedsNoProof() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        playRound(round, 3, verdict);
        vm.prank(stranger.addr);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    /// @dev The leaf is another's, and it does not matter.
    function test_Request_WhenCommittedDirectlyAndInTheBatch_RestsOnTheDirectCommitment() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        commit(round, 0);
        commitBatch(round, 1, 3);
        publishBeacon(round);
        decide(round, verdict);
        BatchProof memory foreign = batchProof(round, 1, 3, 1);
        slashing.request(round, clients[0].addr, verdict, 0, foreign);
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    function test_Request_WhenInBatchWithProofAndSignature_Captures() public {
        Verdict memory verdict = _playBatch(2);
        slashing.request(round, clients[2].addr, verdict, 0, batchProof(round, 0, 3, 2));
        _assertSlash(2, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    function test_Request_WhenInBatchWithoutProof_Reverts() public {
        Verdict memory verdict = _playBatch(0);
        BatchProof memory proof = batchProof(round, 0, 3, 0);
        proof.path = new bytes32[](0);
        _expectBatchRevert(0, verdict, proof, _notInBatch(0));
    }

    function test_Request_WhenInBatchWithoutSignature_Reverts() public {
        Verdict memory verdict = _playBatch(0);
        BatchProof memory proof = batchProof(round, 0, 3, 0);
        proof.signature = "";
        _expectBatchRevert(
            0, verdict, proof, abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 0)
        );
    }

    /// @dev The relayer put a commitment in the client's name into the batch.
    function test_Request_WhenLeafWasSignedByAnother_Reverts() public {
        Verdict memory verdict = _playBatch(0);
        BatchProof memory proof = batchProof(round, 0, 3, 0);
        bytes32 statement = Statements.gradientCommitment(round, clients[0].addr, proof.commitment);
        proof.signature = signed(clients[1], statement);
        _expectBatchRevert(
            0,
            verdict,
            proof,
            abi.encodeWithSelector(
                ISlashing.NotSignedByClient.selector, clients[1].addr, clients[0].addr
            )
        );
    }

    function test_Request_WhenLeafIsAnotherClients_Reverts() public {
        Verdict memory verdict = _playBatch(0);
        _expectBatchRevert(0, verdict, batchProof(round, 0, 3, 1), _notInBatch(0));
    }

    function test_Request_WhenSignatureIsForAnotherRound_Reverts() public {
        Verdict memory verdict = _playBatch(0);
        BatchProof memory proof = batchProof(round, 0, 3, 0);
        proof.signature = signed(
            clients[0],
            Statements.gradientCommitment(roundOf(job, 1), clients[0].addr, proof.commitment)
        );
        bytes32 digest = jobs.statementDigest(
            Statements.gradientCommitment(round, clients[0].addr, proof.commitment)
        );
        address recovered = ECDSA.recover(digest, proof.signature);
        _expectBatchRevert(
            0,
            verdict,
            proof,
            abi.encodeWithSelector(ISlashing.NotSignedByClient.selector, recovered, clients[0].addr)
        );
    }

    /// @dev Otherwise its money could be gone before the audit of a later round is over.
    function test_Request_WhenClientHadLeftBeforeTheRound_Reverts() public {
        _leave(0);
        voidUndecided(round);
        round = jobs.openRound(job);
        Verdict memory verdict = _playBatch(0);
        _expectBatchRevert(0, verdict, batchProof(round, 0, 3, 0), _notInBatch(0));
    }

    function test_Request_WhenClientLeftDuringTheRound_Captures() public {
        _leave(0);
        Verdict memory verdict = _playBatch(0);
        slashing.request(round, clients[0].addr, verdict, 0, batchProof(round, 0, 3, 0));
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 1 ether);
    }

    function test_Request_WhenRequestedAlready_Reverts() public {
        Verdict memory verdict = _requested(Reason.NotDelivered);
        _expectRequestRevert(verdict, _alreadyRequested());
    }

    function test_Request_WhenVetoedAlready_Reverts() public {
        Verdict memory verdict = _requested(Reason.NotDelivered);
        _acquit();
        _expectRequestRevert(verdict, _alreadyRequested());
    }

    function test_Request_WhenExecutedAlready_Reverts() public {
        Verdict memory verdict = _requested(Reason.NotDelivered);
        _closeVeto();
        slashing.execute(round, clients[0].addr);
        _expectRequestRevert(verdict, _alreadyRequested());
    }

    function test_Request_WhenReasonDiffers_CapturesThePenaltyOfTheReason() public {
        uint96[5] memory penalties = [uint96(0), 0.4 ether, 0.1 ether, 0.6 ether, 1 ether];
        for (uint8 i = 1; i < 5; ++i) {
            uint256 state = vm.snapshotState();
            Verdict memory verdict = faultOf(0, Reason(i));
            playRound(round, 3, verdict);
            uint32 executableAt = uint32(block.number) + 16;
            vm.expectEmit(address(slashing));
            emit ISlashing.SlashRequested(
                round, clients[0].addr, Reason(i), penalties[i], executableAt
            );
            requestSlash(round, 0, verdict);
            _assertSlash(0, SlashStatus.Requested, Reason(i), penalties[i]);
            assertEq(slashing.slashOf(round, clients[0].addr).executableAt, executableAt);
            assertEq(depositOf(job, 0), CLIENT_DEPOSIT - penalties[i]);
            vm.revertToState(state);
        }
    }

    function test_Request_WhenDepositIsSmallerThanThePenalty_CapturesTheWholeDeposit() public {
        _requested(Reason.NotDelivered);
        RoundId first = round;
        // It cannot commit any more, but the next round has begun with it in a batch.
        finalise(round);
        round = jobs.openRound(job);
        Verdict memory verdict = _playBatch(0);
        slashing.request(round, clients[0].addr, verdict, 0, batchProof(round, 0, 3, 0));
        _assertSlash(0, SlashStatus.Requested, Reason.ReplayOutside, 0.9 ether);
        assertEq(slashing.slashOf(first, clients[0].addr).captured, 0.1 ether);
        assertEq(depositOf(job, 0), 0);
    }

    function test_Request_WhenDepositFallsShort_SuspendsTheClient() public {
        Verdict memory verdict = faultOf(0, Reason.NotDelivered);
        playRound(round, 3, verdict);
        vm.expectEmit(address(jobs));
        emit IEnrolment.ClientStatusChanged(job, clients[0].addr, ClientStatus.Suspended);
        requestSlash(round, 0, verdict);
        _assertStatus(0, ClientStatus.Suspended);
    }

    function test_Request_WhenClientHasExcessDeposit_LeavesTheClientActive() public {
        hoax(clients[0].addr, 0.1 ether);
        jobs.topUpDeposit{value: 0.1 ether}(job);
        _requested(Reason.NotDelivered);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        _assertStatus(0, ClientStatus.Active);
    }

    function test_Request_WhenClientIsLeaving_CapturesAndLeavesTheStatus() public {
        Verdict memory verdict = faultOf(0, Reason.NotDelivered);
        playRound(round, 3, verdict);
        _leave(0);
        requestSlash(round, 0, verdict);
        _assertSlash(0, SlashStatus.Requested, Reason.NotDelivered, 0.1 ether);
        _assertStatus(0, ClientStatus.Leaving);
    }

    // ---- vetoWithReceipts ----

    function test_VetoWithReceipts_WhenNothingWasRequested_Reverts() public {
        _expectReceiptsRevert(
            signedBy(0, 1, _receipt(true)),
            abi.encodeWithSelector(ISlashing.ReceiptsDoNotApply.selector, Reason.None)
        );
    }

    function test_VetoWithReceipts_WhenReasonIsAnother_Reverts() public {
        _requested(Reason.CommitmentMismatch);
        _expectReceiptsRevert(
            signedBy(0, 1, _receipt(true)),
            abi.encodeWithSelector(ISlashing.ReceiptsDoNotApply.selector, Reason.CommitmentMismatch)
        );
    }

    function test_VetoWithReceipts_WhenClientIsNotAudited_TakesPlainReceipts() public {
        _startJob(0);
        _requested(Reason.NotDelivered);
        bytes[2] memory signatures = signedBy(2, 0, _receipt(false));
        vm.expectEmit(address(slashing));
        emit ISlashing.SlashVetoed(round, clients[0].addr, 0.1 ether);
        vm.prank(clients[0].addr);
        slashing.vetoWithReceipts(round, clients[0].addr, signatures);
        _assertSlash(0, SlashStatus.Vetoed, Reason.NotDelivered, 0.1 ether);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        _assertStatus(0, ClientStatus.Active);
    }

    function test_VetoWithReceipts_WhenClientIsAudited_TakesReceiptsForTheInputs() public {
        _requested(Reason.NotDelivered);
        slashing.vetoWithReceipts(round, clients[0].addr, signedBy(1, 2, _receipt(true)));
        _assertSlash(0, SlashStatus.Vetoed, Reason.NotDelivered, 0.1 ether);
    }

    function test_VetoWithReceipts_WhenClientIsAuditedAndReceiptsArePlain_Reverts() public {
        _requested(Reason.NotDelivered);
        _expectForeignReceipts(signedBy(0, 1, _receipt(false)));
    }

    function test_VetoWithReceipts_WhenReceiptsAreForAnotherClient_Reverts() public {
        _requested(Reason.NotDelivered);
        _expectForeignReceipts(
            signedBy(0, 1, Statements.deliveryReceipt(round, clients[1].addr, true))
        );
    }

    function test_VetoWithReceipts_WhenOneMemberSignedBoth_Reverts() public {
        _requested(Reason.NotDelivered);
        _expectReceiptsRevert(
            signedBy(1, 1, _receipt(true)),
            abi.encodeWithSelector(IJobs.SameSigner.selector, members[1].addr)
        );
    }

    function test_VetoWithReceipts_WhenAStrangerSigned_Reverts() public {
        _requested(Reason.NotDelivered);
        _expectReceiptsRevert(
            [signed(members[0], _receipt(true)), signed(stranger, _receipt(true))],
            abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr)
        );
    }

    function test_VetoWithReceipts_WhenVetoWindowIsOver_Reverts() public {
        _requested(Reason.NotDelivered);
        _closeVeto();
        _expectReceiptsRevert(signedBy(0, 1, _receipt(true)), _vetoOver());
    }

    function test_VetoWithReceipts_WhenVetoedAlready_Reverts() public {
        _requested(Reason.NotDelivered);
        _acquit();
        _expectReceiptsRevert(signedBy(0, 1, _receipt(true)), _notPending());
    }

    // ---- vetoWithAcquittals ----

    function test_VetoWithAcquittals_WhenNothingWasRequested_Reverts() public {
        _expectAcquittalsRevert(signedBy(0, 1, _acquittal()), _notPending());
    }

    function test_VetoWithAcquittals_WhenTwoMembersSigned_RestoresDepositAndStatus() public {
        _requested(Reason.ReplayOutside);
        bytes[2] memory signatures = signedBy(0, 2, _acquittal());
        vm.expectEmit(address(slashing));
        emit ISlashing.SlashVetoed(round, clients[0].addr, 1 ether);
        vm.expectEmit(address(deposits));
        emit IDeposits.Released(job, Role.Client, clients[0].addr, 1 ether, 1 ether);
        vm.expectEmit(address(jobs));
        emit IEnrolment.ClientStatusChanged(job, clients[0].addr, ClientStatus.Active);
        slashing.vetoWithAcquittals(round, clients[0].addr, signatures);
        _assertSlash(0, SlashStatus.Vetoed, Reason.ReplayOutside, 1 ether);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
    }

    function test_VetoWithAcquittals_WhenOneMemberSignedBoth_Reverts() public {
        _requested(Reason.ReplayOutside);
        _expectAcquittalsRevert(
            signedBy(2, 2, _acquittal()),
            abi.encodeWithSelector(IJobs.SameSigner.selector, members[2].addr)
        );
    }

    function test_VetoWithAcquittals_WhenAStrangerSigned_Reverts() public {
        _requested(Reason.ReplayOutside);
        _expectAcquittalsRevert(
            [signed(clients[0], _acquittal()), signed(members[0], _acquittal())],
            abi.encodeWithSelector(IEnrolment.NotMember.selector, job, clients[0].addr)
        );
    }

    function test_VetoWithAcquittals_WhenAcquittalsAreForAnotherRound_Reverts() public {
        _requested(Reason.ReplayOutside);
        bytes32 other = Statements.acquittal(roundOf(job, 1), clients[0].addr);
        bytes[2] memory signatures = signedBy(0, 1, other);
        address recovered = ECDSA.recover(jobs.statementDigest(_acquittal()), signatures[0]);
        _expectAcquittalsRevert(
            signatures, abi.encodeWithSelector(IEnrolment.NotMember.selector, job, recovered)
        );
    }

    function test_VetoWithAcquittals_WhenInLastBlockOfTheWindow_Vetoes() public {
        _requested(Reason.ReplayOutside);
        vm.roll(slashing.slashOf(round, clients[0].addr).executableAt - 1);
        _acquit();
        _assertSlash(0, SlashStatus.Vetoed, Reason.ReplayOutside, 1 ether);
    }

    function test_VetoWithAcquittals_WhenVetoWindowIsOver_Reverts() public {
        _requested(Reason.ReplayOutside);
        _closeVeto();
        _expectAcquittalsRevert(signedBy(0, 1, _acquittal()), _vetoOver());
    }

    function test_VetoWithAcquittals_WhenExecutedAlready_Reverts() public {
        _requested(Reason.ReplayOutside);
        _closeVeto();
        slashing.execute(round, clients[0].addr);
        _expectAcquittalsRevert(signedBy(0, 1, _acquittal()), _notPending());
    }

    function test_VetoWithAcquittals_WhenClientLeftMeanwhile_RestoresWhatCanBeWithdrawn() public {
        _requested(Reason.ReplayOutside);
        _leave(0);
        _acquit();
        _assertStatus(0, ClientStatus.Leaving);
        vm.roll(block.number + 200);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        assertEq(clients[0].addr.balance, CLIENT_DEPOSIT);
    }

    // ---- execute ----

    function test_Execute_WhenNothingWasRequested_Reverts() public {
        vm.expectRevert(_notPending());
        slashing.execute(round, clients[0].addr);
    }

    function test_Execute_WhenVetoWindowIsOpen_Reverts() public {
        _requested(Reason.ReplayOutside);
        uint32 executableAt = slashing.slashOf(round, clients[0].addr).executableAt;
        vm.roll(executableAt - 1);
        vm.expectRevert(
            abi.encodeWithSelector(ISlashing.VetoPhaseOpen.selector, executableAt, executableAt - 1)
        );
        slashing.execute(round, clients[0].addr);
    }

    function test_Execute_WhenVetoWindowIsOver_DistributesByTheSplit() public {
        _requested(Reason.ReplayOutside);
        _closeVeto();
        vm.expectEmit(address(slashing));
        emit ISlashing.SlashExecuted(round, clients[0].addr, 1 ether);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(job, 0.5 ether, 0.2 ether, 0.3 ether);
        vm.prank(stranger.addr);
        slashing.execute(round, clients[0].addr);
        _assertSlash(0, SlashStatus.Executed, Reason.ReplayOutside, 1 ether);
        assertEq(deposits.burned(), 0.5 ether);
        assertEq(deposits.creditOf(treasury), 0.2 ether);
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(deposits.creditOf(members[i].addr), 0.1 ether);
        }
    }

    function test_Execute_WhenVetoed_Reverts() public {
        _requested(Reason.ReplayOutside);
        _acquit();
        _closeVeto();
        vm.expectRevert(_notPending());
        slashing.execute(round, clients[0].addr);
    }

    function test_Execute_WhenExecutedAlready_Reverts() public {
        _requested(Reason.ReplayOutside);
        _closeVeto();
        slashing.execute(round, clients[0].addr);
        vm.expectRevert(_notPending());
        slashing.execute(round, clients[0].addr);
        assertEq(deposits.burned(), 0.5 ether);
    }

    function test_Execute_WhenOneMemberDissented_PaysOnlyTheMajority() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        _playWithThird(verdict, noFaults(hex"07"));
        requestSlash(round, 0, verdict);
        _closeVeto();
        slashing.execute(round, clients[0].addr);
        assertEq(deposits.creditOf(members[0].addr), 0.15 ether);
        assertEq(deposits.creditOf(members[1].addr), 0.15 ether);
        assertEq(deposits.creditOf(members[2].addr), 0);
    }

    // ---- penaliseMember ----

    function test_PenaliseMember_WhenRoundIsUndecided_Reverts() public {
        publishBeacon(round);
        attest(round, 0, noFaults(hex"07"));
        vm.roll(jobs.schedule(round).attest + 1);
        vm.expectRevert(abi.encodeWithSelector(ISlashing.RoundUndecided.selector, round));
        slashing.penaliseMember(round, members[1].addr, MemberFault.VerdictSilence);
    }

    function test_PenaliseMember_WhenAccountIsNotAMember_Reverts() public {
        playRound(round, 3, noFaults(hex"07"));
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr));
        slashing.penaliseMember(round, stranger.addr, MemberFault.VerdictDissent);
    }

    function test_PenaliseMember_WhenMemberIsNotAtFault_Reverts() public {
        playRound(round, 3, noFaults(hex"07"));
        vm.roll(jobs.schedule(round).attest + 1);
        _expectNoFault(0, MemberFault.BeaconWithheld);
        _expectNoFault(0, MemberFault.VerdictDissent);
        _expectNoFault(0, MemberFault.VerdictSilence);
    }

    function test_PenaliseMember_WhenMemberDissented_PaysTheMajority() public {
        _playWithThird(noFaults(hex"07"), noFaults(hex"03"));
        vm.expectEmit(address(slashing));
        emit ISlashing.MemberPenalised(
            round, members[2].addr, MemberFault.VerdictDissent, 0.3 ether
        );
        vm.prank(stranger.addr);
        slashing.penaliseMember(round, members[2].addr, MemberFault.VerdictDissent);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.3 ether);
        assertEq(deposits.creditOf(members[0].addr), 0.045 ether);
        assertEq(deposits.creditOf(members[1].addr), 0.045 ether);
        assertEq(deposits.creditOf(treasury), 0.06 ether);
        assertEq(deposits.burned(), 0.15 ether);
        _expectNoFault(2, MemberFault.VerdictSilence);
    }

    function test_PenaliseMember_WhenMemberIsSilentBeforeTheDeadline_Reverts() public {
        _playWithSilentThird();
        vm.roll(jobs.schedule(round).attest);
        _expectNoFault(2, MemberFault.VerdictSilence);
    }

    function test_PenaliseMember_WhenMemberIsSilentAfterTheDeadline_TakesThePenalty() public {
        _playWithSilentThird();
        vm.roll(jobs.schedule(round).attest + 1);
        vm.expectEmit(address(slashing));
        emit ISlashing.MemberPenalised(
            round, members[2].addr, MemberFault.VerdictSilence, 0.2 ether
        );
        slashing.penaliseMember(round, members[2].addr, MemberFault.VerdictSilence);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.2 ether);
        _expectNoFault(2, MemberFault.VerdictDissent);
    }

    function test_PenaliseMember_WhenMemberWithheldTheBeacon_TakesThePenalty() public {
        _playWithSilentSigner();
        vm.expectEmit(address(slashing));
        emit ISlashing.MemberPenalised(
            round, members[1].addr, MemberFault.BeaconWithheld, 0.5 ether
        );
        slashing.penaliseMember(round, members[1].addr, MemberFault.BeaconWithheld);
        assertEq(stakeOf(job, 1), MEMBER_STAKE - 0.5 ether);
        // It agreed with the majority, but is not paid from its own penalty.
        assertEq(deposits.creditOf(members[0].addr), 0.075 ether);
        assertEq(deposits.creditOf(members[1].addr), 0);
        assertEq(deposits.creditOf(members[2].addr), 0.075 ether);
    }

    function test_PenaliseMember_WhenBeaconWasPublished_Reverts() public {
        playRound(round, 3, noFaults(hex"07"));
        _expectNoFault(1, MemberFault.BeaconWithheld);
    }

    function test_PenaliseMember_WhenPartialWasPublished_Reverts() public {
        _playWithSilentSigner();
        _expectNoFault(0, MemberFault.BeaconWithheld);
        _expectNoFault(2, MemberFault.BeaconWithheld);
    }

    function test_PenaliseMember_WhenAllWithheld_PaysThePayerNothing() public {
        decide(round, noFaults(hex""));
        for (uint256 i = 0; i < 3; ++i) {
            uint256 before = deposits.creditOf(members[i].addr);
            slashing.penaliseMember(round, members[i].addr, MemberFault.BeaconWithheld);
            assertEq(deposits.creditOf(members[i].addr), before);
        }
        assertEq(deposits.burned(), 0.75 ether);
    }

    function test_PenaliseMember_WhenPenalisedAlready_Reverts() public {
        _playWithThird(noFaults(hex"07"), noFaults(hex"03"));
        MemberFault fault = MemberFault.VerdictDissent;
        assertFalse(slashing.isPenalised(round, members[2].addr, fault));
        slashing.penaliseMember(round, members[2].addr, fault);
        assertTrue(slashing.isPenalised(round, members[2].addr, fault));
        vm.expectRevert(
            abi.encodeWithSelector(
                ISlashing.AlreadyPenalised.selector, round, members[2].addr, fault
            )
        );
        slashing.penaliseMember(round, members[2].addr, fault);
    }

    function test_PenaliseMember_WhenFaultsDiffer_TakesEachPenalty() public {
        rollPast(jobs.schedule(round).commit);
        publishPartial(round, 0);
        publishPartial(round, 1);
        rollPast(jobs.schedule(round).deliver);
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        vm.roll(jobs.schedule(round).attest + 1);
        slashing.penaliseMember(round, members[2].addr, MemberFault.BeaconWithheld);
        slashing.penaliseMember(round, members[2].addr, MemberFault.VerdictSilence);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.7 ether);
    }

    function test_PenaliseMember_WhenStakeIsSmallerThanThePenalty_TakesTheWholeStake() public {
        JobTerms memory terms = defaultTerms();
        terms.memberStake = 0.6 ether;
        job = startJob(terms, 3);
        round = openFirst(job);
        for (uint256 i = 0; i < 2; ++i) {
            decide(round, noFaults(hex""));
            slashing.penaliseMember(round, members[0].addr, MemberFault.BeaconWithheld);
            finalise(round);
            round = jobs.openRound(job);
        }
        assertEq(stakeOf(job, 0), 0);
        assertEq(deposits.burned(), 0.3 ether);
    }

    // ---- voidRound ----

    /// @dev Neither the faulted client nor the members who withheld, differed or were silent.
    function test_VoidRound_WhenNoMajority_CostsNobodyAnything() public {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        commit(round, 0);
        rollPast(jobs.schedule(round).commit);
        publishPartial(round, 0);
        rollPast(jobs.schedule(round).deliver);
        attest(round, 0, verdict);
        attest(round, 1, noFaults(hex"01"));
        voidUndecided(round);
        bytes memory undecided = abi.encodeWithSelector(ISlashing.RoundUndecided.selector, round);
        _expectRequestRevert(verdict, undecided);
        for (uint256 i = 0; i < 3; ++i) {
            for (uint8 fault = 0; fault < 3; ++fault) {
                vm.expectRevert(undecided);
                slashing.penaliseMember(round, members[i].addr, MemberFault(fault));
            }
            assertEq(stakeOf(job, i), MEMBER_STAKE);
        }
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        assertEq(deposits.burned(), 0);
    }

    // ---- steps ----

    /// @dev A job with three clients, in round 0.
    function _startJob(uint128 auditRate) private {
        JobTerms memory terms = defaultTerms();
        terms.auditRate = auditRate;
        job = startJob(terms, 3);
        round = openFirst(job);
    }

    /// @dev All clients are in the batch; the replay of one failed.
    function _playBatch(uint32 failed) private returns (Verdict memory verdict) {
        verdict = faultOf(failed, Reason.ReplayOutside);
        commitBatch(round, 0, 3);
        publishBeacon(round);
        decide(round, verdict);
    }

    function _playWithThird(Verdict memory verdict, Verdict memory third) private {
        for (uint256 i = 0; i < 3; ++i) {
            commit(round, i);
        }
        publishBeacon(round);
        rollPast(jobs.schedule(round).deliver);
        attest(round, 2, third);
        attest(round, 0, verdict);
        attest(round, 1, verdict);
    }

    function _playWithSilentThird() private {
        commit(round, 0);
        publishBeacon(round);
        attest(round, 0, noFaults(hex"01"));
        attest(round, 1, noFaults(hex"01"));
    }

    /// @dev Member 1 withholds its signature and attests with the others.
    function _playWithSilentSigner() private {
        commit(round, 0);
        rollPast(jobs.schedule(round).commit);
        publishPartial(round, 0);
        publishPartial(round, 2);
        decide(round, noFaults(hex"01"));
    }

    /// @dev Everybody committed directly, client 0 failed, and its slash is pending.
    function _requested(Reason reason) private returns (Verdict memory verdict) {
        verdict = faultOf(0, reason);
        playRound(round, 3, verdict);
        requestSlash(round, 0, verdict);
    }

    function _acquit() private {
        slashing.vetoWithAcquittals(round, clients[0].addr, signedBy(0, 1, _acquittal()));
    }

    function _closeVeto() private {
        vm.roll(slashing.slashOf(round, clients[0].addr).executableAt);
    }

    function _leave(uint256 client) private {
        vm.prank(clients[client].addr);
        jobs.unbondDeposit(job);
    }

    function _receipt(bool audited) private view returns (bytes32) {
        return Statements.deliveryReceipt(round, clients[0].addr, audited);
    }

    function _acquittal() private view returns (bytes32) {
        return Statements.acquittal(round, clients[0].addr);
    }

    // ---- expectations ----

    function _assertSlash(uint256 client, SlashStatus status, Reason reason, uint96 captured)
        private
        view
    {
        Slash memory slash = slashing.slashOf(round, clients[client].addr);
        assertEq(uint8(slash.status), uint8(status));
        assertEq(uint8(slash.reason), uint8(reason));
        assertEq(slash.captured, captured);
    }

    function _assertStatus(uint256 client, ClientStatus status) private view {
        assertEq(uint8(jobs.client(job, clients[client].addr).status), uint8(status));
    }

    function _notInBatch(uint256 client) private view returns (bytes memory) {
        return abi.encodeWithSelector(ISlashing.NotInBatch.selector, round, clients[client].addr);
    }

    function _notPending() private view returns (bytes memory) {
        return abi.encodeWithSelector(ISlashing.NotPending.selector, round, clients[0].addr);
    }

    function _alreadyRequested() private view returns (bytes memory) {
        return abi.encodeWithSelector(ISlashing.AlreadyRequested.selector, round, clients[0].addr);
    }

    /// @dev At the first block after the window.
    function _vetoOver() private view returns (bytes memory) {
        return abi.encodeWithSelector(
            ISlashing.VetoPhaseOver.selector, uint32(block.number), block.number
        );
    }

    function _wrongVerdict(Verdict memory given, Verdict memory decided)
        private
        pure
        returns (bytes memory)
    {
        return abi.encodeWithSelector(
            ISlashing.WrongVerdict.selector,
            keccak256(abi.encode(given.passes, given.faults)),
            keccak256(abi.encode(decided.passes, decided.faults))
        );
    }

    function _expectNotAudited(Reason reason) private {
        _startJob(0);
        Verdict memory verdict = faultOf(0, reason);
        playRound(round, 3, verdict);
        _expectRequestRevert(
            verdict,
            abi.encodeWithSelector(ISlashing.ClientNotAudited.selector, round, clients[0].addr)
        );
    }

    function _expectNoFault(uint256 member, MemberFault fault) private {
        vm.expectRevert(
            abi.encodeWithSelector(ISlashing.NoFault.selector, round, members[member].addr, fault)
        );
        slashing.penaliseMember(round, members[member].addr, fault);
    }

    function _expectRequestRevert(Verdict memory verdict, bytes memory reason) private {
        _expectBatchRevert(0, verdict, noProof(), reason);
    }

    function _expectBatchRevert(
        uint256 client,
        Verdict memory verdict,
        BatchProof memory proof,
        bytes memory reason
    ) private {
        vm.expectRevert(reason);
        slashing.request(round, clients[client].addr, verdict, 0, proof);
    }

    function _expectReceiptsRevert(bytes[2] memory signatures, bytes memory reason) private {
        vm.expectRevert(reason);
        slashing.vetoWithReceipts(round, clients[0].addr, signatures);
    }

    /// @dev A signature of something else recovers to an address that is nobody's.
    function _expectForeignReceipts(bytes[2] memory signatures) private {
        address recovered = ECDSA.recover(jobs.statementDigest(_receipt(true)), signatures[0]);
        _expectReceiptsRevert(
            signatures, abi.encodeWithSelector(IEnrolment.NotMember.selector, job, recovered)
        );
    }

    function _expectAcquittalsRevert(bytes[2] memory signatures, bytes memory reason) private {
        vm.expectRevert(reason);
        slashing.vetoWithAcquittals(round, clients[0].addr, signatures);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {IEnrolment} from "contracts/interfaces/IEnrolment.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {
    JobId,
    JobTerms,
    Reason,
    Round,
    roundOf,
    RoundId,
    RoundStatus,
    Schedule,
    Verdict
} from "contracts/Types.sol";
import {MerkleTree} from "./support/MerkleTree.sol";
import {Protocol} from "./support/Protocol.sol";

contract JobsTest is Protocol {
    JobId internal job;

    function setUp() public override {
        super.setUp();
        job = startJob(3);
    }

    // ---- openRound ----

    function test_OpenRound_WhenJobIsUnknown_Reverts() public {
        JobId unknown = JobId.wrap(99);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.UnknownJob.selector, unknown));
        jobs.openRound(unknown);
    }

    function test_OpenRound_WhenEnrolmentIsOpen_Reverts() public {
        uint32 deadline = jobs.progress(job).enrolDeadline;
        vm.roll(deadline);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.EnrolmentStillOpen.selector, job, deadline, deadline)
        );
        jobs.openRound(job);
    }

    function test_OpenRound_WhenAMemberIsMissing_Reverts() public {
        job = createJob(defaultTerms());
        join(job, 0);
        join(job, 2);
        enrol(job, 0);
        rollPast(jobs.progress(job).enrolDeadline);
        vm.expectRevert(abi.encodeWithSelector(IJobs.JobNotReady.selector, job, 5, 1));
        jobs.openRound(job);
    }

    function test_OpenRound_WhenNoClientEnrolled_Reverts() public {
        job = startJob(0);
        rollPast(jobs.progress(job).enrolDeadline);
        vm.expectRevert(abi.encodeWithSelector(IJobs.JobNotReady.selector, job, 7, 0));
        jobs.openRound(job);
    }

    function test_OpenRound_WhenJobIsReady_OpensRoundZeroAndFormsTheGroup() public {
        rollPast(jobs.progress(job).enrolDeadline);
        RoundId expected = roundOf(job, 0);
        vm.expectEmit(address(jobs));
        emit IJobs.RoundOpened(expected, keccak256("model 0"), uint32(block.number) + 11);
        vm.prank(stranger.addr);
        RoundId round = jobs.openRound(job);
        assertEq(RoundId.unwrap(round), RoundId.unwrap(expected));
        assertEq(jobs.progress(job).nextRound, 1);
        assertEq(beacon.groupKeyOf(job).length, 256);
        _assertStatus(round, RoundStatus.Open);
    }

    function test_OpenRound_WhenRoundBeforeIsOpen_Reverts() public {
        RoundId round = openFirst(job);
        _expectInProgress(round);
    }

    function test_OpenRound_WhenRoundBeforeIsDecided_Reverts() public {
        RoundId round = _decided();
        _expectInProgress(round);
    }

    function test_OpenRound_WhenRoundBeforeIsFinal_OpensOnTheNewModel() public {
        RoundId round = _decided();
        finalise(round);
        vm.expectEmit(address(jobs));
        emit IJobs.RoundOpened(roundOf(job, 1), modelAfter(round), uint32(block.number) + 11);
        RoundId next = jobs.openRound(job);
        assertEq(next.number(), 1);
        assertEq(JobId.unwrap(next.job()), JobId.unwrap(job));
    }

    function test_OpenRound_WhenRoundBeforeIsVoid_OpensOnTheOldModel() public {
        voidUndecided(openFirst(job));
        vm.expectEmit(address(jobs));
        emit IJobs.RoundOpened(roundOf(job, 1), keccak256("model 0"), uint32(block.number) + 11);
        jobs.openRound(job);
    }

    function test_OpenRound_WhenJobIsClosed_Reverts() public {
        _closeAfterOneRound();
        vm.expectRevert(abi.encodeWithSelector(IJobs.JobAlreadyClosed.selector, job));
        jobs.openRound(job);
    }

    // ---- commitGradient ----

    function test_CommitGradient_WhenRoundIsUnknown_Reverts() public {
        openFirst(job);
        RoundId next = roundOf(job, 1);
        vm.prank(clients[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, next));
        jobs.commitGradient(next, "gradient");
    }

    function test_CommitGradient_WhenAfterDeadline_Reverts() public {
        RoundId round = openFirst(job);
        uint32 deadline = jobs.schedule(round).commit;
        vm.roll(deadline + 1);
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.CommitPhaseOver.selector, round, deadline, deadline + 1)
        );
        jobs.commitGradient(round, "gradient");
    }

    function test_CommitGradient_WhenInLastBlock_Commits() public {
        RoundId round = openFirst(job);
        vm.roll(jobs.schedule(round).commit);
        commit(round, 0);
        assertTrue(jobs.committedDirectly(round, clients[0].addr));
    }

    function test_CommitGradient_WhenRoundIsOver_Reverts() public {
        RoundId round = openFirst(job);
        voidUndecided(round);
        jobs.openRound(job);
        uint32 deadline = jobs.schedule(round).commit;
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.CommitPhaseOver.selector, round, deadline, block.number)
        );
        jobs.commitGradient(round, "gradient");
    }

    function test_CommitGradient_WhenCommitmentIsZero_Reverts() public {
        RoundId round = openFirst(job);
        vm.prank(clients[0].addr);
        vm.expectRevert(IJobs.EmptyCommitment.selector);
        jobs.commitGradient(round, 0);
    }

    function test_CommitGradient_WhenCallerIsNotAClient_Reverts() public {
        RoundId round = openFirst(job);
        _expectNotActive(round, stranger.addr);
    }

    function test_CommitGradient_WhenClientIsOfAnotherJob_Reverts() public {
        JobId other = startJob(4);
        RoundId round = openFirst(job);
        assertEq(jobs.progress(other).clientCount, 4);
        _expectNotActive(round, clients[3].addr);
    }

    function test_CommitGradient_WhenClientIsSuspended_Reverts() public {
        RoundId round = openFirst(job);
        Verdict memory verdict = faultOf(0, Reason.NotDelivered);
        playRound(round, 3, verdict);
        requestSlash(round, 0, verdict);
        finalise(round);
        RoundId next = jobs.openRound(job);
        _expectNotActive(next, clients[0].addr);
        commit(next, 1);
    }

    function test_CommitGradient_WhenClientIsLeaving_Reverts() public {
        RoundId round = openFirst(job);
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        _expectNotActive(round, clients[0].addr);
    }

    function test_CommitGradient_WhenCommittedAlready_Reverts() public {
        RoundId round = openFirst(job);
        commit(round, 0);
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.AlreadyCommitted.selector, round, clients[0].addr)
        );
        jobs.commitGradient(round, "another gradient");
    }

    function test_CommitGradient_WhenClientIsActive_ExtendsTheAccumulator() public {
        RoundId round = openFirst(job);
        bytes28 before = jobs.accumulator(round);
        vm.expectEmit(address(jobs));
        emit IJobs.GradientCommitted(round, clients[0].addr, gradientOf(round, 0));
        commit(round, 0);
        bytes32 hash =
            keccak256(abi.encodePacked(uint8(1), before, clients[0].addr, gradientOf(round, 0)));
        assertEq(jobs.accumulator(round), bytes28(hash));
        assertEq(jobs.client(job, clients[0].addr).nextRound, 1);
        assertFalse(jobs.committedDirectly(round, clients[1].addr));
    }

    function test_CommitGradient_WhenOrderDiffers_GivesAnotherAccumulator() public {
        RoundId round = openFirst(job);
        uint256 state = vm.snapshotState();
        commit(round, 0);
        commit(round, 1);
        bytes28 first = jobs.accumulator(round);
        vm.revertToState(state);
        commit(round, 1);
        commit(round, 0);
        assertNotEq(jobs.accumulator(round), first);
    }

    function test_CommitGradient_WhenRoundsWereSkipped_CommitsAndRemembersWhich() public {
        RoundId first = openFirst(job);
        commit(first, 0);
        voidUndecided(first);
        RoundId second = jobs.openRound(job);
        voidUndecided(second);
        RoundId third = jobs.openRound(job);
        commit(third, 0);
        assertTrue(jobs.committedDirectly(first, clients[0].addr));
        assertFalse(jobs.committedDirectly(second, clients[0].addr));
        assertTrue(jobs.committedDirectly(third, clients[0].addr));
    }

    // ---- commitBatch ----

    function test_CommitBatch_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 0);
        vm.prank(relayer);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, unknown));
        jobs.commitBatch(unknown, "root", 1);
    }

    function test_CommitBatch_WhenAfterDeadline_Reverts() public {
        RoundId round = openFirst(job);
        uint32 deadline = jobs.schedule(round).commit;
        vm.roll(deadline + 1);
        vm.prank(relayer);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.CommitPhaseOver.selector, round, deadline, deadline + 1)
        );
        jobs.commitBatch(round, "root", 1);
    }

    function test_CommitBatch_WhenCallerIsNotTheRelayer_Reverts() public {
        RoundId round = openFirst(job);
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotRelayer.selector, job, members[0].addr));
        jobs.commitBatch(round, "root", 1);
    }

    function test_CommitBatch_WhenJobHasNoRelayer_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.relayer = address(0);
        job = startJob(terms, 1);
        RoundId round = openFirst(job);
        vm.prank(relayer);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotRelayer.selector, job, relayer));
        jobs.commitBatch(round, "root", 1);
    }

    function test_CommitBatch_WhenRootIsZero_Reverts() public {
        RoundId round = openFirst(job);
        vm.prank(relayer);
        vm.expectRevert(IJobs.EmptyCommitment.selector);
        jobs.commitBatch(round, 0, 1);
    }

    function test_CommitBatch_WhenBatchIsThereAlready_Reverts() public {
        RoundId round = openFirst(job);
        commitBatch(round, 0, 2);
        vm.prank(relayer);
        vm.expectRevert(abi.encodeWithSelector(IJobs.BatchAlreadyCommitted.selector, round));
        jobs.commitBatch(round, "root", 1);
    }

    function test_CommitBatch_WhenCalledByTheRelayer_ExtendsTheAccumulator() public {
        RoundId round = openFirst(job);
        bytes28 before = jobs.accumulator(round);
        bytes32 root = MerkleTree.root(batchLeaves(round, 0, 3));
        vm.expectEmit(address(jobs));
        emit IJobs.BatchCommitted(round, root, 3);
        commitBatch(round, 0, 3);
        bytes32 hash = keccak256(abi.encodePacked(uint8(2), before, root, uint32(3)));
        assertEq(jobs.accumulator(round), bytes28(hash));
        assertEq(jobs.round(round).batchRoot, root);
    }

    function test_CommitBatch_WhenAClientWasLeftOut_LeavesTheDirectWayOpen() public {
        RoundId round = openFirst(job);
        commitBatch(round, 0, 2);
        commit(round, 2);
        assertTrue(jobs.committedDirectly(round, clients[2].addr));
        assertFalse(jobs.committedDirectly(round, clients[0].addr));
    }

    // ---- attest ----

    function test_Attest_WhenCallerIsNotAMember_Reverts() public {
        RoundId round = _settled();
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr));
        jobs.attest(round, noFaults(hex"07"));
    }

    function test_Attest_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 3);
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, unknown));
        jobs.attest(unknown, noFaults(hex"07"));
    }

    function test_Attest_WhenBeaconIsPending_Reverts() public {
        RoundId round = openFirst(job);
        vm.roll(jobs.schedule(round).beacon);
        _expectNotInAttestPhase(round);
    }

    function test_Attest_WhenAfterDeadline_Reverts() public {
        RoundId round = _settled();
        vm.roll(jobs.schedule(round).attest + 1);
        _expectNotInAttestPhase(round);
    }

    function test_Attest_WhenInLastBlock_Counts() public {
        RoundId round = _settled();
        vm.roll(jobs.schedule(round).attest);
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        _assertStatus(round, RoundStatus.Decided);
    }

    function test_Attest_WhenAttestedAlready_Reverts() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        vm.prank(members[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.AlreadyAttested.selector, round, members[0].addr)
        );
        jobs.attest(round, noFaults(hex"03"));
    }

    function test_Attest_WhenFirstOfItsKind_OnlyRecords() public {
        RoundId round = _settled();
        vm.expectEmit(address(jobs));
        emit IJobs.VerdictAttested(round, members[1].addr, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        Round memory state = jobs.round(round);
        assertEq(state.attested, 2);
        assertEq(state.majority, 0);
        assertEq(state.verdictHash, 0);
        assertEq(state.attestations[1], keccak256(abi.encode(hex"07", "")));
        _assertStatus(round, RoundStatus.Open);
    }

    function test_Attest_WhenSecondOfItsKind_Decides() public {
        RoundId round = _settled();
        attest(round, 2, noFaults(hex"07"));
        vm.roll(block.number + 1);
        vm.expectEmit(address(jobs));
        emit IJobs.VerdictDecided(round, keccak256(abi.encode(hex"07", "")));
        attest(round, 0, noFaults(hex"07"));
        Round memory state = jobs.round(round);
        assertEq(state.attested, 5);
        assertEq(state.majority, 5);
        assertEq(state.decidedAt, block.number);
        assertEq(state.verdictHash, keccak256(abi.encode(hex"07", "")));
        _assertStatus(round, RoundStatus.Decided);
    }

    function test_Attest_WhenThirdAgrees_JoinsTheMajority() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        uint32 decidedAt = jobs.round(round).decidedAt;
        vm.roll(block.number + 1);
        attest(round, 2, noFaults(hex"07"));
        assertEq(jobs.round(round).majority, 7);
        assertEq(jobs.round(round).decidedAt, decidedAt);
    }

    function test_Attest_WhenThirdDissents_DoesNotChangeTheDecision() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        attest(round, 2, noFaults(hex"03"));
        Round memory state = jobs.round(round);
        assertEq(state.attested, 7);
        assertEq(state.majority, 3);
        assertEq(state.verdictHash, keccak256(abi.encode(hex"07", "")));
    }

    function test_Attest_WhenFirstDissents_LetsTheOtherTwoDecide() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"03"));
        attest(round, 1, noFaults(hex"07"));
        _assertStatus(round, RoundStatus.Open);
        attest(round, 2, noFaults(hex"07"));
        assertEq(jobs.round(round).majority, 6);
        _assertStatus(round, RoundStatus.Decided);
    }

    function test_Attest_WhenAllDiffer_DecidesNothing() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"01"));
        attest(round, 1, noFaults(hex"03"));
        attest(round, 2, noFaults(hex"07"));
        Round memory state = jobs.round(round);
        assertEq(state.attested, 7);
        assertEq(state.majority, 0);
        assertEq(state.verdictHash, 0);
        _assertStatus(round, RoundStatus.Open);
    }

    function test_Attest_WhenRoundIsFinalAndThirdAgrees_JoinsTheMajority() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        finalise(round);
        attest(round, 2, noFaults(hex"07"));
        assertEq(jobs.round(round).majority, 7);
        _assertStatus(round, RoundStatus.Finalised);
    }

    // ---- finalise ----

    function test_Finalise_WhenRoundIsOpen_Reverts() public {
        _expectNotDecided(_settled());
    }

    function test_Finalise_WhenRoundIsFinal_Reverts() public {
        RoundId round = _decided();
        finalise(round);
        _expectNotDecided(round);
    }

    function test_Finalise_WhenRoundIsVoid_Reverts() public {
        RoundId round = openFirst(job);
        voidUndecided(round);
        _expectNotDecided(round);
    }

    function test_Finalise_WhenAfterDeadline_Reverts() public {
        RoundId round = _decided();
        uint32 deadline = jobs.schedule(round).finalise;
        vm.roll(deadline + 1);
        _expectFinaliseRevert(
            round,
            signedBy(0, 1, resultOf(round)),
            abi.encodeWithSelector(IJobs.FinalisePhaseOver.selector, round, deadline, deadline + 1)
        );
    }

    function test_Finalise_WhenInLastBlock_Finalises() public {
        RoundId round = _decided();
        vm.roll(jobs.schedule(round).finalise);
        finalise(round);
        _assertStatus(round, RoundStatus.Finalised);
    }

    function test_Finalise_WhenSignedByAStranger_Reverts() public {
        RoundId round = _decided();
        bytes32 result = resultOf(round);
        bytes memory reason =
            abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr);
        bytes memory own = signed(members[0], result);
        bytes memory foreign = signed(stranger, result);
        _expectFinaliseRevert(round, [own, foreign], reason);
        _expectFinaliseRevert(round, [foreign, own], reason);
    }

    function test_Finalise_WhenSignedTwiceByOneMember_Reverts() public {
        RoundId round = _decided();
        _expectFinaliseRevert(
            round,
            signedBy(1, 1, resultOf(round)),
            abi.encodeWithSelector(IJobs.SameSigner.selector, members[1].addr)
        );
    }

    function test_Finalise_WhenSignaturesAreForAnotherModel_Reverts() public {
        RoundId round = _decided();
        bytes32 verdictHash = jobs.round(round).verdictHash;
        bytes32 signedResult =
            Statements.roundResult(round, verdictHash, aggregateOf(round), "another model");
        _expectForeign(round, signedBy(0, 1, signedResult));
    }

    function test_Finalise_WhenSignaturesAreForAnotherRound_Reverts() public {
        RoundId first = _decided();
        bytes[2] memory signatures = signedBy(0, 1, resultOf(first));
        finalise(first);
        RoundId second = jobs.openRound(job);
        playRound(second, 3, noFaults(hex"07"));
        _expectForeign(second, signatures);
    }

    function test_Finalise_WhenSignatureIsMalformed_Reverts() public {
        RoundId round = _decided();
        bytes memory own = signed(members[0], resultOf(round));
        _expectFinaliseRevert(
            round,
            [own, bytes("")],
            abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 0)
        );
    }

    function test_Finalise_WhenSignedByTwoMembers_SetsTheNextModel() public {
        RoundId round = _decided();
        vm.expectEmit(address(jobs));
        emit IJobs.RoundFinalised(round, aggregateOf(round), modelAfter(round));
        finalise(round);
        assertEq(jobs.progress(job).modelHash, modelAfter(round));
        assertFalse(jobs.progress(job).closed);
        _assertStatus(round, RoundStatus.Finalised);
    }

    function test_Finalise_WhenSignedByMembersOutsideTheMajority_SetsTheNextModel() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        attest(round, 2, noFaults(hex"03"));
        bytes[2] memory signatures = signedBy(2, 0, resultOf(round));
        jobs.finalise(round, aggregateOf(round), modelAfter(round), signatures);
        _assertStatus(round, RoundStatus.Finalised);
    }

    function test_Finalise_WhenItIsTheLastRound_ClosesTheJob() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 3);
        RoundId round = _decided();
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosed(job, 1);
        finalise(round);
        assertTrue(jobs.progress(job).closed);
    }

    // ---- voidRound ----

    function test_VoidRound_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 0);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, unknown));
        jobs.voidRound(unknown);
    }

    function test_VoidRound_WhenAttestPhaseIsRunning_Reverts() public {
        RoundId round = openFirst(job);
        vm.roll(jobs.schedule(round).attest);
        _expectNotVoidable(round);
    }

    function test_VoidRound_WhenFinalisePhaseIsRunning_Reverts() public {
        RoundId round = _decided();
        vm.roll(jobs.schedule(round).finalise);
        _expectNotVoidable(round);
    }

    function test_VoidRound_WhenUndecidedAfterDeadline_VoidsAndKeepsTheModel() public {
        RoundId round = _settled();
        attest(round, 0, noFaults(hex"07"));
        vm.roll(jobs.schedule(round).attest + 1);
        vm.expectEmit(address(jobs));
        emit IJobs.RoundVoided(round, false);
        vm.prank(stranger.addr);
        jobs.voidRound(round);
        assertEq(jobs.progress(job).modelHash, keccak256("model 0"));
        assertEq(jobs.progress(job).voidStreak, 1);
        assertEq(jobs.round(round).verdictHash, 0);
        _assertStatus(round, RoundStatus.Void);
    }

    function test_VoidRound_WhenDecidedButNotFinalInTime_VoidsAndKeepsTheVerdict() public {
        RoundId round = _decided();
        vm.roll(jobs.schedule(round).finalise + 1);
        vm.expectEmit(address(jobs));
        emit IJobs.RoundVoided(round, true);
        jobs.voidRound(round);
        assertEq(jobs.progress(job).modelHash, keccak256("model 0"));
        assertEq(jobs.round(round).verdictHash, keccak256(abi.encode(hex"07", "")));
        _assertStatus(round, RoundStatus.Void);
    }

    function test_VoidRound_WhenVoidAlready_Reverts() public {
        RoundId round = openFirst(job);
        voidUndecided(round);
        _expectNotVoidable(round);
    }

    function test_VoidRound_WhenRoundIsFinal_Reverts() public {
        RoundId round = _decided();
        finalise(round);
        vm.roll(jobs.schedule(round).finalise + 1);
        _expectNotVoidable(round);
    }

    function test_VoidRound_WhenItIsTheLastRound_ClosesTheJob() public {
        _closeAfterOneRound();
        assertTrue(jobs.progress(job).closed);
        assertEq(jobs.progress(job).voidStreak, 1);
    }

    function test_VoidRound_WhenStreakIsFull_ClosesTheJob() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 100;
        job = startJob(terms, 3);
        RoundId round = openFirst(job);
        for (uint256 i = 1; i < jobs.MAX_VOID_STREAK(); ++i) {
            voidUndecided(round);
            assertFalse(jobs.progress(job).closed);
            round = jobs.openRound(job);
        }
        vm.roll(jobs.schedule(round).attest + 1);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosed(job, 8);
        jobs.voidRound(round);
        vm.expectRevert(abi.encodeWithSelector(IJobs.JobAlreadyClosed.selector, job));
        jobs.openRound(job);
        vm.prank(members[0].addr);
        jobs.unbondStake(job);
    }

    function test_VoidRound_WhenAFinalRoundBreaksTheStreak_StartsCountingAgain() public {
        voidUndecided(openFirst(job));
        RoundId round = jobs.openRound(job);
        playRound(round, 3, noFaults(hex"07"));
        finalise(round);
        assertEq(jobs.progress(job).voidStreak, 0);
        voidUndecided(jobs.openRound(job));
        assertEq(jobs.progress(job).voidStreak, 1);
    }

    // ---- schedule ----

    function test_Schedule_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 0);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownRound.selector, unknown));
        jobs.schedule(unknown);
    }

    function test_Schedule_WhenRoundIsOpen_AddsUpThePhases() public {
        RoundId round = openFirst(job);
        uint32 opened = uint32(block.number);
        Schedule memory schedule = jobs.schedule(round);
        assertEq(schedule.commit, opened + 11);
        assertEq(schedule.beacon, opened + 11 + 12);
        assertEq(schedule.deliver, opened + 11 + 12 + 13);
        assertEq(schedule.attest, opened + 11 + 12 + 13 + 14);
        assertEq(schedule.finalise, opened + 11 + 12 + 13 + 14 + 15);
        assertEq(schedule.request, opened + 11 + 12 + 13 + 14 + 20);
    }

    // ---- steps ----

    /// @dev Round 0 with all clients in it and its beacon published.
    function _settled() private returns (RoundId round) {
        round = openFirst(job);
        for (uint256 i = 0; i < 3; ++i) {
            commit(round, i);
        }
        publishBeacon(round);
    }

    function _decided() private returns (RoundId round) {
        round = _settled();
        decide(round, noFaults(hex"07"));
    }

    function _closeAfterOneRound() private {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 1);
        voidUndecided(openFirst(job));
    }

    function _assertStatus(RoundId round, RoundStatus status) private view {
        assertEq(uint8(jobs.round(round).status), uint8(status));
    }

    function _expectInProgress(RoundId round) private {
        vm.expectRevert(abi.encodeWithSelector(IJobs.RoundInProgress.selector, round));
        jobs.openRound(job);
    }

    function _expectNotActive(RoundId round, address client) private {
        vm.prank(client);
        vm.expectRevert(abi.encodeWithSelector(IJobs.ClientNotActive.selector, job, client));
        jobs.commitGradient(round, "gradient");
    }

    function _expectNotInAttestPhase(RoundId round) private {
        vm.prank(members[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.NotInAttestPhase.selector, round, block.number)
        );
        jobs.attest(round, noFaults(hex"07"));
    }

    function _expectNotVoidable(RoundId round) private {
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotVoidable.selector, round, block.number));
        jobs.voidRound(round);
    }

    function _expectNotDecided(RoundId round) private {
        _expectFinaliseRevert(
            round,
            signedBy(0, 1, resultOf(round)),
            abi.encodeWithSelector(IJobs.NotDecided.selector, round)
        );
    }

    /// @dev A signature of something else recovers to an address that is nobody's.
    function _expectForeign(RoundId round, bytes[2] memory signatures) private {
        bytes32 digest = jobs.statementDigest(resultOf(round));
        address recovered = ECDSA.recover(digest, signatures[0]);
        _expectFinaliseRevert(
            round, signatures, abi.encodeWithSelector(IEnrolment.NotMember.selector, job, recovered)
        );
    }

    function _expectFinaliseRevert(RoundId round, bytes[2] memory signatures, bytes memory reason)
        private
    {
        bytes32 aggregate = aggregateOf(round);
        bytes32 model = modelAfter(round);
        vm.expectRevert(reason);
        jobs.finalise(round, aggregate, model, signatures);
    }
}

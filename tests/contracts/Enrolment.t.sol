// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IEnrolment} from "contracts/interfaces/IEnrolment.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Terms} from "contracts/libraries/Terms.sol";
import {
    Client,
    ClientStatus,
    JobId,
    JobProgress,
    JobTerms,
    Reason,
    Role,
    RoundId,
    Verdict
} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";

contract EnrolmentTest is Protocol {
    JobId internal constant UNKNOWN = JobId.wrap(99);
    bytes32 internal constant ROOT = keccak256("root");
    string internal constant URL = "https://member-0.example:8443";

    // ---- createJob ----

    function test_CreateJob_WhenTermsAreUnsafe_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 0;
        vm.expectRevert(abi.encodeWithSelector(Terms.ZeroTerm.selector, "rounds"));
        jobs.createJob(terms, POLICY, BOUNDARY);
    }

    function test_CreateJob_WhenPolicyHashIsNotThatOfTheBytes_Reverts() public {
        JobTerms memory terms = defaultTerms();
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.HashMismatch.selector, terms.policyHash, keccak256("other")
            )
        );
        jobs.createJob(terms, "other", BOUNDARY);
    }

    function test_CreateJob_WhenBoundaryHashIsNotThatOfTheBytes_Reverts() public {
        JobTerms memory terms = defaultTerms();
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.HashMismatch.selector, terms.boundaryHash, keccak256("other")
            )
        );
        jobs.createJob(terms, POLICY, "other");
    }

    function test_CreateJob_WhenTermsAreSafe_RecordsAndPublishesThem() public {
        JobTerms memory terms = defaultTerms();
        vm.roll(1000);
        vm.expectEmit(address(jobs));
        emit IEnrolment.JobCreated(JobId.wrap(1), stranger.addr, terms, POLICY, BOUNDARY);
        vm.prank(stranger.addr);
        JobId job = jobs.createJob(terms, POLICY, BOUNDARY);
        assertEq(JobId.unwrap(job), 1);
        assertEq(abi.encode(jobs.terms(job)), abi.encode(terms));
        assertEq(abi.encode(jobs.members(job)), abi.encode(terms.members));
        assertEq(jobs.auditRate(job), terms.auditRate);
        JobProgress memory fresh;
        fresh.enrolDeadline = 1010;
        fresh.modelHash = terms.modelHash;
        assertEq(abi.encode(jobs.progress(job)), abi.encode(fresh));
    }

    function test_CreateJob_WhenCalledAgain_CountsJobsFromOne() public {
        assertEq(jobs.jobCount(), 0);
        assertEq(JobId.unwrap(createJob(defaultTerms())), 1);
        assertEq(JobId.unwrap(createJob(defaultTerms())), 2);
        assertEq(jobs.jobCount(), 2);
    }

    // ---- joinCommittee ----

    function test_JoinCommittee_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.UnknownJob.selector, UNKNOWN));
        jobs.joinCommittee(UNKNOWN);
    }

    function test_JoinCommittee_WhenAfterDeadline_Reverts() public {
        JobId job = createJob(defaultTerms());
        uint32 deadline = jobs.progress(job).enrolDeadline;
        vm.roll(deadline + 1);
        hoax(members[0].addr, MEMBER_STAKE);
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.EnrolmentClosed.selector, job, deadline, uint256(deadline) + 1
            )
        );
        jobs.joinCommittee{value: MEMBER_STAKE}(job);
    }

    function test_JoinCommittee_WhenInLastBlock_Joins() public {
        JobId job = createJob(defaultTerms());
        vm.roll(jobs.progress(job).enrolDeadline);
        join(job, 0);
        assertEq(jobs.progress(job).joined, 1);
    }

    function test_JoinCommittee_WhenCallerIsNotAMember_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(stranger.addr, MEMBER_STAKE);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr));
        jobs.joinCommittee{value: MEMBER_STAKE}(job);
    }

    function test_JoinCommittee_WhenJoinedAlready_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 1);
        hoax(members[1].addr, MEMBER_STAKE);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.AlreadyJoined.selector, job, members[1].addr)
        );
        jobs.joinCommittee{value: MEMBER_STAKE}(job);
    }

    function test_JoinCommittee_WhenStakeIsTooSmall_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, MEMBER_STAKE);
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.DepositTooSmall.selector, MEMBER_STAKE - 1, MEMBER_STAKE
            )
        );
        jobs.joinCommittee{value: MEMBER_STAKE - 1}(job);
    }

    function test_JoinCommittee_WhenCallerHasNoKey_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.members[2] = stranger.addr;
        JobId job = createJob(terms);
        hoax(stranger.addr, MEMBER_STAKE);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.KeyMissing.selector, stranger.addr));
        jobs.joinCommittee{value: MEMBER_STAKE}(job);
    }

    function test_JoinCommittee_WhenAllIsRight_LocksTheStake() public {
        JobId job = createJob(defaultTerms());
        hoax(members[2].addr, MEMBER_STAKE);
        vm.expectEmit(address(jobs));
        emit IEnrolment.MemberJoined(job, members[2].addr, 2);
        jobs.joinCommittee{value: MEMBER_STAKE}(job);
        assertEq(jobs.progress(job).joined, 4);
        assertEq(stakeOf(job, 2), MEMBER_STAKE);
        assertEq(address(jobs).balance, 0);
    }

    function test_JoinCommittee_WhenMoreIsSent_LocksAllOfIt() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, MEMBER_STAKE + 1);
        jobs.joinCommittee{value: MEMBER_STAKE + 1}(job);
        assertEq(stakeOf(job, 0), MEMBER_STAKE + 1);
    }

    // ---- announceEndpoint ----

    function test_AnnounceEndpoint_WhenJobIsUnknown_Reverts() public {
        vm.prank(members[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.NotMember.selector, UNKNOWN, members[0].addr)
        );
        jobs.announceEndpoint(UNKNOWN, URL);
    }

    function test_AnnounceEndpoint_WhenCallerIsNotAMember_Reverts() public {
        JobId job = startJob(1);
        vm.prank(clients[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, clients[0].addr));
        jobs.announceEndpoint(job, URL);
    }

    function test_AnnounceEndpoint_WhenUrlIsTooLong_Reverts() public {
        JobId job = createJob(defaultTerms());
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.EndpointTooLong.selector, 201, 200));
        jobs.announceEndpoint(job, string(new bytes(201)));
    }

    function test_AnnounceEndpoint_WhenUrlIsAsLongAsIsAllowed_PublishesIt() public {
        JobId job = createJob(defaultTerms());
        _announce(job, 0, string(new bytes(200)));
    }

    function test_AnnounceEndpoint_WhenCalledAgain_PublishesTheNewOne() public {
        JobId job = startJob(1);
        _announce(job, 2, URL);
        _announce(job, 2, "https://elsewhere.example");
    }

    function test_AnnounceEndpoint_WhenJobIsClosed_PublishesIt() public {
        _announce(_closed(), 1, URL);
    }

    // ---- enrol ----

    function test_Enrol_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.UnknownJob.selector, UNKNOWN));
        jobs.enrol(UNKNOWN, ROOT);
    }

    function test_Enrol_WhenAfterDeadline_Reverts() public {
        JobId job = createJob(defaultTerms());
        uint32 deadline = jobs.progress(job).enrolDeadline;
        vm.roll(deadline + 1);
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.EnrolmentClosed.selector, job, deadline, uint256(deadline) + 1
            )
        );
        jobs.enrol{value: CLIENT_DEPOSIT}(job, ROOT);
    }

    function test_Enrol_WhenInLastBlock_Enrols() public {
        JobId job = createJob(defaultTerms());
        vm.roll(jobs.progress(job).enrolDeadline);
        enrol(job, 0);
        assertEq(jobs.progress(job).clientCount, 1);
    }

    function test_Enrol_WhenEnrolledAlready_Reverts() public {
        JobId job = startJob(1);
        hoax(clients[0].addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.AlreadyEnrolled.selector, job, clients[0].addr)
        );
        jobs.enrol{value: CLIENT_DEPOSIT}(job, ROOT);
    }

    function test_Enrol_WhenClientHasLeft_Reverts() public {
        JobId job = startJob(1);
        vm.startPrank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.deal(clients[0].addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.AlreadyEnrolled.selector, job, clients[0].addr)
        );
        jobs.enrol{value: CLIENT_DEPOSIT}(job, ROOT);
    }

    function test_Enrol_WhenRootIsZero_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectRevert(IEnrolment.EmptyDatasetRoot.selector);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, 0);
    }

    function test_Enrol_WhenDepositIsTooSmall_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(
                IEnrolment.DepositTooSmall.selector, CLIENT_DEPOSIT - 1, CLIENT_DEPOSIT
            )
        );
        jobs.enrol{value: CLIENT_DEPOSIT - 1}(job, ROOT);
    }

    function test_Enrol_WhenAllIsRight_LocksTheDepositAndCountsTheClient() public {
        JobId job = startJob(1);
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectEmit(address(jobs));
        emit IEnrolment.ClientEnrolled(job, stranger.addr, 1, ROOT);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, ROOT);
        Client memory client = jobs.client(job, stranger.addr);
        assertEq(uint8(client.status), uint8(ClientStatus.Active));
        assertEq(client.index, 1);
        assertEq(client.nextRound, 0);
        assertEq(client.datasetRoot, ROOT);
        assertEq(jobs.progress(job).clientCount, 2);
        assertEq(deposits.account(job, Role.Client, stranger.addr).balance, CLIENT_DEPOSIT);
    }

    function test_Enrol_WhenCallerIsAMemberAsWell_KeepsBothStakesApart() public {
        JobId job = startJob(0);
        hoax(members[0].addr, CLIENT_DEPOSIT);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, ROOT);
        assertEq(stakeOf(job, 0), MEMBER_STAKE);
        assertEq(deposits.account(job, Role.Client, members[0].addr).balance, CLIENT_DEPOSIT);
    }

    // ---- replaceDatasetRoot ----

    function test_ReplaceDatasetRoot_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        _expectNotClient(job);
        vm.prank(stranger.addr);
        jobs.replaceDatasetRoot(job, ROOT);
    }

    function test_ReplaceDatasetRoot_WhenFirstRoundIsOpen_Reverts() public {
        JobId job = startJob(1);
        openFirst(job);
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.DatasetRootFixed.selector, job, clients[0].addr)
        );
        jobs.replaceDatasetRoot(job, ROOT);
    }

    function test_ReplaceDatasetRoot_WhenRootIsZero_Reverts() public {
        JobId job = startJob(1);
        vm.prank(clients[0].addr);
        vm.expectRevert(IEnrolment.EmptyDatasetRoot.selector);
        jobs.replaceDatasetRoot(job, 0);
    }

    function test_ReplaceDatasetRoot_WhenBeforeFirstRound_ReplacesTheRoot() public {
        JobId job = startJob(1);
        vm.expectEmit(address(jobs));
        emit IEnrolment.DatasetRootReplaced(job, clients[0].addr, ROOT);
        vm.prank(clients[0].addr);
        jobs.replaceDatasetRoot(job, ROOT);
        assertEq(jobs.client(job, clients[0].addr).datasetRoot, ROOT);
    }

    // ---- topUpDeposit ----

    function test_TopUpDeposit_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        _expectNotClient(job);
        hoax(stranger.addr, 1);
        jobs.topUpDeposit{value: 1}(job);
    }

    function test_TopUpDeposit_WhenClientIsLeaving_Reverts() public {
        JobId job = startJob(1);
        _leave(job, 0);
        hoax(clients[0].addr, 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                IDeposits.AlreadyUnbonding.selector, job, Role.Client, clients[0].addr
            )
        );
        jobs.topUpDeposit{value: 1}(job);
    }

    function test_TopUpDeposit_WhenClientIsActive_OnlyAddsToTheDeposit() public {
        JobId job = startJob(1);
        vm.recordLogs();
        hoax(clients[0].addr, 5);
        jobs.topUpDeposit{value: 5}(job);
        assertEq(vm.getRecordedLogs().length, 1);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT + 5);
        assertEq(uint8(_statusOf(job, 0)), uint8(ClientStatus.Active));
    }

    function test_TopUpDeposit_WhenSuspendedAndStillShort_LeavesTheClientSuspended() public {
        JobId job = _suspendFirstClient();
        hoax(clients[0].addr, 1 ether);
        jobs.topUpDeposit{value: 0.4 ether - 1}(job);
        assertEq(uint8(_statusOf(job, 0)), uint8(ClientStatus.Suspended));
    }

    function test_TopUpDeposit_WhenSuspendedAndMadeWhole_ReinstatesTheClient() public {
        JobId job = _suspendFirstClient();
        RoundId round = jobs.openRound(job);
        hoax(clients[0].addr, 1 ether);
        vm.expectEmit(address(jobs));
        emit IEnrolment.ClientStatusChanged(job, clients[0].addr, ClientStatus.Active);
        jobs.topUpDeposit{value: 0.4 ether}(job);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        commit(round, 0);
    }

    // ---- topUpStake ----

    function test_TopUpStake_WhenCallerIsNotAMember_Reverts() public {
        JobId job = startJob(1);
        hoax(stranger.addr, 1);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr));
        jobs.topUpStake{value: 1}(job);
    }

    function test_TopUpStake_WhenMemberHasNotJoined_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, 1);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, members[0].addr));
        jobs.topUpStake{value: 1}(job);
    }

    function test_TopUpStake_WhenMemberIsUnbonding_Reverts() public {
        JobId job = _stillborn();
        vm.startPrank(members[0].addr);
        jobs.unbondStake(job);
        vm.deal(members[0].addr, 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                IDeposits.AlreadyUnbonding.selector, job, Role.Member, members[0].addr
            )
        );
        jobs.topUpStake{value: 1}(job);
    }

    function test_TopUpStake_WhenMemberHasJoined_AddsToTheStake() public {
        JobId job = startJob(1);
        hoax(members[0].addr, 5);
        jobs.topUpStake{value: 5}(job);
        assertEq(stakeOf(job, 0), MEMBER_STAKE + 5);
    }

    // ---- unbondDeposit ----

    function test_UnbondDeposit_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        _expectNotClient(job);
        vm.prank(stranger.addr);
        jobs.unbondDeposit(job);
    }

    function test_UnbondDeposit_WhenClientIsLeaving_Reverts() public {
        JobId job = startJob(1);
        _leave(job, 0);
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IEnrolment.ClientLeaving.selector, job, clients[0].addr)
        );
        jobs.unbondDeposit(job);
    }

    function test_UnbondDeposit_WhenClientIsActive_StartsTheDelayAndStopsCommitments() public {
        JobId job = startJob(1);
        RoundId round = openFirst(job);
        uint32 withdrawableAt = uint32(block.number) + 200;
        vm.expectEmit(address(jobs));
        emit IEnrolment.ClientStatusChanged(job, clients[0].addr, ClientStatus.Leaving);
        vm.expectEmit(address(deposits));
        emit IDeposits.UnbondingStarted(job, Role.Client, clients[0].addr, withdrawableAt);
        vm.startPrank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.ClientNotActive.selector, job, clients[0].addr)
        );
        jobs.commitGradient(round, "gradient");
    }

    function test_UnbondDeposit_WhenClientIsSuspended_LetsTheClientLeave() public {
        JobId job = _suspendFirstClient();
        _leave(job, 0);
        vm.roll(block.number + 200);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        assertEq(clients[0].addr.balance, 0.6 ether);
    }

    function test_UnbondDeposit_WhenDelayIsOver_PaysTheWholeDeposit() public {
        JobId job = startJob(1);
        _leave(job, 0);
        uint256 withdrawableAt = block.number + 200;
        vm.roll(withdrawableAt - 1);
        vm.startPrank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(
                IDeposits.StillUnbonding.selector, withdrawableAt, withdrawableAt - 1
            )
        );
        deposits.withdraw(job, Role.Client);
        vm.roll(withdrawableAt);
        deposits.withdraw(job, Role.Client);
        assertEq(clients[0].addr.balance, CLIENT_DEPOSIT);
    }

    // ---- unbondStake ----

    function test_UnbondStake_WhenCallerIsNotAMember_Reverts() public {
        JobId job = _stillborn();
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, stranger.addr));
        jobs.unbondStake(job);
    }

    function test_UnbondStake_WhenMemberHasNotJoined_Reverts() public {
        JobId job = _stillborn();
        vm.prank(members[2].addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, members[2].addr));
        jobs.unbondStake(job);
    }

    function test_UnbondStake_WhenEnrolmentIsOpen_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        vm.roll(jobs.progress(job).enrolDeadline);
        _expectInService(job);
    }

    function test_UnbondStake_WhenJobCanStart_Reverts() public {
        JobId job = startJob(1);
        rollPast(jobs.progress(job).enrolDeadline);
        _expectInService(job);
    }

    function test_UnbondStake_WhenRoundsAreLeft_Reverts() public {
        JobId job = startJob(1);
        RoundId round = openFirst(job);
        _expectInService(job);
        voidUndecided(round);
        _expectInService(job);
    }

    function test_UnbondStake_WhenAMemberIsMissingAfterEnrolment_LetsTheOthersLeave() public {
        JobId job = _stillborn();
        uint32 withdrawableAt = uint32(block.number) + 200;
        vm.prank(members[0].addr);
        jobs.unbondStake(job);
        vm.roll(withdrawableAt);
        vm.prank(members[0].addr);
        deposits.withdraw(job, Role.Member);
        assertEq(members[0].addr.balance, MEMBER_STAKE);
    }

    function test_UnbondStake_WhenNoClientEnrolled_LetsTheMembersLeave() public {
        JobId job = startJob(0);
        rollPast(jobs.progress(job).enrolDeadline);
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(members[i].addr);
            jobs.unbondStake(job);
        }
    }

    function test_UnbondStake_WhenJobIsClosed_StartsTheDelay() public {
        JobId job = _closed();
        vm.expectEmit(address(deposits));
        emit IDeposits.UnbondingStarted(
            job, Role.Member, members[1].addr, uint32(block.number) + 200
        );
        vm.prank(members[1].addr);
        jobs.unbondStake(job);
    }

    function test_UnbondStake_WhenUnbondingAlready_Reverts() public {
        JobId job = _closed();
        vm.startPrank(members[1].addr);
        jobs.unbondStake(job);
        vm.expectRevert(
            abi.encodeWithSelector(
                IDeposits.AlreadyUnbonding.selector, job, Role.Member, members[1].addr
            )
        );
        jobs.unbondStake(job);
    }

    // ---- noteDeposit ----

    function test_NoteDeposit_WhenCallerIsNotSlashing_Reverts() public {
        JobId job = startJob(1);
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotAuthorised.selector, stranger.addr));
        jobs.noteDeposit(job, clients[0].addr, 0);
    }

    // ---- views ----

    function test_Terms_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.UnknownJob.selector, UNKNOWN));
        jobs.terms(UNKNOWN);
    }

    function test_Progress_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.UnknownJob.selector, UNKNOWN));
        jobs.progress(UNKNOWN);
    }

    function test_Client_WhenAccountIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        _expectNotClient(job);
        jobs.client(job, stranger.addr);
    }

    function test_MemberIndex_WhenAccountIsNotAMember_Reverts() public {
        JobId job = startJob(1);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotMember.selector, job, clients[0].addr));
        jobs.memberIndex(job, clients[0].addr);
    }

    function test_MemberIndex_WhenAccountIsAMember_GivesThePlaceInTheCommittee() public {
        JobId job = startJob(1);
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(jobs.memberIndex(job, members[i].addr), i);
        }
    }

    // ---- steps ----

    function _announce(JobId job, uint256 member, string memory url) private {
        vm.prank(members[member].addr);
        vm.expectEmit(address(jobs));
        emit IEnrolment.EndpointAnnounced(job, members[member].addr, url);
        jobs.announceEndpoint(job, url);
    }

    function _leave(JobId job, uint256 client) private {
        vm.prank(clients[client].addr);
        jobs.unbondDeposit(job);
    }

    /// @dev A job whose third member never joined, past enrolment.
    function _stillborn() private returns (JobId job) {
        job = createJob(defaultTerms());
        join(job, 0);
        join(job, 1);
        enrol(job, 0);
        rollPast(jobs.progress(job).enrolDeadline);
    }

    /// @dev A job whose only round is over.
    function _closed() private returns (JobId job) {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 1);
        voidUndecided(openFirst(job));
    }

    /// @dev A job between rounds 0 and 1; client 0 has lost 0.4 of 1 ether.
    function _suspendFirstClient() private returns (JobId job) {
        job = startJob(2);
        RoundId round = openFirst(job);
        Verdict memory verdict = faultOf(0, Reason.CommitmentMismatch);
        playRound(round, 2, verdict);
        requestSlash(round, 0, verdict);
        finalise(round);
    }

    function _statusOf(JobId job, uint256 client) private view returns (ClientStatus) {
        return jobs.client(job, clients[client].addr).status;
    }

    function _expectNotClient(JobId job) private {
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.NotClient.selector, job, stranger.addr));
    }

    function _expectInService(JobId job) private {
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IEnrolment.CommitteeInService.selector, job));
        jobs.unbondStake(job);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {stdError} from "forge-std/StdError.sol";

import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Terms} from "contracts/libraries/Terms.sol";
import {
    AUDIT_ALWAYS,
    Client,
    ClientStatus,
    JobId,
    JobTerms,
    Outcome,
    Role,
    RoundId
} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";

contract JobsTest is Protocol {
    JobId internal constant UNKNOWN = JobId.wrap(99);

    // ---- createJob ----

    function test_CreateJob_WhenTermsAreUnsafe_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 0;
        vm.expectRevert(abi.encodeWithSelector(Terms.ZeroTerm.selector, "rounds"));
        jobs.createJob(terms, POLICY, BOUNDARY);
    }

    function test_CreateJob_WhenBudgetIsOneWeiShort_Reverts() public {
        JobTerms memory terms = defaultTerms();
        uint256 needed = budgetFor(terms);
        hoax(creator, needed);
        vm.expectRevert(abi.encodeWithSelector(Terms.BudgetTooSmall.selector, needed - 1, needed));
        jobs.createJob{value: needed - 1}(terms, POLICY, BOUNDARY);
    }

    function test_CreateJob_WhenPolicyHashIsNotThatOfTheBytes_Reverts() public {
        _expectHashMismatch("other", BOUNDARY, keccak256(POLICY), keccak256("other"));
    }

    function test_CreateJob_WhenBoundaryHashIsNotThatOfTheBytes_Reverts() public {
        _expectHashMismatch(POLICY, "other", keccak256(BOUNDARY), keccak256("other"));
    }

    function test_CreateJob_WhenTermsAreSafe_RecordsAndPublishesThem() public {
        JobTerms memory terms = defaultTerms();
        uint256 budget = budgetFor(terms) + 5;
        JobId expected = JobId.wrap(1);
        hoax(creator, budget);
        vm.expectEmit(address(jobs));
        emit IJobs.JobCreated(expected, creator, terms, budget, POLICY, BOUNDARY);
        vm.expectEmit(address(deposits));
        emit IDeposits.Funded(expected, budget);
        JobId job = jobs.createJob{value: budget}(terms, POLICY, BOUNDARY);

        assertEq(JobId.unwrap(job), JobId.unwrap(expected));
        assertEq(jobs.creatorOf(job), creator);
        assertEq(abi.encode(jobs.terms(job)), abi.encode(terms));
        assertEq(deposits.budgetOf(job), budget);
        assertEq(deposits.fundedOf(job), budget);
        assertEq(jobs.participants(job).enrolDeadline, block.number + terms.phases.enrol);
        for (uint256 seat = 0; seat < 3; ++seat) {
            assertEq(jobs.seats(job)[seat], members[seat].addr);
        }
    }

    function test_CreateJob_WhenTermsAreSafe_AnswersForEveryTermAlone() public {
        JobTerms memory terms = defaultTerms();
        JobId job = createJob(terms);
        assertEq(jobs.auditRate(job), terms.auditRate);
        assertEq(abi.encode(jobs.phases(job)), abi.encode(terms.phases));
        assertEq(abi.encode(jobs.pay(job)), abi.encode(terms.pay));
        assertEq(jobs.roundCount(job), terms.rounds);
        (uint32 places, bool publicRoll) = jobs.rollLimits(job);
        assertEq(places, terms.maxClients);
        assertEq(publicRoll, terms.publicRoll);
    }

    function test_CreateJob_WhenCalledAgain_CountsJobsFromOne() public {
        assertEq(jobs.jobCount(), 0);
        assertEq(JobId.unwrap(createJob(defaultTerms())), 1);
        assertEq(JobId.unwrap(createJob(defaultTerms())), 2);
        assertEq(jobs.jobCount(), 2);
    }

    // ---- joinCommittee ----

    function test_JoinCommittee_WhenJobIsUnknown_Reverts() public {
        _expectJoinRevert(UNKNOWN, 0, abi.encodeWithSelector(IJobs.UnknownJob.selector, UNKNOWN));
    }

    function test_JoinCommittee_WhenAfterDeadline_Reverts() public {
        JobId job = createJob(defaultTerms());
        uint32 deadline = jobs.participants(job).enrolDeadline;
        vm.roll(deadline + 1);
        _expectJoinRevert(
            job,
            0,
            abi.encodeWithSelector(IJobs.EnrolmentClosed.selector, job, deadline, deadline + 1)
        );
    }

    function test_JoinCommittee_WhenInLastBlock_Joins() public {
        JobId job = createJob(defaultTerms());
        vm.roll(jobs.participants(job).enrolDeadline);
        join(job, 0);
        assertEq(jobs.participants(job).joined, 1);
    }

    function test_JoinCommittee_WhenCallerIsNotOnTheRoster_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(stranger.addr, MEMBER_STAKE);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        jobs.joinCommittee{value: MEMBER_STAKE}(job, sealingKeyOf(0));
    }

    function test_JoinCommittee_WhenJoinedAlready_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        _expectJoinRevert(
            job, 0, abi.encodeWithSelector(IJobs.AlreadyJoined.selector, job, members[0].addr)
        );
    }

    function test_JoinCommittee_WhenSealingKeyHasTheWrongLength_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, MEMBER_STAKE);
        vm.expectRevert(abi.encodeWithSelector(IJobs.BadSealingKey.selector, 32));
        jobs.joinCommittee{value: MEMBER_STAKE}(job, new bytes(32));
    }

    function test_JoinCommittee_WhenStakeIsTooSmall_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, MEMBER_STAKE);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.DepositTooSmall.selector, MEMBER_STAKE - 1, MEMBER_STAKE)
        );
        jobs.joinCommittee{value: MEMBER_STAKE - 1}(job, sealingKeyOf(0));
    }

    function test_JoinCommittee_WhenCallerHasNoKey_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.members[0] = stranger.addr;
        JobId job = createJob(terms);
        hoax(stranger.addr, MEMBER_STAKE);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.KeyMissing.selector, stranger.addr));
        jobs.joinCommittee{value: MEMBER_STAKE}(job, sealingKeyOf(0));
    }

    function test_JoinCommittee_WhenCallerIsAMember_LocksTheStake() public {
        JobId job = createJob(defaultTerms());
        vm.expectEmit(address(jobs));
        emit IJobs.MemberJoined(job, members[1].addr, 1, sealingKeyOf(1));
        join(job, 1);
        assertEq(stakeOf(job, 1), MEMBER_STAKE);
        assertEq(jobs.participants(job).joined, 2);
        assertEq(jobs.numberOf(job, members[1].addr), 1);
    }

    function test_JoinCommittee_WhenCallerIsAStandby_HasTheNumberBehindTheMembers() public {
        JobId job = createJob(defaultTerms());
        vm.expectEmit(address(jobs));
        emit IJobs.MemberJoined(job, members[4].addr, 4, sealingKeyOf(4));
        join(job, 4);
        assertEq(jobs.participants(job).joined, 16);
        assertEq(jobs.rosterAt(job, 4), members[4].addr);
    }

    function test_JoinCommittee_WhenMoreIsSent_LocksAllOfIt() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, MEMBER_STAKE + 7);
        jobs.joinCommittee{value: MEMBER_STAKE + 7}(job, sealingKeyOf(0));
        assertEq(stakeOf(job, 0), MEMBER_STAKE + 7);
    }

    // ---- announceEndpoint ----

    function test_AnnounceEndpoint_WhenCallerIsNotOnTheRoster_Reverts() public {
        JobId job = createJob(defaultTerms());
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        jobs.announceEndpoint(job, "https://stranger.example");
    }

    function test_AnnounceEndpoint_WhenUrlIsTooLong_Reverts() public {
        JobId job = createJob(defaultTerms());
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.EndpointTooLong.selector, 201, 200));
        jobs.announceEndpoint(job, string(new bytes(201)));
    }

    function test_AnnounceEndpoint_WhenUrlIsAsLongAsIsAllowed_PublishesIt() public {
        JobId job = createJob(defaultTerms());
        string memory url = string(new bytes(200));
        vm.expectEmit(address(jobs));
        emit IJobs.EndpointAnnounced(job, members[3].addr, url);
        vm.prank(members[3].addr);
        jobs.announceEndpoint(job, url);
    }

    // ---- changeSeat ----

    function test_ChangeSeat_WhenSeatDoesNotExist_Reverts() public {
        JobId job = startJob(1);
        bytes[2] memory signatures = signedBy(0, 1, seatChangeOf(job, 3, 3));
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownSeat.selector, 3));
        jobs.changeSeat(job, 3, members[3].addr, signatures);
    }

    function test_ChangeSeat_WhenAccountIsNotOnTheRoster_Reverts() public {
        JobId job = startJob(1);
        bytes32 statement = Statements.seatChange(job, 0, 2, stranger.addr);
        bytes[2] memory signatures = signedBy(0, 1, statement);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        jobs.changeSeat(job, 2, stranger.addr, signatures);
    }

    function test_ChangeSeat_WhenStandbyHasNotStaked_Reverts() public {
        JobId job = createJob(defaultTerms());
        for (uint256 i = 0; i < 3; ++i) {
            join(job, i);
        }
        _expectSeatRevert(
            job, 3, 0, 1, abi.encodeWithSelector(IJobs.NotMember.selector, job, members[3].addr)
        );
    }

    function test_ChangeSeat_WhenAccountHasASeat_Reverts() public {
        JobId job = startJob(1);
        _expectSeatRevert(
            job, 1, 0, 1, abi.encodeWithSelector(IJobs.AlreadySeated.selector, job, members[1].addr)
        );
    }

    function test_ChangeSeat_WhenOneSeatSignedTwice_Reverts() public {
        JobId job = startJob(1);
        _expectSeatRevert(
            job, 3, 0, 0, abi.encodeWithSelector(IJobs.SameSigner.selector, members[0].addr)
        );
    }

    function test_ChangeSeat_WhenAStandbySigned_Reverts() public {
        JobId job = startJob(1);
        bytes memory reason = abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[4].addr);
        _expectSeatRevert(job, 3, 4, 1, reason);
        _expectSeatRevert(job, 3, 0, 4, reason);
    }

    function test_ChangeSeat_WhenASeatSignedThatHasNotStaked_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        join(job, 2);
        join(job, 3);
        bytes memory reason = abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[1].addr);
        _expectSeatRevert(job, 3, 0, 1, reason);
        changeSeat(job, 1, 3, 0, 2);
    }

    function test_ChangeSeat_WhenSignaturesAreForAnEarlierEpoch_Reverts() public {
        JobId job = startJob(1);
        bytes[2] memory signatures = signedBy(0, 1, seatChangeOf(job, 2, 3));
        changeSeat(job, 2, 4, 0, 1);
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        jobs.changeSeat(job, 2, members[3].addr, signatures);
    }

    function test_ChangeSeat_WhenSignaturesAreForAnotherJob_Reverts() public {
        JobId job = startJob(1);
        JobId other = startJob(1);
        bytes[2] memory signatures = signedBy(0, 1, seatChangeOf(job, 2, 3));
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        jobs.changeSeat(other, 2, members[3].addr, signatures);
    }

    function test_ChangeSeat_WhenTwoSeatsSigned_SeatsTheStandbyAndFormsTheGroup() public {
        JobId job = startJob(1);
        address from = members[2].addr;
        vm.expectEmit(address(jobs));
        emit IJobs.SeatChanged(job, 2, from, members[3].addr, 1);
        vm.expectEmit(true, true, false, false, address(beacon));
        emit IBeacon.GroupFormed(job, 1, "");
        changeSeat(job, 2, 3, 0, 1);
        assertEq(jobs.seats(job)[2], members[3].addr);
        assertEq(jobs.participants(job).epoch, 1);
        assertEq(beacon.groupKeyOf(job, 1).length, 256);
    }

    function test_ChangeSeat_WhenLeavingSeatSigned_CountsItsSignature() public {
        JobId job = startJob(1);
        changeSeat(job, 2, 3, 2, 1);
        assertEq(jobs.seats(job)[2], members[3].addr);
    }

    function test_ChangeSeat_WhenSeatWasTakenFromIt_NoLongerCountsItsSignature() public {
        JobId job = startJob(1);
        changeSeat(job, 2, 3, 0, 1);
        _expectSeatRevert(
            job, 4, 2, 1, abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[2].addr)
        );
    }

    function test_ChangeSeat_WhenMemberWasReplaced_CanComeBack() public {
        JobId job = startJob(1);
        changeSeat(job, 2, 3, 0, 1);
        changeSeat(job, 0, 2, 1, 3);
        assertEq(jobs.seats(job)[0], members[2].addr);
        assertEq(jobs.seats(job)[2], members[3].addr);
        assertEq(abi.encode(jobs.participants(job).seats), abi.encode([2, 1, 3]));
    }

    function test_ChangeSeat_WhenARoundIsOpen_CountsForTheNextOneAlone() public {
        JobId job = startJob(1);
        RoundId round = openFirst(job);
        changeSeat(job, 2, 3, 0, 1);
        assertEq(rounds.seatsOf(round)[2], members[2].addr);
        assertEq(rounds.round(round).epoch, 0);
        voidUndecided(round);
        RoundId next = rounds.openRound(job);
        assertEq(rounds.seatsOf(next)[2], members[3].addr);
        assertEq(rounds.round(next).epoch, 1);
    }

    function test_ChangeSeat_WhenEpochsAreUsedUp_Reverts() public {
        JobId job = startJob(1);
        for (uint256 i = 0; i < 255; ++i) {
            changeSeat(job, 2, i % 2 == 0 ? 3 : 2, 0, 1);
        }
        assertEq(jobs.participants(job).epoch, 255);
        _expectSeatRevert(job, 4, 0, 1, stdError.arithmeticError);
    }

    function test_ChangeSeat_WhenSignatureIsMalformed_Reverts() public {
        JobId job = startJob(1);
        bytes[2] memory signatures = signedBy(0, 1, seatChangeOf(job, 2, 3));
        signatures[1] = hex"00";
        vm.expectRevert(abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 1));
        jobs.changeSeat(job, 2, members[3].addr, signatures);
    }

    // ---- enrol ----

    function test_Enrol_WhenJobIsUnknown_Reverts() public {
        _expectEnrolRevert(
            UNKNOWN, datasetOf(0), abi.encodeWithSelector(IJobs.UnknownJob.selector, UNKNOWN)
        );
    }

    function test_Enrol_WhenAfterDeadline_Reverts() public {
        JobId job = createJob(defaultTerms());
        uint32 deadline = jobs.participants(job).enrolDeadline;
        vm.roll(deadline + 1);
        _expectEnrolRevert(
            job,
            datasetOf(0),
            abi.encodeWithSelector(IJobs.EnrolmentClosed.selector, job, deadline, deadline + 1)
        );
    }

    function test_Enrol_WhenInLastBlock_Enrols() public {
        JobId job = createJob(defaultTerms());
        vm.roll(jobs.participants(job).enrolDeadline);
        enrol(job, 0);
        assertEq(jobs.participants(job).clientCount, 1);
    }

    function test_Enrol_WhenEnrolledAlready_Reverts() public {
        JobId job = startJob(1);
        hoax(clients[0].addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.AlreadyEnrolled.selector, job, clients[0].addr)
        );
        jobs.enrol{value: CLIENT_DEPOSIT}(job, datasetOf(0));
    }

    function test_Enrol_WhenClientHasLeft_Reverts() public {
        JobId job = startJob(1);
        _unbond(job, 0);
        hoax(clients[0].addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.AlreadyEnrolled.selector, job, clients[0].addr)
        );
        jobs.enrol{value: CLIENT_DEPOSIT}(job, datasetOf(0));
    }

    function test_Enrol_WhenRootIsZero_Reverts() public {
        JobId job = createJob(defaultTerms());
        _expectEnrolRevert(job, 0, abi.encodeWithSelector(IJobs.EmptyDatasetRoot.selector));
    }

    function test_Enrol_WhenDepositIsTooSmall_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectRevert(
            abi.encodeWithSelector(
                IJobs.DepositTooSmall.selector, CLIENT_DEPOSIT - 1, CLIENT_DEPOSIT
            )
        );
        jobs.enrol{value: CLIENT_DEPOSIT - 1}(job, datasetOf(0));
    }

    function test_Enrol_WhenAllPlacesAreTaken_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.maxClients = 3;
        JobId job = startJob(terms, 3);
        _expectEnrolRevert(
            job, datasetOf(0), abi.encodeWithSelector(IJobs.JobFull.selector, job, 3)
        );
    }

    function test_Enrol_WhenAllIsRight_LocksTheDepositAndCountsTheClient() public {
        JobId job = startJob(1);
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectEmit(address(jobs));
        emit IJobs.ClientEnrolled(job, stranger.addr, 1, datasetOf(1));
        jobs.enrol{value: CLIENT_DEPOSIT}(job, datasetOf(1));
        Client memory client = jobs.client(job, stranger.addr);
        assertEq(uint8(client.status), uint8(ClientStatus.Active));
        assertEq(client.index, 1);
        assertEq(jobs.indexOf(job, stranger.addr), 1);
        assertEq(client.datasetRoot, datasetOf(1));
        assertEq(deposits.account(job, Role.Client, stranger.addr).balance, CLIENT_DEPOSIT);
    }

    function test_Enrol_WhenCallerIsAMemberAsWell_KeepsBothStakesApart() public {
        JobId job = startJob(0);
        hoax(members[0].addr, CLIENT_DEPOSIT);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, datasetOf(0));
        assertEq(stakeOf(job, 0), MEMBER_STAKE);
        assertEq(deposits.account(job, Role.Client, members[0].addr).balance, CLIENT_DEPOSIT);
    }

    // ---- replaceDatasetRoot ----

    function test_ReplaceDatasetRoot_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        jobs.replaceDatasetRoot(job, keccak256("new"));
    }

    function test_ReplaceDatasetRoot_WhenFirstRoundIsOpen_Reverts() public {
        JobId job = startJob(1);
        openFirst(job);
        vm.prank(clients[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IJobs.DatasetRootFixed.selector, job, clients[0].addr)
        );
        jobs.replaceDatasetRoot(job, keccak256("new"));
    }

    function test_ReplaceDatasetRoot_WhenRootIsZero_Reverts() public {
        JobId job = startJob(1);
        vm.prank(clients[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.EmptyDatasetRoot.selector));
        jobs.replaceDatasetRoot(job, 0);
    }

    function test_ReplaceDatasetRoot_WhenBeforeFirstRound_ReplacesTheRoot() public {
        JobId job = startJob(1);
        vm.expectEmit(address(jobs));
        emit IJobs.DatasetRootReplaced(job, clients[0].addr, keccak256("new"));
        vm.prank(clients[0].addr);
        jobs.replaceDatasetRoot(job, keccak256("new"));
        assertEq(jobs.client(job, clients[0].addr).datasetRoot, keccak256("new"));
    }

    // ---- topUpDeposit ----

    function test_TopUpDeposit_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        hoax(stranger.addr, 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        jobs.topUpDeposit{value: 1}(job);
    }

    function test_TopUpDeposit_WhenClientIsLeaving_Reverts() public {
        JobId job = startJob(1);
        _unbond(job, 0);
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
        _topUp(job, 0, 7);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT + 7);
        _assertStatus(job, 0, ClientStatus.Active);
    }

    function test_TopUpDeposit_WhenAnAuditIsUndecided_LeavesTheClientSuspended() public {
        (JobId job,) = _held();
        _topUp(job, 0, CLIENT_DEPOSIT);
        _assertStatus(job, 0, ClientStatus.Suspended);
    }

    function test_TopUpDeposit_WhenChargedAndStillShort_LeavesTheClientSuspended() public {
        (JobId job, RoundId round) = _held();
        charge(round, 0, Outcome.Outside);
        _topUp(job, 0, 0.8 ether - 1);
        _assertStatus(job, 0, ClientStatus.Suspended);
    }

    function test_TopUpDeposit_WhenChargedAndMadeWhole_ReinstatesTheClient() public {
        (JobId job, RoundId round) = _held();
        charge(round, 0, Outcome.Outside);
        vm.expectEmit(address(jobs));
        emit IJobs.ClientStatusChanged(job, clients[0].addr, ClientStatus.Active);
        _topUp(job, 0, 0.8 ether);
        _assertStatus(job, 0, ClientStatus.Active);
    }

    // ---- topUpStake ----

    function test_TopUpStake_WhenMemberHasNotJoined_Reverts() public {
        JobId job = createJob(defaultTerms());
        hoax(members[0].addr, 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, members[0].addr));
        jobs.topUpStake{value: 1}(job);
    }

    function test_TopUpStake_WhenMemberIsUnbonding_Reverts() public {
        JobId job = _closed();
        _unbondStake(job, 0);
        hoax(members[0].addr, 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                IDeposits.AlreadyUnbonding.selector, job, Role.Member, members[0].addr
            )
        );
        jobs.topUpStake{value: 1}(job);
    }

    function test_TopUpStake_WhenMemberHasJoined_AddsToTheStake() public {
        JobId job = startJob(1);
        hoax(members[4].addr, 7);
        jobs.topUpStake{value: 7}(job);
        assertEq(stakeOf(job, 4), MEMBER_STAKE + 7);
    }

    // ---- unbondDeposit ----

    function test_UnbondDeposit_WhenCallerIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        jobs.unbondDeposit(job);
    }

    function test_UnbondDeposit_WhenClientIsLeaving_Reverts() public {
        JobId job = startJob(1);
        _unbond(job, 0);
        vm.prank(clients[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.ClientLeaving.selector, job, clients[0].addr));
        jobs.unbondDeposit(job);
    }

    function test_UnbondDeposit_WhenClientIsActive_StartsTheDelay() public {
        JobId job = startJob(1);
        uint32 until = uint32(block.number) + 100;
        vm.expectEmit(address(jobs));
        emit IJobs.ClientStatusChanged(job, clients[0].addr, ClientStatus.Leaving);
        vm.expectEmit(address(deposits));
        emit IDeposits.UnbondingStarted(job, Role.Client, clients[0].addr, until);
        _unbond(job, 0);
    }

    function test_UnbondDeposit_WhenClientIsSuspended_LetsTheClientLeave() public {
        (JobId job, RoundId round) = _held();
        _unbond(job, 0);
        _assertStatus(job, 0, ClientStatus.Leaving);
        acquit(round, 0);
        _assertStatus(job, 0, ClientStatus.Leaving);
        vm.roll(block.number + 100);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        assertEq(clients[0].addr.balance, CLIENT_DEPOSIT);
    }

    // ---- unbondStake ----

    function test_UnbondStake_WhenCallerIsNotAMember_Reverts() public {
        JobId job = _closed();
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        jobs.unbondStake(job);
    }

    function test_UnbondStake_WhenEnrolmentIsOpen_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        _expectInService(job);
    }

    function test_UnbondStake_WhenJobCanStart_Reverts() public {
        JobId job = startJob(1);
        rollPast(jobs.participants(job).enrolDeadline);
        _expectInService(job);
    }

    function test_UnbondStake_WhenRoundsAreLeft_Reverts() public {
        JobId job = startJob(1);
        voidUndecided(openFirst(job));
        _expectInService(job);
    }

    function test_UnbondStake_WhenAnAuditIsUndecided_Reverts() public {
        (JobId job, RoundId round) = _heldInLastRound();
        _expectInService(job);
        acquit(round, 0);
        _unbondStake(job, 0);
    }

    function test_UnbondStake_WhenAMemberIsMissingAfterEnrolment_LetsTheOthersLeave() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        join(job, 3);
        enrol(job, 0);
        rollPast(jobs.participants(job).enrolDeadline);
        _unbondStake(job, 0);
        _unbondStake(job, 3);
    }

    function test_UnbondStake_WhenNoClientEnrolled_LetsTheMembersLeave() public {
        JobId job = startJob(0);
        rollPast(jobs.participants(job).enrolDeadline);
        _unbondStake(job, 0);
    }

    function test_UnbondStake_WhenJobIsClosed_StartsTheDelay() public {
        JobId job = _closed();
        uint32 until = uint32(block.number) + 100;
        vm.expectEmit(address(deposits));
        emit IDeposits.UnbondingStarted(job, Role.Member, members[0].addr, until);
        _unbondStake(job, 0);
    }

    // ---- isStillborn ----

    function test_IsStillborn_WhenASeatMissedEnrolment_StaysTrueWhateverSeatsChange() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        join(job, 1);
        join(job, 3);
        enrol(job, 0);
        assertFalse(jobs.isStillborn(job));
        rollPast(jobs.participants(job).enrolDeadline);
        assertTrue(jobs.isStillborn(job));
        changeSeat(job, 2, 3, 0, 1);
        assertTrue(jobs.isStillborn(job));
    }

    // ---- noteAudit ----

    function test_NoteAudit_WhenCallerIsNotCharges_Reverts() public {
        JobId job = startJob(1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotAuthorised.selector, address(this)));
        jobs.noteAudit(job, clients[0].addr, 0, true);
    }

    // ---- views ----

    function test_Terms_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownJob.selector, UNKNOWN));
        jobs.terms(UNKNOWN);
    }

    function test_Participants_WhenJobIsUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownJob.selector, UNKNOWN));
        jobs.participants(UNKNOWN);
    }

    function test_Client_WhenAccountIsNotAClient_Reverts() public {
        JobId job = startJob(1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        jobs.client(job, stranger.addr);
    }

    function test_RequireTwoOthers_WhenAccusedSigned_Reverts() public {
        JobId job = startJob(1);
        bytes memory reason = abi.encodeWithSelector(IJobs.OwnFault.selector, members[0].addr);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("fault"));
        vm.expectRevert(reason);
        jobs.requireTwoOthers(job, members[0].addr, keccak256("fault"), signatures);
        signatures = signedBy(1, 0, keccak256("fault"));
        vm.expectRevert(reason);
        jobs.requireTwoOthers(job, members[0].addr, keccak256("fault"), signatures);
    }

    function test_RequireTwoOthers_WhenASignerHasNotStaked_Reverts() public {
        JobId job = createJob(defaultTerms());
        join(job, 0);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("fault"));
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, members[1].addr));
        jobs.requireTwoOthers(job, members[2].addr, keccak256("fault"), signatures);
    }

    function test_RequireTwoOthers_WhenStandbysSigned_Accepts() public {
        JobId job = startJob(1);
        bytes[2] memory signatures = signedBy(3, 4, keccak256("fault"));
        jobs.requireTwoOthers(job, members[2].addr, keccak256("fault"), signatures);
    }

    // ---- steps ----

    /// @dev Client 0 failed the only audit and is held.
    function _held() private returns (JobId job, RoundId round) {
        return _heldUnder(4);
    }

    function _heldInLastRound() private returns (JobId job, RoundId round) {
        (job, round) = _heldUnder(1);
        finalise(round);
    }

    function _heldUnder(uint32 count) private returns (JobId job, RoundId round) {
        JobTerms memory terms = defaultTerms();
        terms.auditRate = AUDIT_ALWAYS;
        terms.rounds = count;
        job = startJob(terms, 3);
        round = openFirst(job);
        playRound(round, 7, 6);
        hold(round, 0, 7, 6);
    }

    /// @dev A job of one round, which nobody decided.
    function _closed() private returns (JobId job) {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 1);
        voidUndecided(openFirst(job));
    }

    function _unbond(JobId job, uint256 client) private {
        vm.prank(clients[client].addr);
        jobs.unbondDeposit(job);
    }

    function _unbondStake(JobId job, uint256 member) private {
        vm.prank(members[member].addr);
        jobs.unbondStake(job);
        assertNotEq(deposits.account(job, Role.Member, members[member].addr).withdrawableAt, 0);
    }

    function _topUp(JobId job, uint256 client, uint256 amount) private {
        hoax(clients[client].addr, amount);
        jobs.topUpDeposit{value: amount}(job);
    }

    function _assertStatus(JobId job, uint256 client, ClientStatus status) private view {
        assertEq(uint8(jobs.client(job, clients[client].addr).status), uint8(status));
    }

    function _expectInService(JobId job) private {
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.CommitteeInService.selector, job));
        jobs.unbondStake(job);
    }

    function _expectHashMismatch(
        bytes memory policy,
        bytes memory boundary,
        bytes32 stated,
        bytes32 actual
    ) private {
        JobTerms memory terms = defaultTerms();
        uint256 budget = budgetFor(terms);
        hoax(creator, budget);
        vm.expectRevert(abi.encodeWithSelector(IJobs.HashMismatch.selector, stated, actual));
        jobs.createJob{value: budget}(terms, policy, boundary);
    }

    function _expectJoinRevert(JobId job, uint256 member, bytes memory reason) private {
        hoax(members[member].addr, MEMBER_STAKE);
        vm.expectRevert(reason);
        jobs.joinCommittee{value: MEMBER_STAKE}(job, sealingKeyOf(member));
    }

    function _expectEnrolRevert(JobId job, bytes32 root, bytes memory reason) private {
        hoax(stranger.addr, CLIENT_DEPOSIT);
        vm.expectRevert(reason);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, root);
    }

    /// @dev Seat 2 to number `standby`, signed by `a` and `b`.
    function _expectSeatRevert(
        JobId job,
        uint256 standby,
        uint256 a,
        uint256 b,
        bytes memory reason
    ) private {
        bytes[2] memory signatures = signedBy(a, b, seatChangeOf(job, 2, standby));
        vm.expectRevert(reason);
        jobs.changeSeat(job, 2, members[standby].addr, signatures);
    }
}

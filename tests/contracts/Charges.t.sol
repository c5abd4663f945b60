// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdJson} from "forge-std/StdJson.sol";

import {ICharges} from "contracts/interfaces/ICharges.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {
    AUDIT_ALWAYS,
    Charge,
    ChargeStatus,
    ClientStatus,
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Role,
    RollEntry,
    roundOf,
    RoundId
} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";
import {VectorFile} from "./support/VectorFile.sol";

contract ChargesTest is Protocol, VectorFile {
    using stdJson for string;

    uint96 internal constant PENALTY = 0.8 ether;
    uint32 internal constant SLOT = 3;

    /// @dev All four clients are on the roll, and client 0 did not pass.
    uint256 internal constant ROLL = 15;
    uint256 internal constant PASSED = 14;

    JobId internal job;
    RoundId internal round;

    function setUp() public override {
        super.setUp();
        job = startJob(defaultTerms(), 4);
        round = openFirst(job);
    }

    function defaultTerms() internal view override returns (JobTerms memory terms) {
        terms = super.defaultTerms();
        terms.auditRate = AUDIT_ALWAYS;
    }

    // ---- hold ----

    function test_Hold_WhenRoundIsUndecided_Reverts() public {
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, PASSED);
        _expectHoldRevert(0, abi.encodeWithSelector(ICharges.RoundUndecided.selector, round));
    }

    function test_Hold_WhenVerdictIsNotTheDecidedOne_Reverts() public {
        playRound(round, ROLL, ROLL);
        _expectHoldRevert(
            0,
            abi.encodeWithSelector(
                ICharges.WrongVerdict.selector,
                keccak256(passesOf(PASSED)),
                keccak256(passesOf(ROLL))
            )
        );
    }

    function test_Hold_WhenAccountIsNotAClient_Reverts() public {
        _fail();
        RollEntry memory entry = entryOf(round, 0, ROLL);
        bytes memory passes = passesOf(PASSED);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        charges.hold(round, stranger.addr, passes, entry);
    }

    function test_Hold_WhenClientPassed_Reverts() public {
        _fail();
        _expectHoldRevert(
            1, abi.encodeWithSelector(ICharges.ClientPassed.selector, round, clients[1].addr)
        );
    }

    function test_Hold_WhenClientIsNotAudited_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.auditRate = 0;
        job = startJob(terms, 4);
        round = openFirst(job);
        _fail();
        _expectHoldRevert(
            0, abi.encodeWithSelector(ICharges.ClientNotAudited.selector, round, clients[0].addr)
        );
    }

    function test_Hold_WhenBeaconFailed_HoldsWhoeverDidNotPass() public {
        JobTerms memory terms = defaultTerms();
        terms.auditRate = 0;
        job = startJob(terms, 4);
        round = openFirst(job);
        commitRoll(round, ROLL);
        rollPast(rounds.schedule(round).beacon);
        decide(round, PASSED);
        hold(round, 0, ROLL, PASSED);
        assertEq(charges.chargeOf(round, clients[0].addr).held, PENALTY);
    }

    function test_Hold_WhenClientIsNotOnTheRoll_Reverts() public {
        playRound(round, 14, 12);
        RollEntry memory entry = entryOf(round, 0, ROLL);
        bytes memory passes = passesOf(12);
        vm.expectRevert(abi.encodeWithSelector(ICharges.NotOnRoll.selector, round, clients[0].addr));
        charges.hold(round, clients[0].addr, passes, entry);
    }

    function test_Hold_WhenEntryIsAnotherClients_Reverts() public {
        _fail();
        RollEntry memory entry = entryOf(round, 1, ROLL);
        bytes memory passes = passesOf(PASSED);
        vm.expectRevert(abi.encodeWithSelector(ICharges.NotOnRoll.selector, round, clients[0].addr));
        charges.hold(round, clients[0].addr, passes, entry);
    }

    /// @dev Two members alone cannot put a contribution into a client's mouth.
    function test_Hold_WhenContributionIsNotSignedByTheClient_Reverts() public {
        _fail();
        RollEntry memory entry = entryOf(round, 0, ROLL);
        entry.signature = signed(members[0], contributionOf(round, 0));
        bytes memory passes = passesOf(PASSED);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICharges.NotSignedByClient.selector, members[0].addr, clients[0].addr
            )
        );
        charges.hold(round, clients[0].addr, passes, entry);
    }

    function test_Hold_WhenContributionIsForAnotherOpening_Reverts() public {
        bytes32 statement = Statements.contribution(
            round, keccak256("other"), clients[0].addr, contentHashOf(round, 0)
        );
        _fail();
        RollEntry memory entry = entryOf(round, 0, ROLL);
        entry.signature = signed(clients[0], statement);
        bytes memory passes = passesOf(PASSED);
        vm.expectPartialRevert(ICharges.NotSignedByClient.selector);
        charges.hold(round, clients[0].addr, passes, entry);
    }

    function test_Hold_WhenHeldAlready_Reverts() public {
        _hold();
        _expectHoldRevert(
            0, abi.encodeWithSelector(ICharges.AlreadyHeld.selector, round, clients[0].addr)
        );
    }

    function test_Hold_WhenDecidedAlready_Reverts() public {
        _hold();
        acquit(round, 0);
        _expectHoldRevert(
            0, abi.encodeWithSelector(ICharges.AlreadyHeld.selector, round, clients[0].addr)
        );
    }

    function test_Hold_WhenAuditDidNotPass_SetsThePenaltyAside() public {
        _fail();
        vm.expectEmit(address(deposits));
        emit IDeposits.Captured(job, Role.Client, clients[0].addr, PENALTY, 0.2 ether);
        vm.expectEmit(address(charges));
        emit ICharges.AuditHeld(round, clients[0].addr, PENALTY);
        vm.expectEmit(address(jobs));
        emit IJobs.ClientStatusChanged(job, clients[0].addr, ClientStatus.Suspended);
        hold(round, 0, ROLL, PASSED);

        Charge memory charge = charges.chargeOf(round, clients[0].addr);
        assertEq(uint8(charge.status), uint8(ChargeStatus.Held));
        assertEq(charge.heldAt, block.number);
        assertEq(charge.held, PENALTY);
        assertEq(jobs.client(job, clients[0].addr).undecided, 1);
        assertEq(jobs.participants(job).undecided, 1);
    }

    function test_Hold_WhenRoundIsVoidAfterTheVerdict_SetsThePenaltyAside() public {
        _fail();
        rollPast(rounds.schedule(round).finalise);
        rounds.voidRound(round);
        hold(round, 0, ROLL, PASSED);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT - PENALTY);
    }

    function test_Hold_WhenDepositIsSmaller_SetsTheWholeDepositAside() public {
        _hold();
        finalise(round);
        round = rounds.openRound(job);
        _hold();
        assertEq(charges.chargeOf(round, clients[0].addr).held, CLIENT_DEPOSIT - PENALTY);
        assertEq(depositOf(job, 0), 0);
        assertEq(jobs.client(job, clients[0].addr).undecided, 2);
    }

    /// @dev Whoever asks for its deposit right after the opening gets it after the last hold.
    function test_Hold_WhenClientLeftDuringTheRound_ComesBeforeTheWithdrawal() public {
        vm.roll(block.number + 1);
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        _fail();
        vm.roll(rounds.schedule(round).response);
        vm.prank(clients[0].addr);
        vm.expectPartialRevert(IDeposits.StillUnbonding.selector);
        deposits.withdraw(job, Role.Client);
        hold(round, 0, ROLL, PASSED);
        assertEq(charges.chargeOf(round, clients[0].addr).held, PENALTY);
        assertEq(uint8(jobs.client(job, clients[0].addr).status), uint8(ClientStatus.Leaving));
    }

    function test_Hold_WhenClientHasWithdrawn_HoldsNothing() public {
        _fail();
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.roll(block.number + 100);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        hold(round, 0, ROLL, PASSED);
        assertEq(charges.chargeOf(round, clients[0].addr).held, 0);
        charge(round, 0, Outcome.Outside);
        assertEq(deposits.burned(), 0);
    }

    // ---- charge ----

    function test_Charge_WhenNothingIsHeld_Reverts() public {
        _fail();
        _expectChargeRevert(Outcome.Outside, _notHeld(ChargeStatus.None));
    }

    function test_Charge_WhenDecidedAlready_Reverts() public {
        _hold();
        charge(round, 0, Outcome.Outside);
        _expectChargeRevert(Outcome.Outside, _notHeld(ChargeStatus.Charged));
    }

    function test_Charge_WhenAcquittedBefore_Reverts() public {
        _hold();
        acquit(round, 0);
        _expectChargeRevert(Outcome.Outside, _notHeld(ChargeStatus.Acquitted));
    }

    function test_Charge_WhenOutcomeIsNotAgainstTheClient_Reverts() public {
        _hold();
        _expectChargeRevert(
            Outcome.Passed,
            abi.encodeWithSelector(ICharges.NotAgainstClient.selector, Outcome.Passed)
        );
        _expectChargeRevert(
            Outcome.None, abi.encodeWithSelector(ICharges.NotAgainstClient.selector, Outcome.None)
        );
    }

    function test_Charge_WhenClientCanStillAnswer_Reverts() public {
        _hold();
        uint32 deadline = rounds.schedule(round).response;
        vm.roll(deadline);
        _expectChargeRevert(
            Outcome.Unanswered,
            abi.encodeWithSelector(ICharges.ResponseWindowOpen.selector, deadline, deadline)
        );
    }

    function test_Charge_WhenResponseWindowIsOver_TakesWhatWasHeld() public {
        _hold();
        vm.roll(rounds.schedule(round).response + 1);
        charge(round, 0, Outcome.Unanswered);
        assertEq(
            uint8(charges.chargeOf(round, clients[0].addr).status), uint8(ChargeStatus.Charged)
        );
    }

    function test_Charge_WhenOneSeatSignedTwice_Reverts() public {
        _hold();
        bytes[2] memory signatures = signedBy(0, 0, outcomeOf(round, 0, Outcome.Outside));
        vm.expectRevert(abi.encodeWithSelector(IJobs.SameSigner.selector, members[0].addr));
        charges.charge(round, clients[0].addr, Outcome.Outside, signatures);
    }

    function test_Charge_WhenAStandbySigned_Reverts() public {
        _hold();
        bytes[2] memory signatures = signedBy(0, 3, outcomeOf(round, 0, Outcome.Outside));
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        charges.charge(round, clients[0].addr, Outcome.Outside, signatures);
    }

    function test_Charge_WhenSignaturesAreOfAnotherOutcome_Reverts() public {
        _hold();
        vm.roll(rounds.schedule(round).response + 1);
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Passed));
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        charges.charge(round, clients[0].addr, Outcome.Unanswered, signatures);
    }

    function test_Charge_WhenSignaturesAreOfAnotherClient_Reverts() public {
        _hold();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 1, Outcome.Outside));
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        charges.charge(round, clients[0].addr, Outcome.Outside, signatures);
    }

    function test_Charge_WhenSignaturesAreOfAnotherRound_Reverts() public {
        _hold();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Outside));
        finalise(round);
        round = rounds.openRound(job);
        _hold();
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        charges.charge(round, clients[0].addr, Outcome.Outside, signatures);
    }

    function test_Charge_WhenTwoSeatsSigned_BurnsAndPaysTheTreasury() public {
        _hold();
        vm.expectEmit(address(charges));
        emit ICharges.ClientCharged(round, clients[0].addr, Outcome.Outside, PENALTY);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(job, 0.64 ether, 0.16 ether, 0);
        charge(round, 0, Outcome.Outside);
        assertEq(deposits.burned(), 0.64 ether);
        assertEq(deposits.creditOf(treasury), 0.16 ether);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT - PENALTY);
        assertEq(jobs.participants(job).undecided, 0);
        assertEq(uint8(jobs.client(job, clients[0].addr).status), uint8(ClientStatus.Suspended));
    }

    function test_Charge_WhenASeatChangedMeanwhile_TakesThePresentSeats() public {
        _hold();
        changeSeat(job, 1, 3, 0, 2);
        bytes32 statement = outcomeOf(round, 0, Outcome.Outside);
        bytes[2] memory signatures = signedBy(0, 1, statement);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[1].addr));
        charges.charge(round, clients[0].addr, Outcome.Outside, signatures);
        charges.charge(round, clients[0].addr, Outcome.Outside, signedBy(0, 3, statement));
        assertEq(deposits.burned(), 0.64 ether);
    }

    function test_Charge_WhenJobIsClosed_IsStillPossible() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 4);
        round = openFirst(job);
        _hold();
        finalise(round);
        changeSeat(job, 1, 3, 0, 2);
        bytes32 statement = outcomeOf(round, 0, Outcome.Outside);
        charges.charge(round, clients[0].addr, Outcome.Outside, signedBy(2, 3, statement));
        assertEq(jobs.participants(job).undecided, 0);
    }

    function test_Charge_WhenOutcomeIsOneOfTheVectors_CountsFromTheSameBlock() public {
        string memory json = load("charges");
        uint256[] memory outcomes = json.readUintArray(".outcomes");
        uint256[] memory responses = json.readUintArray(".responses");
        playRound(round, ROLL, PASSED);
        hold(round, 0, ROLL, PASSED);
        uint256 last = rounds.schedule(round).response;
        uint256 start = vm.snapshotState();
        for (uint256 i = 0; i < outcomes.length; ++i) {
            string memory path = string.concat(".endsFrom[", vm.toString(i), "]");
            for (uint256 j = 0; j < responses.length; ++j) {
                uint256 first = json.readUintArray(path)[j];
                if (first != 0) {
                    vm.roll(last + first - responses[j] - 1);
                    assertFalse(_ends(Outcome(outcomes[i])));
                    vm.roll(last + first - responses[j]);
                }
                assertTrue(_ends(Outcome(outcomes[i])));
                vm.revertToState(start);
            }
        }
    }

    // ---- acquit ----

    function test_Acquit_WhenNothingIsHeld_Reverts() public {
        _fail();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Passed));
        vm.expectRevert(_notHeld(ChargeStatus.None));
        charges.acquit(round, clients[0].addr, signatures);
    }

    function test_Acquit_WhenChargedBefore_Reverts() public {
        _hold();
        charge(round, 0, Outcome.Outside);
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Passed));
        vm.expectRevert(_notHeld(ChargeStatus.Charged));
        charges.acquit(round, clients[0].addr, signatures);
    }

    function test_Acquit_WhenSignaturesAreOfAnotherOutcome_Reverts() public {
        _hold();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Outside));
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        charges.acquit(round, clients[0].addr, signatures);
    }

    function test_Acquit_WhenTwoSeatsSigned_RestoresDepositAndStatus() public {
        _hold();
        vm.expectEmit(address(charges));
        emit ICharges.ClientAcquitted(round, clients[0].addr, PENALTY);
        vm.expectEmit(address(deposits));
        emit IDeposits.Released(job, Role.Client, clients[0].addr, PENALTY, CLIENT_DEPOSIT);
        vm.expectEmit(address(jobs));
        emit IJobs.ClientStatusChanged(job, clients[0].addr, ClientStatus.Active);
        acquit(round, 0);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        assertEq(jobs.client(job, clients[0].addr).undecided, 0);
    }

    function test_Acquit_WhenAnotherAuditIsUndecided_LeavesTheClientSuspended() public {
        _hold();
        RoundId first = round;
        finalise(round);
        round = rounds.openRound(job);
        _hold();
        acquit(first, 0);
        assertEq(uint8(jobs.client(job, clients[0].addr).status), uint8(ClientStatus.Suspended));
        acquit(round, 0);
        assertEq(uint8(jobs.client(job, clients[0].addr).status), uint8(ClientStatus.Active));
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
    }

    function test_Acquit_WhenClientHasWithdrawnTheRest_RestoresWhatCanBeWithdrawn() public {
        _hold();
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.roll(block.number + 100);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        acquit(round, 0);
        vm.prank(clients[0].addr);
        deposits.withdraw(job, Role.Client);
        assertEq(clients[0].addr.balance, CLIENT_DEPOSIT);
    }

    // ---- unlock ----

    function test_Unlock_WhenNothingIsHeld_Reverts() public {
        _fail();
        vm.expectRevert(_notHeld(ChargeStatus.None));
        charges.unlock(round, clients[0].addr);
    }

    function test_Unlock_WhenAStandbyJoined_Reverts() public {
        _hold();
        vm.roll(block.number + 1000);
        _expectNotUnlockable();
    }

    function test_Unlock_WhenDelayIsNotOver_Reverts() public {
        _withoutStandby();
        _hold();
        vm.roll(block.number + 150);
        _expectNotUnlockable();
    }

    function test_Unlock_WhenStandbyWasNamedButDidNotJoin_RestoresTheDeposit() public {
        job = createJob(defaultTerms());
        for (uint256 i = 0; i < 3; ++i) {
            join(job, i);
        }
        for (uint256 i = 0; i < 4; ++i) {
            enrol(job, i);
        }
        round = openFirst(job);
        _hold();
        vm.roll(block.number + 151);
        charges.unlock(round, clients[0].addr);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
    }

    function test_Unlock_WhenDelayIsOver_RestoresTheDeposit() public {
        _withoutStandby();
        _hold();
        vm.roll(block.number + 151);
        vm.expectEmit(address(charges));
        emit ICharges.AuditUnlocked(round, clients[0].addr, PENALTY);
        charges.unlock(round, clients[0].addr);
        assertEq(depositOf(job, 0), CLIENT_DEPOSIT);
        assertEq(jobs.participants(job).undecided, 0);
        _expectChargeRevert(Outcome.Outside, _notHeld(ChargeStatus.Unlocked));
    }

    // ---- penalise ----

    function test_Penalise_WhenAccountHadNoSeat_Reverts() public {
        _fail();
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        charges.penalise(round, members[3].addr, MemberFault.Dissent);
    }

    function test_Penalise_WhenMemberAttestedTheMajority_Reverts() public {
        _fail();
        vm.roll(block.number + 1000);
        for (uint256 i = 0; i < 3; ++i) {
            for (uint8 fault = 0; fault < 6; ++fault) {
                _expectNoFault(i, MemberFault(fault));
            }
        }
    }

    function test_Penalise_WhenRoundIsUndecided_Reverts() public {
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, ROLL);
        attest(round, 1, PASSED);
        vm.roll(block.number + 1000);
        for (uint256 i = 0; i < 3; ++i) {
            _expectNoFault(i, MemberFault.Dissent);
            _expectNoFault(i, MemberFault.Silence);
        }
    }

    function test_Penalise_WhenMemberDissented_PaysTheOthersFirst() public {
        _dissent();
        vm.expectEmit(address(charges));
        emit ICharges.MemberPenalised(round, members[2].addr, MemberFault.Dissent, 0.3 ether);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(job, 0.16 ether, 0.04 ether, 0.1 ether);
        charges.penalise(round, members[2].addr, MemberFault.Dissent);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.3 ether);
        assertEq(deposits.creditOf(members[0].addr), MEMBER_PAY);
        assertEq(deposits.creditOf(members[1].addr), MEMBER_PAY);
        assertEq(deposits.creditOf(members[2].addr), 0);
        assertTrue(charges.isPenalised(round, members[2].addr, MemberFault.Dissent));
    }

    function test_Penalise_WhenMemberIsSilentBeforeTheDeadline_Reverts() public {
        _silence();
        vm.roll(rounds.schedule(round).attest);
        _expectNoFault(2, MemberFault.Silence);
    }

    function test_Penalise_WhenMemberIsSilentAfterTheDeadline_TakesThePenalty() public {
        _silence();
        vm.roll(rounds.schedule(round).attest + 1);
        vm.expectEmit(address(charges));
        emit ICharges.MemberPenalised(round, members[2].addr, MemberFault.Silence, 0.2 ether);
        charges.penalise(round, members[2].addr, MemberFault.Silence);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.2 ether);
    }

    /// @dev Two that finalise at once cannot make the third one pay.
    function test_Penalise_WhenOthersFinalisedBeforeTheThirdAttested_Reverts() public {
        _silence();
        finalise(round);
        attest(round, 2, PASSED);
        vm.roll(rounds.schedule(round).attest + 1);
        _expectNoFault(2, MemberFault.Silence);
    }

    function test_Penalise_WhenMemberWithheldTheBeacon_TakesThePenaltyOfTheSilentAlone() public {
        commitRoll(round, ROLL);
        publishPartial(round, 0);
        publishPartial(round, 1);
        _expectNoFault(2, MemberFault.Withheld);
        vm.roll(rounds.schedule(round).beacon + 1);
        _expectNoFault(0, MemberFault.Withheld);
        charges.penalise(round, members[2].addr, MemberFault.Withheld);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.5 ether);
    }

    function test_Penalise_WhenPenalisedAlready_Reverts() public {
        _dissent();
        charges.penalise(round, members[2].addr, MemberFault.Dissent);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICharges.AlreadyPenalised.selector, round, members[2].addr, MemberFault.Dissent
            )
        );
        charges.penalise(round, members[2].addr, MemberFault.Dissent);
    }

    function test_Penalise_WhenSeatChangedMeanwhile_TakesTheStakeOfWhoeverSatThere() public {
        _dissent();
        changeSeat(job, 2, 3, 0, 1);
        charges.penalise(round, members[2].addr, MemberFault.Dissent);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.3 ether);
        assertEq(stakeOf(job, 3), MEMBER_STAKE);
    }

    function test_Penalise_WhenFaultMustBeCertified_Reverts() public {
        _dissent();
        _expectNoFault(2, MemberFault.Absence);
        _expectNoFault(2, MemberFault.Falsehood);
        _expectNoFault(2, MemberFault.Equivocation);
    }

    // ---- penaliseCertified ----

    function test_PenaliseCertified_WhenAccountIsNotOnTheRoster_Reverts() public {
        bytes32 statement =
            Statements.memberFault(round, openingOf(round), stranger.addr, MemberFault.Absence);
        bytes[2] memory signatures = signedBy(0, 1, statement);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        charges.penaliseCertified(round, stranger.addr, MemberFault.Absence, signatures);
    }

    function test_PenaliseCertified_WhenFaultShowsOnChain_Reverts() public {
        MemberFault[4] memory faults = [
            MemberFault.Silence, MemberFault.Dissent, MemberFault.Withheld, MemberFault.Equivocation
        ];
        for (uint256 i = 0; i < 4; ++i) {
            bytes[2] memory signatures = signedBy(0, 1, faultOf(round, 2, faults[i]));
            vm.expectRevert(
                abi.encodeWithSelector(ICharges.NoFault.selector, round, members[2].addr, faults[i])
            );
            charges.penaliseCertified(round, members[2].addr, faults[i], signatures);
        }
    }

    function test_PenaliseCertified_WhenAccusedSigned_Reverts() public {
        _expectCertifiedRevert(
            2, 0, abi.encodeWithSelector(IJobs.OwnFault.selector, members[2].addr)
        );
    }

    function test_PenaliseCertified_WhenOneSignedTwice_Reverts() public {
        _expectCertifiedRevert(
            0, 0, abi.encodeWithSelector(IJobs.SameSigner.selector, members[0].addr)
        );
    }

    function test_PenaliseCertified_WhenSignaturesAreOfAnotherFault_Reverts() public {
        bytes[2] memory signatures = signedBy(0, 1, faultOf(round, 2, MemberFault.Absence));
        vm.expectPartialRevert(IJobs.NotMember.selector);
        charges.penaliseCertified(round, members[2].addr, MemberFault.Falsehood, signatures);
    }

    function test_PenaliseCertified_WhenSignaturesAreOfAnotherRound_Reverts() public {
        bytes[2] memory signatures = signedBy(0, 1, faultOf(round, 2, MemberFault.Absence));
        voidUndecided(round);
        round = rounds.openRound(job);
        vm.expectPartialRevert(IJobs.NotMember.selector);
        charges.penaliseCertified(round, members[2].addr, MemberFault.Absence, signatures);
    }

    function test_PenaliseCertified_WhenTwoOthersSignedAbsence_TakesThePenalty() public {
        _certify(MemberFault.Absence, 2, 0, 3);
        assertEq(stakeOf(job, 2), MEMBER_STAKE - 0.4 ether);
        assertEq(deposits.creditOf(members[0].addr), MEMBER_PAY);
        assertEq(deposits.creditOf(members[3].addr), 0);
    }

    function test_PenaliseCertified_WhenTwoOthersSignedFalsehood_TakesTheStake() public {
        vm.expectEmit(address(charges));
        emit ICharges.MemberPenalised(round, members[2].addr, MemberFault.Falsehood, MEMBER_STAKE);
        _certify(MemberFault.Falsehood, 2, 0, 1);
        assertEq(stakeOf(job, 2), 0);
    }

    function test_PenaliseCertified_WhenMemberIsAStandby_PaysAllSeats() public {
        _certify(MemberFault.Absence, 4, 0, 1);
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(deposits.creditOf(members[i].addr), MEMBER_PAY);
        }
    }

    function test_PenaliseCertified_WhenPenalisedAlready_Reverts() public {
        _certify(MemberFault.Absence, 2, 0, 1);
        _expectCertifiedRevert(
            0,
            1,
            abi.encodeWithSelector(
                ICharges.AlreadyPenalised.selector, round, members[2].addr, MemberFault.Absence
            )
        );
    }

    function test_PenaliseCertified_WhenStakeIsSmallerThanThePenalty_TakesWhatIsLeft() public {
        _certify(MemberFault.Falsehood, 2, 0, 1);
        _certify(MemberFault.Absence, 2, 0, 1);
        assertEq(stakeOf(job, 2), 0);
        assertEq(deposits.creditOf(members[0].addr), MEMBER_PAY);
    }

    // ---- penaliseEquivocation ----

    function test_PenaliseEquivocation_WhenAccountIsNotOnTheRoster_Reverts() public {
        bytes32[2] memory contents = _contents("a", "b");
        bytes[2] memory signatures = _messages(stranger, contents, SLOT);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotMember.selector, job, stranger.addr));
        charges.penaliseEquivocation(round, stranger.addr, SLOT, contents, signatures);
    }

    function test_PenaliseEquivocation_WhenMessagesAreTheSame_Reverts() public {
        _expectEquivocationRevert(
            _contents("a", "a"),
            _messages(members[2], _contents("a", "a"), SLOT),
            abi.encodeWithSelector(ICharges.SameMessage.selector, keccak256("a"))
        );
    }

    function test_PenaliseEquivocation_WhenSlotsDiffer_Reverts() public {
        bytes32[2] memory contents = _contents("a", "b");
        bytes[2] memory signatures = _messages(members[2], contents, SLOT);
        signatures[1] = _messages(members[2], contents, SLOT + 1)[1];
        vm.expectPartialRevert(ICharges.NotSignedByMember.selector);
        charges.penaliseEquivocation(round, members[2].addr, SLOT, contents, signatures);
    }

    function test_PenaliseEquivocation_WhenOneMessageIsAnothers_Reverts() public {
        bytes32[2] memory contents = _contents("a", "b");
        bytes[2] memory signatures = _messages(members[2], contents, SLOT);
        signatures[1] = _messages(members[1], contents, SLOT)[1];
        _expectEquivocationRevert(
            contents,
            signatures,
            abi.encodeWithSelector(
                ICharges.NotSignedByMember.selector, members[1].addr, members[2].addr
            )
        );
    }

    /// @dev The same slot before and after a void round, or on two sides of a reorganisation.
    function test_PenaliseEquivocation_WhenOpeningsDiffer_Reverts() public {
        bytes32[2] memory contents = _contents("a", "b");
        bytes[2] memory signatures = _messages(members[2], contents, SLOT);
        bytes32 statement = Statements.memberMessage(round, keccak256("other"), SLOT, contents[1]);
        signatures[1] = signed(members[2], statement);
        vm.expectPartialRevert(ICharges.NotSignedByMember.selector);
        charges.penaliseEquivocation(round, members[2].addr, SLOT, contents, signatures);
    }

    function test_PenaliseEquivocation_WhenMemberSignedBoth_TakesTheStake() public {
        bytes32[2] memory contents = _contents("a", "b");
        bytes[2] memory signatures = _messages(members[2], contents, SLOT);
        vm.expectEmit(address(charges));
        emit ICharges.MemberPenalised(
            round, members[2].addr, MemberFault.Equivocation, MEMBER_STAKE
        );
        charges.penaliseEquivocation(round, members[2].addr, SLOT, contents, signatures);
        assertEq(stakeOf(job, 2), 0);
        _expectEquivocationRevert(
            contents,
            signatures,
            abi.encodeWithSelector(
                ICharges.AlreadyPenalised.selector, round, members[2].addr, MemberFault.Equivocation
            )
        );
    }

    // ---- steps ----

    /// @dev The verdict of all members is that client 0 did not pass.
    function _fail() private {
        playRound(round, ROLL, PASSED);
    }

    function _hold() private {
        _fail();
        hold(round, 0, ROLL, PASSED);
    }

    function _dissent() private {
        _silence();
        attest(round, 2, ROLL);
    }

    /// @dev Member 2 does not attest.
    function _silence() private {
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, PASSED);
        attest(round, 1, PASSED);
    }

    function _withoutStandby() private {
        JobTerms memory terms = defaultTerms();
        terms.standbys = new address[](0);
        job = startJob(terms, 4);
        round = openFirst(job);
    }

    function _certify(MemberFault fault, uint256 member, uint256 a, uint256 b) private {
        bytes[2] memory signatures = signedBy(a, b, faultOf(round, member, fault));
        charges.penaliseCertified(round, members[member].addr, fault, signatures);
    }

    function _contents(bytes memory a, bytes memory b) private pure returns (bytes32[2] memory) {
        return [keccak256(a), keccak256(b)];
    }

    function _messages(Actor memory author, bytes32[2] memory contents, uint32 slot)
        private
        view
        returns (bytes[2] memory signatures)
    {
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 statement = Statements.memberMessage(round, openingOf(round), slot, contents[i]);
            signatures[i] = signed(author, statement);
        }
    }

    function _notHeld(ChargeStatus status) private view returns (bytes memory) {
        return abi.encodeWithSelector(ICharges.NotHeld.selector, round, clients[0].addr, status);
    }

    function _expectHoldRevert(uint256 client, bytes memory reason) private {
        RollEntry memory entry = entryOf(round, client, ROLL);
        bytes memory passes = passesOf(PASSED);
        vm.expectRevert(reason);
        charges.hold(round, clients[client].addr, passes, entry);
    }

    function _expectChargeRevert(Outcome outcome, bytes memory reason) private {
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, outcome));
        vm.expectRevert(reason);
        charges.charge(round, clients[0].addr, outcome, signatures);
    }

    function _expectNotUnlockable() private {
        vm.expectRevert(
            abi.encodeWithSelector(ICharges.NotUnlockable.selector, round, clients[0].addr)
        );
        charges.unlock(round, clients[0].addr);
    }

    function _expectNoFault(uint256 member, MemberFault fault) private {
        vm.expectRevert(
            abi.encodeWithSelector(ICharges.NoFault.selector, round, members[member].addr, fault)
        );
        charges.penalise(round, members[member].addr, fault);
    }

    function _expectCertifiedRevert(uint256 a, uint256 b, bytes memory reason) private {
        bytes[2] memory signatures = signedBy(a, b, faultOf(round, 2, MemberFault.Absence));
        vm.expectRevert(reason);
        charges.penaliseCertified(round, members[2].addr, MemberFault.Absence, signatures);
    }

    function _expectEquivocationRevert(
        bytes32[2] memory contents,
        bytes[2] memory signatures,
        bytes memory reason
    ) private {
        vm.expectRevert(reason);
        charges.penaliseEquivocation(round, members[2].addr, SLOT, contents, signatures);
    }

    /// @dev Whether two signatures of this outcome end the audit of client 0 now.
    function _ends(Outcome outcome) private returns (bool ended) {
        address client = clients[0].addr;
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, outcome));
        bytes memory call = outcome == Outcome.Passed
            ? abi.encodeCall(charges.acquit, (round, client, signatures))
            : abi.encodeCall(charges.charge, (round, client, outcome, signatures));
        (ended,) = address(charges).call(call);
    }
}

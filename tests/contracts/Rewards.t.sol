// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdError} from "forge-std/StdError.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Charges} from "contracts/Charges.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {ICharges} from "contracts/interfaces/ICharges.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {IRewards} from "contracts/interfaces/IRewards.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Rewards} from "contracts/Rewards.sol";
import {Rounds} from "contracts/Rounds.sol";
import {JobId, JobTerms, RoundId} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";

contract RewardsTest is Protocol {
    /// @dev Of four clients on the roll, client 0 did not pass.
    uint256 internal constant ROLL = 15;
    uint256 internal constant PASSED = 14;

    JobId internal job;
    RoundId internal round;

    function setUp() public override {
        super.setUp();
        _start(4);
    }

    // ---- constructor ----

    function test_Constructor_WhenContractsDisagree_Reverts() public {
        IJobs asJobs = IJobs(address(jobs));
        IBeacon asBeacon = IBeacon(address(beacon));
        IRounds asRounds = IRounds(address(rounds));
        IDeposits asDeposits = IDeposits(address(deposits));
        address other = makeAddr("other");
        _expectMiswired(deposits, jobs, rounds, beacon, charges);
        address next = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        Deposits own = new Deposits(address(jobs), address(charges), next);
        _expectMiswired(own, jobs, rounds, beacon, charges);
        Jobs otherJobs = new Jobs(asDeposits, asBeacon, asRounds, other);
        _expectMiswired(deposits, otherJobs, rounds, beacon, charges);
        Rounds otherRounds = new Rounds(asJobs, IBeacon(other));
        _expectMiswired(deposits, jobs, otherRounds, beacon, charges);
        Beacon otherBeacon = new Beacon(asJobs, IRounds(other));
        _expectMiswired(deposits, jobs, rounds, otherBeacon, charges);
        Charges otherCharges = new Charges(deposits, jobs, otherRounds, beacon);
        _expectMiswired(deposits, jobs, rounds, beacon, otherCharges);
    }

    // ---- claimContributions ----

    function test_ClaimContributions_WhenNoRoundIsGiven_Reverts() public {
        vm.expectRevert(stdError.indexOOBError);
        rewards.claimContributions(clients[1].addr, new RoundId[](0), new bytes[](0));
    }

    function test_ClaimContributions_WhenVerdictsAreMissing_Reverts() public {
        _decide();
        vm.expectRevert(abi.encodeWithSelector(IRewards.LengthMismatch.selector, 1, 0));
        rewards.claimContributions(clients[1].addr, only(round), new bytes[](0));
    }

    function test_ClaimContributions_WhenRoundIsUndecided_Reverts() public {
        _expectClaimRevert(
            1,
            abi.encodeWithSelector(IRewards.WrongVerdict.selector, keccak256(passesOf(PASSED)), 0)
        );
    }

    function test_ClaimContributions_WhenVerdictIsNotTheDecidedOne_Reverts() public {
        playRound(round, ROLL, ROLL);
        _expectClaimRevert(
            1,
            abi.encodeWithSelector(
                IRewards.WrongVerdict.selector,
                keccak256(passesOf(PASSED)),
                keccak256(passesOf(ROLL))
            )
        );
    }

    function test_ClaimContributions_WhenAccountIsNotAClient_Reverts() public {
        _decide();
        bytes[] memory verdicts = new bytes[](1);
        verdicts[0] = passesOf(PASSED);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotClient.selector, job, stranger.addr));
        rewards.claimContributions(stranger.addr, only(round), verdicts);
    }

    function test_ClaimContributions_WhenClientDidNotPass_Reverts() public {
        _decide();
        _expectClaimRevert(
            0, abi.encodeWithSelector(IRewards.NothingEarned.selector, round, clients[0].addr)
        );
    }

    function test_ClaimContributions_WhenClaimedAlready_Reverts() public {
        _decide();
        claim(round, 1, PASSED);
        _expectClaimRevert(
            1, abi.encodeWithSelector(IRewards.AlreadyClaimed.selector, round, clients[1].addr)
        );
    }

    function test_ClaimContributions_WhenARoundIsGivenTwice_Reverts() public {
        _decide();
        RoundId[] memory twice = new RoundId[](2);
        twice[0] = twice[1] = round;
        vm.expectRevert(
            abi.encodeWithSelector(IRewards.AlreadyClaimed.selector, round, clients[1].addr)
        );
        rewards.claimContributions(clients[1].addr, twice, _verdicts(2));
    }

    function test_ClaimContributions_WhenRoundsAreOfTwoJobs_Reverts() public {
        _decide();
        RoundId[] memory mixed = new RoundId[](2);
        mixed[0] = round;
        JobId first = job;
        _start(4);
        _decide();
        mixed[1] = round;
        vm.expectRevert(abi.encodeWithSelector(IRewards.AnotherJob.selector, round, first));
        rewards.claimContributions(clients[1].addr, mixed, _verdicts(2));
    }

    function test_ClaimContributions_WhenCalledByAStranger_PaysTheClient() public {
        _decide();
        uint256 before = deposits.budgetOf(job);
        vm.expectEmit(address(rewards));
        emit IRewards.Claimed(round, clients[3].addr, CLIENT_PAY);
        vm.expectEmit(address(deposits));
        emit IDeposits.Paid(job, clients[3].addr, CLIENT_PAY);
        vm.prank(stranger.addr);
        rewards.claimContributions(clients[3].addr, only(round), _verdicts(1));
        assertEq(clients[3].addr.balance, CLIENT_PAY);
        assertEq(deposits.budgetOf(job), before - CLIENT_PAY);
        assertEq(rewards.paid(job), CLIENT_PAY);
    }

    function test_ClaimContributions_WhenRoundIsVoid_PaysAllTheSame() public {
        _decide();
        rollPast(rounds.schedule(round).finalise);
        rounds.voidRound(round);
        claim(round, 1, PASSED);
        assertEq(clients[1].addr.balance, CLIENT_PAY);
    }

    function test_ClaimContributions_WhenManyRoundsAreGiven_PaysOnceForAll() public {
        RoundId[] memory played = _playTwo();
        vm.expectEmit(address(deposits));
        emit IDeposits.Paid(job, clients[2].addr, 2 * CLIENT_PAY);
        rewards.claimContributions(clients[2].addr, played, _verdicts(2));
        assertEq(clients[2].addr.balance, 2 * CLIENT_PAY);
    }

    /// @dev Claims for 128 rounds are one slot; round 128 is in the next one.
    function test_ClaimContributions_WhenRoundNumbersCrossASlot_KeepsThemApart() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 130;
        job = startJob(terms, 4);
        round = openFirst(job);
        RoundId[] memory played = new RoundId[](2);
        for (uint256 i = 0; i < 129; ++i) {
            if (i == 0) played[0] = round;
            if (i == 128) played[1] = round;
            playRound(round, ROLL, PASSED);
            finalise(round);
            round = rounds.openRound(job);
        }
        rewards.claimContributions(clients[1].addr, played, _verdicts(2));
        assertEq(clients[1].addr.balance, 2 * CLIENT_PAY);
    }

    // ---- claimService ----

    function test_ClaimService_WhenAccountHadNoSeat_Reverts() public {
        _decide();
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        rewards.claimService(members[3].addr, only(round));
    }

    function test_ClaimService_WhenMemberIsOutsideTheMajority_Reverts() public {
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, PASSED);
        attest(round, 1, PASSED);
        _expectServiceRevert(
            2, abi.encodeWithSelector(IRewards.NothingEarned.selector, round, members[2].addr)
        );
        attest(round, 2, ROLL);
        _expectServiceRevert(
            2, abi.encodeWithSelector(IRewards.NothingEarned.selector, round, members[2].addr)
        );
    }

    function test_ClaimService_WhenClaimedAlready_Reverts() public {
        _decide();
        claimService(round, 0);
        _expectServiceRevert(
            0, abi.encodeWithSelector(IRewards.AlreadyClaimed.selector, round, members[0].addr)
        );
    }

    function test_ClaimService_WhenMemberAgreed_PaysIt() public {
        _decide();
        vm.expectEmit(address(rewards));
        emit IRewards.Claimed(round, members[1].addr, MEMBER_PAY);
        claimService(round, 1);
        assertEq(members[1].addr.balance, MEMBER_PAY);
    }

    function test_ClaimService_WhenSeatChangedLater_PaysWhoeverSatThere() public {
        RoundId[] memory played = new RoundId[](2);
        _decide();
        played[0] = round;
        changeSeat(job, 2, 3, 0, 1);
        finalise(round);
        round = rounds.openRound(job);
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 3, PASSED);
        attest(round, 0, PASSED);
        played[1] = round;
        rewards.claimService(members[0].addr, played);
        assertEq(members[0].addr.balance, 2 * MEMBER_PAY);
        claimService(played[0], 2);
        claimService(played[1], 3);
        _expectServiceRevert(
            2, abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[2].addr)
        );
    }

    function test_ClaimService_WhenMemberIsAClientAsWell_PaysForBoth() public {
        job = createJob(defaultTerms());
        for (uint256 i = 0; i < 5; ++i) {
            join(job, i);
        }
        hoax(members[0].addr, CLIENT_DEPOSIT);
        jobs.enrol{value: CLIENT_DEPOSIT}(job, datasetOf(0));
        for (uint256 i = 0; i < 3; ++i) {
            enrol(job, i);
        }
        round = openFirst(job);
        playRound(round, 14, 1);
        bytes[] memory verdicts = new bytes[](1);
        verdicts[0] = passesOf(1);
        rewards.claimContributions(members[0].addr, only(round), verdicts);
        claimService(round, 0);
        assertEq(members[0].addr.balance, CLIENT_PAY + MEMBER_PAY);
    }

    // ---- refund ----

    function test_Refund_WhenRoundsAreLeft_Reverts() public {
        _decide();
        finalise(round);
        _expectNotOver();
    }

    function test_Refund_WhenEnrolmentIsOpen_Reverts() public {
        job = createJob(defaultTerms());
        _expectNotOver();
    }

    /// @dev The third seat of the last round can still earn.
    function test_Refund_WhenTheLastAttestPhaseIsRunning_Reverts() public {
        _start(1);
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, PASSED);
        attest(round, 1, PASSED);
        finalise(round);
        _expectNotOver();
        vm.roll(rounds.schedule(round).attest);
        _expectNotOver();
        attest(round, 2, PASSED);
        vm.roll(block.number + 1);
        rewards.refund(job);
        claimService(round, 2);
        assertEq(members[2].addr.balance, MEMBER_PAY);
    }

    function test_Refund_WhenJobIsUnknown_Reverts() public {
        JobId unknown = JobId.wrap(99);
        vm.expectRevert(abi.encodeWithSelector(IRewards.NothingLeft.selector, unknown));
        rewards.refund(unknown);
    }

    function test_Refund_WhenRefundedAlready_Reverts() public {
        _start(1);
        _close();
        rewards.refund(job);
        vm.expectRevert(abi.encodeWithSelector(IRewards.NothingLeft.selector, job));
        rewards.refund(job);
    }

    function test_Refund_WhenJobIsStillborn_GivesAllOfItBack() public {
        job = createJob(defaultTerms());
        rollPast(jobs.participants(job).enrolDeadline);
        uint256 budget = budgetFor(defaultTerms());
        vm.expectEmit(address(rewards));
        emit IRewards.Refunded(job, creator, budget);
        rewards.refund(job);
        assertEq(creator.balance, budget);
        assertEq(deposits.budgetOf(job), 0);
    }

    function test_Refund_WhenJobIsClosed_LeavesWhatWasEarnedForLateClaims() public {
        _start(1);
        _close();
        claim(round, 1, PASSED);
        uint256 earned = 3 * CLIENT_PAY + 3 * MEMBER_PAY;
        rewards.refund(job);
        assertEq(creator.balance, deposits.fundedOf(job) - earned);
        assertEq(deposits.budgetOf(job), earned - CLIENT_PAY);
        assertEq(rewards.paid(job), CLIENT_PAY);
        claim(round, 2, PASSED);
        claim(round, 3, PASSED);
        for (uint256 i = 0; i < 3; ++i) {
            claimService(round, i);
        }
        assertEq(deposits.budgetOf(job), 0);
        assertEq(rewards.paid(job), earned);
    }

    function test_Refund_WhenEverythingWasEarned_Reverts() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        terms.maxClients = 4;
        job = startJob(terms, 4);
        round = openFirst(job);
        playRound(round, ROLL, ROLL);
        finalise(round);
        rollPast(rounds.schedule(round).attest);
        vm.expectRevert(abi.encodeWithSelector(IRewards.NothingLeft.selector, job));
        rewards.refund(job);
    }

    /// forge-config: default.fuzz.runs = 100
    /// forge-config: ci.fuzz.runs = 1000
    function testFuzz_Refund_ConservesTheBudget(uint8 passedSeed, uint8 attestSeed, uint8 claims)
        public
    {
        uint256 passed = passedSeed & ROLL;
        _start(1);
        commitRoll(round, ROLL);
        publishBeacon(round);
        attest(round, 0, passed);
        attest(round, 1, passed);
        if (attestSeed & 1 == 1) attest(round, 2, attestSeed & 2 == 2 ? passed : passed ^ 1);
        finalise(round);
        rollPast(rounds.schedule(round).attest);
        uint256 funded = deposits.fundedOf(job);
        if (claims & 1 == 1) rewards.refund(job);
        for (uint256 i = 0; i < 4; ++i) {
            if ((passed >> i) & 1 == 1 && (claims >> (1 + i)) & 1 == 1) claim(round, i, passed);
        }
        claimService(round, 0);
        if (claims & 1 == 0) rewards.refund(job);
        uint256 paid = rewards.paid(job);
        assertEq(creator.balance, funded - rounds.progress(job).earned);
        assertEq(deposits.budgetOf(job) + paid, rounds.progress(job).earned);
        assertLe(rounds.progress(job).earned, funded);
    }

    // ---- steps ----

    function _start(uint32 count) private {
        JobTerms memory terms = defaultTerms();
        terms.rounds = count;
        job = startJob(terms, 4);
        round = openFirst(job);
    }

    function _decide() private {
        playRound(round, ROLL, PASSED);
    }

    /// @dev Plays the last round, and waits until nobody can attest.
    function _close() private {
        _decide();
        finalise(round);
        rollPast(rounds.schedule(round).attest);
    }

    function _playTwo() private returns (RoundId[] memory played) {
        played = new RoundId[](2);
        for (uint256 i = 0; i < 2; ++i) {
            played[i] = round;
            _decide();
            finalise(round);
            round = rounds.openRound(job);
        }
    }

    function _verdicts(uint256 count) private pure returns (bytes[] memory verdicts) {
        verdicts = new bytes[](count);
        for (uint256 i = 0; i < count; ++i) {
            verdicts[i] = passesOf(PASSED);
        }
    }

    function _expectMiswired(
        Deposits deposits_,
        Jobs jobs_,
        Rounds rounds_,
        Beacon beacon_,
        Charges charges_
    ) private {
        vm.expectRevert(abi.encodeWithSelector(ICharges.Miswired.selector));
        new Rewards(deposits_, jobs_, rounds_, beacon_, charges_);
    }

    function _expectClaimRevert(uint256 client, bytes memory reason) private {
        vm.expectRevert(reason);
        rewards.claimContributions(clients[client].addr, only(round), _verdicts(1));
    }

    function _expectServiceRevert(uint256 member, bytes memory reason) private {
        vm.expectRevert(reason);
        rewards.claimService(members[member].addr, only(round));
    }

    function _expectNotOver() private {
        vm.expectRevert(abi.encodeWithSelector(IRewards.JobNotOver.selector, job));
        rewards.refund(job);
    }
}

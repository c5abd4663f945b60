// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {stdJson} from "forge-std/StdJson.sol";

import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {JobId, JobTerms, Round, roundOf, RoundId, RoundStatus, Schedule} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";
import {VectorFile} from "./support/VectorFile.sol";

contract RoundsTest is Protocol, VectorFile {
    using stdJson for string;

    bytes32 internal constant ROUND_TAG = keccak256("opfl.v2.round");

    JobId internal job;

    /// @dev Four clients, whose masks have four bits.
    function setUp() public override {
        super.setUp();
        job = startJob(4);
    }

    // ---- openRound ----

    function test_OpenRound_WhenJobIsUnknown_Reverts() public {
        JobId unknown = JobId.wrap(99);
        vm.expectRevert(abi.encodeWithSelector(IJobs.UnknownJob.selector, unknown));
        rounds.openRound(unknown);
    }

    function test_OpenRound_WhenEnrolmentIsOpen_Reverts() public {
        uint32 deadline = jobs.participants(job).enrolDeadline;
        vm.roll(deadline);
        vm.expectRevert(
            abi.encodeWithSelector(IRounds.EnrolmentStillOpen.selector, job, deadline, deadline)
        );
        rounds.openRound(job);
    }

    function test_OpenRound_WhenAMemberIsMissing_Reverts() public {
        job = createJob(defaultTerms());
        join(job, 0);
        join(job, 2);
        join(job, 3);
        enrol(job, 0);
        _expectNotReady(13, 1);
    }

    function test_OpenRound_WhenNoClientEnrolled_Reverts() public {
        job = startJob(0);
        _expectNotReady(31, 0);
    }

    function test_OpenRound_WhenJobIsReady_OpensRoundZeroAndFormsTheGroup() public {
        rollPast(jobs.participants(job).enrolDeadline);
        RoundId id = roundOf(job, 0);
        bytes32 model = keccak256("model 0");
        bytes32 opening = _opening(id, model);
        vm.expectEmit(true, true, false, false, address(beacon));
        emit IBeacon.GroupFormed(job, 0, "");
        vm.expectEmit(address(rounds));
        emit IRounds.RoundOpened(id, model, opening, 0);
        rounds.openRound(job);

        Round memory round = rounds.round(id);
        assertEq(uint8(round.status), uint8(RoundStatus.Open));
        assertEq(round.openedAt, block.number);
        assertEq(round.opening, opening);
        assertEq(abi.encode(round.seats), abi.encode([0, 1, 2]));
        assertEq(rounds.progress(job).modelHash, model);
        assertEq(rounds.progress(job).nextRound, 1);
        for (uint256 seat = 0; seat < 3; ++seat) {
            assertEq(rounds.seatOf(id, members[seat].addr), seat);
        }
    }

    function test_OpenRound_WhenSeatsChangedBefore_OpensWithTheNewOnes() public {
        changeSeat(job, 1, 4, 0, 2);
        RoundId id = openFirst(job);
        assertEq(abi.encode(rounds.round(id).seats), abi.encode([0, 4, 2]));
        commitRoll(id, 15, 4, 2);
        publishBeacon(id);
        assertTrue(beacon.isSettled(id));
    }

    function test_OpenRound_WhenTheBlockBeforeDiffers_GivesAnotherOpening() public {
        rollPast(jobs.participants(job).enrolDeadline);
        uint256 state = vm.snapshotState();
        RoundId id = rounds.openRound(job);
        bytes32 opening = openingOf(id);
        vm.revertToState(state);
        vm.setBlockhash(block.number - 1, keccak256("another chain"));
        rounds.openRound(job);
        assertNotEq(openingOf(id), opening);
    }

    function test_OpenRound_WhenRoundBeforeIsOpen_Reverts() public {
        RoundId id = openFirst(job);
        vm.expectRevert(abi.encodeWithSelector(IRounds.RoundInProgress.selector, id));
        rounds.openRound(job);
    }

    function test_OpenRound_WhenRoundBeforeIsDecided_Reverts() public {
        RoundId id = _decided();
        vm.expectRevert(abi.encodeWithSelector(IRounds.RoundInProgress.selector, id));
        rounds.openRound(job);
    }

    function test_OpenRound_WhenRoundBeforeIsFinal_OpensOnTheNewModel() public {
        RoundId id = _decided();
        finalise(id);
        RoundId next = roundOf(job, 1);
        bytes32 model = modelAfter(id);
        vm.expectEmit(address(rounds));
        emit IRounds.RoundOpened(next, model, _opening(next, model), 0);
        rounds.openRound(job);
    }

    function test_OpenRound_WhenRoundBeforeIsVoid_OpensOnTheOldModelWithAnotherOpening() public {
        RoundId id = openFirst(job);
        bytes32 opening = openingOf(id);
        voidUndecided(id);
        RoundId next = roundOf(job, 1);
        bytes32 model = keccak256("model 0");
        vm.expectEmit(address(rounds));
        emit IRounds.RoundOpened(next, model, _opening(next, model), 0);
        rounds.openRound(job);
        assertNotEq(openingOf(next), opening);
    }

    function test_OpenRound_WhenJobIsClosed_Reverts() public {
        RoundId id = openFirst(job);
        for (uint256 i = 0; i < 3; ++i) {
            voidUndecided(id);
            id = rounds.openRound(job);
        }
        voidUndecided(id);
        vm.expectRevert(abi.encodeWithSelector(IRounds.JobAlreadyClosed.selector, job));
        rounds.openRound(job);
    }

    // ---- commitRoll ----

    function test_CommitRoll_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 7);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("roll"));
        vm.expectRevert(
            abi.encodeWithSelector(IRounds.NotInRollPhase.selector, unknown, block.number)
        );
        rounds.commitRoll(unknown, keccak256("root"), 1, new bytes(36), signatures);
    }

    function test_CommitRoll_WhenAfterDeadline_Reverts() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll + 1);
        _expectRollRevert(
            id, 15, abi.encodeWithSelector(IRounds.NotInRollPhase.selector, id, block.number)
        );
    }

    function test_CommitRoll_WhenInLastBlock_Commits() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll);
        commitRoll(id, 15);
        assertEq(uint8(rounds.round(id).status), uint8(RoundStatus.Rolled));
    }

    function test_CommitRoll_WhenCommittedAlready_Reverts() public {
        RoundId id = openFirst(job);
        commitRoll(id, 15);
        _expectRollRevert(
            id, 7, abi.encodeWithSelector(IRounds.NotInRollPhase.selector, id, block.number)
        );
    }

    function test_CommitRoll_WhenRoundIsVoid_Reverts() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll + 1);
        rounds.voidRound(id);
        vm.roll(rounds.schedule(id).roll);
        _expectRollRevert(
            id, 15, abi.encodeWithSelector(IRounds.NotInRollPhase.selector, id, block.number)
        );
    }

    function test_CommitRoll_WhenCountIsOutOfRange_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("roll"));
        vm.expectRevert(abi.encodeWithSelector(IRounds.BadRollCount.selector, 0, 10));
        rounds.commitRoll(id, keccak256("root"), 0, "", signatures);
        vm.expectRevert(abi.encodeWithSelector(IRounds.BadRollCount.selector, 11, 10));
        rounds.commitRoll(id, keccak256("root"), 11, "", signatures);
    }

    function test_CommitRoll_WhenRootIsZero_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("roll"));
        vm.expectRevert(abi.encodeWithSelector(IRounds.BadRollCount.selector, 1, 10));
        rounds.commitRoll(id, 0, 1, new bytes(36), signatures);
    }

    function test_CommitRoll_WhenPairsHaveAnotherLength_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, keccak256("roll"));
        vm.expectRevert(abi.encodeWithSelector(IRounds.BadPairsLength.selector, 71, 72));
        rounds.commitRoll(id, keccak256("root"), 2, new bytes(71), signatures);
    }

    function test_CommitRoll_WhenPairsAreGivenInAJobWithoutThem_Reverts() public {
        RoundId id = _openWithoutPairs();
        bytes[2] memory signatures = signedBy(0, 1, keccak256("roll"));
        vm.expectRevert(abi.encodeWithSelector(IRounds.BadPairsLength.selector, 36, 0));
        rounds.commitRoll(id, keccak256("root"), 1, new bytes(36), signatures);
    }

    function test_CommitRoll_WhenOneSeatSignedTwice_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(1, 1, rollStatement(id, 15));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        vm.expectRevert(abi.encodeWithSelector(IJobs.SameSigner.selector, members[1].addr));
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenAStandbySigned_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(1, 3, rollStatement(id, 15));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenPairsAreNotThoseThatWereSigned_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, rollStatement(id, 15));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        pairs[143] = ~pairs[143];
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenSignedForTheRoundBefore_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, rollStatement(id, 15));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        voidUndecided(id);
        id = rounds.openRound(job);
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenSignedForAnotherOpening_Reverts() public {
        rollPast(jobs.participants(job).enrolDeadline);
        uint256 state = vm.snapshotState();
        RoundId id = rounds.openRound(job);
        bytes[2] memory signatures = signedBy(0, 1, rollStatement(id, 15));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        vm.revertToState(state);
        vm.setBlockhash(block.number - 1, keccak256("another chain"));
        rounds.openRound(job);
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenSignatureIsMalleable_Reverts() public {
        RoundId id = openFirst(job);
        bytes[2] memory signatures = signedBy(0, 1, rollStatement(id, 15));
        (bytes32 r, bytes32 s, uint8 v) = _parts(signatures[1]);
        uint256 order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
        bytes32 high = bytes32(order - uint256(s));
        signatures[1] = abi.encodePacked(r, high, v == 27 ? uint8(28) : uint8(27));
        bytes32 root = rootOf(id, 15);
        bytes memory pairs = pairsOf(id, 15);
        vm.expectRevert(abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureS.selector, high));
        rounds.commitRoll(id, root, 4, pairs, signatures);
    }

    function test_CommitRoll_WhenAnyTwoSeatsSigned_CommitsTheRoll() public {
        uint8[2][3] memory duos = [[0, 1], [2, 0], [1, 2]];
        RoundId id = openFirst(job);
        uint256 state = vm.snapshotState();
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectEmit(address(rounds));
            emit IRounds.RollCommitted(id, rootOf(id, 13), 3, pairsOf(id, 13));
            commitRoll(id, 13, duos[i][0], duos[i][1]);
            assertEq(rounds.round(id).root, rootOf(id, 13));
            assertEq(rounds.round(id).count, 3);
            vm.revertToState(state);
        }
    }

    function test_CommitRoll_WhenJobKeepsPairsOffTheChain_CommitsTheRootAlone() public {
        RoundId id = _openWithoutPairs();
        vm.expectEmit(address(rounds));
        emit IRounds.RollCommitted(id, rootOf(id, 15), 4, "");
        commitRoll(id, 15);
    }

    // ---- attest ----

    function test_Attest_WhenRoundIsUnknown_Reverts() public {
        _expectAttestRevert(roundOf(job, 7), 0, 15);
    }

    function test_Attest_WhenThereIsNoRoll_Reverts() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).beacon + 1);
        _expectAttestRevert(id, 0, 15);
    }

    function test_Attest_WhenBeaconIsPending_Reverts() public {
        RoundId id = openFirst(job);
        commitRoll(id, 15);
        _expectAttestRevert(id, 0, 15);
    }

    function test_Attest_WhenBeaconFailed_Counts() public {
        RoundId id = openFirst(job);
        commitRoll(id, 15);
        vm.roll(rounds.schedule(id).beacon + 1);
        attest(id, 0, 15);
        assertEq(rounds.round(id).attested, 1);
    }

    function test_Attest_WhenAfterDeadline_Reverts() public {
        RoundId id = _settled();
        vm.roll(rounds.schedule(id).attest + 1);
        _expectAttestRevert(id, 0, 15);
    }

    function test_Attest_WhenInLastBlock_Counts() public {
        RoundId id = _settled();
        vm.roll(rounds.schedule(id).attest);
        attest(id, 0, 15);
        assertEq(rounds.round(id).attested, 1);
    }

    function test_Attest_WhenCallerHasNoSeat_Reverts() public {
        RoundId id = _settled();
        bytes memory passes = passesOf(15);
        bytes32 opening = openingOf(id);
        vm.prank(members[3].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        rounds.attest(id, opening, passes);
    }

    function test_Attest_WhenSeatChangedDuringTheRound_TakesTheOldSeatAlone() public {
        RoundId id = _settled();
        changeSeat(job, 2, 3, 0, 1);
        bytes memory passes = passesOf(15);
        bytes32 opening = openingOf(id);
        vm.prank(members[3].addr);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        rounds.attest(id, opening, passes);
        attest(id, 2, 15);
        assertEq(rounds.round(id).attested, 4);
    }

    function test_Attest_WhenAttestedAlready_Reverts() public {
        RoundId id = _settled();
        attest(id, 0, 15);
        bytes memory passes = passesOf(7);
        bytes32 opening = openingOf(id);
        vm.prank(members[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IRounds.AlreadyAttested.selector, id, members[0].addr)
        );
        rounds.attest(id, opening, passes);
    }

    function test_Attest_WhenItIsAboutAnotherOpening_Reverts() public {
        RoundId id = _settled();
        bytes memory passes = passesOf(15);
        bytes32 gone = keccak256("gone");
        bytes32 opening = openingOf(id);
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IRounds.WrongOpening.selector, gone, opening));
        rounds.attest(id, gone, passes);
    }

    function test_Attest_WhenMorePassedThanAreOnTheRoll_Reverts() public {
        RoundId id = openFirst(job);
        commitRoll(id, 7);
        publishBeacon(id);
        bytes memory passes = passesOf(15);
        bytes32 opening = openingOf(id);
        vm.prank(members[0].addr);
        vm.expectRevert(abi.encodeWithSelector(IRounds.TooManyPasses.selector, 4, 3));
        rounds.attest(id, opening, passes);
    }

    function test_Attest_WhenFirstOfItsKind_OnlyRecords() public {
        RoundId id = _settled();
        vm.expectEmit(address(rounds));
        emit IRounds.VerdictAttested(id, members[0].addr, passesOf(15));
        attest(id, 0, 15);
        Round memory round = rounds.round(id);
        assertEq(uint8(round.status), uint8(RoundStatus.Rolled));
        assertEq(round.attestations[0], keccak256(passesOf(15)));
        assertEq(round.verdictHash, 0);
        assertEq(rounds.progress(job).earned, 0);
    }

    function test_Attest_WhenSecondOfItsKind_DecidesAndEarns() public {
        RoundId id = _settled();
        attest(id, 2, 13);
        bytes32 verdict = keccak256(passesOf(13));
        vm.expectEmit(address(rounds));
        emit IRounds.VerdictAttested(id, members[0].addr, passesOf(13));
        vm.expectEmit(address(rounds));
        emit IRounds.VerdictDecided(id, verdict, 3);
        attest(id, 0, 13);
        Round memory round = rounds.round(id);
        assertEq(uint8(round.status), uint8(RoundStatus.Decided));
        assertEq(round.verdictHash, verdict);
        assertEq(rounds.verdictHashOf(id), verdict);
        assertEq(round.majority, 5);
        assertEq(rounds.majorityOf(id), 5);
        assertEq(rounds.progress(job).earned, 3 * CLIENT_PAY + 2 * MEMBER_PAY);
    }

    function test_Attest_WhenWorkIsThatOfTheVectors_EarnsTheSame() public {
        string memory json = load("rewards");
        uint256[] memory earned = json.readUintArray(".earned");
        RoundId id = _settled();
        uint256 start = vm.snapshotState();
        for (uint256 i = 0; i < earned.length; ++i) {
            uint256 passed = (1 << json.readUintArray(".passed")[i]) - 1;
            for (uint256 member = 0; member < json.readUintArray(".agreed")[i]; ++member) {
                attest(id, member, passed);
            }
            assertEq(rounds.progress(job).earned, earned[i]);
            vm.revertToState(start);
        }
    }

    function test_Attest_WhenNobodyPassed_DecidesAndPaysMembersAlone() public {
        RoundId id = _settled();
        attest(id, 0, 0);
        attest(id, 1, 0);
        assertEq(rounds.verdictHashOf(id), keccak256(""));
        assertEq(rounds.progress(job).earned, 2 * MEMBER_PAY);
    }

    function test_Attest_WhenThirdAgrees_JoinsTheMajorityAndEarns() public {
        RoundId id = _decided();
        assertEq(rounds.majorityOf(id), 7);
        assertEq(rounds.progress(job).earned, 4 * CLIENT_PAY + 3 * MEMBER_PAY);
    }

    function test_Attest_WhenThirdDissents_DoesNotChangeTheDecision() public {
        RoundId id = _settled();
        attest(id, 0, 15);
        attest(id, 1, 15);
        attest(id, 2, 7);
        assertEq(rounds.verdictHashOf(id), keccak256(passesOf(15)));
        assertEq(rounds.round(id).attested, 7);
        assertEq(rounds.majorityOf(id), 3);
        assertEq(rounds.progress(job).earned, 4 * CLIENT_PAY + 2 * MEMBER_PAY);
    }

    function test_Attest_WhenFirstDissents_LetsTheOtherTwoDecide() public {
        RoundId id = _settled();
        attest(id, 0, 7);
        attest(id, 1, 15);
        attest(id, 2, 15);
        assertEq(rounds.verdictHashOf(id), keccak256(passesOf(15)));
        assertEq(rounds.majorityOf(id), 6);
    }

    function test_Attest_WhenAllDiffer_DecidesNothing() public {
        RoundId id = _settled();
        attest(id, 0, 7);
        attest(id, 1, 15);
        attest(id, 2, 3);
        assertEq(rounds.verdictHashOf(id), 0);
        assertEq(rounds.majorityOf(id), 0);
        assertEq(rounds.progress(job).earned, 0);
    }

    function test_Attest_WhenVerdictIsPadded_CountsAsAnotherOne() public {
        RoundId id = _settled();
        attest(id, 0, 15);
        bytes32 opening = openingOf(id);
        vm.prank(members[1].addr);
        rounds.attest(id, opening, hex"0f00");
        assertEq(rounds.verdictHashOf(id), 0);
    }

    /// @dev Two that finalise at once must not make the third one silent.
    function test_Attest_WhenRoundIsFinalAndThirdAgrees_JoinsTheMajority() public {
        RoundId id = _settled();
        attest(id, 0, 15);
        attest(id, 1, 15);
        finalise(id);
        attest(id, 2, 15);
        assertEq(rounds.majorityOf(id), 7);
        assertEq(uint8(rounds.round(id).status), uint8(RoundStatus.Finalised));
        assertEq(rounds.progress(job).earned, 4 * CLIENT_PAY + 3 * MEMBER_PAY);
    }

    // ---- finalise ----

    function test_Finalise_WhenRoundIsUndecided_Reverts() public {
        RoundId id = _settled();
        _expectFinaliseRevert(id, abi.encodeWithSelector(IRounds.NotDecided.selector, id));
    }

    function test_Finalise_WhenRoundIsFinal_Reverts() public {
        RoundId id = _decided();
        finalise(id);
        _expectFinaliseRevert(id, abi.encodeWithSelector(IRounds.NotDecided.selector, id));
    }

    function test_Finalise_WhenRoundIsVoid_Reverts() public {
        RoundId id = _decided();
        vm.roll(rounds.schedule(id).finalise + 1);
        rounds.voidRound(id);
        _expectFinaliseRevert(id, abi.encodeWithSelector(IRounds.NotDecided.selector, id));
    }

    function test_Finalise_WhenAfterDeadline_Reverts() public {
        RoundId id = _decided();
        uint32 deadline = rounds.schedule(id).finalise;
        vm.roll(deadline + 1);
        _expectFinaliseRevert(
            id,
            abi.encodeWithSelector(IRounds.FinalisePhaseOver.selector, id, deadline, deadline + 1)
        );
    }

    function test_Finalise_WhenInLastBlock_Finalises() public {
        RoundId id = _decided();
        vm.roll(rounds.schedule(id).finalise);
        finalise(id);
        assertEq(uint8(rounds.round(id).status), uint8(RoundStatus.Finalised));
    }

    function test_Finalise_WhenSignedByAStandby_Reverts() public {
        RoundId id = _decided();
        bytes[2] memory signatures = signedBy(0, 3, resultOf(id));
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, members[3].addr));
        rounds.finalise(id, aggregateOf(id), modelAfter(id), signatures);
    }

    function test_Finalise_WhenSignaturesAreForAnotherModel_Reverts() public {
        RoundId id = _decided();
        bytes[2] memory signatures = signedBy(0, 1, resultOf(id));
        vm.expectPartialRevert(IJobs.NotSeated.selector);
        rounds.finalise(id, aggregateOf(id), keccak256("other"), signatures);
    }

    function test_Finalise_WhenTwoSeatsSigned_SetsTheNextModel() public {
        RoundId id = _decided();
        vm.expectEmit(address(rounds));
        emit IRounds.RoundFinalised(id, aggregateOf(id), modelAfter(id));
        finalise(id);
        assertEq(rounds.progress(job).modelHash, modelAfter(id));
    }

    function test_Finalise_WhenSeatChangedDuringTheRound_TakesTheOldSeat() public {
        RoundId id = _decided();
        changeSeat(job, 2, 3, 0, 1);
        finalise(id, 2, 0);
        assertEq(uint8(rounds.round(id).status), uint8(RoundStatus.Finalised));
    }

    function test_Finalise_WhenItIsTheLastRound_ClosesTheJob() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 4);
        RoundId id = _decided();
        vm.expectEmit(address(rounds));
        emit IRounds.JobClosed(job, 1);
        finalise(id);
        assertTrue(rounds.progress(job).closed);
    }

    // ---- voidRound ----

    function test_VoidRound_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 7);
        vm.expectRevert(abi.encodeWithSelector(IRounds.UnknownRound.selector, unknown));
        rounds.voidRound(unknown);
    }

    function test_VoidRound_WhenRollPhaseIsRunning_Reverts() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll);
        _expectNotVoidable(id);
    }

    function test_VoidRound_WhenAttestPhaseIsRunning_Reverts() public {
        RoundId id = _settled();
        vm.roll(rounds.schedule(id).attest);
        _expectNotVoidable(id);
    }

    function test_VoidRound_WhenFinalisePhaseIsRunning_Reverts() public {
        RoundId id = _decided();
        vm.roll(rounds.schedule(id).finalise);
        _expectNotVoidable(id);
    }

    function test_VoidRound_WhenThereIsNoRollInTime_VoidsAndKeepsTheModel() public {
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll + 1);
        vm.expectEmit(address(rounds));
        emit IRounds.RoundVoided(id, false);
        rounds.voidRound(id);
        assertEq(rounds.progress(job).modelHash, keccak256("model 0"));
    }

    function test_VoidRound_WhenUndecidedInTime_VoidsAndEarnsNothing() public {
        RoundId id = _settled();
        attest(id, 0, 15);
        vm.roll(rounds.schedule(id).attest + 1);
        vm.expectEmit(address(rounds));
        emit IRounds.RoundVoided(id, false);
        rounds.voidRound(id);
        assertEq(rounds.progress(job).earned, 0);
    }

    function test_VoidRound_WhenDecidedButNotFinalInTime_VoidsAndKeepsTheVerdict() public {
        RoundId id = _decided();
        vm.roll(rounds.schedule(id).finalise + 1);
        vm.expectEmit(address(rounds));
        emit IRounds.RoundVoided(id, true);
        rounds.voidRound(id);
        assertEq(rounds.verdictHashOf(id), keccak256(passesOf(15)));
        assertEq(rounds.progress(job).earned, 4 * CLIENT_PAY + 3 * MEMBER_PAY);
    }

    function test_VoidRound_WhenRoundIsOver_Reverts() public {
        RoundId id = openFirst(job);
        voidUndecided(id);
        _expectNotVoidable(id);
        id = rounds.openRound(job);
        playRound(id, 15, 15);
        finalise(id);
        vm.roll(block.number + 1000);
        _expectNotVoidable(id);
    }

    function test_VoidRound_WhenItIsTheLastRound_ClosesTheJob() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 4);
        RoundId id = openFirst(job);
        vm.roll(rounds.schedule(id).roll + 1);
        vm.expectEmit(address(rounds));
        emit IRounds.JobClosed(job, 1);
        rounds.voidRound(id);
    }

    function test_VoidRound_WhenStreakIsFull_ClosesTheJob() public {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 100;
        job = startJob(terms, 4);
        RoundId id = openFirst(job);
        for (uint256 i = 0; i < 7; ++i) {
            voidUndecided(id);
            assertFalse(rounds.progress(job).closed);
            id = rounds.openRound(job);
        }
        rollPast(rounds.schedule(id).attest);
        vm.expectEmit(address(rounds));
        emit IRounds.JobClosed(job, 8);
        rounds.voidRound(id);
    }

    function test_VoidRound_WhenAFinalRoundBreaksTheStreak_StartsCountingAgain() public {
        RoundId id = openFirst(job);
        voidUndecided(id);
        assertEq(rounds.progress(job).voidStreak, 1);
        id = rounds.openRound(job);
        playRound(id, 15, 15);
        finalise(id);
        assertEq(rounds.progress(job).voidStreak, 0);
    }

    // ---- schedule ----

    function test_Schedule_WhenRoundIsUnknown_Reverts() public {
        RoundId unknown = roundOf(job, 7);
        vm.expectRevert(abi.encodeWithSelector(IRounds.UnknownRound.selector, unknown));
        rounds.schedule(unknown);
    }

    function test_Schedule_WhenRoundIsOpen_AddsUpThePhases() public {
        RoundId id = openFirst(job);
        uint32 opened = uint32(block.number);
        Schedule memory deadlines = rounds.schedule(id);
        assertEq(deadlines.deliver, opened + 11);
        assertEq(deadlines.roll, opened + 23);
        assertEq(deadlines.beacon, opened + 36);
        assertEq(deadlines.answer, opened + 50);
        assertEq(deadlines.attest, opened + 67);
        assertEq(deadlines.finalise, opened + 83);
        assertEq(deadlines.response, opened + 87);
    }

    // ---- steps ----

    function _settled() private returns (RoundId id) {
        id = openFirst(job);
        commitRoll(id, 15);
        publishBeacon(id);
    }

    function _decided() private returns (RoundId id) {
        id = openFirst(job);
        playRound(id, 15, 15);
    }

    function _openWithoutPairs() private returns (RoundId) {
        JobTerms memory terms = defaultTerms();
        terms.publicRoll = false;
        job = startJob(terms, 4);
        return openFirst(job);
    }

    function _opening(RoundId id, bytes32 model) private view returns (bytes32) {
        bytes32 before = blockhash(block.number - 1);
        return keccak256(
            abi.encode(
                ROUND_TAG, block.chainid, address(rounds), id.job(), id.number(), model, before
            )
        );
    }

    function _parts(bytes memory signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
    }

    function _expectNotReady(uint8 joined, uint32 count) private {
        rollPast(jobs.participants(job).enrolDeadline);
        vm.expectRevert(abi.encodeWithSelector(IRounds.JobNotReady.selector, job, joined, count));
        rounds.openRound(job);
    }

    function _expectRollRevert(RoundId id, uint256 onRoll, bytes memory reason) private {
        bytes[2] memory signatures = signedBy(0, 1, rollStatement(id, onRoll));
        bytes32 root = rootOf(id, onRoll);
        bytes memory pairs = pairsOf(id, onRoll);
        vm.expectRevert(reason);
        rounds.commitRoll(id, root, sizeOf(onRoll), pairs, signatures);
    }

    function _expectAttestRevert(RoundId id, uint256 member, uint256 passed) private {
        bytes memory passes = passesOf(passed);
        bytes32 opening = openingOf(id);
        vm.prank(members[member].addr);
        vm.expectRevert(abi.encodeWithSelector(IRounds.NotInAttestPhase.selector, id, block.number));
        rounds.attest(id, opening, passes);
    }

    function _expectFinaliseRevert(RoundId id, bytes memory reason) private {
        bytes[2] memory signatures = signedBy(0, 1, resultOf(id));
        vm.expectRevert(reason);
        rounds.finalise(id, aggregateOf(id), modelAfter(id), signatures);
    }

    function _expectNotVoidable(RoundId id) private {
        vm.expectRevert(abi.encodeWithSelector(IRounds.NotVoidable.selector, id, block.number));
        rounds.voidRound(id);
    }
}

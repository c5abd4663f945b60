// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Beacon} from "contracts/Beacon.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {BLS12381} from "contracts/libraries/BLS12381.sol";
import {Sampling} from "contracts/libraries/Sampling.sol";
import {AUDIT_ALWAYS, JobId, JobTerms, roundOf, RoundId} from "contracts/Types.sol";
import {BadPoints} from "./support/BadPoints.sol";
import {BlsSigner} from "./support/BlsSigner.sol";
import {Protocol} from "./support/Protocol.sol";

contract BeaconTest is Protocol {
    uint256 internal constant SECRET = 12345;

    JobId internal job;
    RoundId internal round;

    /// @dev The roll of round 0 is on chain.
    function setUp() public override {
        super.setUp();
        job = startJob(3);
        round = openFirst(job);
        commitRoll(round, 7);
    }

    // ---- registerKey ----

    function test_RegisterKey_WhenKeyIsRegisteredAlready_Reverts() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        bytes memory proof = _proof(SECRET, members[0].addr, key);
        vm.prank(members[0].addr);
        vm.expectRevert(
            abi.encodeWithSelector(IBeacon.KeyAlreadyRegistered.selector, members[0].addr)
        );
        beacon.registerKey(key, proof);
    }

    function test_RegisterKey_WhenProofIsRight_RecordsTheKey() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        bytes memory proof = _proof(SECRET, stranger.addr, key);
        assertEq(beacon.keyOf(stranger.addr).length, 0);
        vm.expectEmit(address(beacon));
        emit IBeacon.KeyRegistered(stranger.addr, key);
        vm.prank(stranger.addr);
        beacon.registerKey(key, proof);
        assertEq(beacon.keyOf(stranger.addr), key);
    }

    /// @dev With this key, the sum of the committee's keys would be the attacker's own key.
    function test_RegisterKey_WhenKeyIsRogue_Reverts() public {
        uint256 others = addmod(blsSecret(0), blsSecret(1), BlsSigner.ORDER);
        bytes memory rogue =
            BlsSigner.publicKey(addmod(SECRET, BlsSigner.ORDER - others, BlsSigner.ORDER));
        bytes memory sum = BLS12381.addG2(
            BLS12381.addG2(beacon.keyOf(members[0].addr), beacon.keyOf(members[1].addr)), rogue
        );
        assertEq(sum, BlsSigner.publicKey(SECRET));
        _expectBadProof(rogue, _proof(SECRET, stranger.addr, rogue));
    }

    function test_RegisterKey_WhenProofIsReplayedByAnotherMember_Reverts() public {
        bytes memory key = beacon.keyOf(members[0].addr);
        _expectBadProof(key, _proof(blsSecret(0), members[0].addr, key));
    }

    function test_RegisterKey_WhenProofIsForAnotherChain_Reverts() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        uint256 here = block.chainid;
        vm.chainId(here + 1);
        bytes memory proof = _proof(SECRET, stranger.addr, key);
        vm.chainId(here);
        _expectBadProof(key, proof);
    }

    function test_RegisterKey_WhenProofIsForAnotherContract_Reverts() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        bytes memory claim = _otherBeacon().possessionMessage(stranger.addr, key);
        _expectBadProof(key, BlsSigner.sign(SECRET, claim, BlsSigner.POSSESSION_DOMAIN));
    }

    function test_RegisterKey_WhenProofIsUnderTheBeaconDomain_Reverts() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        bytes memory claim = beacon.possessionMessage(stranger.addr, key);
        _expectBadProof(key, BlsSigner.sign(SECRET, claim, BlsSigner.SIGNATURE_DOMAIN));
    }

    function test_RegisterKey_WhenKeyIsAtInfinity_Reverts() public {
        _expectBadProof(BadPoints.g2Infinity(), BadPoints.g1Infinity());
        bytes memory some = _proof(SECRET, stranger.addr, BadPoints.g2Infinity());
        _expectBadProof(BadPoints.g2Infinity(), some);
    }

    function test_RegisterKey_WhenKeyIsOffCurve_Reverts() public {
        bytes memory key = BadPoints.g2OffCurve();
        _expectBadProof(key, _proof(SECRET, stranger.addr, key));
    }

    function test_RegisterKey_WhenKeyIsNotInSubgroup_Reverts() public {
        bytes memory key = BadPoints.g2OutsideSubgroup();
        _expectBadProof(key, _proof(SECRET, stranger.addr, key));
    }

    function test_RegisterKey_WhenKeyHasTheWrongLength_Reverts() public {
        bytes memory key = new bytes(255);
        bytes memory proof = _proof(SECRET, stranger.addr, key);
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 255, 256));
        beacon.registerKey(key, proof);
    }

    function test_RegisterKey_WhenProofHasTheWrongLength_Reverts() public {
        bytes memory key = BlsSigner.publicKey(SECRET);
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 96, 128));
        beacon.registerKey(key, new bytes(96));
    }

    // ---- formGroup ----

    function test_FormGroup_WhenCallerIsNeitherJobsNorRounds_Reverts() public {
        address[3] memory committee = jobs.seats(job);
        vm.prank(stranger.addr);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.NotAuthorised.selector, stranger.addr));
        beacon.formGroup(job, 0, committee);
    }

    function test_FormGroup_WhenAMemberHasNoKey_Reverts() public {
        address[3] memory committee = jobs.seats(job);
        committee[1] = stranger.addr;
        vm.prank(address(jobs));
        vm.expectRevert(abi.encodeWithSelector(IBeacon.KeyMissing.selector, stranger.addr));
        beacon.formGroup(job, 0, committee);
    }

    function test_FormGroup_WhenFirstRoundOpens_AddsUpTheKeys() public {
        bytes memory groupKey = BlsSigner.publicKey(groupSecret(round));
        JobId other = startJob(1);
        assertEq(beacon.groupKeyOf(other, 0).length, 0);
        rollPast(jobs.participants(other).enrolDeadline);
        vm.expectEmit(address(beacon));
        emit IBeacon.GroupFormed(other, 0, groupKey);
        rounds.openRound(other);
        assertEq(beacon.groupKeyOf(other, 0), groupKey);
    }

    function test_FormGroup_WhenASeatChanges_KeepsTheGroupsApart() public {
        bytes memory before = beacon.groupKeyOf(job, 0);
        changeSeat(job, 1, 3, 0, 2);
        voidUndecided(round);
        round = rounds.openRound(job);
        assertEq(beacon.groupKeyOf(job, 0), before);
        assertEq(beacon.groupKeyOf(job, 1), BlsSigner.publicKey(groupSecret(round)));
    }

    // ---- publish ----

    function test_Publish_WhenThereIsNoRoll_Reverts() public {
        _openAnother();
        _expectPublishRevert(aggregateSignature(round), _notInPhase());
        vm.roll(rounds.schedule(round).beacon + 1);
        _expectPublishRevert(aggregateSignature(round), _notInPhase());
    }

    function test_Publish_WhenAfterDeadline_Reverts() public {
        vm.roll(rounds.schedule(round).beacon + 1);
        _expectPublishRevert(aggregateSignature(round), _notInPhase());
    }

    function test_Publish_WhenInLastBlock_Publishes() public {
        vm.roll(rounds.schedule(round).beacon);
        publishBeacon(round);
        assertNotEq(beacon.seedOf(round), 0);
    }

    function test_Publish_WhenRoundIsUnknown_Reverts() public {
        round = roundOf(job, 1);
        _expectPublishRevert(new bytes(128), _notInPhase());
    }

    function test_Publish_WhenPublishedAlready_Reverts() public {
        publishBeacon(round);
        _expectPublishRevert(aggregateSignature(round), _alreadyPublished());
        vm.roll(rounds.schedule(round).beacon + 1);
        _expectPublishRevert(aggregateSignature(round), _alreadyPublished());
    }

    function test_Publish_WhenSignatureIsRight_FixesTheSeed() public {
        bytes memory signature = aggregateSignature(round);
        bytes32 seed = Sampling.seedOf(signature);
        vm.expectEmit(address(beacon));
        emit IBeacon.BeaconPublished(round, seed, signature);
        vm.prank(stranger.addr);
        beacon.publish(round, signature);
        assertEq(beacon.seedOf(round), seed);
    }

    function test_Publish_WhenTwoOfThreeSigned_Reverts() public {
        uint256 two = addmod(blsSecret(0), blsSecret(1), BlsSigner.ORDER);
        _expectBadSignature(BlsSigner.sign(two, beacon.message(round)));
    }

    function test_Publish_WhenSignedForAnotherRound_Reverts() public {
        bytes memory earlier = aggregateSignature(round);
        _openAnother();
        commitRoll(round, 7);
        _expectBadSignature(earlier);
    }

    function test_Publish_WhenSignedForAnotherJob_Reverts() public {
        bytes memory elsewhere = aggregateSignature(round);
        round = openFirst(startJob(3));
        commitRoll(round, 7);
        _expectBadSignature(elsewhere);
    }

    function test_Publish_WhenSignedForAnotherRoll_Reverts() public {
        _openAnother();
        uint256 state = vm.snapshotState();
        commitRoll(round, 3);
        bytes memory signature = aggregateSignature(round);
        vm.revertToState(state);
        commitRoll(round, 7);
        _expectBadSignature(signature);
    }

    function test_Publish_WhenASeatChangedBeforeTheRound_TakesTheNewGroupAlone() public {
        changeSeat(job, 1, 3, 0, 2);
        uint256 former = groupSecret(round);
        _openAnother();
        commitRoll(round, 7, 0, 2);
        _expectBadSignature(BlsSigner.sign(former, beacon.message(round)));
        publishBeacon(round);
    }

    function test_Publish_WhenASeatChangedDuringTheRound_TakesTheGroupOfTheRound() public {
        changeSeat(job, 1, 3, 0, 2);
        publishBeacon(round);
        assertNotEq(beacon.seedOf(round), 0);
    }

    function test_Publish_WhenSignedByAStranger_Reverts() public {
        _expectBadSignature(BlsSigner.sign(SECRET, beacon.message(round)));
    }

    function test_Publish_WhenSignatureIsAtInfinity_Reverts() public {
        _expectBadSignature(BadPoints.g1Infinity());
    }

    function test_Publish_WhenSignatureIsOffCurve_Reverts() public {
        _expectBadSignature(BadPoints.g1OffCurve());
    }

    function test_Publish_WhenSignatureIsNotInSubgroup_Reverts() public {
        _expectBadSignature(BadPoints.g1OutsideSubgroup());
        // Nor may it be hidden in a right signature.
        bytes memory shifted =
            BLS12381.addG1(aggregateSignature(round), BadPoints.g1OutsideSubgroup());
        _expectBadSignature(shifted);
    }

    function test_Publish_WhenSignatureIsNegated_Reverts() public {
        uint256 negated = BlsSigner.ORDER - groupSecret(round);
        _expectBadSignature(BlsSigner.sign(negated, beacon.message(round)));
    }

    function test_Publish_WhenSignatureHasTheWrongLength_Reverts() public {
        _expectPublishRevert(
            new bytes(129), abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 129, 128)
        );
    }

    function test_Publish_WhenSignatureIsMalformed_BurnsLittleGas() public {
        bytes memory signature = BadPoints.g1OffCurve();
        uint256 before = gasleft();
        try beacon.publish{gas: 5_000_000}(round, signature) {
            fail();
        } catch {
            assertLt(before - gasleft(), 250_000);
        }
    }

    // ---- publishPartial ----

    function test_PublishPartial_WhenThereIsNoRoll_Reverts() public {
        _openAnother();
        _expectPartialRevert(0, 0, _notInPhase());
    }

    function test_PublishPartial_WhenAfterDeadline_Reverts() public {
        vm.roll(rounds.schedule(round).beacon + 1);
        _expectPartialRevert(0, 0, _notInPhase());
    }

    function test_PublishPartial_WhenSignerHasNoSeat_Reverts() public {
        bytes memory signature = BlsSigner.sign(SECRET, beacon.message(round));
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotSeated.selector, job, stranger.addr));
        beacon.publishPartial(round, stranger.addr, signature);
    }

    function test_PublishPartial_WhenPublishedAlready_Reverts() public {
        publishPartial(round, 0);
        bytes memory reason = abi.encodeWithSelector(
            IBeacon.PartialAlreadyPublished.selector, round, members[0].addr
        );
        _expectPartialRevert(0, 0, reason);
    }

    function test_PublishPartial_WhenSignedByAnotherMember_Reverts() public {
        _expectPartialRevert(0, 1, abi.encodeWithSelector(IBeacon.BadSignature.selector, round));
    }

    function test_PublishPartial_WhenSignatureIsRight_IsRecorded() public {
        bytes memory signature = BlsSigner.sign(blsSecret(1), beacon.message(round));
        vm.expectEmit(address(beacon));
        emit IBeacon.PartialPublished(round, members[1].addr, signature);
        vm.prank(stranger.addr);
        beacon.publishPartial(round, members[1].addr, signature);
        assertEq(beacon.seedOf(round), 0);
        assertFalse(beacon.isSettled(round));
    }

    function test_PublishPartial_WhenItIsTheLastMissingOne_GivesTheSameSeedAsTheAggregate() public {
        bytes memory aggregate = aggregateSignature(round);
        publishPartial(round, 2);
        publishPartial(round, 0);
        vm.expectEmit(address(beacon));
        emit IBeacon.BeaconPublished(round, Sampling.seedOf(aggregate), aggregate);
        publishPartial(round, 1);
        assertEq(beacon.seedOf(round), Sampling.seedOf(aggregate));
    }

    function test_PublishPartial_WhenAggregateWasPublished_Reverts() public {
        publishBeacon(round);
        _expectPartialRevert(0, 0, _alreadyPublished());
    }

    function test_PublishPartial_WhenPartialsCompletedTheBeacon_RefusesTheAggregate() public {
        for (uint256 i = 0; i < 3; ++i) {
            publishPartial(round, i);
        }
        _expectPublishRevert(aggregateSignature(round), _alreadyPublished());
    }

    // ---- isAudited ----

    function test_IsAudited_WhenBeaconIsPending_Reverts() public {
        vm.roll(rounds.schedule(round).beacon);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconPending.selector, round));
        beacon.isAudited(round, clients[0].addr);
    }

    function test_IsAudited_WhenThereIsNoRoll_Reverts() public {
        _openAnother();
        vm.roll(rounds.schedule(round).beacon + 1);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconPending.selector, round));
        beacon.isAudited(round, clients[0].addr);
        assertFalse(beacon.isSettled(round));
        assertFalse(beacon.hasWithheld(round, members[0].addr));
    }

    function test_IsAudited_WhenBeaconIsPublished_FollowsTheSeed() public {
        publishBeacon(round);
        bytes32 seed = beacon.seedOf(round);
        uint256 selected;
        for (uint160 i = 1; i <= 64; ++i) {
            bool audited = beacon.isAudited(round, address(i));
            assertEq(audited, Sampling.selects(seed, address(i), 1 << 63));
            if (audited) ++selected;
        }
        assertGt(selected, 16);
        assertLt(selected, 48);
    }

    function test_IsAudited_WhenBeaconIsOverdue_SelectsEveryone() public {
        vm.roll(rounds.schedule(round).beacon + 1);
        for (uint160 i = 1; i <= 16; ++i) {
            assertTrue(beacon.isAudited(round, address(i)));
        }
    }

    function test_IsAudited_WhenRateIsOne_SelectsEveryone() public {
        _settleWithRate(AUDIT_ALWAYS);
        for (uint160 i = 1; i <= 16; ++i) {
            assertTrue(beacon.isAudited(round, address(i)));
        }
    }

    function test_IsAudited_WhenRateIsZero_SelectsNobody() public {
        _settleWithRate(0);
        for (uint160 i = 1; i <= 16; ++i) {
            assertFalse(beacon.isAudited(round, address(i)));
        }
    }

    // ---- isSettled, hasWithheld, message ----

    function test_IsSettled_WhenBeaconIsPending_IsFalse() public {
        vm.roll(rounds.schedule(round).beacon);
        assertFalse(beacon.isSettled(round));
    }

    function test_IsSettled_WhenBeaconIsPublishedOrOverdue_IsTrue() public {
        uint256 state = vm.snapshotState();
        publishBeacon(round);
        assertTrue(beacon.isSettled(round));
        vm.revertToState(state);
        vm.roll(rounds.schedule(round).beacon + 1);
        assertTrue(beacon.isSettled(round));
    }

    function test_HasWithheld_WhenBeaconIsPending_IsFalse() public {
        vm.roll(rounds.schedule(round).beacon);
        assertFalse(beacon.hasWithheld(round, members[0].addr));
    }

    function test_HasWithheld_WhenBeaconIsPublished_IsFalse() public {
        publishBeacon(round);
        vm.roll(rounds.schedule(round).beacon + 1);
        assertFalse(beacon.hasWithheld(round, members[0].addr));
    }

    function test_HasWithheld_WhenOverdue_NamesOnlyTheSilent() public {
        publishPartial(round, 0);
        publishPartial(round, 2);
        vm.roll(rounds.schedule(round).beacon + 1);
        assertFalse(beacon.hasWithheld(round, members[0].addr));
        assertTrue(beacon.hasWithheld(round, members[1].addr));
        assertFalse(beacon.hasWithheld(round, members[2].addr));
    }

    function test_Message_WhenRoundChainOrContractDiffers_Differs() public {
        bytes memory original = beacon.message(round);
        assertNotEq(beacon.message(roundOf(job, 1)), original);
        assertNotEq(_otherBeacon().message(round), original);
        vm.chainId(block.chainid + 1);
        assertNotEq(beacon.message(round), original);
    }

    // ---- steps ----

    /// @dev Round 1, without a roll.
    function _openAnother() private {
        voidUndecided(round);
        round = rounds.openRound(job);
    }

    function _otherBeacon() private returns (Beacon) {
        return new Beacon(IJobs(address(jobs)), IRounds(address(rounds)));
    }

    function _settleWithRate(uint128 rate) private {
        JobTerms memory terms = defaultTerms();
        terms.auditRate = rate;
        round = openFirst(startJob(terms, 1));
        commitRoll(round, 1);
        publishBeacon(round);
    }

    function _proof(uint256 secret, address member, bytes memory key)
        private
        view
        returns (bytes memory)
    {
        bytes memory claim = beacon.possessionMessage(member, key);
        return BlsSigner.sign(secret, claim, BlsSigner.POSSESSION_DOMAIN);
    }

    function _notInPhase() private view returns (bytes memory) {
        return abi.encodeWithSelector(IBeacon.NotInBeaconPhase.selector, round, block.number);
    }

    function _alreadyPublished() private view returns (bytes memory) {
        return abi.encodeWithSelector(IBeacon.BeaconAlreadyPublished.selector, round);
    }

    function _expectBadProof(bytes memory key, bytes memory proof) private {
        vm.prank(stranger.addr);
        vm.expectRevert(
            abi.encodeWithSelector(IBeacon.BadProofOfPossession.selector, stranger.addr)
        );
        beacon.registerKey(key, proof);
    }

    function _expectBadSignature(bytes memory signature) private {
        _expectPublishRevert(
            signature, abi.encodeWithSelector(IBeacon.BadSignature.selector, round)
        );
    }

    function _expectPublishRevert(bytes memory signature, bytes memory reason) private {
        vm.expectRevert(reason);
        beacon.publish(round, signature);
    }

    function _expectPartialRevert(uint256 member, uint256 signer, bytes memory reason) private {
        bytes memory signature = BlsSigner.sign(blsSecret(signer), beacon.message(round));
        vm.expectRevert(reason);
        beacon.publishPartial(round, members[member].addr, signature);
    }
}

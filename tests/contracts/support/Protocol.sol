// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Slashing} from "contracts/Slashing.sol";
import {
    BatchProof,
    JobId,
    JobTerms,
    Penalties,
    Phases,
    Reason,
    RoundId,
    Split,
    Verdict
} from "contracts/Types.sol";
import {BlsSigner} from "./BlsSigner.sol";

/// @title The deployed protocol, with actors, and the steps of a round as one call each
abstract contract Protocol is Test {
    /// @dev An address with the key it signs statements with.
    struct Actor {
        address addr;
        uint256 key;
    }

    uint96 internal constant CLIENT_DEPOSIT = 1 ether;
    uint96 internal constant MEMBER_STAKE = 2 ether;
    bytes internal constant POLICY = '{"model":"lenet"}';
    bytes internal constant BOUNDARY = '{"alpha":3}';

    Deposits internal deposits;
    Jobs internal jobs;
    Beacon internal beacon;
    Slashing internal slashing;

    Actor[3] internal members;
    Actor[] internal clients;
    address internal treasury = makeAddr("treasury");
    address internal relayer = makeAddr("relayer");

    function setUp() public virtual {
        deployProtocol();
        for (uint256 i = 0; i < 3; ++i) {
            members[i] = _actor(string.concat("member", vm.toString(i)));
            registerKey(i);
        }
    }

    // ---- set-up ----

    function deployProtocol() internal {
        uint64 nonce = vm.getNonce(address(this));
        address slashingAddress = vm.computeCreateAddress(address(this), nonce + 3);
        address jobsAddress = vm.computeCreateAddress(address(this), nonce + 1);
        address beaconAddress = vm.computeCreateAddress(address(this), nonce + 2);
        deposits = new Deposits(jobsAddress, slashingAddress);
        jobs = new Jobs(IDeposits(address(deposits)), IBeacon(beaconAddress), slashingAddress);
        beacon = new Beacon(IJobs(address(jobs)));
        slashing = new Slashing(deposits, jobs, beacon);
    }

    function defaultTerms() internal view returns (JobTerms memory terms) {
        terms.policyHash = keccak256(POLICY);
        terms.boundaryHash = keccak256(BOUNDARY);
        terms.modelHash = keccak256("model 0");
        for (uint256 i = 0; i < 3; ++i) {
            terms.members[i] = members[i].addr;
        }
        terms.relayer = relayer;
        terms.treasury = treasury;
        terms.clientDeposit = CLIENT_DEPOSIT;
        terms.memberStake = MEMBER_STAKE;
        terms.auditRate = 1 << 63;
        terms.rounds = 4;
        terms.unbondingDelay = 200;
        terms.phases = Phases({
            enrol: 10,
            commit: 10,
            beacon: 10,
            deliver: 10,
            attest: 10,
            finalise: 10,
            request: 20,
            veto: 15
        });
        terms.penalties = Penalties({
            commitmentMismatch: 0.4 ether,
            notDelivered: 0.1 ether,
            inputNotCommitted: 0.6 ether,
            replayOutside: 1 ether,
            beaconWithheld: 0.5 ether,
            verdictDissent: 0.3 ether,
            verdictSilence: 0.2 ether
        });
        terms.split = Split({burn: 5000, treasury: 2000, committee: 3000});
    }

    function blsSecret(uint256 member) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("bls", member))) >> 2;
    }

    function registerKey(uint256 member) internal {
        bytes memory key = BlsSigner.publicKey(blsSecret(member));
        bytes memory claim = beacon.possessionMessage(members[member].addr, key);
        bytes memory proof = BlsSigner.sign(blsSecret(member), claim, BlsSigner.POSSESSION_DOMAIN);
        vm.prank(members[member].addr);
        beacon.registerKey(key, proof);
    }

    /// @dev A job with all members staked and `count` clients enrolled.
    function startJob(uint256 count) internal returns (JobId job) {
        return startJob(defaultTerms(), count);
    }

    function startJob(JobTerms memory terms, uint256 count) internal returns (JobId job) {
        job = jobs.createJob(terms, POLICY, BOUNDARY);
        for (uint256 i = 0; i < 3; ++i) {
            hoax(members[i].addr, terms.memberStake);
            jobs.joinCommittee{value: terms.memberStake}(job);
        }
        for (uint256 i = 0; i < count; ++i) {
            if (clients.length <= i) clients.push(_actor(string.concat("client", vm.toString(i))));
            hoax(clients[i].addr, terms.clientDeposit);
            jobs.enrol{value: terms.clientDeposit}(job, keccak256(abi.encode("data", i)));
        }
    }

    // ---- the steps of a round ----

    function openFirst(JobId job) internal returns (RoundId) {
        vm.roll(uint256(jobs.progress(job).enrolDeadline) + 1);
        return jobs.openRound(job);
    }

    function commit(RoundId round, uint256 client) internal {
        vm.prank(clients[client].addr);
        jobs.commitGradient(round, gradientOf(round, client));
    }

    function gradientOf(RoundId round, uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("gradient", round, client));
    }

    function rollPast(uint32 deadline) internal {
        if (block.number <= deadline) vm.roll(uint256(deadline) + 1);
    }

    function aggregateSignature(RoundId round) internal view returns (bytes memory) {
        uint256 order = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
        uint256 sum = addmod(addmod(blsSecret(0), blsSecret(1), order), blsSecret(2), order);
        return BlsSigner.sign(sum, beacon.message(round));
    }

    function publishBeacon(RoundId round) internal {
        rollPast(jobs.schedule(round).commit);
        beacon.publish(round, aggregateSignature(round));
    }

    function attest(RoundId round, uint256 member, Verdict memory verdict) internal {
        vm.prank(members[member].addr);
        jobs.attest(round, verdict);
    }

    // ---- values ----

    function faultOf(uint32 index, Reason reason) internal pure returns (bytes memory) {
        return abi.encodePacked(index, uint8(reason));
    }

    function noProof() internal pure returns (BatchProof memory proof) {}

    function signed(Actor memory actor, bytes32 structHash) internal view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(actor.key, jobs.statementDigest(structHash));
        return abi.encodePacked(r, s, v);
    }

    function _actor(string memory name) internal returns (Actor memory actor) {
        (actor.addr, actor.key) = makeAddrAndKey(name);
    }
}

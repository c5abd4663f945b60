// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Slashing} from "contracts/Slashing.sol";
import {
    BatchProof,
    JobId,
    JobTerms,
    Penalties,
    Phases,
    Reason,
    Role,
    RoundId,
    Split,
    Verdict
} from "contracts/Types.sol";
import {BlsSigner} from "./BlsSigner.sol";
import {MerkleTree} from "./MerkleTree.sol";

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
    Actor internal stranger;
    address internal treasury = makeAddr("treasury");
    address internal relayer = makeAddr("relayer");

    function setUp() public virtual {
        deployProtocol();
        stranger = actor("stranger");
        for (uint256 i = 0; i < 3; ++i) {
            members[i] = actor(string.concat("member", vm.toString(i)));
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

    function defaultTerms() internal view virtual returns (JobTerms memory terms) {
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
            commit: 11,
            beacon: 12,
            deliver: 13,
            attest: 14,
            finalise: 15,
            request: 20,
            veto: 16
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

    function actor(string memory name) internal returns (Actor memory made) {
        (made.addr, made.key) = makeAddrAndKey(name);
    }

    function registerKey(uint256 member) internal {
        bytes memory key = BlsSigner.publicKey(blsSecret(member));
        bytes memory claim = beacon.possessionMessage(members[member].addr, key);
        bytes memory proof = BlsSigner.sign(blsSecret(member), claim, BlsSigner.POSSESSION_DOMAIN);
        vm.prank(members[member].addr);
        beacon.registerKey(key, proof);
    }

    function createJob(JobTerms memory terms) internal returns (JobId) {
        return jobs.createJob(terms, POLICY, BOUNDARY);
    }

    function join(JobId job, uint256 member) internal {
        uint96 stake = jobs.terms(job).memberStake;
        hoax(members[member].addr, stake);
        jobs.joinCommittee{value: stake}(job);
    }

    function enrol(JobId job, uint256 client) internal {
        while (clients.length <= client) {
            clients.push(actor(string.concat("client", vm.toString(clients.length))));
        }
        uint96 deposit = jobs.terms(job).clientDeposit;
        hoax(clients[client].addr, deposit);
        jobs.enrol{value: deposit}(job, datasetOf(client));
    }

    /// @dev A job with all members staked and `count` clients enrolled.
    function startJob(uint256 count) internal returns (JobId job) {
        return startJob(defaultTerms(), count);
    }

    function startJob(JobTerms memory terms, uint256 count) internal returns (JobId job) {
        job = createJob(terms);
        for (uint256 i = 0; i < 3; ++i) {
            join(job, i);
        }
        for (uint256 i = 0; i < count; ++i) {
            enrol(job, i);
        }
    }

    // ---- the steps of a round ----

    function rollPast(uint32 deadline) internal {
        if (block.number <= deadline) vm.roll(uint256(deadline) + 1);
    }

    function openFirst(JobId job) internal returns (RoundId) {
        rollPast(jobs.progress(job).enrolDeadline);
        return jobs.openRound(job);
    }

    function commit(RoundId round, uint256 client) internal {
        vm.prank(clients[client].addr);
        jobs.commitGradient(round, gradientOf(round, client));
    }

    /// @dev Posts the batch of clients `from` to `to`, without the latter.
    function commitBatch(RoundId round, uint256 from, uint256 to) internal {
        bytes32 root = MerkleTree.root(batchLeaves(round, from, to));
        vm.prank(relayer);
        jobs.commitBatch(round, root, uint32(to - from));
    }

    function publishBeacon(RoundId round) internal {
        rollPast(jobs.schedule(round).commit);
        beacon.publish(round, aggregateSignature(round));
    }

    function publishPartial(RoundId round, uint256 member) internal {
        bytes memory signature = BlsSigner.sign(blsSecret(member), beacon.message(round));
        beacon.publishPartial(round, members[member].addr, signature);
    }

    function attest(RoundId round, uint256 member, Verdict memory verdict) internal {
        vm.prank(members[member].addr);
        jobs.attest(round, verdict);
    }

    /// @dev All members attest the verdict, after the time for delivery.
    function decide(RoundId round, Verdict memory verdict) internal {
        rollPast(jobs.schedule(round).deliver);
        for (uint256 i = 0; i < 3; ++i) {
            attest(round, i, verdict);
        }
    }

    function finalise(RoundId round) internal {
        bytes32 statement = resultOf(round);
        jobs.finalise(
            round,
            aggregateOf(round),
            modelAfter(round),
            [signed(members[0], statement), signed(members[1], statement)]
        );
    }

    /// @dev Everybody commits directly, is audited as the seed says, and gets this verdict.
    function playRound(RoundId round, uint256 count, Verdict memory verdict) internal {
        for (uint256 i = 0; i < count; ++i) {
            commit(round, i);
        }
        publishBeacon(round);
        decide(round, verdict);
    }

    function requestSlash(RoundId round, uint256 client, Verdict memory verdict) internal {
        slashing.request(round, clients[client].addr, verdict, 0, noProof());
    }

    function voidUndecided(RoundId round) internal {
        rollPast(jobs.schedule(round).attest);
        jobs.voidRound(round);
    }

    // ---- values ----

    function blsSecret(uint256 member) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("bls", member))) >> 2;
    }

    function aggregateSignature(RoundId round) internal view returns (bytes memory) {
        return BlsSigner.sign(_groupSecret(), beacon.message(round));
    }

    function datasetOf(uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("data", client));
    }

    function gradientOf(RoundId round, uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("gradient", round, client));
    }

    function aggregateOf(RoundId round) internal pure returns (bytes32) {
        return keccak256(abi.encode("aggregate", round));
    }

    function modelAfter(RoundId round) internal pure returns (bytes32) {
        return keccak256(abi.encode("model", round));
    }

    function resultOf(RoundId round) internal view returns (bytes32) {
        bytes32 verdictHash = jobs.round(round).verdictHash;
        return Statements.roundResult(round, verdictHash, aggregateOf(round), modelAfter(round));
    }

    function batchLeaf(RoundId round, address client, bytes32 commitment)
        internal
        pure
        returns (bytes32)
    {
        bytes memory content = abi.encode(round.job(), round.number(), client, commitment);
        return keccak256(bytes.concat(keccak256(content)));
    }

    function batchLeaves(RoundId round, uint256 from, uint256 to)
        internal
        view
        returns (bytes32[] memory leaves)
    {
        leaves = new bytes32[](to - from);
        for (uint256 i = from; i < to; ++i) {
            leaves[i - from] = batchLeaf(round, clients[i].addr, gradientOf(round, i));
        }
    }

    /// @dev The evidence for `client` in the batch of clients `from` to `to`.
    function batchProof(RoundId round, uint256 from, uint256 to, uint256 client)
        internal
        view
        returns (BatchProof memory proof)
    {
        address addr = clients[client].addr;
        proof.commitment = gradientOf(round, client);
        proof.path = MerkleTree.proof(batchLeaves(round, from, to), client - from);
        proof.signature =
            signed(clients[client], Statements.gradientCommitment(round, addr, proof.commitment));
    }

    function noProof() internal pure returns (BatchProof memory proof) {}

    function noFaults(bytes memory passes) internal pure returns (Verdict memory) {
        return Verdict({passes: passes, faults: ""});
    }

    /// @dev The client with this index failed, and nobody passed.
    function faultOf(uint32 index, Reason reason) internal pure returns (Verdict memory) {
        return Verdict({passes: "", faults: abi.encodePacked(index, uint8(reason))});
    }

    function signed(Actor memory signer, bytes32 structHash) internal view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(signer.key, jobs.statementDigest(structHash));
        return abi.encodePacked(r, s, v);
    }

    /// @dev The signatures of members `a` and `b`.
    function signedBy(uint256 a, uint256 b, bytes32 structHash)
        internal
        view
        returns (bytes[2] memory)
    {
        return [signed(members[a], structHash), signed(members[b], structHash)];
    }

    function depositOf(JobId job, uint256 client) internal view returns (uint96) {
        return deposits.account(job, Role.Client, clients[client].addr).balance;
    }

    function stakeOf(JobId job, uint256 member) internal view returns (uint96) {
        return deposits.account(job, Role.Member, members[member].addr).balance;
    }

    function _groupSecret() internal pure returns (uint256) {
        uint256 firstTwo = addmod(blsSecret(0), blsSecret(1), BlsSigner.ORDER);
        return addmod(firstTwo, blsSecret(2), BlsSigner.ORDER);
    }
}

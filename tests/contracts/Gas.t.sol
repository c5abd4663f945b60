// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {VmSafe} from "forge-std/Vm.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Deposits} from "contracts/Deposits.sol";
import {Enrolment} from "contracts/Enrolment.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Slashing} from "contracts/Slashing.sol";
import {
    AUDIT_ALWAYS,
    BatchProof,
    JobId,
    JobTerms,
    MemberFault,
    Reason,
    Role,
    RoundId,
    Verdict
} from "contracts/Types.sol";
import {BlsSigner} from "./support/BlsSigner.sol";
import {MerkleTree} from "./support/MerkleTree.sol";
import {Protocol} from "./support/Protocol.sol";

/// @title What every role's transactions cost
/// @notice Only the transaction in `_send` is metered: .gas-snapshot holds its gas, with base fee and
/// calldata, and a few thousand that the call costs the test, the same every time. With -vv every
/// test prints the gas of the transaction alone.
/// forge-config: default.isolate = true
/// forge-config: ci.isolate = true
contract GasTest is Protocol {
    uint256 internal constant CLIENTS = 3;
    uint256 internal constant BATCH = 100;

    JobId internal job;
    RoundId internal round;

    function setUp() public override {
        // Instrumented code without the optimizer costs more, and says nothing.
        vm.skip(vm.isContext(VmSafe.ForgeContext.Coverage));
        super.setUp();
        JobTerms memory terms = defaultTerms();
        terms.auditRate = AUDIT_ALWAYS;
        job = startJob(terms, CLIENTS);
    }

    modifier unmetered() {
        vm.pauseGasMetering();
        _;
    }

    // ---- creator ----

    function test_Creator_CreatesAJob() public unmetered {
        bytes memory policy = new bytes(1000);
        bytes memory boundary = new bytes(1000);
        JobTerms memory terms = defaultTerms();
        terms.policyHash = keccak256(policy);
        terms.boundaryHash = keccak256(boundary);
        _toJobs(stranger.addr, 0, abi.encodeCall(Enrolment.createJob, (terms, policy, boundary)));
    }

    // ---- member ----

    function test_Member_RegistersAKey() public unmetered {
        bytes memory key = BlsSigner.publicKey(12345);
        bytes memory claim = beacon.possessionMessage(stranger.addr, key);
        bytes memory proof = BlsSigner.sign(12345, claim, BlsSigner.POSSESSION_DOMAIN);
        _toBeacon(stranger.addr, abi.encodeCall(Beacon.registerKey, (key, proof)));
    }

    function test_Member_JoinsACommittee() public unmetered {
        job = createJob(defaultTerms());
        bytes memory data = abi.encodeCall(Enrolment.joinCommittee, (job));
        _toJobs(members[0].addr, MEMBER_STAKE, data);
    }

    function test_Member_AnnouncesItsEndpoint() public unmetered {
        string memory url = "https://member-0.example:8443";
        _toJobs(members[0].addr, 0, abi.encodeCall(Enrolment.announceEndpoint, (job, url)));
    }

    function test_Member_PublishesABeacon() public unmetered {
        _closeCommits();
        bytes memory data = abi.encodeCall(Beacon.publish, (round, aggregateSignature(round)));
        assertLt(_toBeacon(members[0].addr, data), 250_000);
    }

    function test_Member_PublishesAFirstPartial() public unmetered {
        _closeCommits();
        _toBeacon(members[0].addr, _partial(0));
    }

    function test_Member_PublishesALastPartial() public unmetered {
        _closeCommits();
        publishPartial(round, 0);
        publishPartial(round, 1);
        _toBeacon(members[2].addr, _partial(2));
    }

    function test_Member_AttestsFirst() public unmetered {
        _closeCommits();
        publishBeacon(round);
        _toJobs(members[0].addr, 0, abi.encodeCall(Jobs.attest, (round, noFaults(hex"07"))));
    }

    function test_Member_AttestsAndDecides() public unmetered {
        _closeCommits();
        publishBeacon(round);
        attest(round, 0, noFaults(hex"07"));
        _toJobs(members[1].addr, 0, abi.encodeCall(Jobs.attest, (round, noFaults(hex"07"))));
    }

    function test_Member_UnbondsItsStake() public unmetered {
        JobTerms memory terms = defaultTerms();
        terms.rounds = 1;
        job = startJob(terms, 1);
        voidUndecided(openFirst(job));
        _toJobs(members[0].addr, 0, abi.encodeCall(Enrolment.unbondStake, (job)));
    }

    // ---- client ----

    function test_Client_Enrols() public unmetered {
        bytes memory data = abi.encodeCall(Enrolment.enrol, (job, keccak256("root")));
        _toJobs(stranger.addr, CLIENT_DEPOSIT, data);
    }

    function test_Client_ReplacesItsRoot() public unmetered {
        bytes memory data = abi.encodeCall(Enrolment.replaceDatasetRoot, (job, keccak256("root")));
        _toJobs(clients[0].addr, 0, data);
    }

    function test_Client_TopsUp() public unmetered {
        _toJobs(clients[0].addr, 1 ether, abi.encodeCall(Enrolment.topUpDeposit, (job)));
    }

    function test_Client_CommitsFirst() public unmetered {
        round = openFirst(job);
        _toJobs(clients[0].addr, 0, _commitment(0));
    }

    function test_Client_CommitsAgain() public unmetered {
        round = openFirst(job);
        commit(round, 0);
        voidUndecided(round);
        round = jobs.openRound(job);
        commit(round, 1);
        assertLe(_toJobs(clients[0].addr, 0, _commitment(0)), 35_000);
    }

    function test_Client_UnbondsItsDeposit() public unmetered {
        _toJobs(clients[0].addr, 0, abi.encodeCall(Enrolment.unbondDeposit, (job)));
    }

    function test_Client_Withdraws() public unmetered {
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.roll(block.number + 200);
        bytes memory data = abi.encodeCall(Deposits.withdraw, (job, Role.Client));
        _send(clients[0].addr, 0, address(deposits), data);
    }

    // ---- relayer ----

    function test_Relayer_CommitsABatchOf100() public unmetered {
        round = openFirst(job);
        bytes memory data = abi.encodeCall(Jobs.commitBatch, (round, _root(), uint32(BATCH)));
        assertLt(_toJobs(relayer, 0, data), 1000 * BATCH);
    }

    // ---- anyone ----

    function test_Anyone_OpensTheFirstRound() public unmetered {
        rollPast(jobs.progress(job).enrolDeadline);
        _toJobs(stranger.addr, 0, abi.encodeCall(Jobs.openRound, (job)));
    }

    function test_Anyone_OpensTheNextRound() public unmetered {
        voidUndecided(openFirst(job));
        _toJobs(stranger.addr, 0, abi.encodeCall(Jobs.openRound, (job)));
    }

    function test_Anyone_Finalises() public unmetered {
        _decide(noFaults(hex"07"));
        bytes32 aggregate = aggregateOf(round);
        bytes32 model = modelAfter(round);
        bytes[2] memory signatures = signedBy(0, 1, resultOf(round));
        bytes memory data = abi.encodeCall(Jobs.finalise, (round, aggregate, model, signatures));
        _toJobs(stranger.addr, 0, data);
    }

    function test_Anyone_Voids() public unmetered {
        round = openFirst(job);
        vm.roll(jobs.schedule(round).attest + 1);
        _toJobs(stranger.addr, 0, abi.encodeCall(Jobs.voidRound, (round)));
    }

    function test_Anyone_RequestsOnADirectCommitment() public unmetered {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        _decide(verdict);
        _toSlashing(_request(verdict, noProof()));
    }

    function test_Anyone_RequestsOnALeafOf100() public unmetered {
        Verdict memory verdict = faultOf(0, Reason.ReplayOutside);
        round = openFirst(job);
        bytes32 root = _root();
        vm.prank(relayer);
        jobs.commitBatch(round, root, uint32(BATCH));
        publishBeacon(round);
        decide(round, verdict);
        BatchProof memory proof;
        proof.commitment = gradientOf(round, 0);
        proof.path = MerkleTree.proof(_leaves(), 0);
        proof.signature = signed(
            clients[0], Statements.gradientCommitment(round, clients[0].addr, proof.commitment)
        );
        _toSlashing(_request(verdict, proof));
    }

    function test_Anyone_VetoesWithReceipts() public unmetered {
        _requestSlash(Reason.NotDelivered);
        address client = clients[0].addr;
        bytes[2] memory signatures = signedBy(0, 1, Statements.deliveryReceipt(round, client, true));
        _toSlashing(abi.encodeCall(Slashing.vetoWithReceipts, (round, client, signatures)));
    }

    function test_Anyone_VetoesWithAcquittals() public unmetered {
        _requestSlash(Reason.ReplayOutside);
        address client = clients[0].addr;
        bytes[2] memory signatures = signedBy(0, 1, Statements.acquittal(round, client));
        _toSlashing(abi.encodeCall(Slashing.vetoWithAcquittals, (round, client, signatures)));
    }

    function test_Anyone_Executes() public unmetered {
        _requestSlash(Reason.ReplayOutside);
        vm.roll(slashing.slashOf(round, clients[0].addr).executableAt);
        _toSlashing(abi.encodeCall(Slashing.execute, (round, clients[0].addr)));
    }

    function test_Anyone_PenalisesAMember() public unmetered {
        _closeCommits();
        publishBeacon(round);
        attest(round, 0, noFaults(hex"07"));
        attest(round, 1, noFaults(hex"07"));
        attest(round, 2, noFaults(hex"03"));
        MemberFault fault = MemberFault.VerdictDissent;
        address member = members[2].addr;
        _toSlashing(abi.encodeCall(Slashing.penaliseMember, (round, member, fault)));
    }

    function test_Anyone_PaysOutACredit() public unmetered {
        _requestSlash(Reason.ReplayOutside);
        vm.roll(slashing.slashOf(round, clients[0].addr).executableAt);
        slashing.execute(round, clients[0].addr);
        bytes memory data = abi.encodeCall(Deposits.withdrawCredit, (treasury));
        _send(stranger.addr, 0, address(deposits), data);
    }

    // ---- steps ----

    function _closeCommits() private {
        round = openFirst(job);
        commit(round, 0);
        rollPast(jobs.schedule(round).commit);
    }

    function _decide(Verdict memory verdict) private {
        round = openFirst(job);
        playRound(round, CLIENTS, verdict);
    }

    function _requestSlash(Reason reason) private {
        Verdict memory verdict = faultOf(0, reason);
        _decide(verdict);
        requestSlash(round, 0, verdict);
    }

    function _toJobs(address from, uint256 value, bytes memory data) private returns (uint256) {
        return _send(from, value, address(jobs), data);
    }

    function _toBeacon(address from, bytes memory data) private returns (uint256) {
        return _send(from, 0, address(beacon), data);
    }

    function _toSlashing(bytes memory data) private {
        _send(stranger.addr, 0, address(slashing), data);
    }

    /// @dev One transaction. What it used, with base fee and calldata.
    function _send(address from, uint256 value, address to, bytes memory data)
        private
        returns (uint256 used)
    {
        vm.deal(from, value);
        vm.prank(from);
        vm.resumeGasMetering();
        (bool ok,) = to.call{value: value}(data);
        vm.pauseGasMetering();
        assertTrue(ok);
        used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint("gas of the transaction", used);
    }

    // ---- values ----

    function _commitment(uint256 client) private view returns (bytes memory) {
        return abi.encodeCall(Jobs.commitGradient, (round, gradientOf(round, client)));
    }

    function _partial(uint256 member) private view returns (bytes memory) {
        bytes memory signature = BlsSigner.sign(blsSecret(member), beacon.message(round));
        return abi.encodeCall(Beacon.publishPartial, (round, members[member].addr, signature));
    }

    function _request(Verdict memory verdict, BatchProof memory proof)
        private
        view
        returns (bytes memory)
    {
        return abi.encodeCall(Slashing.request, (round, clients[0].addr, verdict, 0, proof));
    }

    /// @dev Client 0, and 99 others that need not exist.
    function _leaves() private view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](BATCH);
        leaves[0] = batchLeaf(round, clients[0].addr, gradientOf(round, 0));
        for (uint256 i = 1; i < BATCH; ++i) {
            leaves[i] = keccak256(abi.encode(i));
        }
    }

    function _root() private view returns (bytes32) {
        return MerkleTree.root(_leaves());
    }
}

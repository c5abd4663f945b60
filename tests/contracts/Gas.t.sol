// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {VmSafe} from "forge-std/Vm.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Charges} from "contracts/Charges.sol";
import {Deposits} from "contracts/Deposits.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Rewards} from "contracts/Rewards.sol";
import {Rounds} from "contracts/Rounds.sol";
import {
    AUDIT_ALWAYS,
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Role,
    RollEntry,
    RoundId
} from "contracts/Types.sol";
import {BlsSigner} from "./support/BlsSigner.sol";
import {Protocol} from "./support/Protocol.sol";

/// @title What every role's transactions cost
/// @notice Only the transaction in `_send` is metered: .gas-snapshot holds its gas, with base fee and
/// calldata, and a few thousand that the call costs the test, the same every time. With -vv every
/// test prints the gas of the transaction alone. Limits hold for every round but the first of a job,
/// which pays once for slots of the job.
/// forge-config: default.isolate = true
/// forge-config: ci.isolate = true
contract GasTest is Protocol {
    uint256 internal constant CLIENTS = 100;

    /// @dev All clients, and all but client 0.
    uint256 internal constant ALL = (1 << CLIENTS) - 1;
    uint256 internal constant REST = ALL - 1;

    JobId internal job;
    RoundId internal round;

    /// @dev Round 0 is over, and round 1 is open.
    function setUp() public override {
        // Instrumented code without the optimizer costs more, and says nothing.
        vm.skip(vm.isContext(VmSafe.ForgeContext.Coverage));
        super.setUp();
        job = startJob(defaultTerms(), CLIENTS);
        round = openFirst(job);
        playRound(round, ALL, ALL);
        finalise(round);
        round = rounds.openRound(job);
    }

    function defaultTerms() internal view override returns (JobTerms memory terms) {
        terms = super.defaultTerms();
        terms.auditRate = AUDIT_ALWAYS;
        terms.maxClients = uint32(CLIENTS + 1);
        terms.rounds = 20;
        terms.phases.enrol = 30;
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
        bytes memory data = abi.encodeCall(Jobs.createJob, (terms, policy, boundary));
        _toJobs(creator, budgetFor(terms), data);
    }

    function test_Creator_IsRefunded() public unmetered {
        job = createJob(defaultTerms());
        rollPast(jobs.participants(job).enrolDeadline);
        _toRewards(abi.encodeCall(Rewards.refund, (job)));
    }

    // ---- member ----

    function test_Member_RegistersAKey() public unmetered {
        bytes memory key = BlsSigner.publicKey(12345);
        bytes memory claimed = beacon.possessionMessage(stranger.addr, key);
        bytes memory proof = BlsSigner.sign(12345, claimed, BlsSigner.POSSESSION_DOMAIN);
        _toBeacon(stranger.addr, abi.encodeCall(Beacon.registerKey, (key, proof)));
    }

    function test_Member_JoinsACommittee() public unmetered {
        job = createJob(defaultTerms());
        bytes memory data = abi.encodeCall(Jobs.joinCommittee, (job, sealingKeyOf(0)));
        _toJobs(members[0].addr, MEMBER_STAKE, data);
    }

    function test_Member_AnnouncesItsEndpoint() public unmetered {
        string memory url = "https://member-0.example:8443";
        _toJobs(members[0].addr, 0, abi.encodeCall(Jobs.announceEndpoint, (job, url)));
    }

    function test_Member_PublishesABeacon() public unmetered {
        commitRoll(round, ALL);
        bytes memory data = abi.encodeCall(Beacon.publish, (round, aggregateSignature(round)));
        assertLt(_toBeacon(members[0].addr, data), 200_000);
    }

    function test_Member_PublishesAFirstPartial() public unmetered {
        commitRoll(round, ALL);
        _toBeacon(members[0].addr, _partial(0));
    }

    function test_Member_PublishesALastPartial() public unmetered {
        commitRoll(round, ALL);
        publishPartial(round, 0);
        publishPartial(round, 1);
        _toBeacon(members[2].addr, _partial(2));
    }

    function test_Member_AttestsFirst() public unmetered {
        _settle();
        assertLe(_attest(0), 100_000);
    }

    function test_Member_AttestsAndDecides() public unmetered {
        _settle();
        attest(round, 0, ALL);
        assertLe(_attest(1), 100_000);
    }

    function test_Member_AttestsThird() public unmetered {
        _settle();
        attest(round, 0, ALL);
        attest(round, 1, ALL);
        assertLe(_attest(2), 100_000);
    }

    /// @dev The dearest order of seats, and slots of the job that are written for the first time.
    function test_Member_DecidesAFirstRoundAgainstALiar() public unmetered {
        job = startJob(defaultTerms(), CLIENTS);
        round = openFirst(job);
        _settle();
        attest(round, 0, REST);
        attest(round, 1, ALL);
        assertLe(_attest(2), 100_000);
    }

    function test_Member_DecidesARoundOf1000() public unmetered {
        bytes32 opening = _settleThousand();
        bytes memory data = abi.encodeCall(Rounds.attest, (round, opening, _everyOne(1000)));
        vm.prank(members[0].addr);
        rounds.attest(round, opening, _everyOne(1000));
        assertLe(_toRounds(members[1].addr, data), 100_000);
    }

    function test_Member_ClaimsARound() public unmetered {
        _decide(ALL);
        address member = members[2].addr;
        _toRewards(abi.encodeCall(Rewards.claimService, (member, only(round))));
    }

    function test_Member_ClaimsTenRounds() public unmetered {
        RoundId[] memory played = _playTen();
        _toRewards(abi.encodeCall(Rewards.claimService, (members[2].addr, played)));
    }

    function test_Member_UnbondsItsStake() public unmetered {
        job = createJob(defaultTerms());
        join(job, 0);
        rollPast(jobs.participants(job).enrolDeadline);
        _toJobs(members[0].addr, 0, abi.encodeCall(Jobs.unbondStake, (job)));
    }

    // ---- client ----

    function test_Client_Enrols() public unmetered {
        job = startJob(1);
        bytes memory data = abi.encodeCall(Jobs.enrol, (job, keccak256("root")));
        _toJobs(stranger.addr, CLIENT_DEPOSIT, data);
    }

    function test_Client_ReplacesItsRoot() public unmetered {
        job = startJob(1);
        bytes memory data = abi.encodeCall(Jobs.replaceDatasetRoot, (job, keccak256("root")));
        _toJobs(clients[0].addr, 0, data);
    }

    function test_Client_TopsUp() public unmetered {
        _toJobs(clients[0].addr, 1 ether, abi.encodeCall(Jobs.topUpDeposit, (job)));
    }

    function test_Client_ClaimsAFirstRound() public unmetered {
        _decide(ALL);
        _toRewards(_claim(only(round)));
    }

    function test_Client_ClaimsAnotherRound() public unmetered {
        _decide(ALL);
        claim(round, 0, ALL);
        finalise(round);
        round = rounds.openRound(job);
        _decide(ALL);
        assertLe(_toRewards(_claim(only(round))), 60_000);
    }

    function test_Client_ClaimsTenRounds() public unmetered {
        assertLe(_toRewards(_claim(_playTen())), 10 * 20_000);
    }

    function test_Client_UnbondsItsDeposit() public unmetered {
        _toJobs(clients[0].addr, 0, abi.encodeCall(Jobs.unbondDeposit, (job)));
    }

    function test_Client_Withdraws() public unmetered {
        vm.prank(clients[0].addr);
        jobs.unbondDeposit(job);
        vm.roll(block.number + 200);
        bytes memory data = abi.encodeCall(Deposits.withdraw, (job, Role.Client));
        _send(clients[0].addr, 0, address(deposits), data);
    }

    // ---- anyone ----

    function test_Anyone_OpensTheFirstRound() public unmetered {
        job = startJob(1);
        rollPast(jobs.participants(job).enrolDeadline);
        _toRounds(stranger.addr, abi.encodeCall(Rounds.openRound, (job)));
    }

    function test_Anyone_OpensTheNextRound() public unmetered {
        voidUndecided(round);
        _toRounds(stranger.addr, abi.encodeCall(Rounds.openRound, (job)));
    }

    function test_Anyone_CommitsARollOf100() public unmetered {
        assertLe(_commit(1, 2), 80_000 + 1500 * CLIENTS);
    }

    function test_Anyone_CommitsARootSignedBySeats0And1() public unmetered {
        _openOfRoots();
        assertLe(_commit(0, 1), 80_000);
    }

    function test_Anyone_CommitsARootSignedBySeats0And2() public unmetered {
        _openOfRoots();
        assertLe(_commit(0, 2), 80_000);
    }

    function test_Anyone_CommitsARootSignedBySeats1And2() public unmetered {
        _openOfRoots();
        assertLe(_commit(1, 2), 80_000);
    }

    function test_Anyone_Finalises() public unmetered {
        _decide(ALL);
        bytes32 aggregate = aggregateOf(round);
        bytes32 model = modelAfter(round);
        bytes[2] memory signatures = signedBy(0, 1, resultOf(round));
        bytes memory data = abi.encodeCall(Rounds.finalise, (round, aggregate, model, signatures));
        _toRounds(stranger.addr, data);
    }

    function test_Anyone_Voids() public unmetered {
        vm.roll(rounds.schedule(round).attest + 1);
        _toRounds(stranger.addr, abi.encodeCall(Rounds.voidRound, (round)));
    }

    function test_Anyone_HoldsAnAuditOnARollOf100() public unmetered {
        _decide(REST);
        RollEntry memory entry = entryOf(round, 0, ALL);
        address client = clients[0].addr;
        _toCharges(abi.encodeCall(Charges.hold, (round, client, passesOf(REST), entry)));
    }

    function test_Anyone_Charges() public unmetered {
        _hold();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Outside));
        address client = clients[0].addr;
        _toCharges(abi.encodeCall(Charges.charge, (round, client, Outcome.Outside, signatures)));
    }

    function test_Anyone_Acquits() public unmetered {
        _hold();
        bytes[2] memory signatures = signedBy(0, 1, outcomeOf(round, 0, Outcome.Passed));
        _toCharges(abi.encodeCall(Charges.acquit, (round, clients[0].addr, signatures)));
    }

    function test_Anyone_Unlocks() public unmetered {
        JobTerms memory terms = defaultTerms();
        terms.standbys = new address[](0);
        job = startJob(terms, CLIENTS);
        round = openFirst(job);
        _hold();
        vm.roll(block.number + terms.unlockDelay + 1);
        _toCharges(abi.encodeCall(Charges.unlock, (round, clients[0].addr)));
    }

    function test_Anyone_PenalisesForSilence() public unmetered {
        _settle();
        attest(round, 0, ALL);
        attest(round, 1, ALL);
        rollPast(rounds.schedule(round).attest);
        MemberFault fault = MemberFault.Silence;
        _toCharges(abi.encodeCall(Charges.penalise, (round, members[2].addr, fault)));
    }

    function test_Anyone_PenalisesWithSignatures() public unmetered {
        MemberFault fault = MemberFault.Absence;
        bytes[2] memory signatures = signedBy(0, 1, faultOf(round, 2, fault));
        address member = members[2].addr;
        _toCharges(abi.encodeCall(Charges.penaliseCertified, (round, member, fault, signatures)));
    }

    function test_Anyone_PenalisesForEquivocation() public unmetered {
        bytes32[2] memory contents = [bytes32(uint256(1)), bytes32(uint256(2))];
        bytes[2] memory signatures;
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 statement = Statements.memberMessage(round, openingOf(round), 3, contents[i]);
            signatures[i] = signed(members[2], statement);
        }
        _toCharges(
            abi.encodeCall(
                Charges.penaliseEquivocation, (round, members[2].addr, 3, contents, signatures)
            )
        );
    }

    function test_Anyone_ChangesASeat() public unmetered {
        bytes[2] memory signatures = signedBy(0, 1, seatChangeOf(job, 2, 3));
        bytes memory data = abi.encodeCall(Jobs.changeSeat, (job, 2, members[3].addr, signatures));
        _toJobs(stranger.addr, 0, data);
    }

    function test_Anyone_PaysOutACredit() public unmetered {
        _hold();
        charge(round, 0, Outcome.Outside);
        bytes memory data = abi.encodeCall(Deposits.withdrawCredit, (treasury));
        _send(stranger.addr, 0, address(deposits), data);
    }

    // ---- steps ----

    function _settle() private {
        commitRoll(round, ALL);
        publishBeacon(round);
    }

    /// @dev A round with more clients than tests can enrol: only the roll says how many there are.
    function _settleThousand() private returns (bytes32 opening) {
        JobTerms memory terms = defaultTerms();
        terms.publicRoll = false;
        terms.maxClients = 1000;
        job = startJob(terms, 1);
        round = openFirst(job);
        opening = openingOf(round);
        bytes32 root = keccak256("root");
        bytes32 statement = Statements.roll(round, opening, root, 1000, keccak256(""));
        rounds.commitRoll(round, root, 1000, "", signedBy(0, 1, statement));
        publishBeacon(round);
    }

    function _decide(uint256 passed) private {
        playRound(round, ALL, passed);
    }

    function _hold() private {
        _decide(REST);
        hold(round, 0, ALL, REST);
    }

    function _playTen() private returns (RoundId[] memory played) {
        played = new RoundId[](10);
        for (uint256 i = 0; i < 10; ++i) {
            played[i] = round;
            _decide(ALL);
            finalise(round);
            round = rounds.openRound(job);
        }
    }

    function _attest(uint256 member) private returns (uint256) {
        bytes memory call = abi.encodeCall(Rounds.attest, (round, openingOf(round), passesOf(ALL)));
        return _toRounds(members[member].addr, call);
    }

    /// @dev The first round of a job that keeps the pairs of its rolls off the chain.
    function _openOfRoots() private {
        JobTerms memory terms = defaultTerms();
        terms.publicRoll = false;
        job = startJob(terms, CLIENTS);
        round = openFirst(job);
    }

    function _commit(uint256 a, uint256 b) private returns (uint256) {
        bytes32 root = rootOf(round, ALL);
        bytes memory pairs = pairsOf(round, ALL);
        bytes[2] memory signatures = signedBy(a, b, rollStatement(round, ALL));
        return _toRounds(
            stranger.addr,
            abi.encodeCall(Rounds.commitRoll, (round, root, uint32(CLIENTS), pairs, signatures))
        );
    }

    function _toJobs(address from, uint256 value, bytes memory data) private returns (uint256) {
        return _send(from, value, address(jobs), data);
    }

    function _toRounds(address from, bytes memory data) private returns (uint256) {
        return _send(from, 0, address(rounds), data);
    }

    function _toBeacon(address from, bytes memory data) private returns (uint256) {
        return _send(from, 0, address(beacon), data);
    }

    function _toCharges(bytes memory data) private {
        _send(stranger.addr, 0, address(charges), data);
    }

    function _toRewards(bytes memory data) private returns (uint256) {
        return _send(stranger.addr, 0, address(rewards), data);
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

    function _everyOne(uint256 count) private pure returns (bytes memory passes) {
        passes = new bytes(count / 8);
        for (uint256 i = 0; i < passes.length; ++i) {
            passes[i] = 0xff;
        }
    }

    function _claim(RoundId[] memory claimed) private view returns (bytes memory) {
        bytes[] memory verdicts = new bytes[](claimed.length);
        for (uint256 i = 0; i < claimed.length; ++i) {
            verdicts[i] = passesOf(ALL);
        }
        address client = clients[0].addr;
        return abi.encodeCall(Rewards.claimContributions, (client, claimed, verdicts));
    }

    function _partial(uint256 member) private view returns (bytes memory) {
        bytes memory signature = BlsSigner.sign(blsSecret(member), beacon.message(round));
        return abi.encodeCall(Beacon.publishPartial, (round, members[member].addr, signature));
    }
}

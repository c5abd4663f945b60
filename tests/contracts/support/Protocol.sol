// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Charges} from "contracts/Charges.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {Rewards} from "contracts/Rewards.sol";
import {Rounds} from "contracts/Rounds.sol";
import {
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Pay,
    Penalties,
    Phases,
    Role,
    RollEntry,
    RoundId
} from "contracts/Types.sol";
import {BlsSigner} from "./BlsSigner.sol";
import {MerkleTree} from "./MerkleTree.sol";

/// @title The deployed protocol, with actors, and the steps of a round as one call each
/// @notice Clients are counted by their index in the job. Sets of them are masks: bit i is client i.
abstract contract Protocol is Test {
    /// @dev An address with the key it signs statements with.
    struct Actor {
        address addr;
        uint256 key;
    }

    uint96 internal constant CLIENT_DEPOSIT = 1 ether;
    uint96 internal constant MEMBER_STAKE = 2 ether;
    uint96 internal constant CLIENT_PAY = 0.01 ether;
    uint96 internal constant MEMBER_PAY = 0.05 ether;

    /// @dev Three members, then two standbys.
    uint256 internal constant ROSTER = 5;
    bytes internal constant POLICY = '{"model":"lenet"}';
    bytes internal constant BOUNDARY = '{"alpha":3}';

    Deposits internal deposits;
    Beacon internal beacon;
    Jobs internal jobs;
    Rounds internal rounds;
    Charges internal charges;
    Rewards internal rewards;

    Actor[ROSTER] internal members;
    Actor[] internal clients;
    Actor internal stranger;
    address internal creator = makeAddr("creator");
    address internal treasury = makeAddr("treasury");

    function setUp() public virtual {
        deployProtocol();
        stranger = actor("stranger");
        for (uint256 i = 0; i < ROSTER; ++i) {
            members[i] = actor(string.concat("member", vm.toString(i)));
            registerKey(i);
        }
    }

    // ---- set-up ----

    function deployProtocol() internal {
        uint64 nonce = vm.getNonce(address(this));
        address beaconAddress = vm.computeCreateAddress(address(this), nonce + 1);
        address jobsAddress = vm.computeCreateAddress(address(this), nonce + 2);
        address roundsAddress = vm.computeCreateAddress(address(this), nonce + 3);
        address chargesAddress = vm.computeCreateAddress(address(this), nonce + 4);
        address rewardsAddress = vm.computeCreateAddress(address(this), nonce + 5);
        deposits = new Deposits(jobsAddress, chargesAddress, rewardsAddress);
        beacon = new Beacon(IJobs(jobsAddress), IRounds(roundsAddress));
        jobs = new Jobs(
            IDeposits(address(deposits)),
            IBeacon(beaconAddress),
            IRounds(roundsAddress),
            chargesAddress
        );
        rounds = new Rounds(IJobs(jobsAddress), IBeacon(beaconAddress));
        charges = new Charges(deposits, jobs, rounds, beacon);
        rewards = new Rewards(deposits, jobs, rounds, beacon, charges);
    }

    function defaultTerms() internal view virtual returns (JobTerms memory terms) {
        terms.policyHash = keccak256(POLICY);
        terms.boundaryHash = keccak256(BOUNDARY);
        terms.modelHash = keccak256("model 0");
        terms.standbys = new address[](2);
        for (uint256 i = 0; i < 3; ++i) {
            terms.members[i] = members[i].addr;
        }
        for (uint256 i = 0; i < 2; ++i) {
            terms.standbys[i] = members[3 + i].addr;
        }
        terms.treasury = treasury;
        terms.clientDeposit = CLIENT_DEPOSIT;
        terms.memberStake = MEMBER_STAKE;
        terms.auditRate = 1 << 63;
        terms.rounds = 4;
        terms.maxClients = 10;
        terms.fewestContributions = 3;
        terms.unbondingDelay = 100;
        terms.unlockDelay = 150;
        terms.treasuryShare = 2000;
        terms.publicRoll = true;
        terms.phases = Phases({
            enrol: 10,
            deliver: 11,
            roll: 12,
            beacon: 13,
            answer: 14,
            attest: 17,
            finalise: 16,
            response: 20
        });
        terms.penalties = Penalties({
            client: 0.8 ether,
            silence: 0.2 ether,
            dissent: 0.3 ether,
            absence: 0.4 ether,
            withheld: 0.5 ether
        });
        terms.pay = Pay({client: CLIENT_PAY, member: MEMBER_PAY});
    }

    function budgetFor(JobTerms memory terms) internal pure returns (uint256) {
        uint256 work = uint256(terms.pay.client) * terms.maxClients + 3 * uint256(terms.pay.member);
        return terms.rounds * work;
    }

    function actor(string memory name) internal returns (Actor memory made) {
        (made.addr, made.key) = makeAddrAndKey(name);
    }

    function registerKey(uint256 member) internal {
        bytes memory key = BlsSigner.publicKey(blsSecret(member));
        bytes memory possession = beacon.possessionMessage(members[member].addr, key);
        bytes memory proof =
            BlsSigner.sign(blsSecret(member), possession, BlsSigner.POSSESSION_DOMAIN);
        vm.prank(members[member].addr);
        beacon.registerKey(key, proof);
    }

    function createJob(JobTerms memory terms) internal returns (JobId) {
        uint256 budget = budgetFor(terms);
        hoax(creator, budget);
        return jobs.createJob{value: budget}(terms, POLICY, BOUNDARY);
    }

    function join(JobId job, uint256 member) internal {
        uint96 stake = jobs.terms(job).memberStake;
        hoax(members[member].addr, stake);
        jobs.joinCommittee{value: stake}(job, sealingKeyOf(member));
    }

    function enrol(JobId job, uint256 client) internal {
        while (clients.length <= client) {
            clients.push(actor(string.concat("client", vm.toString(clients.length))));
        }
        uint96 deposit = jobs.terms(job).clientDeposit;
        hoax(clients[client].addr, deposit);
        jobs.enrol{value: deposit}(job, datasetOf(client));
    }

    /// @dev A job with the whole roster staked and `count` clients enrolled.
    function startJob(uint256 count) internal returns (JobId job) {
        return startJob(defaultTerms(), count);
    }

    function startJob(JobTerms memory terms, uint256 count) internal returns (JobId job) {
        job = createJob(terms);
        for (uint256 i = 0; i < 3 + terms.standbys.length; ++i) {
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
        rollPast(jobs.participants(job).enrolDeadline);
        return rounds.openRound(job);
    }

    /// @dev Commits the roll of the clients of a mask, signed by members 0 and 1.
    function commitRoll(RoundId round, uint256 onRoll) internal {
        commitRoll(round, onRoll, 0, 1);
    }

    function commitRoll(RoundId round, uint256 onRoll, uint256 a, uint256 b) internal {
        bytes[2] memory signatures = signedBy(a, b, rollStatement(round, onRoll));
        commitRoll(round, onRoll, signatures);
    }

    function commitRoll(RoundId round, uint256 onRoll, bytes[2] memory signatures) internal {
        bytes32 root = rootOf(round, onRoll);
        bytes memory pairs = pairsOf(round, onRoll);
        rounds.commitRoll(round, root, sizeOf(onRoll), pairs, signatures);
    }

    function publishBeacon(RoundId round) internal {
        beacon.publish(round, aggregateSignature(round));
    }

    function publishPartial(RoundId round, uint256 member) internal {
        bytes memory signature = BlsSigner.sign(blsSecret(member), beacon.message(round));
        beacon.publishPartial(round, members[member].addr, signature);
    }

    function attest(RoundId round, uint256 member, uint256 passed) internal {
        bytes32 opening = openingOf(round);
        vm.prank(members[member].addr);
        rounds.attest(round, opening, passesOf(passed));
    }

    /// @dev All members attest that these passed.
    function decide(RoundId round, uint256 passed) internal {
        for (uint256 i = 0; i < 3; ++i) {
            attest(round, i, passed);
        }
    }

    function finalise(RoundId round) internal {
        finalise(round, 0, 1);
    }

    function finalise(RoundId round, uint256 a, uint256 b) internal {
        rounds.finalise(
            round, aggregateOf(round), modelAfter(round), signedBy(a, b, resultOf(round))
        );
    }

    /// @dev Roll, beacon and a verdict of all members.
    function playRound(RoundId round, uint256 onRoll, uint256 passed) internal {
        commitRoll(round, onRoll);
        publishBeacon(round);
        decide(round, passed);
    }

    function voidUndecided(RoundId round) internal {
        rollPast(rounds.schedule(round).attest);
        rounds.voidRound(round);
    }

    function hold(RoundId round, uint256 client, uint256 onRoll, uint256 passed) internal {
        charges.hold(round, clients[client].addr, passesOf(passed), entryOf(round, client, onRoll));
    }

    function charge(RoundId round, uint256 client, Outcome outcome) internal {
        bytes32 statement = outcomeOf(round, client, outcome);
        charges.charge(round, clients[client].addr, outcome, signedBy(0, 1, statement));
    }

    function acquit(RoundId round, uint256 client) internal {
        bytes32 statement = outcomeOf(round, client, Outcome.Passed);
        charges.acquit(round, clients[client].addr, signedBy(0, 1, statement));
    }

    /// @dev Gives a seat to number `standby` of the roster, signed by two others.
    function changeSeat(JobId job, uint8 seat, uint256 standby, uint256 a, uint256 b) internal {
        bytes32 statement = seatChangeOf(job, seat, standby);
        jobs.changeSeat(job, seat, members[standby].addr, signedBy(a, b, statement));
    }

    function claim(RoundId round, uint256 client, uint256 passed) internal {
        bytes[] memory verdicts = new bytes[](1);
        verdicts[0] = passesOf(passed);
        rewards.claimContributions(clients[client].addr, only(round), verdicts);
    }

    function claimService(RoundId round, uint256 member) internal {
        rewards.claimService(members[member].addr, only(round));
    }

    // ---- values ----

    function blsSecret(uint256 member) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("bls", member))) >> 2;
    }

    function aggregateSignature(RoundId round) internal view returns (bytes memory) {
        return BlsSigner.sign(groupSecret(round), beacon.message(round));
    }

    /// @dev Of the seats of the round.
    function groupSecret(RoundId round) internal view returns (uint256 sum) {
        uint8[3] memory numbers = rounds.round(round).seats;
        for (uint256 seat = 0; seat < 3; ++seat) {
            sum = addmod(sum, blsSecret(numbers[seat]), BlsSigner.ORDER);
        }
    }

    function sealingKeyOf(uint256 member) internal pure returns (bytes memory) {
        return abi.encodePacked(uint8(2), keccak256(abi.encode("sealing", member)));
    }

    function datasetOf(uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("data", client));
    }

    function commitmentOf(RoundId round, uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("gradient", round, client));
    }

    function restHashOf(RoundId round, uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode("rest", round, client));
    }

    function contentHashOf(RoundId round, uint256 client) internal pure returns (bytes32) {
        return keccak256(abi.encode(commitmentOf(round, client), restHashOf(round, client)));
    }

    function leafOf(RoundId round, uint256 client) internal view returns (bytes32) {
        bytes memory content = abi.encode(clients[client].addr, contentHashOf(round, client));
        return keccak256(bytes.concat(keccak256(content)));
    }

    /// @dev The leaves of the clients of a mask, in the order of their indices.
    function leavesOf(RoundId round, uint256 mask) internal view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](sizeOf(mask));
        uint256 count;
        for (uint256 i = 0; mask >> i != 0; ++i) {
            if ((mask >> i) & 1 == 1) leaves[count++] = leafOf(round, i);
        }
    }

    function rootOf(RoundId round, uint256 mask) internal view returns (bytes32) {
        return MerkleTree.root(leavesOf(round, mask));
    }

    function pairsOf(RoundId round, uint256 mask) internal view returns (bytes memory pairs) {
        if (!jobs.terms(round.job()).publicRoll) return "";
        for (uint32 i = 0; mask >> i != 0; ++i) {
            if ((mask >> i) & 1 == 1) pairs = abi.encodePacked(pairs, i, commitmentOf(round, i));
        }
    }

    /// @dev The evidence that a client is on the roll of the clients of a mask.
    function entryOf(RoundId round, uint256 client, uint256 mask)
        internal
        view
        returns (RollEntry memory entry)
    {
        uint256 position = sizeOf(mask & ((1 << client) - 1));
        entry.commitment = commitmentOf(round, client);
        entry.restHash = restHashOf(round, client);
        entry.path = MerkleTree.proof(leavesOf(round, mask), position);
        entry.signature = signed(clients[client], contributionOf(round, client));
    }

    function aggregateOf(RoundId round) internal pure returns (bytes32) {
        return keccak256(abi.encode("aggregate", round));
    }

    function modelAfter(RoundId round) internal pure returns (bytes32) {
        return keccak256(abi.encode("model", round));
    }

    /// @dev The verdict, without a zero byte at the end.
    function passesOf(uint256 mask) internal pure returns (bytes memory passes) {
        for (; mask != 0; mask >>= 8) {
            passes = abi.encodePacked(passes, uint8(mask));
        }
    }

    function sizeOf(uint256 mask) internal pure returns (uint32 size) {
        for (; mask != 0; mask >>= 1) {
            size += uint32(mask & 1);
        }
    }

    function only(RoundId round) internal pure returns (RoundId[] memory list) {
        list = new RoundId[](1);
        list[0] = round;
    }

    // ---- statements ----

    function openingOf(RoundId round) internal view returns (bytes32 opening) {
        (opening,) = rounds.rollOf(round);
    }

    function contributionOf(RoundId round, uint256 client) internal view returns (bytes32) {
        bytes32 content = contentHashOf(round, client);
        return Statements.contribution(round, openingOf(round), clients[client].addr, content);
    }

    function rollStatement(RoundId round, uint256 mask) internal view returns (bytes32) {
        bytes32 pairsHash = keccak256(pairsOf(round, mask));
        return
            Statements.roll(round, openingOf(round), rootOf(round, mask), sizeOf(mask), pairsHash);
    }

    function resultOf(RoundId round) internal view returns (bytes32) {
        bytes32 verdict = rounds.verdictHashOf(round);
        return Statements.roundResult(
            round, openingOf(round), verdict, aggregateOf(round), modelAfter(round)
        );
    }

    function outcomeOf(RoundId round, uint256 client, Outcome outcome)
        internal
        view
        returns (bytes32)
    {
        return Statements.auditOutcome(round, openingOf(round), clients[client].addr, outcome);
    }

    function faultOf(RoundId round, uint256 member, MemberFault fault)
        internal
        view
        returns (bytes32)
    {
        return Statements.memberFault(round, openingOf(round), members[member].addr, fault);
    }

    function seatChangeOf(JobId job, uint8 seat, uint256 standby) internal view returns (bytes32) {
        uint8 epoch = jobs.participants(job).epoch;
        return Statements.seatChange(job, epoch, seat, members[standby].addr);
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
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {stdJson} from "forge-std/StdJson.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {Jobs} from "contracts/Jobs.sol";
import {BLS12381} from "contracts/libraries/BLS12381.sol";
import {Sampling} from "contracts/libraries/Sampling.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Phases,
    Role,
    roundOf,
    RoundId
} from "contracts/Types.sol";
import {TermsHarness} from "./libraries/Terms.t.sol";
import {VerdictsHarness} from "./libraries/Verdicts.t.sol";
import {MerkleTree} from "./support/MerkleTree.sol";
import {VectorFile} from "./support/VectorFile.sol";

/// @dev tests/vectors is made by docs/SPEC.md. Both languages must read it alike.
contract VectorsTest is VectorFile {
    using stdJson for string;

    address internal constant TREASURY = address(0x7ea5);

    // ---- tags, trees ----

    function test_Tags_HashesEveryName() public view {
        string memory json = load("tags");
        string[] memory names = json.readStringArray(".names");
        bytes32[] memory tags = json.readBytes32Array(".tags");
        assertEq(names.length, tags.length);
        for (uint256 i = 0; i < names.length; ++i) {
            assertEq(keccak256(bytes(string.concat("opfl.v2.", names[i]))), tags[i]);
        }
    }

    function test_Merkle_HasTheSameRootsAndProofs() public view {
        string memory json = load("merkle");
        uint256[] memory sizes = json.readUintArray(".sizes");
        for (uint256 i = 0; i < sizes.length; ++i) {
            bytes32[] memory leaves = json.readBytes32Array(field(i, "leaves"));
            assertEq(leaves.length, sizes[i]);
            bytes32 root = json.readBytes32(field(i, "root"));
            assertEq(MerkleTree.root(leaves), root);
            for (uint256 j = 0; j < leaves.length; ++j) {
                bytes32[] memory proof = proofAt(json, field(i, "proofs"), j);
                assertEq(MerkleTree.proof(leaves, j), proof);
                assertTrue(MerkleProof.verify(proof, root, leaves[j]));
            }
        }
    }

    function test_Dataset_ProvesEveryInputAndRound() public view {
        string memory json = load("dataset");
        bytes32 root = json.readBytes32(".root");
        bytes32[] memory commitments = json.readBytes32Array(".commitments");
        bytes32[] memory leaves = json.readBytes32Array(".leaves");
        for (uint256 t = 0; t < leaves.length; ++t) {
            assertEq(_doubleHash(abi.encode(t, commitments[t])), leaves[t]);
            assertTrue(MerkleProof.verify(proofAt(json, ".proofs", t), root, leaves[t]));
        }
        bytes memory far = abi.encode(json.readUint(".farRound"), commitments[0]);
        assertEq(_doubleHash(far), json.readBytes32(".farLeaf"));
    }

    function test_Roll_ProvesEveryContribution() public view {
        string memory json = load("roll");
        uint256 count = json.readUint(".count");
        for (uint256 i = 0; i < count; ++i) {
            bytes32[] memory contents = json.readBytes32Array(field(i, "contentHashes"));
            bytes32[] memory commitments = json.readBytes32Array(field(i, "commitments"));
            bytes32[] memory leaves = json.readBytes32Array(field(i, "leaves"));
            bytes32 root = json.readBytes32(field(i, "root"));
            assertEq(MerkleTree.root(leaves), root);
            assertEq(leaves.length, json.readUint(field(i, "count")));
            for (uint256 j = 0; j < leaves.length; ++j) {
                bytes32 rest = json.readBytes32Array(field(i, "restHashes"))[j];
                address client = json.readAddressArray(field(i, "clients"))[j];
                assertEq(keccak256(abi.encode(commitments[j], rest)), contents[j]);
                assertEq(_doubleHash(abi.encode(client, contents[j])), leaves[j]);
                bytes32[] memory proof = proofAt(json, field(i, "proofs"), j);
                assertTrue(MerkleProof.verify(proof, root, leaves[j]));
            }
        }
        assertEq(keccak256(""), json.readBytes32(".hashOfNoPairs"));
    }

    function test_Roll_PacksThePairs() public view {
        string memory json = load("roll");
        uint256 count = json.readUint(".count");
        for (uint256 i = 0; i < count; ++i) {
            uint256[] memory indices = json.readUintArray(field(i, "clientIndices"));
            bytes32[] memory commitments = json.readBytes32Array(field(i, "commitments"));
            bytes memory pairs;
            for (uint256 j = 0; j < indices.length; ++j) {
                pairs = abi.encodePacked(pairs, uint32(indices[j]), commitments[j]);
            }
            assertEq(pairs, json.readBytes(field(i, "pairs")));
            assertEq(keccak256(pairs), json.readBytes32(field(i, "pairsHash")));
        }
    }

    // ---- opening, beacon, sampling ----

    /// @dev `Rounds.t.sol` shows that this is the opening on chain.
    function test_Opening_BindsChainContractRoundModelAndBlock() public view {
        string memory json = load("opening");
        uint256[] memory jobs = json.readUintArray(".jobs");
        for (uint256 i = 0; i < jobs.length; ++i) {
            uint32 number = uint32(json.readUintArray(".rounds")[i]);
            RoundId round = roundOf(JobId.wrap(uint64(jobs[i])), number);
            assertEq(RoundId.unwrap(round), json.readUintArray(".roundIds")[i]);
            bytes memory content = abi.encode(
                keccak256("opfl.v2.round"),
                json.readUint(".chainId"),
                json.readAddress(".roundsContract"),
                round.job(),
                round.number(),
                json.readBytes32Array(".modelHashes")[i],
                json.readBytes32Array(".previousBlocks")[i]
            );
            assertEq(keccak256(content), json.readBytes32Array(".openings")[i]);
        }
    }

    function test_Beacon_AcceptsKeysAndTheirProofs() public {
        string memory json = load("beacon");
        Beacon beacon = _deployBeacon(json);
        address[] memory members = json.readAddressArray(".members");
        bytes[] memory keys = json.readBytesArray(".publicKeys");
        bytes[] memory messages = json.readBytesArray(".possessionMessages");
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(beacon.possessionMessage(members[i], keys[i]), messages[i]);
            assertEq(beacon.keyOf(members[i]), keys[i]);
        }
        bytes memory sum = json.readBytes(".aggregatePublicKey");
        assertEq(BLS12381.addG2(BLS12381.addG2(keys[0], keys[1]), keys[2]), sum);
    }

    function test_Beacon_AcceptsTheAggregatesAndGivesTheSeeds() public {
        string memory json = load("beacon");
        Beacon beacon = _deployBeacon(json);
        bytes[] memory messages = json.readBytesArray(".messages");
        bytes[] memory signatures = json.readBytesArray(".signatures");
        bytes32[] memory seeds = json.readBytes32Array(".seeds");
        for (uint256 i = 0; i < seeds.length; ++i) {
            RoundId round = _beaconRound(json, beacon, i);
            assertEq(beacon.message(round), messages[i]);
            beacon.publish(round, signatures[i]);
            assertEq(beacon.seedOf(round), seeds[i]);
        }
    }

    function test_Beacon_AcceptsThePartialsAndGivesTheSeeds() public {
        string memory json = load("beacon");
        Beacon beacon = _deployBeacon(json);
        address[] memory members = json.readAddressArray(".members");
        bytes32[] memory seeds = json.readBytes32Array(".seeds");
        for (uint256 i = 0; i < seeds.length; ++i) {
            RoundId round = _beaconRound(json, beacon, i);
            for (uint256 member = 0; member < 3; ++member) {
                string memory path = string.concat(".partials", vm.toString(member));
                bytes[] memory partials = json.readBytesArray(path);
                beacon.publishPartial(round, members[member], partials[i]);
            }
            assertEq(beacon.seedOf(round), seeds[i]);
        }
    }

    function test_Sampling_SelectsTheSameClients() public view {
        string memory json = load("sampling");
        bytes32[] memory seeds = json.readBytes32Array(".seeds");
        address[] memory clients = json.readAddressArray(".clients");
        uint256[] memory rates = json.readUintArray(".rates");
        bool[] memory audited = json.readBoolArray(".audited");
        uint256[] memory tickets = json.readUintArray(".tickets");
        for (uint256 i = 0; i < audited.length; ++i) {
            assertEq(Sampling.selects(seeds[i], clients[i], uint128(rates[i])), audited[i]);
            assertFalse(Sampling.selects(seeds[i], clients[i], uint128(tickets[i])));
            assertTrue(Sampling.selects(seeds[i], clients[i], uint128(tickets[i] + 1)));
        }
    }

    // ---- signatures ----

    function test_Signatures_AcceptsCanonicalOnesAlone() public view {
        string memory json = load("signatures");
        bytes32[] memory digests = json.readBytes32Array(".digests");
        bytes[] memory signatures = json.readBytesArray(".signatures");
        address[] memory signers = json.readAddressArray(".signers");
        bool[] memory canonical = json.readBoolArray(".canonical");
        for (uint256 i = 0; i < canonical.length; ++i) {
            (address signer, ECDSA.RecoverError error,) =
                ECDSA.tryRecover(digests[i], signatures[i]);
            assertEq(error == ECDSA.RecoverError.NoError, canonical[i]);
            assertEq(signer == signers[i], canonical[i]);
        }
    }

    // ---- verdict, statements, penalties ----

    function test_Verdict_ReadsTheSameVerdicts() public {
        string memory json = load("verdict");
        VerdictsHarness verdicts = new VerdictsHarness();
        uint256 count = json.readUint(".count");
        for (uint256 i = 0; i < count; ++i) {
            bytes memory passes = json.readBytes(field(i, "passes"));
            assertEq(keccak256(passes), json.readBytes32(field(i, "hash")));
            assertEq(verdicts.count(passes), json.readUint(field(i, "count")));
            uint256[] memory passed = json.readUintArray(field(i, "passed"));
            uint256 next;
            for (uint32 index = 0; index < 8 * passes.length; ++index) {
                bool listed = next < passed.length && passed[next] == index;
                assertEq(verdicts.passed(passes, index), listed);
                if (listed) ++next;
            }
            assertEq(next, passed.length);
        }
        bytes memory padded = json.readBytes(".zeroPaddedPasses");
        assertEq(keccak256(padded), json.readBytes32(".zeroPaddedHash"));
    }

    function test_Verdict_NumbersTheOutcomesAlike() public view {
        uint256[] memory numbers = load("verdict").readUintArray(".outcomeNumbers");
        assertEq(uint8(Outcome.Passed), numbers[0]);
        assertEq(uint8(Outcome.Outside), numbers[1]);
        assertEq(uint8(Outcome.Unanswered), numbers[2]);
    }

    function test_Statements_HasTheSameDigestsOfRounds() public {
        string memory json = load("statements");
        Jobs jobs = _deployJobs(json);
        bytes32[] memory openings = json.readBytes32Array(".openings");
        for (uint256 i = 0; i < openings.length; ++i) {
            RoundId round = _statementRound(json, i);
            bytes32 roll = Statements.roll(
                round,
                openings[i],
                json.readBytes32Array(".roots")[i],
                uint32(json.readUintArray(".counts")[i]),
                json.readBytes32Array(".pairsHashes")[i]
            );
            _assertDigest(jobs, roll, json.readBytes32Array(".rollDigests")[i]);
            bytes32 result = Statements.roundResult(
                round,
                openings[i],
                json.readBytes32Array(".verdictHashes")[i],
                json.readBytes32Array(".aggregateHashes")[i],
                json.readBytes32Array(".modelHashes")[i]
            );
            _assertDigest(jobs, result, json.readBytes32Array(".roundResultDigests")[i]);
        }
    }

    function test_Statements_HasTheSameDigestsOfClients() public {
        string memory json = load("statements");
        Jobs jobs = _deployJobs(json);
        bytes32[] memory openings = json.readBytes32Array(".openings");
        for (uint256 i = 0; i < openings.length; ++i) {
            RoundId round = _statementRound(json, i);
            address client = json.readAddressArray(".clients")[i];
            bytes32 content = json.readBytes32Array(".contentHashes")[i];
            bytes32 contribution = Statements.contribution(round, openings[i], client, content);
            _assertDigest(jobs, contribution, json.readBytes32Array(".contributionDigests")[i]);
            Outcome outcome = Outcome(json.readUintArray(".outcomes")[i]);
            bytes32 ended = Statements.auditOutcome(round, openings[i], client, outcome);
            _assertDigest(jobs, ended, json.readBytes32Array(".auditOutcomeDigests")[i]);
        }
    }

    function test_Statements_HasTheSameDigestsOfMembers() public {
        string memory json = load("statements");
        Jobs jobs = _deployJobs(json);
        bytes32[] memory openings = json.readBytes32Array(".openings");
        for (uint256 i = 0; i < openings.length; ++i) {
            RoundId round = _statementRound(json, i);
            uint32 slot = uint32(json.readUintArray(".slots")[i]);
            bytes32 content = json.readBytes32Array(".contentHashes")[i];
            bytes32 said = Statements.memberMessage(round, openings[i], slot, content);
            _assertDigest(jobs, said, json.readBytes32Array(".memberMessageDigests")[i]);
            address member = json.readAddressArray(".members")[i];
            MemberFault fault = MemberFault(json.readUintArray(".faults")[i]);
            bytes32 accused = Statements.memberFault(round, openings[i], member, fault);
            _assertDigest(jobs, accused, json.readBytes32Array(".memberFaultDigests")[i]);
        }
    }

    function test_Statements_HasTheSameDigestsOfSeats() public {
        string memory json = load("statements");
        Jobs jobs = _deployJobs(json);
        uint256[] memory epochs = json.readUintArray(".epochs");
        for (uint256 i = 0; i < epochs.length; ++i) {
            uint8 seat = uint8(json.readUintArray(".seats")[i]);
            address standby = json.readAddressArray(".standbys")[i];
            JobId job = _statementRound(json, i).job();
            bytes32 change = Statements.seatChange(job, uint8(epochs[i]), seat, standby);
            _assertDigest(jobs, change, json.readBytes32Array(".seatChangeDigests")[i]);
        }
    }

    function test_Penalties_SplitsToTheSameWei() public {
        string memory json = load("penalties");
        uint256 count = json.readUintArray(".amounts").length;
        for (uint256 i = 0; i < count; ++i) {
            address[] memory recipients = new address[](json.readUintArray(".recipients")[i]);
            for (uint256 j = 0; j < recipients.length; ++j) {
                recipients[j] = address(uint160(0xbeef00 + j));
            }
            Deposits deposits = _distribute(json, i, recipients);
            assertEq(deposits.burned(), json.readUintArray(".burnt")[i]);
            assertEq(deposits.creditOf(TREASURY), json.readUintArray(".treasuries")[i]);
            string memory path = string.concat(".paid[", vm.toString(i), "]");
            uint256[] memory paid = json.readUintArray(path);
            for (uint256 j = 0; j < recipients.length; ++j) {
                assertEq(deposits.creditOf(recipients[j]), paid[j]);
            }
        }
    }

    function test_Deadlines_AddsUpThePhases() public {
        TermsHarness terms = new TermsHarness();
        string memory json = load("deadlines");
        uint256[] memory opened = json.readUintArray(".openedAt");
        for (uint256 i = 0; i < opened.length; ++i) {
            string memory index = string.concat("[", vm.toString(i), "]");
            uint256[] memory given = json.readUintArray(string.concat(".lengths", index));
            uint32[8] memory lengths;
            lengths[0] = 1;
            for (uint256 j = 0; j < 7; ++j) {
                lengths[j + 1] = uint32(given[j]);
            }
            Phases memory phases = abi.decode(abi.encode(lengths), (Phases));
            uint256[] memory found = json.readUintArray(string.concat(".deadlines", index));
            uint256[7] memory expected;
            for (uint256 j = 0; j < 7; ++j) {
                expected[j] = found[j];
            }
            bytes memory computed = abi.encode(terms.schedule(phases, uint32(opened[i])));
            assertEq(computed, abi.encode(expected));
        }
    }

    function test_Rewards_EscrowsTheSameBudgets() public {
        TermsHarness harness = new TermsHarness();
        string memory json = load("rewards");
        uint256[] memory budgets = json.readUintArray(".budgets");
        JobTerms memory terms;
        for (uint256 i = 0; i < budgets.length; ++i) {
            terms.rounds = uint32(json.readUintArray(".rounds")[i]);
            terms.maxClients = uint32(json.readUintArray(".places")[i]);
            terms.pay.client = uint96(json.readUintArray(".clientPays")[i]);
            terms.pay.member = uint96(json.readUintArray(".memberPays")[i]);
            assertEq(harness.budget(terms), budgets[i]);
        }
    }

    function test_Charges_HoldsTheSameWei() public {
        string memory json = load("charges");
        uint256[] memory held = json.readUintArray(".held");
        Deposits deposits = new Deposits(address(this), address(this), address(0));
        for (uint256 i = 0; i < held.length; ++i) {
            address owner = address(uint160(0xbeef00 + i));
            uint256 stake = json.readUintArray(".balances")[i];
            vm.deal(address(this), stake);
            deposits.lock{value: stake}(JobId.wrap(1), Role.Client, owner);
            uint96 penalty = uint96(json.readUintArray(".penalties")[i]);
            (uint96 captured, uint96 left) =
                deposits.capture(JobId.wrap(1), Role.Client, owner, penalty);
            assertEq(captured, held[i]);
            assertEq(left, stake - held[i]);
        }
    }

    // ---- published by others ----

    function test_Published_AgreesOnKeccak256() public view {
        string memory json = load("published");
        bytes[] memory messages = json.readBytesArray(".keccak256.messages");
        bytes32[] memory digests = json.readBytes32Array(".keccak256.digests");
        for (uint256 i = 0; i < digests.length; ++i) {
            assertEq(keccak256(messages[i]), digests[i]);
        }
    }

    function test_Published_AgreesOnRFC9380() public view {
        string memory json = load("published");
        bytes memory domain = json.readBytes(".rfc9380.dst");
        bytes[] memory messages = json.readBytesArray(".rfc9380.messages");
        bytes[] memory points = json.readBytesArray(".rfc9380.points");
        for (uint256 i = 0; i < points.length; ++i) {
            assertEq(BLS12381.hashToG1(messages[i], domain), points[i]);
        }
    }

    /// @dev Quicknet signs the SHA-256 of the round's number and publishes that of the signature.
    function test_Published_VerifiesDrandQuicknet() public view {
        string memory json = load("published");
        bytes memory domain = json.readBytes(".drandQuicknet.dst");
        bytes memory key = json.readBytes(".drandQuicknet.publicKey");
        uint256[] memory rounds = json.readUintArray(".drandQuicknet.rounds");
        bytes[] memory signatures = json.readBytesArray(".drandQuicknet.signatures");
        bytes[] memory compressed = json.readBytesArray(".drandQuicknet.signaturesCompressed");
        bytes32[] memory randomness = json.readBytes32Array(".drandQuicknet.randomness");
        assertEq(rounds.length, 2);
        for (uint256 i = 0; i < 2; ++i) {
            bytes memory message = abi.encodePacked(sha256(abi.encodePacked(uint64(rounds[i]))));
            assertTrue(BLS12381.verify(signatures[i], message, domain, key));
            assertFalse(BLS12381.verify(signatures[1 - i], message, domain, key));
            assertEq(sha256(compressed[i]), randomness[i]);
        }
    }

    // ---- steps ----

    /// @dev The beacon at the address that was signed, with the members' keys; Jobs and Rounds are
    /// mocks.
    function _deployBeacon(string memory json) private returns (Beacon beacon) {
        vm.chainId(json.readUint(".chainId"));
        beacon = Beacon(json.readAddress(".beacon"));
        bytes memory arguments = abi.encode(address(this), address(this));
        deployTo(address(beacon), bytes.concat(type(Beacon).creationCode, arguments));
        address[] memory members = json.readAddressArray(".members");
        bytes[] memory keys = json.readBytesArray(".publicKeys");
        bytes[] memory proofs = json.readBytesArray(".possessionProofs");
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(members[i]);
            beacon.registerKey(keys[i], proofs[i]);
        }
    }

    /// @dev Round number `i` of the file, with its roll on chain.
    function _beaconRound(string memory json, Beacon beacon, uint256 i)
        private
        returns (RoundId round)
    {
        uint64 job = uint64(json.readUintArray(".jobs")[i]);
        round = roundOf(JobId.wrap(job), uint32(json.readUintArray(".rounds")[i]));
        bytes32 opening = json.readBytes32Array(".openings")[i];
        bytes32 root = json.readBytes32Array(".roots")[i];
        bytes memory terms = abi.encode(opening, root, uint8(7), type(uint32).max);
        vm.mockCall(address(this), abi.encodeCall(IRounds.beaconTermsOf, (round)), terms);
        bytes memory roll = abi.encode(opening, root);
        vm.mockCall(address(this), abi.encodeCall(IRounds.rollOf, (round)), roll);
        bytes memory seat = abi.encodeWithSelector(IRounds.seatOf.selector);
        vm.mockCall(address(this), seat, abi.encode(0));
        address[] memory members = json.readAddressArray(".members");
        beacon.formGroup(JobId.wrap(job), 7, [members[0], members[1], members[2]]);
        bytes memory groupKey = beacon.groupKeyOf(JobId.wrap(job), 7);
        assertEq(groupKey, json.readBytes(".aggregatePublicKey"));
    }

    function _deployJobs(string memory json) private returns (Jobs jobs) {
        vm.chainId(json.readUint(".chainId"));
        jobs = Jobs(json.readAddress(".verifyingContract"));
        bytes memory arguments =
            abi.encode(IDeposits(address(1)), IBeacon(address(2)), IRounds(address(3)), address(4));
        deployTo(address(jobs), bytes.concat(type(Jobs).creationCode, arguments));
    }

    /// @dev The split of case number `i`, by a contract of its own.
    function _distribute(string memory json, uint256 i, address[] memory recipients)
        private
        returns (Deposits deposits)
    {
        deposits = new Deposits(address(0), address(this), address(0));
        uint96 amount = uint96(json.readUintArray(".amounts")[i]);
        uint96 compensation = uint96(json.readUintArray(".compensations")[i]);
        uint16 share = uint16(json.readUintArray(".treasuryShares")[i]);
        deposits.distribute(JobId.wrap(1), amount, recipients, compensation, TREASURY, share);
    }

    function _statementRound(string memory json, uint256 i) private pure returns (RoundId) {
        uint64 job = uint64(json.readUintArray(".jobs")[i]);
        return roundOf(JobId.wrap(job), uint32(json.readUintArray(".rounds")[i]));
    }

    function _assertDigest(Jobs jobs, bytes32 structHash, bytes32 expected) private view {
        assertEq(jobs.statementDigest(structHash), expected);
    }

    function _doubleHash(bytes memory content) private pure returns (bytes32) {
        return keccak256(bytes.concat(keccak256(content)));
    }
}

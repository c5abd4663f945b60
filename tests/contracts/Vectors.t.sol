// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {stdJson} from "forge-std/StdJson.sol";

import {Beacon} from "contracts/Beacon.sol";
import {Deposits} from "contracts/Deposits.sol";
import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IEnrolment} from "contracts/interfaces/IEnrolment.sol";
import {IJobs} from "contracts/interfaces/IJobs.sol";
import {Jobs} from "contracts/Jobs.sol";
import {BLS12381} from "contracts/libraries/BLS12381.sol";
import {CommitLedger, CommitLedgers} from "contracts/libraries/CommitLedger.sol";
import {Sampling} from "contracts/libraries/Sampling.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {JobId, Reason, roundOf, RoundId, Schedule, Split, Verdict} from "contracts/Types.sol";
import {VerdictsHarness} from "./libraries/Verdicts.t.sol";
import {MerkleTree} from "./support/MerkleTree.sol";
import {VectorFile} from "./support/VectorFile.sol";

/// @dev The hash that a round starts from binds the address of the contract.
contract LedgerHarness {
    function opened(RoundId round, bytes32 modelHash) external view returns (CommitLedger) {
        return CommitLedgers.opened(round, modelHash, 1);
    }
}

/// @dev tests/vectors is made by docs/SPEC.md. Both languages must read it alike.
contract VectorsTest is VectorFile {
    using stdJson for string;

    // ---- tags, trees ----

    function test_Tags_HashesEveryName() public view {
        string memory json = load("tags");
        string[] memory names = json.readStringArray(".names");
        bytes32[] memory tags = json.readBytes32Array(".tags");
        assertEq(names.length, tags.length);
        for (uint256 i = 0; i < names.length; ++i) {
            assertEq(keccak256(bytes(string.concat("opfl.v1.", names[i]))), tags[i]);
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

    function test_Batch_ProvesEveryCommitment() public view {
        string memory json = load("batch");
        uint64 job = uint64(json.readUint(".job"));
        uint32 round = uint32(json.readUint(".round"));
        address[] memory clients = json.readAddressArray(".clients");
        bytes32[] memory commitments = json.readBytes32Array(".commitments");
        bytes32[] memory leaves = json.readBytes32Array(".leaves");
        bytes32 root = json.readBytes32(".root");
        assertEq(MerkleTree.root(leaves), root);
        for (uint256 i = 0; i < leaves.length; ++i) {
            assertEq(_doubleHash(abi.encode(job, round, clients[i], commitments[i])), leaves[i]);
            assertTrue(MerkleProof.verify(proofAt(json, ".proofs", i), root, leaves[i]));
        }
    }

    // ---- accumulator, beacon, sampling ----

    function test_Accumulator_FollowsEveryCommitment() public {
        string memory json = load("accumulator");
        vm.chainId(json.readUint(".chainId"));
        LedgerHarness harness = LedgerHarness(json.readAddress(".jobs"));
        deployTo(address(harness), type(LedgerHarness).creationCode);
        uint256 count = json.readUint(".count");
        for (uint256 i = 0; i < count; ++i) {
            RoundId round = roundOf(
                JobId.wrap(uint64(json.readUint(field(i, "job")))),
                uint32(json.readUint(field(i, "round")))
            );
            assertEq(RoundId.unwrap(round), json.readUint(field(i, "roundId")));
            CommitLedger ledger = harness.opened(round, json.readBytes32(field(i, "modelHash")));
            _assertAccumulator(ledger, json.readBytes(field(i, "initial")));
            uint256[] memory kinds = json.readUintArray(field(i, "kinds"));
            address[] memory clients = json.readAddressArray(field(i, "clients"));
            bytes32[] memory values = json.readBytes32Array(field(i, "values"));
            uint256[] memory counts = json.readUintArray(field(i, "counts"));
            bytes[] memory expected = json.readBytesArray(field(i, "accumulators"));
            for (uint256 j = 0; j < kinds.length; ++j) {
                ledger = kinds[j] == 1
                    ? ledger.withDirect(clients[j], values[j])
                    : ledger.withBatch(values[j], uint32(counts[j]));
                _assertAccumulator(ledger, expected[j]);
            }
            _assertAccumulator(ledger, json.readBytes(field(i, "final")));
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

    // ---- verdict, statements, slashing ----

    function test_Verdict_ReadsTheSameVerdicts() public {
        string memory json = load("verdict");
        VerdictsHarness verdicts = new VerdictsHarness();
        uint256 count = json.readUint(".count");
        for (uint256 i = 0; i < count; ++i) {
            Verdict memory verdict =
                Verdict(json.readBytes(field(i, "passes")), json.readBytes(field(i, "faults")));
            assertEq(verdicts.hash(verdict), json.readBytes32(field(i, "hash")));

            uint256[] memory passed = json.readUintArray(field(i, "passed"));
            uint256 next;
            for (uint32 index = 0; index < 8 * verdict.passes.length; ++index) {
                bool listed = next < passed.length && passed[next] == index;
                assertEq(verdicts.passed(verdict, index), listed);
                if (listed) ++next;
            }
            assertEq(next, passed.length);

            uint256[] memory clients = json.readUintArray(field(i, "faultClients"));
            uint256[] memory reasons = json.readUintArray(field(i, "faultReasons"));
            assertEq(verdict.faults.length, 5 * clients.length);
            for (uint256 j = 0; j < clients.length; ++j) {
                (uint32 index, Reason reason) = verdicts.faultAt(verdict, j);
                assertEq(index, clients[j]);
                assertEq(uint8(reason), reasons[j]);
            }
        }
        Verdict memory padded = Verdict(json.readBytes(".zeroPaddedPasses"), "");
        assertEq(verdicts.hash(padded), json.readBytes32(".zeroPaddedHash"));
    }

    /// @dev The chain reads one fault at a time, so what it cannot see is the order of the faults:
    /// the members refuse that, and on chain a client pays once for a round whatever the order is.
    function test_Verdict_RefusesMalformedFaults() public {
        string memory json = load("verdict");
        VerdictsHarness verdicts = new VerdictsHarness();
        bytes[] memory passes = json.readBytesArray(".malformedPasses");
        bytes[] memory faults = json.readBytesArray(".malformedFaults");
        string[] memory why = json.readStringArray(".malformedWhy");
        for (uint256 i = 0; i < why.length; ++i) {
            bytes32 reason = keccak256(bytes(why[i]));
            bool ordered =
                reason != keccak256("decreasing order") && reason != keccak256("one client twice");
            Verdict memory verdict = Verdict(passes[i], faults[i]);
            try verdicts.faultAt(verdict, 0) returns (uint32 index, Reason) {
                assertTrue(!ordered || verdicts.passed(verdict, index), why[i]);
            } catch {
                assertTrue(ordered, why[i]);
            }
        }
    }

    function test_Statements_HasTheSameDigests() public {
        string memory json = load("statements");
        vm.chainId(json.readUint(".chainId"));
        Jobs jobs = Jobs(json.readAddress(".verifyingContract"));
        bytes memory arguments = abi.encode(IDeposits(address(1)), IBeacon(address(2)), address(3));
        deployTo(address(jobs), bytes.concat(type(Jobs).creationCode, arguments));

        uint256[] memory ids = json.readUintArray(".jobs");
        uint256[] memory rounds = json.readUintArray(".rounds");
        address[] memory clients = json.readAddressArray(".clients");
        for (uint256 i = 0; i < ids.length; ++i) {
            RoundId round = roundOf(JobId.wrap(uint64(ids[i])), uint32(rounds[i]));
            _assertDigest(
                jobs,
                Statements.gradientCommitment(
                    round, clients[i], json.readBytes32Array(".commitments")[i]
                ),
                json.readBytes32Array(".gradientCommitmentDigests")[i]
            );
            _assertDigest(
                jobs,
                Statements.deliveryReceipt(round, clients[i], json.readBoolArray(".audited")[i]),
                json.readBytes32Array(".deliveryReceiptDigests")[i]
            );
            _assertDigest(
                jobs,
                Statements.acquittal(round, clients[i]),
                json.readBytes32Array(".acquittalDigests")[i]
            );
            _assertDigest(
                jobs,
                Statements.roundResult(
                    round,
                    json.readBytes32Array(".verdictHashes")[i],
                    json.readBytes32Array(".aggregateHashes")[i],
                    json.readBytes32Array(".modelHashes")[i]
                ),
                json.readBytes32Array(".roundResultDigests")[i]
            );
        }
    }

    function test_Slashing_SplitsToTheSameWei() public {
        string memory json = load("slashing");
        address treasury = makeAddr("treasury");
        uint256[] memory amounts = json.readUintArray(".amounts");
        uint256[] memory burnBps = json.readUintArray(".burnBps");
        uint256[] memory treasuryBps = json.readUintArray(".treasuryBps");
        uint256[] memory members = json.readUintArray(".members");
        for (uint256 i = 0; i < amounts.length; ++i) {
            Deposits deposits = new Deposits(address(0), address(this));
            address[] memory recipients = new address[](members[i]);
            for (uint256 j = 0; j < members[i]; ++j) {
                recipients[j] = address(uint160(0xbeef00 + j));
            }
            uint256 committeeBps = 10_000 - burnBps[i] - treasuryBps[i];
            Split memory split =
                Split(uint16(burnBps[i]), uint16(treasuryBps[i]), uint16(committeeBps));
            deposits.distribute(JobId.wrap(1), uint96(amounts[i]), split, treasury, recipients);
            assertEq(deposits.burned(), json.readUintArray(".burns")[i]);
            assertEq(deposits.creditOf(treasury), json.readUintArray(".treasuries")[i]);
            assertEq(deposits.creditOf(recipients[0]), json.readUintArray(".eachMember")[i]);
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

    /// @dev The beacon at the address that was signed, with the members' keys; Jobs is a mock.
    function _deployBeacon(string memory json) private returns (Beacon beacon) {
        vm.chainId(json.readUint(".chainId"));
        beacon = Beacon(json.readAddress(".beacon"));
        deployTo(
            address(beacon), bytes.concat(type(Beacon).creationCode, abi.encode(address(this)))
        );
        address[] memory members = json.readAddressArray(".members");
        bytes[] memory keys = json.readBytesArray(".publicKeys");
        bytes[] memory proofs = json.readBytesArray(".possessionProofs");
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(members[i]);
            beacon.registerKey(keys[i], proofs[i]);
        }
    }

    /// @dev Round number `i` of the file, with its commitments closed.
    function _beaconRound(string memory json, Beacon beacon, uint256 i)
        private
        returns (RoundId round)
    {
        uint64 job = uint64(json.readUintArray(".jobs")[i]);
        round = roundOf(JobId.wrap(job), uint32(json.readUintArray(".rounds")[i]));
        bytes28 accumulator = bytes28(json.readBytesArray(".accumulators")[i]);
        Schedule memory schedule;
        schedule.beacon = type(uint32).max;
        bytes memory call = abi.encodeCall(IJobs.accumulator, (round));
        vm.mockCall(address(this), call, abi.encode(accumulator));
        vm.mockCall(address(this), abi.encodeCall(IJobs.schedule, (round)), abi.encode(schedule));
        vm.mockCall(
            address(this), abi.encodeWithSelector(IEnrolment.memberIndex.selector), abi.encode(0)
        );
        address[] memory members = json.readAddressArray(".members");
        beacon.formGroup(JobId.wrap(job), [members[0], members[1], members[2]]);
        assertEq(beacon.groupKeyOf(JobId.wrap(job)), json.readBytes(".aggregatePublicKey"));
    }

    function _assertAccumulator(CommitLedger ledger, bytes memory expected) private pure {
        assertEq(abi.encodePacked(ledger.accumulator()), expected);
    }

    function _assertDigest(Jobs jobs, bytes32 structHash, bytes32 expected) private view {
        assertEq(jobs.statementDigest(structHash), expected);
    }

    function _doubleHash(bytes memory content) private pure returns (bytes32) {
        return keccak256(bytes.concat(keccak256(content)));
    }
}

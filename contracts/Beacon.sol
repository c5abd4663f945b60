// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";
import {IJobs} from "./interfaces/IJobs.sol";
import {IRounds} from "./interfaces/IRounds.sol";
import {BLS12381} from "./libraries/BLS12381.sol";
import {Sampling} from "./libraries/Sampling.sol";
import {COMMITTEE_SIZE, JobId, RoundId} from "./Types.sol";

/// @title Beacon
/// @dev `IBeacon` says what everything means.
contract Beacon is IBeacon {
    using BLS12381 for BLS12381.PackedG2;

    bytes32 private constant MESSAGE_TAG = keccak256("opfl.v2.beacon");
    bytes32 private constant POSSESSION_TAG = keccak256("opfl.v2.proof-of-possession");

    /// @dev The proof-of-possession ciphersuite of the IETF BLS signature draft.
    bytes private constant SIGNATURE_DOMAIN = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
    bytes private constant POSSESSION_DOMAIN = "BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

    /// @notice Forms groups when seats change.
    IJobs public immutable JOBS;

    /// @notice The rounds that beacons belong to.
    IRounds public immutable ROUNDS;

    /// @dev Signatures that were published one by one.
    struct Partials {
        uint256 count;
        mapping(address => bool) published;
        bytes sum;
    }

    mapping(address => BLS12381.PackedG2) private _keys;
    mapping(JobId => mapping(uint8 => BLS12381.PackedG2)) private _groupKeys;
    mapping(RoundId => bytes32) private _seeds;
    mapping(RoundId => Partials) private _partials;

    constructor(IJobs jobs, IRounds rounds) {
        JOBS = jobs;
        ROUNDS = rounds;
    }

    /// @inheritdoc IBeacon
    function registerKey(bytes calldata publicKey, bytes calldata proof) external {
        if (keyOf(msg.sender).length != 0) revert KeyAlreadyRegistered(msg.sender);
        bytes memory claim = possessionMessage(msg.sender, publicKey);
        if (!BLS12381.verify(proof, claim, POSSESSION_DOMAIN, publicKey)) {
            revert BadProofOfPossession(msg.sender);
        }
        _keys[msg.sender].store(publicKey);
        emit KeyRegistered(msg.sender, publicKey);
    }

    /// @inheritdoc IBeacon
    function formGroup(JobId job, uint8 epoch, address[COMMITTEE_SIZE] calldata members) external {
        bool authorised = msg.sender == address(JOBS) || msg.sender == address(ROUNDS);
        if (!authorised) revert NotAuthorised(msg.sender);
        bytes memory sum = _keyOf(members[0]);
        for (uint256 i = 1; i < COMMITTEE_SIZE; ++i) {
            sum = BLS12381.addG2(sum, _keyOf(members[i]));
        }
        _groupKeys[job][epoch].store(sum);
        emit GroupFormed(job, epoch, sum);
    }

    /// @inheritdoc IBeacon
    function publish(RoundId round, bytes calldata signature) external {
        (bytes memory signed, uint8 epoch) = _requireOpen(round);
        _requireSigned(round, signature, signed, groupKeyOf(round.job(), epoch));
        _settle(round, signature);
    }

    /// @inheritdoc IBeacon
    function publishPartial(RoundId round, address member, bytes calldata signature) external {
        (bytes memory signed,) = _requireOpen(round);
        ROUNDS.seatOf(round, member);
        Partials storage partials = _partials[round];
        if (partials.published[member]) revert PartialAlreadyPublished(round, member);
        _requireSigned(round, signature, signed, keyOf(member));

        partials.published[member] = true;
        partials.count += 1;
        bytes memory sum = partials.count == 1 ? signature : BLS12381.addG1(partials.sum, signature);
        partials.sum = sum;
        emit PartialPublished(round, member, signature);

        // The sum of valid signatures is the aggregate: there is nothing left to verify.
        if (partials.count == COMMITTEE_SIZE) _settle(round, sum);
    }

    /// @inheritdoc IBeacon
    function isAudited(RoundId round, address client) external view returns (bool) {
        bytes32 seed = _seeds[round];
        if (seed != 0) return Sampling.selects(seed, client, JOBS.auditRate(round.job()));
        if (_isOverdue(round)) return true;
        revert BeaconPending(round);
    }

    /// @inheritdoc IBeacon
    function isSettled(RoundId round) external view returns (bool) {
        return _seeds[round] != 0 || _isOverdue(round);
    }

    /// @inheritdoc IBeacon
    function hasWithheld(RoundId round, address member) external view returns (bool) {
        ROUNDS.seatOf(round, member);
        return _seeds[round] == 0 && _isOverdue(round) && !_partials[round].published[member];
    }

    /// @inheritdoc IBeacon
    function seedOf(RoundId round) external view returns (bytes32) {
        return _seeds[round];
    }

    /// @inheritdoc IBeacon
    function keyOf(address member) public view returns (bytes memory) {
        return _keys[member].load();
    }

    /// @inheritdoc IBeacon
    function groupKeyOf(JobId job, uint8 epoch) public view returns (bytes memory) {
        return _groupKeys[job][epoch].load();
    }

    /// @inheritdoc IBeacon
    function message(RoundId round) external view returns (bytes memory) {
        (bytes32 opening, bytes32 root) = ROUNDS.rollOf(round);
        return _message(round, opening, root);
    }

    /// @inheritdoc IBeacon
    function possessionMessage(address member, bytes calldata publicKey)
        public
        view
        returns (bytes memory)
    {
        return abi.encode(POSSESSION_TAG, block.chainid, address(this), member, publicKey);
    }

    function _settle(RoundId round, bytes memory signature) private {
        bytes32 seed = Sampling.seedOf(signature);
        _seeds[round] = seed;
        emit BeaconPublished(round, seed, signature);
    }

    function _keyOf(address member) private view returns (bytes memory key) {
        key = keyOf(member);
        if (key.length == 0) revert KeyMissing(member);
    }

    /// @dev Without a roll there is nothing to sign.
    function _isOverdue(RoundId round) private view returns (bool) {
        (, bytes32 root,, uint32 deadline) = ROUNDS.beaconTermsOf(round);
        return root != 0 && block.number > deadline;
    }

    /// @dev Message to be signed, and the epoch of the committee that signs it.
    function _requireOpen(RoundId round) private view returns (bytes memory signed, uint8) {
        if (_seeds[round] != 0) revert BeaconAlreadyPublished(round);
        (bytes32 opening, bytes32 root, uint8 epoch, uint32 deadline) = ROUNDS.beaconTermsOf(round);
        if (root == 0 || block.number > deadline) revert NotInBeaconPhase(round, block.number);
        return (_message(round, opening, root), epoch);
    }

    function _message(RoundId round, bytes32 opening, bytes32 root)
        private
        view
        returns (bytes memory)
    {
        return abi.encode(
            MESSAGE_TAG, block.chainid, address(this), round.job(), round.number(), opening, root
        );
    }

    function _requireSigned(
        RoundId round,
        bytes calldata signature,
        bytes memory signed,
        bytes memory publicKey
    ) private view {
        if (!BLS12381.verify(signature, signed, SIGNATURE_DOMAIN, publicKey)) {
            revert BadSignature(round);
        }
    }
}

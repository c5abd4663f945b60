// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {COMMITTEE_SIZE, JobId, RoundId} from "../Types.sol";

/// @title Beacon: the randomness that picks who is audited
/// @notice The beacon of a round is the members' aggregate BLS signature over the round's roll. A
/// signature is unique, so nobody can grind it, and it does not exist before the roll is closed. A member can only withhold its part: then everyone is audited, and the
/// member pays.
interface IBeacon {
    /// @notice `member` registered its key, in EIP-2537 encoding.
    event KeyRegistered(address indexed member, bytes publicKey);

    /// @notice The keys of a job's committee were added up.
    event GroupFormed(JobId indexed job, uint8 indexed epoch, bytes groupKey);

    /// @notice One member's signature was published, because the aggregate is late.
    event PartialPublished(RoundId indexed round, address indexed member, bytes signature);

    /// @notice The randomness of the round is known.
    event BeaconPublished(RoundId indexed round, bytes32 seed, bytes signature);

    /// @notice Only the Jobs and the Rounds contract may call this.
    error NotAuthorised(address caller);

    /// @notice A member's key is fixed once it is registered.
    error KeyAlreadyRegistered(address member);

    /// @notice The member has not registered a key.
    error KeyMissing(address member);

    /// @notice The proof of possession is not the key's signature over the registration.
    error BadProofOfPossession(address member);

    /// @notice The signature is not that of the committee, or of the member, over this round.
    error BadSignature(RoundId round);

    /// @notice Beacons are published once the roll is on chain, until the beacon deadline.
    error NotInBeaconPhase(RoundId round, uint256 currentBlock);

    /// @notice A published beacon is never replaced.
    error BeaconAlreadyPublished(RoundId round);

    /// @notice The member's partial signature is published already.
    error PartialAlreadyPublished(RoundId round, address member);

    /// @notice The audited clients are not known yet.
    error BeaconPending(RoundId round);

    /// @notice Registers the caller's BLS key.
    /// @param publicKey A point of G2.
    /// @param proof The key's signature over `possessionMessage`, a point of G1.
    function registerKey(bytes calldata publicKey, bytes calldata proof) external;

    /// @notice Adds up the keys of a committee. Only Rounds, before the first
    /// round, and Jobs, when a seat changes.
    function formGroup(JobId job, uint8 epoch, address[COMMITTEE_SIZE] calldata members) external;

    /// @notice Publishes the aggregate of all members' signatures over `message`.
    function publish(RoundId round, bytes calldata signature) external;

    /// @notice Publishes one member's signature, so that it is known who is missing. The last
    /// missing one publishes the beacon.
    function publishPartial(RoundId round, address member, bytes calldata signature) external;

    /// @notice True if the client is selected for audit in the round.
    /// @dev Everyone is, if the beacon was not published in time.
    function isAudited(RoundId round, address client) external view returns (bool);

    /// @notice True if it is known who is audited.
    function isSettled(RoundId round) external view returns (bool);

    /// @notice True if the beacon failed and this member's signature is missing.
    function hasWithheld(RoundId round, address member) external view returns (bool);

    /// @notice The seed of a round; zero if it was never published.
    function seedOf(RoundId round) external view returns (bytes32);

    /// @notice A member's key; empty before registration.
    function keyOf(address member) external view returns (bytes memory);

    /// @notice The sum of a committee's keys after so many seat changes; empty before it is formed.
    function groupKeyOf(JobId job, uint8 epoch) external view returns (bytes memory);

    /// @notice Message that the members of a job sign for a round.
    function message(RoundId round) external view returns (bytes memory);

    /// @notice Message that a member signs with its key to register it.
    function possessionMessage(address member, bytes calldata publicKey)
        external
        view
        returns (bytes memory);
}

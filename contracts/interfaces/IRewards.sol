// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobId, RoundId} from "../Types.sol";

/// @title Rewards: what work earns
/// @notice Every accepted contribution and every seat that attested what was decided earns the pay
/// of the terms, whatever the verdict was. The decided verdict is the proof.
interface IRewards {
    /// @notice An account was paid for its work in a round.
    event Claimed(RoundId indexed round, address indexed account, uint96 amount);

    /// @notice The creator got back what nobody can earn any more.
    event Refunded(JobId indexed job, address indexed creator, uint256 amount);

    /// @notice The round has no such verdict.
    error WrongVerdict(bytes32 given, bytes32 decided);

    /// @notice The account earned nothing in the round.
    error NothingEarned(RoundId round, address account);

    /// @notice The account was paid for this round.
    error AlreadyClaimed(RoundId round, address account);

    /// @notice As many verdicts as rounds must be given.
    error LengthMismatch(uint256 rounds, uint256 verdicts);

    /// @notice The rounds of one claim belong to one job.
    error AnotherJob(RoundId round, JobId job);

    /// @notice The rest is known when the job is closed and nobody can attest any more.
    error JobNotOver(JobId job);

    /// @notice There is nothing left.
    error NothingLeft(JobId job);

    /// @notice Pays a client for rounds of a job in which its contribution was accepted, at least one.
    /// Anyone may.
    /// @param passes The decided verdict of each round.
    function claimContributions(address client, RoundId[] calldata rounds, bytes[] calldata passes)
        external;

    /// @notice Pays a member for rounds of a job in which it attested what was decided, at least one.
    /// Anyone may.
    function claimService(address member, RoundId[] calldata rounds) external;

    /// @notice Gives the creator what is left of the budget, once. Anyone may.
    function refund(JobId job) external;

    /// @notice Total paid for the work of a job so far.
    function paid(JobId job) external view returns (uint256);
}

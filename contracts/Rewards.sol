// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Beacon} from "./Beacon.sol";
import {Charges} from "./Charges.sol";
import {Deposits} from "./Deposits.sol";
import {ICharges} from "./interfaces/ICharges.sol";
import {IRewards} from "./interfaces/IRewards.sol";
import {Jobs} from "./Jobs.sol";
import {Verdicts} from "./libraries/Verdicts.sol";
import {Rounds} from "./Rounds.sol";
import {JobId, Progress, Role, RoundId, roundOf} from "./Types.sol";

/// @title Rewards
/// @dev `IRewards` says what everything means.
contract Rewards is IRewards {
    /// @notice Where the budgets are.
    Deposits public immutable DEPOSITS;

    /// @notice Participants and terms of jobs.
    Jobs public immutable JOBS;

    /// @notice Where the verdicts are.
    Rounds public immutable ROUNDS;

    uint256 private constant ROUNDS_PER_SLOT = 128;

    /// @dev An account's claims for 128 rounds, in one slot with what they need of Jobs, where it
    /// never changes: a claim that is not the first of its slot does not ask there.
    struct Claims {
        /// bit n: paid for round number n of these
        uint128 paid;
        uint96 pay;
        /// the client's bit in verdicts
        uint32 index;
    }

    mapping(JobId => mapping(Role => mapping(address => mapping(uint256 => Claims)))) private
        _claims;

    mapping(JobId => bool) private _refunded;

    /// @dev Deployed last: the others were given each other's addresses, and it checks that all agree.
    constructor(Deposits deposits, Jobs jobs, Rounds rounds, Beacon beacon, Charges charges) {
        DEPOSITS = deposits;
        JOBS = jobs;
        ROUNDS = rounds;
        bool wired = deposits.JOBS() == address(jobs) && deposits.CHARGES() == address(charges)
            && deposits.REWARDS() == address(this) && address(jobs.DEPOSITS()) == address(deposits)
            && address(jobs.BEACON()) == address(beacon)
            && address(jobs.ROUNDS()) == address(rounds) && jobs.CHARGES() == address(charges)
            && address(rounds.JOBS()) == address(jobs)
            && address(rounds.BEACON()) == address(beacon)
            && address(beacon.JOBS()) == address(jobs)
            && address(beacon.ROUNDS()) == address(rounds)
            && address(charges.DEPOSITS()) == address(deposits)
            && address(charges.JOBS()) == address(jobs)
            && address(charges.ROUNDS()) == address(rounds)
            && address(charges.BEACON()) == address(beacon);
        if (!wired) revert ICharges.Miswired();
    }

    /// @inheritdoc IRewards
    function claimContributions(address client, RoundId[] calldata rounds, bytes[] calldata passes)
        external
    {
        if (rounds.length != passes.length) revert LengthMismatch(rounds.length, passes.length);
        JobId job = rounds[0].job();
        uint256 amount;
        for (uint256 i = 0; i < rounds.length; ++i) {
            RoundId id = rounds[i];
            Claims storage claims = _claims[job][Role.Client][client][id.number() / ROUNDS_PER_SLOT];
            if (claims.paid == 0) {
                claims.index = JOBS.indexOf(job, client);
                claims.pay = JOBS.pay(job).client;
            }
            bytes32 decided = ROUNDS.verdictHashOf(id);
            bytes32 given = keccak256(passes[i]);
            if (decided == 0 || given != decided) revert WrongVerdict(given, decided);
            if (!Verdicts.passed(passes[i], claims.index)) revert NothingEarned(id, client);
            amount += _note(claims, job, id, client);
        }
        DEPOSITS.pay(job, client, amount);
    }

    /// @inheritdoc IRewards
    function claimService(address member, RoundId[] calldata rounds) external {
        JobId job = rounds[0].job();
        uint256 amount;
        for (uint256 i = 0; i < rounds.length; ++i) {
            RoundId id = rounds[i];
            Claims storage claims = _claims[job][Role.Member][member][id.number() / ROUNDS_PER_SLOT];
            if (claims.paid == 0) claims.pay = JOBS.pay(job).member;
            bool agreed = (ROUNDS.majorityOf(id) >> ROUNDS.seatOf(id, member)) & 1 == 1;
            if (!agreed) revert NothingEarned(id, member);
            amount += _note(claims, job, id, member);
        }
        DEPOSITS.pay(job, member, amount);
    }

    /// @inheritdoc IRewards
    function refund(JobId job) external {
        if (!_isOver(job) && !JOBS.isStillborn(job)) revert JobNotOver(job);
        // What was earned and not claimed stays.
        uint256 amount = _unearned(job);
        if (amount == 0 || _refunded[job]) revert NothingLeft(job);
        _refunded[job] = true;
        address creator = JOBS.creatorOf(job);
        emit Refunded(job, creator, amount);
        DEPOSITS.pay(job, creator, amount);
    }

    /// @inheritdoc IRewards
    function paid(JobId job) external view returns (uint256) {
        uint256 gone = DEPOSITS.fundedOf(job) - DEPOSITS.budgetOf(job);
        return _refunded[job] ? gone - _unearned(job) : gone;
    }

    /// @dev Notes that the account is paid for a round, and returns how much.
    function _note(Claims storage claims, JobId job, RoundId id, address account)
        private
        returns (uint96 amount)
    {
        if (JobId.unwrap(id.job()) != JobId.unwrap(job)) revert AnotherJob(id, job);
        uint128 bit = uint128(1 << (id.number() % ROUNDS_PER_SLOT));
        if (claims.paid & bit != 0) revert AlreadyClaimed(id, account);
        claims.paid |= bit;
        amount = claims.pay;
        emit Claimed(id, account, amount);
    }

    function _unearned(JobId job) private view returns (uint256) {
        return DEPOSITS.fundedOf(job) - ROUNDS.progress(job).earned;
    }

    /// @dev The third member of the last round may attest after it was finalised, and earn.
    function _isOver(JobId job) private view returns (bool) {
        Progress memory state = ROUNDS.progress(job);
        if (!state.closed) return false;
        return block.number > ROUNDS.schedule(roundOf(job, state.nextRound - 1)).attest;
    }
}

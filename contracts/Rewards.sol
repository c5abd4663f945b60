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
import {JobId, RoundId} from "./Types.sol";

/// @title Rewards
/// @dev `IRewards` says what everything means.
contract Rewards is IRewards {
    /// @notice Where the budgets are.
    Deposits public immutable DEPOSITS;

    /// @notice Who takes part, and on which terms.
    Jobs public immutable JOBS;

    /// @notice Where the verdicts are.
    Rounds public immutable ROUNDS;

    /// @inheritdoc IRewards
    mapping(JobId => uint256) public paid;

    /// @dev Of a round, a bit for each client index.
    mapping(RoundId => mapping(uint256 => uint256)) private _claimedByClients;

    /// @dev Of a round, a bit for each seat.
    mapping(RoundId => uint8) private _claimedBySeats;

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
        for (uint256 i = 0; i < rounds.length; ++i) {
            RoundId id = rounds[i];
            bytes32 decided = ROUNDS.round(id).verdictHash;
            bytes32 given = keccak256(passes[i]);
            if (decided == 0 || given != decided) revert WrongVerdict(given, decided);
            JobId job = id.job();
            uint32 index = JOBS.client(job, client).index;
            if (!Verdicts.passed(passes[i], index)) revert NothingEarned(id, client);
            uint256 bit = 1 << (index & 0xff);
            uint256 claimed = _claimedByClients[id][index >> 8];
            if (claimed & bit != 0) revert AlreadyClaimed(id, client);
            _claimedByClients[id][index >> 8] = claimed | bit;
            _pay(id, client, JOBS.pay(job).client);
        }
    }

    /// @inheritdoc IRewards
    function claimService(address member, RoundId[] calldata rounds) external {
        for (uint256 i = 0; i < rounds.length; ++i) {
            RoundId id = rounds[i];
            uint8 bit = uint8(1 << ROUNDS.seatOf(id, member));
            if (ROUNDS.round(id).majority & bit == 0) revert NothingEarned(id, member);
            if (_claimedBySeats[id] & bit != 0) revert AlreadyClaimed(id, member);
            _claimedBySeats[id] |= bit;
            _pay(id, member, JOBS.pay(id.job()).member);
        }
    }

    /// @inheritdoc IRewards
    function refund(JobId job) external {
        if (!ROUNDS.progress(job).closed && !JOBS.isStillborn(job)) revert JobNotOver(job);
        // What was earned and not claimed stays.
        uint256 amount = DEPOSITS.budgetOf(job) - (ROUNDS.earned(job) - paid[job]);
        if (amount == 0) revert NothingLeft(job);
        address creator = JOBS.creatorOf(job);
        emit Refunded(job, creator, amount);
        DEPOSITS.pay(job, creator, amount);
    }

    function _pay(RoundId id, address account, uint96 amount) private {
        paid[id.job()] += amount;
        emit Claimed(id, account, amount);
        DEPOSITS.pay(id.job(), account, amount);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobId, Role} from "../Types.sol";

/// @title Deposits: all money of the protocol
/// @notice Holds every stake until it is unbonded or taken, and the budget of every job. Money leaves
/// in three ways only: its owner withdraws an unbonded stake, a budget pays for work or goes back to
/// who gave it, or a credit is paid to the account it was booked for. There is no owner and no way to
/// stop a withdrawal.
interface IDeposits {
    /// @dev A stake in one job and role.
    struct Account {
        uint96 balance;
        /// the first block in which it can be withdrawn; zero while it is bonded
        uint32 withdrawableAt;
    }

    /// @notice A stake grew by `amount`, to `balance`.
    event Locked(
        JobId indexed job, Role indexed role, address indexed owner, uint96 amount, uint96 balance
    );

    /// @notice The owner asked for its stake.
    event UnbondingStarted(
        JobId indexed job, Role indexed role, address indexed owner, uint32 withdrawableAt
    );

    /// @notice The owner took its stake.
    event Withdrawn(JobId indexed job, Role indexed role, address indexed owner, uint96 amount);

    /// @notice A part of a stake was set aside.
    event Captured(
        JobId indexed job, Role indexed role, address indexed owner, uint96 amount, uint96 balance
    );

    /// @notice An amount that had been set aside went back to the stake.
    event Released(
        JobId indexed job, Role indexed role, address indexed owner, uint96 amount, uint96 balance
    );

    /// @notice An amount that had been set aside was split.
    event Distributed(JobId indexed job, uint256 burned, uint256 toTreasury, uint256 toMembers);

    /// @notice A job's budget grew by `amount`.
    event Funded(JobId indexed job, uint256 amount);

    /// @notice A job's budget paid `amount`.
    event Paid(JobId indexed job, address indexed recipient, uint256 amount);

    /// @notice `account` can withdraw `amount` more.
    event Credited(address indexed account, uint256 amount);

    /// @notice `account` was paid its credit.
    event CreditWithdrawn(address indexed account, uint256 amount);

    /// @notice Only another contract of the protocol may call this.
    error NotAuthorised(address caller);

    /// @notice The amount does not fit.
    error AmountTooLarge(uint256 amount);

    /// @notice The stake has not been unbonded.
    error NotUnbonding(JobId job, Role role, address owner);

    /// @notice The stake has been unbonded already.
    error AlreadyUnbonding(JobId job, Role role, address owner);

    /// @notice The unbonding delay is not over.
    error StillUnbonding(uint32 withdrawableAt, uint256 currentBlock);

    /// @notice There is nothing to withdraw.
    error NothingToWithdraw(address account);

    /// @notice The recipient refused the money.
    error PaymentRefused(address recipient, uint256 amount);

    /// @notice Adds the value sent to a stake. Only Jobs.
    function lock(JobId job, Role role, address owner) external payable returns (uint96 balance);

    /// @notice Starts the delay after which a stake can be withdrawn. Only Jobs.
    function startUnbonding(JobId job, Role role, address owner, uint32 withdrawableAt) external;

    /// @notice Takes out the caller's stake, once its delay is over.
    function withdraw(JobId job, Role role) external;

    /// @notice Sets aside up to `amount` of a stake. Only Charges.
    /// @return captured Amount that was set aside: `amount`, or the whole balance if that is less.
    /// @return balance Amount that is left.
    function capture(JobId job, Role role, address owner, uint96 amount)
        external
        returns (uint96 captured, uint96 balance);

    /// @notice Puts back what was set aside. Only Charges.
    function release(JobId job, Role role, address owner, uint96 amount)
        external
        returns (uint96 balance);

    /// @notice Splits what was set aside: up to `compensation` to each of `recipients`, in their order;
    /// of the rest, `treasuryShare` basis points to the treasury. What is left is burnt. Only Charges.
    function distribute(
        JobId job,
        uint96 amount,
        address[] calldata recipients,
        uint96 compensation,
        address treasury,
        uint16 treasuryShare
    ) external;

    /// @notice Adds the value sent to the budget of a job. Only Jobs.
    function fund(JobId job) external payable;

    /// @notice Pays from the budget of a job. Only Rewards.
    function pay(JobId job, address recipient, uint256 amount) external;

    /// @notice Total that was ever put into the budget of a job.
    function fundedOf(JobId job) external view returns (uint256);

    /// @notice Rest of the budget of a job.
    function budgetOf(JobId job) external view returns (uint256);

    /// @notice Pays the credit of `account` to `account`. Anyone may call it.
    function withdrawCredit(address account) external;

    /// @notice A stake.
    function account(JobId job, Role role, address owner) external view returns (Account memory);

    /// @notice Credit that `owner` has earned and not withdrawn.
    function creditOf(address owner) external view returns (uint256);

    /// @notice All that was ever burned. It stays in this contract for good.
    function burned() external view returns (uint256);
}

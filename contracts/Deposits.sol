// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IDeposits} from "./interfaces/IDeposits.sol";
import {JobId, Role} from "./Types.sol";

/// @title Deposits
/// @dev `IDeposits` says what everything means.
contract Deposits is IDeposits, ReentrancyGuardTransient {
    uint256 private constant BASIS_POINTS = 10_000;

    /// @notice The contract that locks and unbonds stakes.
    address public immutable JOBS;

    /// @notice The contract that captures, releases and distributes.
    address public immutable CHARGES;

    /// @notice The contract that pays from budgets.
    address public immutable REWARDS;

    mapping(JobId => mapping(Role => mapping(address => Account))) private _accounts;
    mapping(address => uint256) private _credit;

    /// @inheritdoc IDeposits
    mapping(JobId => uint256) public fundedOf;

    /// @inheritdoc IDeposits
    mapping(JobId => uint256) public budgetOf;

    /// @inheritdoc IDeposits
    uint256 public burned;

    modifier only(address authorised) {
        if (msg.sender != authorised) revert NotAuthorised(msg.sender);
        _;
    }

    constructor(address jobs, address charges, address rewards) {
        JOBS = jobs;
        CHARGES = charges;
        REWARDS = rewards;
    }

    /// @inheritdoc IDeposits
    function lock(JobId job, Role role, address owner)
        external
        payable
        only(JOBS)
        returns (uint96 balance)
    {
        Account storage stake = _accounts[job][role][owner];
        if (stake.withdrawableAt != 0) revert AlreadyUnbonding(job, role, owner);
        uint256 total = stake.balance + msg.value;
        if (total > type(uint96).max) revert AmountTooLarge(total);
        balance = uint96(total);
        stake.balance = balance;
        emit Locked(job, role, owner, uint96(msg.value), balance);
    }

    /// @inheritdoc IDeposits
    function startUnbonding(JobId job, Role role, address owner, uint32 withdrawableAt)
        external
        only(JOBS)
    {
        Account storage stake = _accounts[job][role][owner];
        if (stake.withdrawableAt != 0) revert AlreadyUnbonding(job, role, owner);
        stake.withdrawableAt = withdrawableAt;
        emit UnbondingStarted(job, role, owner, withdrawableAt);
    }

    /// @inheritdoc IDeposits
    function withdraw(JobId job, Role role) external nonReentrant {
        Account storage stake = _accounts[job][role][msg.sender];
        uint32 withdrawableAt = stake.withdrawableAt;
        if (withdrawableAt == 0) revert NotUnbonding(job, role, msg.sender);
        if (block.number < withdrawableAt) revert StillUnbonding(withdrawableAt, block.number);
        uint96 amount = stake.balance;
        if (amount == 0) revert NothingToWithdraw(msg.sender);
        stake.balance = 0;
        emit Withdrawn(job, role, msg.sender, amount);
        _pay(msg.sender, amount);
    }

    /// @inheritdoc IDeposits
    function capture(JobId job, Role role, address owner, uint96 amount)
        external
        only(CHARGES)
        returns (uint96 captured, uint96 balance)
    {
        Account storage stake = _accounts[job][role][owner];
        captured = amount < stake.balance ? amount : stake.balance;
        balance = stake.balance - captured;
        stake.balance = balance;
        emit Captured(job, role, owner, captured, balance);
    }

    /// @inheritdoc IDeposits
    function release(JobId job, Role role, address owner, uint96 amount)
        external
        only(CHARGES)
        returns (uint96 balance)
    {
        Account storage stake = _accounts[job][role][owner];
        balance = stake.balance + amount;
        stake.balance = balance;
        emit Released(job, role, owner, amount, balance);
    }

    /// @inheritdoc IDeposits
    function distribute(
        JobId job,
        uint96 amount,
        address[] calldata recipients,
        uint96 compensation,
        address treasury,
        uint16 treasuryShare
    ) external only(CHARGES) {
        uint256 rest = amount;
        // At most the members of one committee.
        for (uint256 i = 0; i < recipients.length; ++i) {
            uint256 part = compensation < rest ? compensation : rest;
            rest -= part;
            _addCredit(recipients[i], part);
        }
        uint256 toTreasury = rest * treasuryShare / BASIS_POINTS;
        burned += rest - toTreasury;
        _addCredit(treasury, toTreasury);
        emit Distributed(job, rest - toTreasury, toTreasury, amount - rest);
    }

    /// @inheritdoc IDeposits
    function fund(JobId job) external payable only(JOBS) {
        fundedOf[job] += msg.value;
        budgetOf[job] += msg.value;
        emit Funded(job, msg.value);
    }

    /// @inheritdoc IDeposits
    function pay(JobId job, address recipient, uint256 amount) external only(REWARDS) nonReentrant {
        budgetOf[job] -= amount;
        emit Paid(job, recipient, amount);
        _pay(recipient, amount);
    }

    /// @inheritdoc IDeposits
    function withdrawCredit(address recipient) external nonReentrant {
        uint256 amount = _credit[recipient];
        if (amount == 0) revert NothingToWithdraw(recipient);
        _credit[recipient] = 0;
        emit CreditWithdrawn(recipient, amount);
        _pay(recipient, amount);
    }

    /// @inheritdoc IDeposits
    function account(JobId job, Role role, address owner) external view returns (Account memory) {
        return _accounts[job][role][owner];
    }

    /// @inheritdoc IDeposits
    function creditOf(address owner) external view returns (uint256) {
        return _credit[owner];
    }

    function _addCredit(address recipient, uint256 amount) private {
        if (amount == 0) return;
        _credit[recipient] += amount;
        emit Credited(recipient, amount);
    }

    function _pay(address recipient, uint256 amount) private {
        (bool paid,) = recipient.call{value: amount}("");
        if (!paid) revert PaymentRefused(recipient, amount);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdError} from "forge-std/StdError.sol";
import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";

import {Deposits} from "contracts/Deposits.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {JobId, Role} from "contracts/Types.sol";

contract DepositsTest is Test {
    JobId internal constant JOB = JobId.wrap(7);
    JobId internal constant OTHER_JOB = JobId.wrap(8);

    address internal jobs = makeAddr("jobs");
    address internal charges = makeAddr("charges");
    address internal owner = makeAddr("owner");
    address internal treasury = makeAddr("treasury");
    address internal stranger = makeAddr("stranger");
    address internal rewards = makeAddr("rewards");
    Deposits internal deposits = new Deposits(jobs, charges, rewards);

    function setUp() public {
        vm.deal(jobs, type(uint128).max);
        vm.roll(100);
    }

    // ---- lock ----

    function test_Lock_WhenCallerIsNotJobs_Reverts() public {
        hoax(charges, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, charges));
        deposits.lock{value: 1}(JOB, Role.Client, owner);
    }

    function test_Lock_WhenStakeIsUnbonding_Reverts() public {
        _lock(JOB, Role.Client, 1 ether);
        _unbond(110);
        vm.prank(jobs);
        vm.expectRevert(
            abi.encodeWithSelector(IDeposits.AlreadyUnbonding.selector, JOB, Role.Client, owner)
        );
        deposits.lock{value: 1}(JOB, Role.Client, owner);
    }

    function test_Lock_WhenTotalExceeds96Bits_Reverts() public {
        _lock(JOB, Role.Client, type(uint96).max);
        vm.prank(jobs);
        vm.expectRevert(
            abi.encodeWithSelector(IDeposits.AmountTooLarge.selector, uint256(type(uint96).max) + 1)
        );
        deposits.lock{value: 1}(JOB, Role.Client, owner);
    }

    function test_Lock_WhenCalledByJobs_GrowsTheStake() public {
        _lock(JOB, Role.Client, 3);
        vm.expectEmit(address(deposits));
        emit IDeposits.Locked(JOB, Role.Client, owner, 4, 7);
        vm.prank(jobs);
        assertEq(deposits.lock{value: 4}(JOB, Role.Client, owner), 7);
        assertEq(_balance(), 7);
        assertEq(address(deposits).balance, 7);
    }

    function test_Lock_WhenJobOrRoleDiffers_KeepsStakesApart() public {
        _lock(JOB, Role.Client, 1);
        _lock(JOB, Role.Member, 2);
        _lock(OTHER_JOB, Role.Client, 4);
        assertEq(deposits.account(JOB, Role.Client, owner).balance, 1);
        assertEq(deposits.account(JOB, Role.Member, owner).balance, 2);
        assertEq(deposits.account(OTHER_JOB, Role.Client, owner).balance, 4);
        assertEq(deposits.account(OTHER_JOB, Role.Member, owner).balance, 0);
    }

    // ---- startUnbonding ----

    function test_StartUnbonding_WhenCallerIsNotJobs_Reverts() public {
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, owner));
        deposits.startUnbonding(JOB, Role.Client, owner, 110);
    }

    function test_StartUnbonding_WhenStakeIsUnbonding_Reverts() public {
        _lock(JOB, Role.Client, 1);
        _unbond(110);
        vm.prank(jobs);
        vm.expectRevert(
            abi.encodeWithSelector(IDeposits.AlreadyUnbonding.selector, JOB, Role.Client, owner)
        );
        deposits.startUnbonding(JOB, Role.Client, owner, 101);
    }

    function test_StartUnbonding_WhenCalledByJobs_StartsTheDelay() public {
        _lock(JOB, Role.Client, 1);
        vm.expectEmit(address(deposits));
        emit IDeposits.UnbondingStarted(JOB, Role.Client, owner, 110);
        _unbond(110);
        assertEq(deposits.account(JOB, Role.Client, owner).withdrawableAt, 110);
    }

    // ---- withdraw ----

    function test_Withdraw_WhenStakeIsBonded_Reverts() public {
        _lock(JOB, Role.Client, 1);
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(IDeposits.NotUnbonding.selector, JOB, Role.Client, owner)
        );
        deposits.withdraw(JOB, Role.Client);
    }

    function test_Withdraw_WhenOneBlockEarly_Reverts() public {
        _lock(JOB, Role.Client, 1);
        _unbond(110);
        vm.roll(109);
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.StillUnbonding.selector, 110, 109));
        deposits.withdraw(JOB, Role.Client);
    }

    function test_Withdraw_WhenDelayIsOver_PaysTheOwner() public {
        _lock(JOB, Role.Client, 5);
        _lock(JOB, Role.Member, 2);
        _unbond(110);
        vm.roll(110);
        vm.expectEmit(address(deposits));
        emit IDeposits.Withdrawn(JOB, Role.Client, owner, 5);
        vm.prank(owner);
        deposits.withdraw(JOB, Role.Client);
        assertEq(owner.balance, 5);
        assertEq(_balance(), 0);
        assertEq(address(deposits).balance, 2);
    }

    function test_Withdraw_WhenWithdrawnAlready_Reverts() public {
        _lock(JOB, Role.Client, 5);
        _unbond(110);
        vm.roll(110);
        vm.startPrank(owner);
        deposits.withdraw(JOB, Role.Client);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NothingToWithdraw.selector, owner));
        deposits.withdraw(JOB, Role.Client);
    }

    function test_Withdraw_WhenReleasedAfterWithdrawal_PaysTheRest() public {
        _lock(JOB, Role.Client, 5);
        _unbond(110);
        _capture(2);
        vm.roll(110);
        vm.prank(owner);
        deposits.withdraw(JOB, Role.Client);
        vm.prank(charges);
        deposits.release(JOB, Role.Client, owner, 2);
        vm.prank(owner);
        deposits.withdraw(JOB, Role.Client);
        assertEq(owner.balance, 5);
    }

    // ---- capture ----

    function test_Capture_WhenCallerIsNotCharges_Reverts() public {
        vm.prank(jobs);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, jobs));
        deposits.capture(JOB, Role.Client, owner, 1);
    }

    function test_Capture_WhenStakeCoversTheAmount_SetsTheAmountAside() public {
        _lock(JOB, Role.Client, 5);
        vm.expectEmit(address(deposits));
        emit IDeposits.Captured(JOB, Role.Client, owner, 3, 2);
        (uint96 captured, uint96 balance) = _capture(3);
        assertEq(captured, 3);
        assertEq(balance, 2);
        assertEq(_balance(), 2);
    }

    function test_Capture_WhenStakeIsSmaller_SetsTheWholeStakeAside() public {
        _lock(JOB, Role.Client, 5);
        vm.expectEmit(address(deposits));
        emit IDeposits.Captured(JOB, Role.Client, owner, 5, 0);
        (uint96 captured, uint96 balance) = _capture(6);
        assertEq(captured, 5);
        assertEq(balance, 0);
        assertEq(_balance(), 0);
    }

    function testFuzz_Capture_NeverTakesMoreThanTheStake(uint96 stake, uint96 amount) public {
        _lock(JOB, Role.Client, stake);
        (uint96 captured, uint96 balance) = _capture(amount);
        assertEq(captured, amount < stake ? amount : stake);
        assertEq(uint256(captured) + balance, stake);
        assertEq(_balance(), balance);
    }

    // ---- release ----

    function test_Release_WhenCallerIsNotCharges_Reverts() public {
        vm.prank(jobs);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, jobs));
        deposits.release(JOB, Role.Client, owner, 1);
    }

    function test_Release_WhenCalledByCharges_RestoresTheStake() public {
        _lock(JOB, Role.Client, 5);
        _capture(3);
        vm.expectEmit(address(deposits));
        emit IDeposits.Released(JOB, Role.Client, owner, 3, 5);
        vm.prank(charges);
        assertEq(deposits.release(JOB, Role.Client, owner, 3), 5);
        assertEq(_balance(), 5);
    }

    // ---- distribute ----

    function test_Distribute_WhenCallerIsNotCharges_Reverts() public {
        vm.prank(jobs);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, jobs));
        deposits.distribute(JOB, 1, _recipients(2), 0, treasury, 0);
    }

    function test_Distribute_WhenNobodyIsCompensated_SplitsBetweenTreasuryAndBurn() public {
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(treasury, 200);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(JOB, 801, 200, 0);
        _distribute(1001, _recipients(0), 7, 2000);
        assertEq(deposits.burned(), 801);
        assertEq(deposits.creditOf(treasury), 200);
    }

    function test_Distribute_WhenAmountCoversCompensation_PaysItFirst() public {
        address[] memory recipients = _recipients(2);
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(recipients[0], 150);
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(recipients[1], 150);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(JOB, 350, 350, 300);
        _distribute(1000, recipients, 150, 5000);
        assertEq(deposits.creditOf(recipients[1]), 150);
    }

    function test_Distribute_WhenAmountIsTooSmall_PaysInOrder() public {
        address[] memory recipients = _recipients(3);
        _distribute(250, recipients, 150, 5000);
        assertEq(deposits.creditOf(recipients[0]), 150);
        assertEq(deposits.creditOf(recipients[1]), 100);
        assertEq(deposits.creditOf(recipients[2]), 0);
        assertEq(deposits.burned(), 0);
    }

    function test_Distribute_WhenAPartIsZero_EmitsNoCreditOfZero() public {
        vm.recordLogs();
        _distribute(1000, _recipients(3), 0, 0);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 1);
        assertEq(logs[0].topics[0], IDeposits.Distributed.selector);
    }

    function testFuzz_Distribute_ConservesTheAmount(
        uint96 amount,
        uint96 compensation,
        uint16 share,
        uint8 count
    ) public {
        share = uint16(bound(share, 0, 10_000));
        address[] memory recipients = _recipients(bound(count, 0, 3));
        _distribute(amount, recipients, compensation, share);

        uint256 paid;
        for (uint256 i = 0; i < recipients.length; ++i) {
            assertLe(deposits.creditOf(recipients[i]), compensation);
            paid += deposits.creditOf(recipients[i]);
        }
        assertEq(paid + deposits.burned() + deposits.creditOf(treasury), amount);
        assertEq(deposits.creditOf(treasury), (amount - paid) * share / 10_000);
        if (paid < recipients.length * uint256(compensation)) assertEq(paid, amount);
    }

    // ---- fund, pay ----

    function test_Fund_WhenCallerIsNotJobs_Reverts() public {
        hoax(rewards, 1);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, rewards));
        deposits.fund{value: 1}(JOB);
    }

    function test_Fund_WhenCalledByJobs_GrowsTheBudget() public {
        vm.expectEmit(address(deposits));
        emit IDeposits.Funded(JOB, 10);
        _fund(JOB, 10);
        assertEq(deposits.budgetOf(JOB), 10);
        assertEq(deposits.fundedOf(JOB), 10);
    }

    function test_Pay_WhenCallerIsNotRewards_Reverts() public {
        _fund(JOB, 10);
        vm.prank(charges);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, charges));
        deposits.pay(JOB, owner, 1);
    }

    function test_Pay_WhenBudgetIsTooSmall_Reverts() public {
        _fund(JOB, 10);
        _fund(OTHER_JOB, 10);
        vm.prank(rewards);
        vm.expectRevert(stdError.arithmeticError);
        deposits.pay(JOB, owner, 11);
    }

    function test_Pay_WhenCalledByRewards_PaysTheRecipient() public {
        _fund(JOB, 10);
        vm.expectEmit(address(deposits));
        emit IDeposits.Paid(JOB, owner, 4);
        vm.prank(rewards);
        deposits.pay(JOB, owner, 4);
        assertEq(owner.balance, 4);
        assertEq(deposits.budgetOf(JOB), 6);
        assertEq(deposits.fundedOf(JOB), 10);
    }

    // ---- withdrawCredit ----

    function test_WithdrawCredit_WhenNothingIsCredited_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NothingToWithdraw.selector, treasury));
        deposits.withdrawCredit(treasury);
    }

    function test_WithdrawCredit_WhenCalledByAStranger_PaysTheCreditor() public {
        _lock(JOB, Role.Client, 10);
        _distribute(10, _recipients(0), 0, 10_000);
        vm.expectEmit(address(deposits));
        emit IDeposits.CreditWithdrawn(treasury, 10);
        vm.prank(stranger);
        deposits.withdrawCredit(treasury);
        assertEq(treasury.balance, 10);
        assertEq(stranger.balance, 0);
        assertEq(deposits.creditOf(treasury), 0);
    }

    function test_WithdrawCredit_WhenWithdrawnAlready_Reverts() public {
        _lock(JOB, Role.Client, 10);
        _distribute(10, _recipients(0), 0, 10_000);
        deposits.withdrawCredit(treasury);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NothingToWithdraw.selector, treasury));
        deposits.withdrawCredit(treasury);
    }

    // ---- steps ----

    function _lock(JobId job, Role role, uint96 amount) private {
        vm.prank(jobs);
        deposits.lock{value: amount}(job, role, owner);
    }

    function _unbond(uint32 withdrawableAt) private {
        vm.prank(jobs);
        deposits.startUnbonding(JOB, Role.Client, owner, withdrawableAt);
    }

    function _capture(uint96 amount) private returns (uint96 captured, uint96 balance) {
        vm.prank(charges);
        return deposits.capture(JOB, Role.Client, owner, amount);
    }

    function _distribute(
        uint96 amount,
        address[] memory recipients,
        uint96 compensation,
        uint16 share
    ) private {
        vm.prank(charges);
        deposits.distribute(JOB, amount, recipients, compensation, treasury, share);
    }

    function _fund(JobId job, uint256 amount) private {
        vm.prank(jobs);
        deposits.fund{value: amount}(job);
    }

    function _recipients(uint256 count) private pure returns (address[] memory recipients) {
        recipients = new address[](count);
        for (uint256 i = 0; i < count; ++i) {
            recipients[i] = address(uint160(0xbeef00 + i));
        }
    }

    function _balance() private view returns (uint96) {
        return deposits.account(JOB, Role.Client, owner).balance;
    }
}

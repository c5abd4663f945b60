// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";

import {Deposits} from "contracts/Deposits.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {JobId, Role, Split} from "contracts/Types.sol";

contract DepositsTest is Test {
    JobId internal constant JOB = JobId.wrap(7);
    JobId internal constant OTHER_JOB = JobId.wrap(8);

    address internal jobs = makeAddr("jobs");
    address internal slashing = makeAddr("slashing");
    address internal owner = makeAddr("owner");
    address internal treasury = makeAddr("treasury");
    address internal stranger = makeAddr("stranger");
    Deposits internal deposits = new Deposits(jobs, slashing);

    function setUp() public {
        vm.deal(jobs, type(uint128).max);
        vm.roll(100);
    }

    // ---- lock ----

    function test_Lock_WhenCallerIsNotJobs_Reverts() public {
        hoax(slashing, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, slashing));
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
        vm.prank(slashing);
        deposits.release(JOB, Role.Client, owner, 2);
        vm.prank(owner);
        deposits.withdraw(JOB, Role.Client);
        assertEq(owner.balance, 5);
    }

    // ---- capture ----

    function test_Capture_WhenCallerIsNotSlashing_Reverts() public {
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

    function test_Release_WhenCallerIsNotSlashing_Reverts() public {
        vm.prank(jobs);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, jobs));
        deposits.release(JOB, Role.Client, owner, 1);
    }

    function test_Release_WhenCalledBySlashing_RestoresTheStake() public {
        _lock(JOB, Role.Client, 5);
        _capture(3);
        vm.expectEmit(address(deposits));
        emit IDeposits.Released(JOB, Role.Client, owner, 3, 5);
        vm.prank(slashing);
        assertEq(deposits.release(JOB, Role.Client, owner, 3), 5);
        assertEq(_balance(), 5);
    }

    // ---- distribute ----

    function test_Distribute_WhenCallerIsNotSlashing_Reverts() public {
        vm.prank(jobs);
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NotAuthorised.selector, jobs));
        deposits.distribute(JOB, 1, Split(10_000, 0, 0), treasury, _recipients(2));
    }

    function test_Distribute_WhenAmountDividesEvenly_CreditsEveryPart() public {
        address[] memory recipients = _recipients(2);
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(treasury, 200);
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(recipients[0], 150);
        vm.expectEmit(address(deposits));
        emit IDeposits.Credited(recipients[1], 150);
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(JOB, 500, 200, 300);
        _distribute(1000, Split(5000, 2000, 3000), recipients);
        assertEq(deposits.burned(), 500);
        assertEq(deposits.creditOf(treasury), 200);
        assertEq(deposits.creditOf(recipients[0]), 150);
        assertEq(deposits.creditOf(recipients[1]), 150);
    }

    function test_Distribute_WhenAmountLeavesARemainder_BurnsTheRemainder() public {
        vm.expectEmit(address(deposits));
        emit IDeposits.Distributed(JOB, 502, 200, 300);
        _distribute(1002, Split(5000, 2000, 3000), _recipients(3));
        _distribute(1, Split(0, 0, 10_000), _recipients(2));
        assertEq(deposits.burned(), 503);
    }

    function test_Distribute_WhenAPartIsZero_EmitsNoCreditOfZero() public {
        vm.recordLogs();
        _distribute(1000, Split(10_000, 0, 0), _recipients(3));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 1);
        assertEq(logs[0].topics[0], IDeposits.Distributed.selector);
    }

    function testFuzz_Distribute_ConservesTheAmount(
        uint96 amount,
        uint16 burn,
        uint16 toTreasury,
        uint8 count
    ) public {
        burn = uint16(bound(burn, 0, 10_000));
        toTreasury = uint16(bound(toTreasury, 0, 10_000 - burn));
        address[] memory recipients = _recipients(bound(count, 1, 3));
        Split memory split = Split(burn, toTreasury, 10_000 - burn - toTreasury);
        _distribute(amount, split, recipients);

        uint256 each = deposits.creditOf(recipients[0]);
        uint256 total = deposits.burned() + deposits.creditOf(treasury);
        for (uint256 i = 0; i < recipients.length; ++i) {
            assertEq(deposits.creditOf(recipients[i]), each);
            total += each;
        }
        assertEq(total, amount);
        assertEq(deposits.creditOf(treasury), uint256(amount) * toTreasury / 10_000);
        // Rounding costs whoever is paid less than one wei a part, and only the burn gains by it.
        uint256 share = uint256(amount) * burn / 10_000;
        assertGe(deposits.burned(), share);
        assertLe(deposits.burned(), share + recipients.length);
    }

    // ---- withdrawCredit ----

    function test_WithdrawCredit_WhenNothingIsCredited_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IDeposits.NothingToWithdraw.selector, treasury));
        deposits.withdrawCredit(treasury);
    }

    function test_WithdrawCredit_WhenCalledByAStranger_PaysTheCreditor() public {
        _lock(JOB, Role.Client, 10);
        _distribute(10, Split(0, 10_000, 0), _recipients(1));
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
        _distribute(10, Split(0, 10_000, 0), _recipients(1));
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
        vm.prank(slashing);
        return deposits.capture(JOB, Role.Client, owner, amount);
    }

    function _distribute(uint96 amount, Split memory split, address[] memory recipients) private {
        vm.prank(slashing);
        deposits.distribute(JOB, amount, split, treasury, recipients);
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

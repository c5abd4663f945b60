// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Deposits} from "contracts/Deposits.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {JobId, Role} from "contracts/Types.sol";

/// @dev What a recipient does when it is paid.
enum Conduct {
    Accept,
    Refuse,
    ReenterOrRevert,
    ReenterIfPossible
}

/// @title A recipient that calls back as soon as it is paid
contract Attacker {
    Deposits private immutable DEPOSITS;
    JobId private immutable JOB;
    Conduct private _conduct;
    bytes private _callback;

    constructor(Deposits deposits, JobId job) {
        DEPOSITS = deposits;
        JOB = job;
    }

    receive() external payable {
        if (_conduct == Conduct.Accept) return;
        require(_conduct != Conduct.Refuse, "no, thanks");
        (bool ok,) = address(DEPOSITS).call(_callback);
        require(ok || _conduct == Conduct.ReenterIfPossible, "re-entered in vain");
    }

    function plan(Conduct conduct, bytes calldata callback) external {
        _conduct = conduct;
        _callback = callback;
    }

    function withdraw() external {
        DEPOSITS.withdraw(JOB, Role.Client);
    }
}

contract ReentrancyTest is Test {
    JobId internal constant JOB = JobId.wrap(7);

    address internal jobs = makeAddr("jobs");
    address internal charges = makeAddr("charges");
    address internal bystander = makeAddr("bystander");
    address internal rewards = makeAddr("rewards");
    Deposits internal deposits = new Deposits(jobs, charges, rewards);
    Attacker internal attacker = new Attacker(deposits, JOB);
    bytes internal withdrawStake = abi.encodeCall(Deposits.withdraw, (JOB, Role.Client));
    bytes internal withdrawCredit = abi.encodeCall(Deposits.withdrawCredit, (address(attacker)));

    /// @dev The attacker has an unbonded stake of 3 and a credit of 5; others have 92.
    function setUp() public {
        vm.deal(jobs, 100);
        vm.startPrank(jobs);
        deposits.lock{value: 3}(JOB, Role.Client, address(attacker));
        deposits.lock{value: 97}(JOB, Role.Client, bystander);
        deposits.startUnbonding(JOB, Role.Client, address(attacker), uint32(block.number));
        vm.stopPrank();
        vm.startPrank(charges);
        deposits.capture(JOB, Role.Client, bystander, 5);
        deposits.distribute(JOB, 5, new address[](0), 0, address(attacker), 10_000);
        vm.stopPrank();
    }

    // ---- withdraw ----

    function test_Withdraw_WhenRecipientReEntersAndInsists_Reverts() public {
        attacker.plan(Conduct.ReenterOrRevert, withdrawStake);
        _expectRefusal(3);
        attacker.withdraw();
        _assertUntouched();
    }

    function test_Withdraw_WhenRecipientReEntersAndSwallowsTheError_PaysOnce() public {
        attacker.plan(Conduct.ReenterIfPossible, withdrawStake);
        attacker.withdraw();
        assertEq(address(attacker).balance, 3);
        assertEq(address(deposits).balance, 97);
    }

    function test_Withdraw_WhenRecipientReEntersWithdrawCredit_PaysOneOfThem() public {
        attacker.plan(Conduct.ReenterIfPossible, withdrawCredit);
        attacker.withdraw();
        assertEq(address(attacker).balance, 3);
        assertEq(deposits.creditOf(address(attacker)), 5);
    }

    function test_Withdraw_WhenRecipientRefusesMoney_RevertsAndKeepsTheStake() public {
        attacker.plan(Conduct.Refuse, "");
        _expectRefusal(3);
        attacker.withdraw();
        _assertUntouched();
        attacker.plan(Conduct.Accept, "");
        attacker.withdraw();
        assertEq(address(attacker).balance, 3);
    }

    // ---- withdrawCredit ----

    function test_WithdrawCredit_WhenRecipientReEntersAndInsists_Reverts() public {
        attacker.plan(Conduct.ReenterOrRevert, withdrawCredit);
        _expectRefusal(5);
        deposits.withdrawCredit(address(attacker));
        _assertUntouched();
    }

    function test_WithdrawCredit_WhenRecipientReEntersAndSwallowsTheError_PaysOnce() public {
        attacker.plan(Conduct.ReenterIfPossible, withdrawCredit);
        deposits.withdrawCredit(address(attacker));
        assertEq(address(attacker).balance, 5);
        assertEq(address(deposits).balance, 95);
    }

    function test_WithdrawCredit_WhenRecipientReEntersWithdraw_PaysOneOfThem() public {
        attacker.plan(Conduct.ReenterIfPossible, withdrawStake);
        deposits.withdrawCredit(address(attacker));
        assertEq(address(attacker).balance, 5);
        assertEq(deposits.account(JOB, Role.Client, address(attacker)).balance, 3);
    }

    function test_WithdrawCredit_WhenRecipientRefusesMoney_RevertsAndKeepsTheCredit() public {
        attacker.plan(Conduct.Refuse, "");
        _expectRefusal(5);
        deposits.withdrawCredit(address(attacker));
        _assertUntouched();
    }

    function test_WithdrawCredit_WhenTreasuryRefusesMoney_LeavesChargesAndOtherCreditsUnharmed()
        public
    {
        attacker.plan(Conduct.Refuse, "");
        address[] memory recipients = new address[](1);
        recipients[0] = bystander;
        vm.startPrank(charges);
        deposits.capture(JOB, Role.Client, bystander, 10);
        deposits.distribute(JOB, 10, recipients, 5, address(attacker), 10_000);
        vm.stopPrank();
        deposits.withdrawCredit(bystander);
        assertEq(bystander.balance, 5);
        assertEq(deposits.creditOf(address(attacker)), 10);
    }

    // ---- pay ----

    function test_Pay_WhenRecipientReEntersWithdraw_PaysOneOfThem() public {
        _fund();
        attacker.plan(Conduct.ReenterIfPossible, withdrawStake);
        vm.prank(rewards);
        deposits.pay(JOB, address(attacker), 4);
        assertEq(address(attacker).balance, 4);
        assertEq(deposits.account(JOB, Role.Client, address(attacker)).balance, 3);
        assertEq(deposits.creditOf(address(attacker)), 5);
    }

    function test_Pay_WhenRecipientReEntersAndInsists_Reverts() public {
        _fund();
        attacker.plan(Conduct.ReenterOrRevert, withdrawCredit);
        _expectRefusal(4);
        vm.prank(rewards);
        deposits.pay(JOB, address(attacker), 4);
        assertEq(deposits.budgetOf(JOB), 10);
    }

    function test_Pay_WhenRecipientRefusesMoney_RevertsAndKeepsTheBudget() public {
        _fund();
        attacker.plan(Conduct.Refuse, "");
        _expectRefusal(4);
        vm.prank(rewards);
        deposits.pay(JOB, address(attacker), 4);
        assertEq(deposits.budgetOf(JOB), 10);
    }

    function _fund() private {
        hoax(jobs, 10);
        deposits.fund{value: 10}(JOB);
    }

    function _expectRefusal(uint256 amount) private {
        vm.expectRevert(
            abi.encodeWithSelector(IDeposits.PaymentRefused.selector, address(attacker), amount)
        );
    }

    function _assertUntouched() private view {
        assertEq(deposits.account(JOB, Role.Client, address(attacker)).balance, 3);
        assertEq(deposits.creditOf(address(attacker)), 5);
        assertEq(address(attacker).balance, 0);
        assertEq(address(deposits).balance, 100);
    }
}

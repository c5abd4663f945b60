// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdJson} from "forge-std/StdJson.sol";

import {Terms} from "contracts/libraries/Terms.sol";
import {AUDIT_ALWAYS, JobTerms, Pay, Penalties, Phases, Schedule} from "contracts/Types.sol";
import {VectorFile} from "../support/VectorFile.sol";

/// @dev Terms are read from calldata.
contract TermsHarness {
    function validate(JobTerms calldata terms, uint256 sent) external pure {
        Terms.validate(terms, sent);
    }

    function budget(JobTerms calldata terms) external pure returns (uint256) {
        return Terms.budget(terms);
    }

    function schedule(Phases memory phases, uint32 openedAt)
        external
        pure
        returns (Schedule memory)
    {
        return Terms.schedule(phases, openedAt);
    }
}

contract TermsTest is VectorFile {
    using stdJson for string;

    /// @dev deliver + roll + beacon + answer + attest + response + 1 of the valid terms.
    uint32 internal constant LIFETIME = 55;
    uint32 internal constant MAX_DELAY = 1 << 30;

    /// @dev Of four rounds with five places at 2 and three seats at 9.
    uint256 internal constant BUDGET = 4 * (5 * 2 + 3 * 9);

    TermsHarness internal harness = new TermsHarness();
    JobTerms internal terms;

    function setUp() public {
        terms.members = [address(1), address(2), address(3)];
        terms.standbys = [address(4), address(5)];
        terms.treasury = address(6);
        terms.clientDeposit = 100;
        terms.memberStake = 200;
        terms.auditRate = 1 << 63;
        terms.rounds = 4;
        terms.maxClients = 5;
        terms.fewestContributions = 3;
        terms.unbondingDelay = LIFETIME;
        terms.unlockDelay = LIFETIME;
        terms.treasuryShare = 2000;
        terms.phases = Phases(10, 10, 5, 2, 10, 17, 4, 10);
        terms.penalties = Penalties(100, 10, 20, 30, 40);
        terms.pay = Pay(2, 9);
    }

    // ---- validate ----

    function test_Validate_WhenTermsAreAtTheirLimits_Accepts() public view {
        harness.validate(terms, BUDGET);
    }

    function test_Validate_WhenATermIsZero_Reverts() public {
        terms.rounds = 0;
        _expectZero("rounds");
        terms.clientDeposit = 0;
        _expectZero("clientDeposit");
        terms.memberStake = 0;
        _expectZero("memberStake");
        terms.treasury = address(0);
        _expectZero("treasury");
        terms.penalties.client = 0;
        _expectZero("penalties.client");
        terms.members[2] = address(0);
        _expectZero("members");
        terms.standbys[1] = address(0);
        _expectZero("members");
    }

    function test_Validate_WhenAPhaseIsZero_Reverts() public {
        terms.phases.enrol = 0;
        _expectZero("phases.enrol");
        terms.phases.deliver = 0;
        _expectZero("phases.deliver");
        terms.phases.answer = 0;
        _expectZero("phases.answer");
    }

    function test_Validate_WhenAStepOfAPhaseHasNoBlock_Reverts() public {
        uint32 needed = _shortest("roll");
        terms.phases.roll = needed - 1;
        _expectWindow("phases.roll", needed - 1, needed);
        needed = _shortest("beacon");
        terms.phases.beacon = needed - 1;
        _expectWindow("phases.beacon", needed - 1, needed);
        needed = _shortest("attest");
        terms.phases.attest = needed - 1;
        _expectWindow("phases.attest", needed - 1, needed);
        needed = _shortest("finalise");
        terms.phases.finalise = needed - 1;
        _expectWindow("phases.finalise", needed - 1, needed);
    }

    function test_Validate_WhenAnAccountStandsTwiceOnTheRoster_Reverts() public {
        terms.members[1] = terms.members[0];
        _expect(abi.encodeWithSelector(Terms.DuplicateMember.selector, address(1)));
        terms.standbys[0] = address(2);
        _expect(abi.encodeWithSelector(Terms.DuplicateMember.selector, address(2)));
        terms.standbys[1] = address(4);
        _expect(abi.encodeWithSelector(Terms.DuplicateMember.selector, address(4)));
    }

    function test_Validate_WhenThereAreTooManyStandbys_Reverts() public {
        for (uint160 i = 10; i < 13; ++i) {
            terms.standbys.push(address(i));
        }
        harness.validate(terms, BUDGET);
        terms.standbys.push(address(13));
        _expect(abi.encodeWithSelector(Terms.TooManyStandbys.selector, 6, 5));
        delete terms.standbys;
        harness.validate(terms, BUDGET);
    }

    function test_Validate_WhenAuditRateIsAboveOne_Reverts() public {
        terms.auditRate = AUDIT_ALWAYS;
        harness.validate(terms, BUDGET);
        terms.auditRate = AUDIT_ALWAYS + 1;
        _expect(abi.encodeWithSelector(Terms.AuditRateAboveOne.selector, AUDIT_ALWAYS + 1));
    }

    function test_Validate_WhenTreasuryShareIsAboveOne_Reverts() public {
        terms.treasuryShare = 10_000;
        harness.validate(terms, BUDGET);
        terms.treasuryShare = 10_001;
        _expect(abi.encodeWithSelector(Terms.ShareAboveOne.selector, 10_001));
    }

    function test_Validate_WhenFewestIsOutOfRange_Reverts() public {
        terms.fewestContributions = 2;
        _expect(abi.encodeWithSelector(Terms.FewestOutOfRange.selector, 2, 3, 5));
        terms.fewestContributions = 5;
        harness.validate(terms, BUDGET);
        terms.fewestContributions = 6;
        _expect(abi.encodeWithSelector(Terms.FewestOutOfRange.selector, 6, 3, 5));
    }

    function test_Validate_WhenAPenaltyIsAboveTheStake_Reverts() public {
        terms.penalties.client = 101;
        _expect(abi.encodeWithSelector(Terms.PenaltyAboveStake.selector, 101, 100));
        terms.penalties.withheld = 200;
        harness.validate(terms, BUDGET);
        terms.penalties.withheld = 201;
        _expect(abi.encodeWithSelector(Terms.PenaltyAboveStake.selector, 201, 200));
    }

    function test_Validate_WhenSilencePaysAsMuchAsWork_Reverts() public {
        terms.pay.member = 10;
        _expectOrder("pay.member", 10, "silence", 10);
    }

    function test_Validate_WhenAWorseFaultCostsLess_Reverts() public {
        terms.penalties = Penalties(100, 10, 10, 10, 10);
        harness.validate(terms, BUDGET);
        terms.penalties = Penalties(100, 20, 19, 30, 40);
        _expectOrder("silence", 20, "dissent", 19);
        terms.penalties = Penalties(100, 10, 20, 19, 40);
        _expectOrder("dissent", 20, "absence", 19);
        terms.penalties = Penalties(100, 10, 20, 30, 29);
        _expectOrder("absence", 30, "withheld", 29);
    }

    function test_Validate_WhenResponseIsShorterThanTheTimeToAnswer_Reverts() public {
        terms.phases.response = 9;
        _expectWindow("phases.response", 9, 10);
    }

    function test_Validate_WhenUnbondingIsShorterThanAnAudit_Reverts() public {
        terms.unbondingDelay = LIFETIME - 1;
        _expectWindow("unbondingDelay", LIFETIME - 1, LIFETIME);
    }

    function test_Validate_WhenUnlockingIsShorterThanAnAudit_Reverts() public {
        terms.unlockDelay = LIFETIME - 1;
        _expectWindow("unlockDelay", LIFETIME - 1, LIFETIME);
    }

    function test_Validate_WhenADeadlineCouldOverflow_Reverts() public {
        bytes memory reason =
            abi.encodeWithSelector(Terms.DelayTooLong.selector, MAX_DELAY + 1, MAX_DELAY);
        terms.unbondingDelay = MAX_DELAY + 1;
        _expect(reason);
        terms.unlockDelay = MAX_DELAY + 1;
        _expect(reason);
        terms.phases.enrol = MAX_DELAY + 1;
        _expect(reason);
        terms.phases.finalise = MAX_DELAY + 1;
        _expect(reason);
    }

    function test_Validate_WhenBudgetDoesNotPayWhatIsPromised_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Terms.BudgetTooSmall.selector, BUDGET - 1, BUDGET));
        harness.validate(terms, BUDGET - 1);
        harness.validate(terms, BUDGET + 1);
    }

    /// @dev Inputs are drawn around the limits, so that both answers are common.
    function testFuzz_Validate_AcceptsExactlyWhatTheModelAccepts(
        uint8[8] memory phases,
        uint8[5] memory penalties,
        uint8[2] memory pay,
        uint16[2] memory delays,
        uint256 sent
    ) public {
        terms.phases = Phases(
            phases[0] % 4,
            1 + phases[1] % 4,
            4 + phases[2] % 8,
            1 + phases[3] % 8,
            1 + phases[4] % 8,
            16 + phases[5] % 8,
            3 + phases[6] % 8,
            phases[7] % 16
        );
        terms.penalties = Penalties(
            penalties[0] % 110,
            3 + penalties[1] % 4,
            5 + penalties[2] % 4,
            7 + penalties[3] % 4,
            9 + penalties[4] % 4
        );
        terms.pay = Pay(pay[0], pay[1] % 8);
        terms.unbondingDelay = delays[0] % 120;
        terms.unlockDelay = delays[1] % 120;
        uint256 needed = 4 * (5 * uint256(terms.pay.client) + 3 * uint256(terms.pay.member));
        sent = bound(sent, needed == 0 ? 0 : needed - 1, needed + 3);

        bool valid = _isValid() && sent >= needed;
        JobTerms memory current = terms;
        try harness.validate(current, sent) {
            assertTrue(valid, "accepted");
        } catch {
            assertFalse(valid, "refused");
        }
    }

    // ---- budget, schedule ----

    function test_Budget_WhenAmountsAreTheLargest_DoesNotOverflow() public {
        terms.pay = Pay(type(uint96).max, type(uint96).max);
        terms.maxClients = type(uint32).max;
        terms.rounds = type(uint32).max;
        uint256 perRound = uint256(type(uint96).max) * (uint256(type(uint32).max) + 3);
        assertEq(harness.budget(terms), perRound * type(uint32).max);
    }

    function testFuzz_Schedule_AddsUpWithoutOverflowForValidTerms(
        uint32[7] memory lengths,
        uint32 openedAt
    ) public view {
        for (uint256 i = 0; i < 7; ++i) {
            lengths[i] = uint32(bound(lengths[i], 1, MAX_DELAY / 7 - 1));
        }
        // Up to block 2^31, which is 800 years of Ethereum away.
        openedAt = uint32(bound(openedAt, 1, 2 * uint256(MAX_DELAY)));
        Phases memory phases = Phases(
            1, lengths[0], lengths[1], lengths[2], lengths[3], lengths[4], lengths[5], lengths[6]
        );
        Schedule memory deadlines = harness.schedule(phases, openedAt);
        assertEq(deadlines.deliver, uint256(openedAt) + lengths[0]);
        assertEq(deadlines.roll, uint256(deadlines.deliver) + lengths[1]);
        assertEq(deadlines.beacon, uint256(deadlines.roll) + lengths[2]);
        assertEq(deadlines.answer, uint256(deadlines.beacon) + lengths[3]);
        assertEq(deadlines.attest, uint256(deadlines.answer) + lengths[4]);
        assertEq(deadlines.finalise, uint256(deadlines.attest) + lengths[5]);
        assertEq(deadlines.response, uint256(deadlines.attest) + lengths[6]);
    }

    function _isValid() private view returns (bool) {
        Phases memory phases = terms.phases;
        Penalties memory costs = terms.penalties;
        uint256 lifetime = uint256(phases.deliver) + phases.roll + phases.beacon + phases.answer
            + phases.attest + phases.response;
        bool steps =
            phases.roll >= 5 && phases.beacon >= 2 && phases.attest >= 17 && phases.finalise >= 4;
        bool windows = phases.enrol != 0 && phases.response >= phases.answer
            && terms.unbondingDelay > lifetime && terms.unlockDelay > lifetime;
        bool order = terms.pay.member < costs.silence && costs.silence <= costs.dissent
            && costs.dissent <= costs.absence && costs.absence <= costs.withheld;
        return steps && windows && order && costs.client != 0 && costs.client <= 100;
    }

    /// @dev In blocks, by docs/SPEC.md.
    function _shortest(string memory phase) private view returns (uint32) {
        return uint32(load("steps").readUint(string.concat(".shortest.", phase)));
    }

    function _expectZero(string memory term) private {
        _expect(abi.encodeWithSelector(Terms.ZeroTerm.selector, term));
    }

    function _expectOrder(string memory low, uint96 first, string memory high, uint96 second)
        private
    {
        _expect(abi.encodeWithSelector(Terms.WrongOrder.selector, low, first, high, second));
    }

    function _expectWindow(string memory window, uint256 given, uint256 needed) private {
        _expect(abi.encodeWithSelector(Terms.WindowTooShort.selector, window, given, needed));
    }

    /// @dev Expects it of the terms as they are, and starts from valid ones again.
    function _expect(bytes memory reason) private {
        JobTerms memory current = terms;
        vm.expectRevert(reason);
        harness.validate(current, BUDGET);
        setUp();
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Terms} from "contracts/libraries/Terms.sol";
import {AUDIT_ALWAYS, JobTerms, Penalties, Phases, Schedule, Split} from "contracts/Types.sol";

/// @dev Terms are read from calldata.
contract TermsHarness {
    function validate(JobTerms calldata terms) external pure {
        Terms.validate(terms);
    }

    function schedule(Phases memory phases, uint32 commitDeadline)
        external
        pure
        returns (Schedule memory)
    {
        return Terms.schedule(phases, commitDeadline);
    }
}

contract TermsTest is Test {
    /// @dev commit + beacon + deliver + attest + finalise + request + veto of the valid terms.
    uint32 internal constant LIFETIME = 70;
    uint32 internal constant MAX_DELAY = 1 << 30;

    TermsHarness internal harness = new TermsHarness();
    JobTerms internal terms;

    function setUp() public {
        terms.members = [address(1), address(2), address(3)];
        terms.treasury = address(4);
        terms.clientDeposit = 100;
        terms.memberStake = 200;
        terms.auditRate = 1 << 63;
        terms.rounds = 4;
        terms.unbondingDelay = 100;
        terms.phases = Phases(10, 10, 10, 10, 10, 10, 10, 10);
        terms.penalties = Penalties(10, 20, 30, 40, 50, 60, 70);
        terms.split = Split(5000, 2000, 3000);
    }

    // ---- validate ----

    function test_Validate_WhenTermsAreTheDefaults_Accepts() public view {
        harness.validate(terms);
    }

    function test_Validate_WhenRoundsIsZero_Reverts() public {
        terms.rounds = 0;
        _expectZero("rounds");
    }

    function test_Validate_WhenClientDepositIsZero_Reverts() public {
        terms.clientDeposit = 0;
        _expectZero("clientDeposit");
    }

    function test_Validate_WhenMemberStakeIsZero_Reverts() public {
        terms.memberStake = 0;
        _expectZero("memberStake");
    }

    function test_Validate_WhenTreasuryIsZero_Reverts() public {
        terms.treasury = address(0);
        _expectZero("treasury");
    }

    function test_Validate_WhenAMemberIsZero_Reverts() public {
        for (uint256 i = 0; i < 3; ++i) {
            setUp();
            terms.members[i] = address(0);
            _expectZero("members");
        }
    }

    function test_Validate_WhenAPhaseIsZero_Reverts() public {
        terms.phases.enrol = 0;
        _expectZero("phases.enrol");
        setUp();
        terms.phases.commit = 0;
        _expectZero("phases.commit");
        setUp();
        terms.phases.beacon = 0;
        _expectZero("phases.beacon");
        setUp();
        terms.phases.deliver = 0;
        _expectZero("phases.deliver");
        setUp();
        terms.phases.attest = 0;
        _expectZero("phases.attest");
        setUp();
        terms.phases.finalise = 0;
        _expectZero("phases.finalise");
        setUp();
        terms.phases.request = 0;
        _expectZero("phases.request");
        setUp();
        terms.phases.veto = 0;
        _expectZero("phases.veto");
    }

    function test_Validate_WhenAMemberStandsTwice_Reverts() public {
        uint8[2][3] memory pairs = [[0, 1], [1, 2], [0, 2]];
        for (uint256 i = 0; i < 3; ++i) {
            setUp();
            terms.members[pairs[i][0]] = terms.members[pairs[i][1]];
            address twice = terms.members[pairs[i][0]];
            _expect(abi.encodeWithSelector(Terms.DuplicateMember.selector, twice));
        }
    }

    function test_Validate_WhenAuditRateIsOne_Accepts() public {
        terms.auditRate = AUDIT_ALWAYS;
        harness.validate(terms);
    }

    function test_Validate_WhenAuditRateIsAboveOne_Reverts() public {
        terms.auditRate = AUDIT_ALWAYS + 1;
        _expect(abi.encodeWithSelector(Terms.AuditRateAboveOne.selector, AUDIT_ALWAYS + 1));
    }

    function test_Validate_WhenSplitIsNotWhole_Reverts() public {
        terms.split = Split(5000, 2000, 2999);
        _expect(abi.encodeWithSelector(Terms.SplitNotWhole.selector, 9999));
        terms.split = Split(5000, 2000, 3001);
        _expect(abi.encodeWithSelector(Terms.SplitNotWhole.selector, 10_001));
        // No sum of three parts wraps around.
        terms.split = Split(65_535, 65_535, 14_466);
        _expect(abi.encodeWithSelector(Terms.SplitNotWhole.selector, 145_536));
    }

    function test_Validate_WhenAPenaltyEqualsTheStake_Accepts() public {
        terms.penalties = Penalties(100, 100, 100, 100, 200, 200, 200);
        harness.validate(terms);
    }

    function test_Validate_WhenAClientPenaltyIsAboveTheDeposit_Reverts() public {
        bytes memory reason = abi.encodeWithSelector(Terms.PenaltyAboveStake.selector, 101, 100);
        terms.penalties.commitmentMismatch = 101;
        _expect(reason);
        setUp();
        terms.penalties.notDelivered = 101;
        _expect(reason);
        setUp();
        terms.penalties.inputNotCommitted = 101;
        _expect(reason);
        setUp();
        terms.penalties.replayOutside = 101;
        _expect(reason);
    }

    function test_Validate_WhenAMemberPenaltyIsAboveTheStake_Reverts() public {
        bytes memory reason = abi.encodeWithSelector(Terms.PenaltyAboveStake.selector, 201, 200);
        terms.penalties.beaconWithheld = 201;
        _expect(reason);
        setUp();
        terms.penalties.verdictDissent = 201;
        _expect(reason);
        setUp();
        terms.penalties.verdictSilence = 201;
        _expect(reason);
    }

    function test_Validate_WhenUnbondingIsAsLongAsALifetime_Reverts() public {
        terms.unbondingDelay = LIFETIME;
        _expect(abi.encodeWithSelector(Terms.UnbondingTooShort.selector, LIFETIME, LIFETIME));
    }

    function test_Validate_WhenUnbondingIsOneBlockLonger_Accepts() public {
        terms.unbondingDelay = LIFETIME + 1;
        harness.validate(terms);
    }

    function test_Validate_WhenUnbondingCouldOverflow_Reverts() public {
        terms.unbondingDelay = MAX_DELAY;
        harness.validate(terms);
        terms.unbondingDelay = MAX_DELAY + 1;
        _expect(abi.encodeWithSelector(Terms.DelayTooLong.selector, MAX_DELAY + 1, MAX_DELAY));
    }

    function test_Validate_WhenEnrolmentCouldOverflow_Reverts() public {
        terms.phases.enrol = MAX_DELAY;
        harness.validate(terms);
        terms.phases.enrol = MAX_DELAY + 1;
        _expect(abi.encodeWithSelector(Terms.DelayTooLong.selector, MAX_DELAY + 1, MAX_DELAY));
    }

    /// @dev Commit phases of one block: at most 127 rounds may pass in a lifetime.
    function test_Validate_WhenRoundsAreAsShortAsTheWindowAllows_Accepts() public {
        terms.phases = Phases(10, 1, 1, 1, 1, 1, 1, 121);
        terms.unbondingDelay = 1000;
        harness.validate(terms);
    }

    function test_Validate_WhenRoundsAreTooShort_Reverts() public {
        terms.phases = Phases(10, 1, 1, 1, 1, 1, 1, 122);
        terms.unbondingDelay = 1000;
        _expect(abi.encodeWithSelector(Terms.RoundsTooShort.selector, 128, 127));
    }

    /// @dev Inputs are drawn around the limits, so that both answers are common.
    function testFuzz_Validate_AcceptsExactlyWhatTheModelAccepts(
        uint32[8] memory phases,
        uint96[7] memory penalties,
        uint16[3] memory split,
        uint32 unbondingDelay,
        uint128 auditRate
    ) public {
        for (uint256 i = 0; i < 8; ++i) {
            phases[i] = uint32(bound(phases[i], i == 0 ? 0 : 1, 40));
        }
        for (uint256 i = 0; i < 7; ++i) {
            penalties[i] = uint96(bound(penalties[i], 0, i < 4 ? 102 : 204));
        }
        split[0] = uint16(bound(split[0], 0, 10_000));
        split[1] = uint16(bound(split[1], 0, 10_000 - split[0]));
        split[2] = uint16(bound(split[2], 0, 1)) + 10_000 - split[0] - split[1];
        terms.phases = Phases(
            phases[0], phases[1], phases[2], phases[3], phases[4], phases[5], phases[6], phases[7]
        );
        terms.penalties = Penalties(
            penalties[0],
            penalties[1],
            penalties[2],
            penalties[3],
            penalties[4],
            penalties[5],
            penalties[6]
        );
        terms.split = Split(split[0], split[1], split[2]);
        terms.unbondingDelay = uint32(bound(unbondingDelay, 0, 400));
        terms.auditRate = uint128(bound(auditRate, AUDIT_ALWAYS / 2, AUDIT_ALWAYS * 11 / 10));

        uint256 lifetime;
        bool valid = phases[0] != 0 && terms.auditRate <= AUDIT_ALWAYS
            && uint256(split[0]) + split[1] + split[2] == 10_000;
        for (uint256 i = 1; i < 8; ++i) {
            lifetime += phases[i];
        }
        for (uint256 i = 0; i < 7; ++i) {
            valid = valid && penalties[i] <= (i < 4 ? 100 : 200);
        }
        valid = valid && terms.unbondingDelay > lifetime && lifetime <= 127 * uint256(phases[1]);
        try harness.validate(terms) {
            assertTrue(valid, "accepted");
        } catch {
            assertFalse(valid, "refused");
        }
    }

    // ---- schedule ----

    function testFuzz_Schedule_AddsUpWithoutOverflowForValidTerms(
        uint32[7] memory lengths,
        uint32 commitDeadline
    ) public view {
        for (uint256 i = 0; i < 7; ++i) {
            lengths[i] = uint32(bound(lengths[i], 1, MAX_DELAY / 7 - 1));
        }
        // Up to block 3 * 2^30, which is 1,200 years of Ethereum away.
        commitDeadline = uint32(bound(commitDeadline, 1, 3 * uint256(MAX_DELAY)));
        Phases memory phases = Phases(
            1, lengths[0], lengths[1], lengths[2], lengths[3], lengths[4], lengths[5], lengths[6]
        );
        Schedule memory deadlines = harness.schedule(phases, commitDeadline);
        assertEq(deadlines.commit, commitDeadline);
        assertEq(deadlines.beacon, uint256(commitDeadline) + lengths[1]);
        assertEq(deadlines.deliver, uint256(deadlines.beacon) + lengths[2]);
        assertEq(deadlines.attest, uint256(deadlines.deliver) + lengths[3]);
        assertEq(deadlines.finalise, uint256(deadlines.attest) + lengths[4]);
        assertEq(deadlines.request, uint256(deadlines.attest) + lengths[5]);
    }

    function _expectZero(string memory term) private {
        _expect(abi.encodeWithSelector(Terms.ZeroTerm.selector, term));
    }

    function _expect(bytes memory reason) private {
        JobTerms memory current = terms;
        vm.expectRevert(reason);
        harness.validate(current);
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AUDIT_ALWAYS, COMMITTEE_SIZE, JobTerms, Penalties, Phases, Schedule} from "../Types.sol";
import {ClientRecords} from "./ClientRecord.sol";

/// @title What the terms of a job must fulfil, and the deadlines that follow from them
library Terms {
    uint256 private constant BASIS_POINTS = 10_000;

    /// @dev Deadlines are blocks in 32 bits: if one overflowed, the stakes behind it would be frozen.
    uint256 private constant MAX_DELAY = 1 << 30;

    /// @notice A term that must not be zero is zero.
    error ZeroTerm(string term);

    /// @notice A member stands twice in the committee.
    error DuplicateMember(address member);

    /// @notice The audit rate is above one, which is 2^64.
    error AuditRateAboveOne(uint128 auditRate);

    /// @notice The parts of slashed money do not add up to 10,000 basis points.
    error SplitNotWhole(uint256 basisPoints);

    /// @notice A penalty is higher than the stake it would be taken from.
    error PenaltyAboveStake(uint96 penalty, uint96 stake);

    /// @notice A stake could be withdrawn while an audit that could slash it is open.
    error UnbondingTooShort(uint256 given, uint256 lifetime);

    /// @notice A delay is so long that a deadline could overflow.
    error DelayTooLong(uint256 given, uint256 allowed);

    /// @notice Rounds could pass so fast that a slash outlives the record of its commitment.
    error RoundsTooShort(uint256 lifetime, uint256 allowed);

    /// @notice Reverts unless a job with these terms is safe for all who take part.
    function validate(JobTerms calldata terms) internal pure {
        if (terms.rounds == 0) revert ZeroTerm("rounds");
        if (terms.clientDeposit == 0) revert ZeroTerm("clientDeposit");
        if (terms.memberStake == 0) revert ZeroTerm("memberStake");
        if (terms.treasury == address(0)) revert ZeroTerm("treasury");
        if (terms.auditRate > AUDIT_ALWAYS) revert AuditRateAboveOne(terms.auditRate);
        _validateMembers(terms.members);
        _validatePhases(terms.phases, terms.unbondingDelay);
        _validatePenalties(terms.penalties, terms.clientDeposit, terms.memberStake);
        uint256 parts = uint256(terms.split.burn) + terms.split.treasury + terms.split.committee;
        if (parts != BASIS_POINTS) revert SplitNotWhole(parts);
    }

    /// @notice The deadlines of a round whose commit phase ends at `commitDeadline`.
    function schedule(Phases memory phases, uint32 commitDeadline)
        internal
        pure
        returns (Schedule memory deadlines)
    {
        deadlines.commit = commitDeadline;
        deadlines.beacon = commitDeadline + phases.beacon;
        deadlines.deliver = deadlines.beacon + phases.deliver;
        deadlines.attest = deadlines.deliver + phases.attest;
        deadlines.finalise = deadlines.attest + phases.finalise;
        deadlines.request = deadlines.attest + phases.request;
    }

    function _validateMembers(address[COMMITTEE_SIZE] calldata members) private pure {
        for (uint256 i = 0; i < COMMITTEE_SIZE; ++i) {
            if (members[i] == address(0)) revert ZeroTerm("members");
            for (uint256 j = 0; j < i; ++j) {
                if (members[i] == members[j]) revert DuplicateMember(members[i]);
            }
        }
    }

    function _validatePhases(Phases calldata phases, uint32 unbondingDelay) private pure {
        if (phases.enrol == 0) revert ZeroTerm("phases.enrol");
        if (phases.commit == 0) revert ZeroTerm("phases.commit");
        if (phases.beacon == 0) revert ZeroTerm("phases.beacon");
        if (phases.deliver == 0) revert ZeroTerm("phases.deliver");
        if (phases.attest == 0) revert ZeroTerm("phases.attest");
        if (phases.finalise == 0) revert ZeroTerm("phases.finalise");
        if (phases.request == 0) revert ZeroTerm("phases.request");
        if (phases.veto == 0) revert ZeroTerm("phases.veto");

        // From the first commitment of a round to the last block in which it can still be slashed.
        uint256 lifetime = uint256(phases.commit) + phases.beacon + phases.deliver + phases.attest
            + phases.finalise + phases.request + phases.veto;
        if (unbondingDelay <= lifetime) revert UnbondingTooShort(unbondingDelay, lifetime);
        // No round takes longer than the unbonding delay.
        _requireDelay(unbondingDelay);
        _requireDelay(phases.enrol);
        uint256 allowed = (ClientRecords.WINDOW - 1) * phases.commit;
        if (lifetime > allowed) revert RoundsTooShort(lifetime, allowed);
    }

    function _validatePenalties(Penalties calldata penalties, uint96 deposit, uint96 stake)
        private
        pure
    {
        _requireAtMost(penalties.commitmentMismatch, deposit);
        _requireAtMost(penalties.notDelivered, deposit);
        _requireAtMost(penalties.inputNotCommitted, deposit);
        _requireAtMost(penalties.replayOutside, deposit);
        _requireAtMost(penalties.beaconWithheld, stake);
        _requireAtMost(penalties.verdictDissent, stake);
        _requireAtMost(penalties.verdictSilence, stake);
    }

    function _requireDelay(uint32 delay) private pure {
        if (delay > MAX_DELAY) revert DelayTooLong(delay, MAX_DELAY);
    }

    function _requireAtMost(uint96 penalty, uint96 stake) private pure {
        if (penalty > stake) revert PenaltyAboveStake(penalty, stake);
    }
}

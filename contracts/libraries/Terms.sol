// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {
    AUDIT_ALWAYS,
    COMMITTEE_SIZE,
    JobTerms,
    MAX_STANDBYS,
    Penalties,
    Phases,
    Schedule
} from "../Types.sol";

/// @title Conditions that the terms of a job must fulfil, and values that follow from them
library Terms {
    uint256 private constant BASIS_POINTS = 10_000;

    /// @dev Deadlines are blocks in 32 bits: if one overflowed, the stakes behind it would be frozen.
    uint256 private constant MAX_DELAY = 1 << 30;

    /// @dev A sum of two reveals each of them to the other.
    uint256 private constant FEWEST_CONTRIBUTIONS = 3;

    /// @dev Members cut phases into steps, and act when a step ends: none may be without a block. The
    /// last block of the attest phase is left to the attestation, the others are cut into sixteen.
    uint256 private constant SHORTEST_ROLL = 5;
    uint256 private constant SHORTEST_BEACON = 2;
    uint256 private constant SHORTEST_ATTEST = 17;
    uint256 private constant SHORTEST_FINALISE = 4;

    /// @notice A term that must not be zero is zero.
    error ZeroTerm(string term);

    /// @notice An account stands twice on the roster of members and standbys.
    error DuplicateMember(address member);

    /// @notice There are more standbys than a job may name.
    error TooManyStandbys(uint256 given, uint256 allowed);

    /// @notice The audit rate is above one, which is 2^64.
    error AuditRateAboveOne(uint128 auditRate);

    /// @notice A part is larger than 10,000 basis points.
    error ShareAboveOne(uint256 basisPoints);

    /// @notice A sum of so few contributions would reveal them, or the job has no place for as many.
    error FewestOutOfRange(uint256 given, uint256 lowest, uint256 highest);

    /// @notice A penalty is higher than the stake it would be taken from.
    error PenaltyAboveStake(uint96 penalty, uint96 stake);

    /// @notice The first of two amounts must be the lower one.
    error WrongOrder(string lower, uint96 first, string higher, uint96 second);

    /// @notice A window is shorter than what must fit into it.
    error WindowTooShort(string window, uint256 given, uint256 needed);

    /// @notice A delay is so long that a deadline could overflow.
    error DelayTooLong(uint256 given, uint256 allowed);

    /// @notice The ether that was sent does not pay what the terms promise.
    error BudgetTooSmall(uint256 sent, uint256 needed);

    /// @notice Reverts unless a job with these terms and this budget is safe for all who take part.
    function validate(JobTerms calldata terms, uint256 sent) internal pure {
        if (terms.rounds == 0) revert ZeroTerm("rounds");
        if (terms.clientDeposit == 0) revert ZeroTerm("clientDeposit");
        if (terms.memberStake == 0) revert ZeroTerm("memberStake");
        if (terms.treasury == address(0)) revert ZeroTerm("treasury");
        if (terms.auditRate > AUDIT_ALWAYS) revert AuditRateAboveOne(terms.auditRate);
        if (terms.treasuryShare > BASIS_POINTS) revert ShareAboveOne(terms.treasuryShare);
        uint256 fewest = terms.fewestContributions;
        if (fewest < FEWEST_CONTRIBUTIONS || fewest > terms.maxClients) {
            revert FewestOutOfRange(fewest, FEWEST_CONTRIBUTIONS, terms.maxClients);
        }
        _validateRoster(terms);
        _validatePhases(terms);
        _validatePenalties(terms);
        uint256 needed = budget(terms);
        if (sent < needed) revert BudgetTooSmall(sent, needed);
    }

    /// @notice The most that a job with these terms can pay for work.
    function budget(JobTerms calldata terms) internal pure returns (uint256) {
        uint256 perRound = uint256(terms.pay.client) * terms.maxClients + uint256(terms.pay.member)
            * COMMITTEE_SIZE;
        return perRound * terms.rounds;
    }

    /// @notice The deadlines of a round that was opened in a block.
    function schedule(Phases memory phases, uint32 openedAt)
        internal
        pure
        returns (Schedule memory deadlines)
    {
        deadlines.deliver = openedAt + phases.deliver;
        deadlines.roll = deadlines.deliver + phases.roll;
        deadlines.beacon = deadlines.roll + phases.beacon;
        deadlines.answer = deadlines.beacon + phases.answer;
        deadlines.attest = deadlines.answer + phases.attest;
        deadlines.finalise = deadlines.attest + phases.finalise;
        deadlines.response = deadlines.attest + phases.response;
    }

    function _validateRoster(JobTerms calldata terms) private pure {
        uint256 standbys = terms.standbys.length;
        if (standbys > MAX_STANDBYS) revert TooManyStandbys(standbys, MAX_STANDBYS);
        for (uint256 i = 0; i < COMMITTEE_SIZE + standbys; ++i) {
            address one = _rostered(terms, i);
            if (one == address(0)) revert ZeroTerm("members");
            for (uint256 j = 0; j < i; ++j) {
                if (one == _rostered(terms, j)) revert DuplicateMember(one);
            }
        }
    }

    function _validatePhases(JobTerms calldata terms) private pure {
        Phases calldata phases = terms.phases;
        if (phases.enrol == 0) revert ZeroTerm("phases.enrol");
        if (phases.deliver == 0) revert ZeroTerm("phases.deliver");
        if (phases.answer == 0) revert ZeroTerm("phases.answer");
        _requireWindow("phases.roll", phases.roll, SHORTEST_ROLL);
        _requireWindow("phases.beacon", phases.beacon, SHORTEST_BEACON);
        _requireWindow("phases.attest", phases.attest, SHORTEST_ATTEST);
        _requireWindow("phases.finalise", phases.finalise, SHORTEST_FINALISE);
        // Who was away for the time to answer has as long again.
        _requireWindow("phases.response", phases.response, phases.answer);
        // From the opening of a round to the last block in which its audits are held.
        uint256 lifetime = uint256(phases.deliver) + phases.roll + phases.beacon + phases.answer
            + phases.attest + phases.response + 1;
        _requireWindow("unbondingDelay", terms.unbondingDelay, lifetime);
        _requireWindow("unlockDelay", terms.unlockDelay, lifetime);
        _requireDelay(terms.unbondingDelay);
        _requireDelay(terms.unlockDelay);
        _requireDelay(phases.enrol);
        _requireDelay(phases.finalise);
    }

    /// @dev After the seed a client can answer or pay in full: there is one penalty. A member never
    /// earns more by a fault than by its work, and a worse fault never costs less.
    function _validatePenalties(JobTerms calldata terms) private pure {
        Penalties calldata penalties = terms.penalties;
        if (penalties.client == 0) revert ZeroTerm("penalties.client");
        if (penalties.client > terms.clientDeposit) {
            revert PenaltyAboveStake(penalties.client, terms.clientDeposit);
        }
        if (terms.pay.member >= penalties.silence) {
            revert WrongOrder("pay.member", terms.pay.member, "silence", penalties.silence);
        }
        if (penalties.silence > penalties.dissent) {
            revert WrongOrder("silence", penalties.silence, "dissent", penalties.dissent);
        }
        if (penalties.dissent > penalties.absence) {
            revert WrongOrder("dissent", penalties.dissent, "absence", penalties.absence);
        }
        if (penalties.absence > penalties.withheld) {
            revert WrongOrder("absence", penalties.absence, "withheld", penalties.withheld);
        }
        if (penalties.withheld > terms.memberStake) {
            revert PenaltyAboveStake(penalties.withheld, terms.memberStake);
        }
    }

    function _rostered(JobTerms calldata terms, uint256 number) private pure returns (address) {
        return
            number < COMMITTEE_SIZE
                ? terms.members[number]
                : terms.standbys[number - COMMITTEE_SIZE];
    }

    function _requireWindow(string memory window, uint256 given, uint256 needed) private pure {
        if (given < needed) revert WindowTooShort(window, given, needed);
    }

    function _requireDelay(uint32 delay) private pure {
        if (delay > MAX_DELAY) revert DelayTooLong(delay, MAX_DELAY);
    }
}

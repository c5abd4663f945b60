// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Statements} from "contracts/libraries/Statements.sol";
import {
    AUDIT_ALWAYS,
    Charge,
    ChargeStatus,
    ClientStatus,
    JobId,
    JobTerms,
    MemberFault,
    Outcome,
    Progress,
    Role,
    RollEntry,
    roundOf,
    RoundId,
    RoundStatus,
    Schedule
} from "contracts/Types.sol";
import {Protocol} from "../support/Protocol.sol";

/// @dev All of them enrol in every job. The first two are honest and always there.
uint256 constant CLIENTS = 5;
uint256 constant HONEST = 3;

/// @title Plays whole jobs with cheating clients and one bad member, as the dice fall
/// @notice Honest members do their duties in time. Every action is either valid by the handler's own
/// account of what happened, and then must succeed, or not, and then is tried all the same and must
/// be refused: what succeeds against the rules is a breach.
contract Handler is Protocol {
    /// @dev What the handler knows of a round, apart from what the contracts say.
    struct Play {
        uint256 onRoll;
        /// clients whose audit did not pass; of these, who was only away
        uint256 failed;
        uint256 away;
        uint256 passed;
        bool attested;
        bytes32 verdict;
        /// bit n: number n of the roster published a partial
        uint256 partials;
    }

    /// @dev An audit that did not pass.
    struct Failure {
        RoundId round;
        uint256 client;
        uint256 charges;
        uint256 releases;
    }

    uint256 internal constant SLOTS = 2;
    uint256 internal constant MAX_JOBS = 6;

    JobId[] public allJobs;
    JobId[SLOTS] internal slots;
    RoundId[] internal played;
    Failure[] internal failures;
    mapping(RoundId => Play) internal plays;

    /// @dev Of a job: the bad number of the roster, and the rounds at its end.
    mapping(JobId => uint256) internal bad;
    mapping(JobId => uint256) internal roundsAtClose;

    /// @dev Of a stake: all that was paid in and taken out.
    mapping(JobId => mapping(Role => mapping(address => uint256))) public paidIn;
    mapping(JobId => mapping(Role => mapping(address => uint256))) public takenOut;
    mapping(RoundId => mapping(Role => mapping(address => uint256))) public claims;
    mapping(JobId => mapping(address => uint256)) public charged;
    mapping(JobId => mapping(address => uint256)) public held;

    uint256 public received;
    uint256 public sent;

    /// @dev What succeeded against the rules, and how often what happened.
    mapping(string => uint256) public breaches;
    mapping(string => uint256) public count;
    uint256 private _salt;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < CLIENTS; ++i) {
            clients.push(actor(string.concat("client", vm.toString(i))));
        }
        for (uint256 i = 0; i < SLOTS; ++i) {
            slots[i] = _newJob(i << 16);
        }
    }

    // ---- actions ----

    /// @dev Any action, for tests that roll the dice themselves.
    function act(uint256 dice) external {
        function(uint256)[16] memory actions = [
            _waitBlocks,
            _advance,
            _advance,
            _advance,
            _advance,
            _hold,
            _hold,
            _decideAudit,
            _unlock,
            _attack,
            _penalise,
            _changeSeat,
            _claim,
            _refund,
            _topUpOrLeave,
            _withdraw
        ];
        dice = _mix(dice);
        actions[dice % actions.length](dice >> 8);
    }

    function waitBlocks(uint256 dice) external {
        _waitBlocks(_mix(dice));
    }

    function advance(uint256 dice) external {
        _advance(_mix(dice));
    }

    /// @dev The protocol moves at least as often as anybody interferes with it.
    function advanceTwice(uint256 dice) external {
        _advance(_mix(dice));
        _advance(_mix(dice));
    }

    function hold(uint256 dice) external {
        _hold(_mix(dice));
    }

    function decideAudit(uint256 dice) external {
        _decideAudit(_mix(dice));
    }

    function unlock(uint256 dice) external {
        _unlock(_mix(dice));
    }

    function attack(uint256 dice) external {
        _attack(_mix(dice));
    }

    function penalise(uint256 dice) external {
        _penalise(_mix(dice));
    }

    function changeSeat(uint256 dice) external {
        _changeSeat(_mix(dice));
    }

    function claim(uint256 dice) external {
        _claim(_mix(dice));
    }

    function refund(uint256 dice) external {
        _refund(_mix(dice));
    }

    function topUpOrLeave(uint256 dice) external {
        _topUpOrLeave(_mix(dice));
    }

    function withdraw(uint256 dice) external {
        _withdraw(_mix(dice));
    }

    // ---- what the invariants read ----

    function balance() external view returns (uint256) {
        return address(deposits).balance;
    }

    /// @dev Stakes, what is set aside, budgets, credits and burn.
    function liabilities() external view returns (uint256 sum) {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            JobId job = allJobs[j];
            for (uint256 i = 0; i < CLIENTS; ++i) {
                sum += depositOf(job, i);
            }
            for (uint256 i = 0; i < ROSTER; ++i) {
                sum += stakeOf(job, i);
            }
            sum += deposits.budgetOf(job);
        }
        for (uint256 i = 0; i < failures.length; ++i) {
            Charge memory found = _chargeOf(failures[i]);
            if (found.status == ChargeStatus.Held) sum += found.held;
        }
        for (uint256 i = 0; i < ROSTER; ++i) {
            sum += deposits.creditOf(members[i].addr);
        }
        sum += deposits.creditOf(treasury) + deposits.burned();
    }

    /// @dev What may be left when everybody has gone.
    function dues() external view returns (uint256) {
        return deposits.burned() + deposits.creditOf(treasury);
    }

    function jobCount() external view returns (uint256) {
        return allJobs.length;
    }

    function failureCount() external view returns (uint256) {
        return failures.length;
    }

    function failureAt(uint256 i) external view returns (Failure memory, Charge memory) {
        return (failures[i], _chargeOf(failures[i]));
    }

    /// @dev What is held of a client's deposit.
    function heldOf(JobId job, uint256 client) public view returns (uint256) {
        return held[job][clients[client].addr];
    }

    /// @dev What a client has lost for good: paid in, not taken out, not in the stake, not held.
    function lossOf(JobId job, uint256 client) external view returns (uint256) {
        address addr = clients[client].addr;
        return paidIn[job][Role.Client][addr] - takenOut[job][Role.Client][addr]
            - depositOf(job, client) - heldOf(job, client);
    }

    function stakeLossOf(JobId job, uint256 member) external view returns (uint256) {
        address addr = members[member].addr;
        return
            paidIn[job][Role.Member][addr] - takenOut[job][Role.Member][addr] - stakeOf(job, member);
    }

    function chargedOf(JobId job, uint256 client) external view returns (uint256) {
        return charged[job][clients[client].addr];
    }

    function isBad(JobId job, uint256 member) public view returns (bool) {
        return bad[job] == member;
    }

    /// @dev Whether seats are three different accounts that have staked.
    function seatsAreSound(JobId job) external view returns (bool) {
        address[3] memory seated = jobs.seats(job);
        for (uint256 seat = 0; seat < 3; ++seat) {
            jobs.numberOf(job, seated[seat]);
            if (paidIn[job][Role.Member][seated[seat]] < MEMBER_STAKE) return false;
        }
        return seated[0] != seated[1] && seated[1] != seated[2] && seated[0] != seated[2];
    }

    function earnedWithin(JobId job) external view returns (bool) {
        uint256 earned = rounds.progress(job).earned;
        bool backed = deposits.budgetOf(job) + rewards.paid(job) >= earned;
        return earned <= deposits.fundedOf(job) && backed;
    }

    function verdictsStand() external view returns (bool) {
        for (uint256 i = 0; i < played.length; ++i) {
            bytes32 seen = plays[played[i]].verdict;
            if (seen != 0 && rounds.verdictHashOf(played[i]) != seen) return false;
        }
        return true;
    }

    function closedStayClosed() external view returns (bool) {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            Progress memory state = rounds.progress(allJobs[j]);
            if (state.closed && state.nextRound != roundsAtClose[allJobs[j]]) return false;
        }
        return true;
    }

    // ---- the end of everything ----

    /// @dev Closes all jobs, decides all audits, claims all pay and lets everyone take what is theirs.
    function resolveEverything() external {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            while (!rounds.progress(allJobs[j]).closed) _step(allJobs[j], _mix(j));
        }
        for (uint256 i = 0; i < failures.length; ++i) {
            _holdFailure(i);
            _endAudit(i);
        }
        _elapseTo(block.number + 100);
        for (uint256 i = 0; i < played.length; ++i) {
            _claimAll(played[i]);
        }
        for (uint256 j = 0; j < allJobs.length; ++j) {
            _tryRefund(allJobs[j]);
            _leaveAll(allJobs[j]);
        }
        _elapseTo(block.number + 100);
        for (uint256 j = 0; j < allJobs.length; ++j) {
            for (uint256 i = 0; i < CLIENTS; ++i) {
                _take(allJobs[j], Role.Client, clients[i].addr);
            }
            _takeStakes(allJobs[j]);
        }
        for (uint256 i = 0; i < ROSTER; ++i) {
            _takeCredit(members[i].addr);
        }
    }

    // ---- time ----

    function _waitBlocks(uint256 dice) private {
        _elapseTo(block.number + (dice % 8 == 0 ? 110 : 1 + dice % 4));
        ++count["waited"];
    }

    /// @dev Before time passes a deadline, honest members do what is due until then.
    function _elapseTo(uint256 target) private {
        for (uint256 i = 0; i < SLOTS; ++i) {
            uint32 opened = rounds.progress(slots[i]).nextRound;
            if (opened == 0) continue;
            RoundId round = roundOf(slots[i], opened - 1);
            if (rounds.round(round).root == 0) continue;
            Schedule memory deadlines = rounds.schedule(round);
            if (beacon.seedOf(round) == 0 && block.number <= deadlines.beacon) {
                if (target > deadlines.beacon) _publishPartials(round);
            }
            if (target > deadlines.attest && !plays[round].attested) {
                if (!beacon.isSettled(round)) _elapseTo(deadlines.beacon + 1);
                if (!plays[round].attested) {
                    _attestAll(round, uint256(keccak256(abi.encode(round))));
                }
            }
        }
        if (target > block.number) vm.roll(target);
    }

    // ---- a round ----

    function _newJob(uint256 dice) private returns (JobId job) {
        JobTerms memory terms = defaultTerms();
        terms.rounds = uint32(2 + dice % 4);
        terms.unlockDelay = 90;
        terms.auditRate = dice & 16 == 0 ? AUDIT_ALWAYS : AUDIT_ALWAYS / 2;
        terms.publicRoll = dice & 32 == 0;
        terms.treasuryShare = uint16(dice % 10_001);
        if (dice & 64 == 0) terms.penalties.client = CLIENT_DEPOSIT;
        job = createJob(terms);
        received += budgetFor(terms);
        // Without a standby, nobody on a bench can save the job.
        uint256 staked = (dice >> 16) & 3 == 1 ? 3 : ROSTER;
        for (uint256 i = 0; i < staked; ++i) {
            join(job, i);
            _note(job, Role.Member, members[i].addr, MEMBER_STAKE);
        }
        for (uint256 i = 0; i < CLIENTS; ++i) {
            enrol(job, i);
            _note(job, Role.Client, clients[i].addr, CLIENT_DEPOSIT);
        }
        bad[job] = (dice >> 7) % staked;
        allJobs.push(job);
        ++count["job started"];
    }

    function _advance(uint256 dice) private {
        uint256 slot = dice % SLOTS;
        if (!rounds.progress(slots[slot]).closed) _step(slots[slot], dice >> 8);
        else if (allJobs.length < MAX_JOBS) slots[slot] = _newJob(dice >> 8);
    }

    /// @dev The next step of a job that is not closed.
    function _step(JobId job, uint256 dice) private {
        uint32 opened = rounds.progress(job).nextRound;
        if (opened == 0) return _open(job);
        RoundId round = roundOf(job, opened - 1);
        RoundStatus status = rounds.round(round).status;
        Schedule memory deadlines = rounds.schedule(round);
        if (status == RoundStatus.Open) {
            if (block.number <= deadlines.roll && dice % 16 != 0) {
                return _commitRoll(round, dice >> 4);
            }
            _elapseTo(deadlines.roll + 1);
            return _void(round);
        }
        if (status == RoundStatus.Rolled) {
            if (!beacon.isSettled(round)) return _signBeacon(round, dice);
            return _attestAll(round, dice);
        }
        if (status == RoundStatus.Decided) return _finaliseOrVoid(round, dice);
        _open(job);
    }

    function _open(JobId job) private {
        uint32 deadline = jobs.participants(job).enrolDeadline;
        if (block.number <= deadline) _elapseTo(uint256(deadline) + 1);
        played.push(rounds.openRound(job));
        ++count["opened"];
    }

    /// @dev Clients that are active at the opening deliver, or do not.
    function _commitRoll(RoundId round, uint256 dice) private {
        uint256 onRoll;
        for (uint256 i = 0; i < CLIENTS; ++i) {
            ClientStatus status = jobs.client(round.job(), clients[i].addr).status;
            if (status == ClientStatus.Active && (dice >> i) & 1 == 1) onRoll |= 1 << i;
        }
        if (onRoll == 0) return;
        (uint256 a, uint256 b) = _honestSeats(rounds.round(round).seats, bad[round.job()]);
        commitRoll(round, onRoll, a, b);
        plays[round].onRoll = onRoll;
        ++count["rolled"];
    }

    function _signBeacon(RoundId round, uint256 dice) private {
        if (dice % 4 < 2 && plays[round].partials == 0) {
            publishBeacon(round);
            ++count["beacon by aggregate"];
            return;
        }
        _publishPartials(round);
        uint256 member = bad[round.job()];
        bool seated = _isSeated(round, member);
        if (!seated) return;
        if (dice % 4 == 2) {
            publishPartial(round, member);
            ++count["beacon by partials"];
        } else {
            _elapseTo(rounds.schedule(round).beacon + 1);
            ++count["beacon withheld"];
        }
    }

    /// @dev Of all honest seats that have not.
    function _publishPartials(RoundId round) private {
        uint8[3] memory seats = rounds.round(round).seats;
        for (uint256 seat = 0; seat < 3; ++seat) {
            if (isBad(round.job(), seats[seat])) continue;
            if ((plays[round].partials >> seats[seat]) & 1 == 1) continue;
            publishPartial(round, seats[seat]);
            plays[round].partials |= 1 << seats[seat];
        }
    }

    /// @dev Honest seats attest the truth; the bad one may, or lies, or is silent.
    function _attestAll(RoundId round, uint256 dice) private {
        Play storage play = plays[round];
        play.attested = true;
        for (uint256 i = 0; i < CLIENTS; ++i) {
            if ((play.onRoll >> i) & 1 == 0 || !beacon.isAudited(round, clients[i].addr)) continue;
            uint256 conduct = (dice >> (8 + 2 * i)) & 3;
            // Clients 0 and 1 are there, and client 2 is honest but may be away.
            if (i < 2 || conduct == 0) continue;
            play.failed |= 1 << i;
            if (i < HONEST) play.away |= 1 << i;
            failures.push(Failure(round, i, 0, 0));
        }
        play.passed = play.onRoll & ~play.failed;
        uint8[3] memory seats = rounds.round(round).seats;
        for (uint256 i = 0; i < 3; ++i) {
            uint256 number = seats[(i + dice) % 3];
            if (!isBad(round.job(), number)) {
                attest(round, number, play.passed);
            } else if (dice & 0xc0 == 0x40) {
                attest(round, number, play.passed == 0 ? play.onRoll : 0);
                ++count["lied"];
            } else if (dice & 0xc0 != 0) {
                attest(round, number, play.passed);
            }
        }
        play.verdict = rounds.verdictHashOf(round);
        if (play.verdict != keccak256(passesOf(play.passed))) ++breaches["verdict"];
        ++count["decided"];
    }

    function _finaliseOrVoid(RoundId round, uint256 dice) private {
        Schedule memory deadlines = rounds.schedule(round);
        if (dice % 4 == 0 || block.number > deadlines.finalise) {
            _elapseTo(uint256(deadlines.finalise) + 1);
            return _void(round);
        }
        (uint256 a, uint256 b) = _honestSeats(rounds.round(round).seats, bad[round.job()]);
        finalise(round, a, b);
        ++count["finalised"];
        _noteClosed(round.job());
    }

    function _void(RoundId round) private {
        rounds.voidRound(round);
        ++count["voided"];
        _noteClosed(round.job());
    }

    function _noteClosed(JobId job) private {
        Progress memory state = rounds.progress(job);
        if (!state.closed) return;
        roundsAtClose[job] = state.nextRound;
        ++count["job closed"];
    }

    // ---- audits ----

    function _hold(uint256 dice) private {
        if (failures.length == 0) return;
        _holdFailure(dice % failures.length);
    }

    function _holdFailure(uint256 i) private {
        Failure memory failure = failures[i];
        if (_chargeOf(failure).status != ChargeStatus.None) return;
        Play memory play = plays[failure.round];
        uint96 before = depositOf(failure.round.job(), failure.client);
        hold(failure.round, failure.client, play.onRoll, play.passed);
        uint96 penalty = jobs.terms(failure.round.job()).penalties.client;
        uint96 captured = _chargeOf(failure).held;
        held[failure.round.job()][clients[failure.client].addr] += captured;
        if (captured != (penalty < before ? penalty : before)) ++breaches["held amount"];
        ++count[captured == penalty ? "held" : "held what was left"];
    }

    function _decideAudit(uint256 dice) private {
        if (failures.length == 0) return;
        _endAudit(dice % failures.length);
    }

    /// @dev Who was only away is acquitted; cheats are charged.
    function _endAudit(uint256 i) private {
        Failure storage failure = failures[i];
        Charge memory found = _chargeOf(failure);
        if (found.status != ChargeStatus.Held) return;
        RoundId round = failure.round;
        JobId job = round.job();
        address addr = clients[failure.client].addr;
        held[job][addr] -= found.held;
        (uint256 a, uint256 b) = _honestSeats(jobs.participants(job).seats, bad[job]);
        if ((plays[round].away >> failure.client) & 1 == 1) {
            bytes32 passed = outcomeOf(round, failure.client, Outcome.Passed);
            charges.acquit(round, addr, signedBy(a, b, passed));
            ++failure.releases;
            ++count["acquitted"];
            return;
        }
        bool late = block.number > rounds.schedule(round).response;
        Outcome outcome = late ? Outcome.Unanswered : Outcome.Outside;
        bytes32 statement = outcomeOf(round, failure.client, outcome);
        charges.charge(round, addr, outcome, signedBy(a, b, statement));
        ++failure.charges;
        charged[job][addr] += found.held;
        ++count[late ? "charged late" : "charged"];
    }

    /// @dev Frees what nobody decided for too long, where no standby could step in.
    function _unlock(uint256 dice) private {
        if (failures.length == 0) return;
        Failure storage failure = failures[dice % failures.length];
        Charge memory found = _chargeOf(failure);
        JobId job = failure.round.job();
        address addr = clients[failure.client].addr;
        bool due = found.status == ChargeStatus.Held && _staked(job) == 3
            && block.number > uint256(found.heldAt) + jobs.terms(job).unlockDelay;
        bytes memory call = abi.encodeCall(charges.unlock, (failure.round, addr));
        if (!due) return _refused(address(charges), call, "unlock that is not due");
        charges.unlock(failure.round, addr);
        held[job][addr] -= found.held;
        ++failure.releases;
        ++count["unlocked"];
    }

    // ---- what must be refused ----

    function _attack(uint256 dice) private {
        if (played.length == 0) return;
        RoundId round = played[(dice >> 8) % played.length];
        uint256 kind = dice % 7;
        if (kind == 0) _attackAudits(round, dice >> 64);
        else if (kind == 1) _attackMembers(round, dice >> 64);
        else if (kind == 2) _attackRound(round);
        else if (kind == 3) _attackSeats(round.job());
        else if (kind == 4) _attackClaims(round, dice >> 64);
        else if (kind == 5) _attackStakes(round.job(), dice >> 64);
        else _attackTime(round.job());
    }

    /// @dev Honest clients that passed, and what failed with a signature that does not count.
    function _attackAudits(RoundId round, uint256 dice) private {
        uint256 client = dice % CLIENTS;
        Play memory play = plays[round];
        if (play.onRoll != 0 && (play.failed >> client) & 1 == 0) {
            RollEntry memory entry = entryOf(round, client, play.onRoll);
            bytes memory call = abi.encodeCall(
                charges.hold, (round, clients[client].addr, passesOf(play.passed), entry)
            );
            _refused(address(charges), call, "hold of who did not fail");
        }
        if (failures.length != 0) _attackFailure(failures[dice % failures.length]);
    }

    function _attackFailure(Failure memory failure) private {
        JobId job = failure.round.job();
        bytes32 statement = outcomeOf(failure.round, failure.client, Outcome.Outside);
        _tryCharge(failure, _pairOfBad(job, statement), "charge with one signature");
        if (_chargeOf(failure).status == ChargeStatus.Held) return;
        (uint256 a, uint256 b) = _honestSeats(jobs.participants(job).seats, bad[job]);
        _tryCharge(failure, signedBy(a, b, statement), "second charge");
    }

    function _tryCharge(Failure memory failure, bytes[2] memory pair, string memory what) private {
        address addr = clients[failure.client].addr;
        bytes memory call =
            abi.encodeCall(charges.charge, (failure.round, addr, Outcome.Outside, pair));
        _refused(address(charges), call, what);
    }

    function _attackMembers(RoundId round, uint256 dice) private {
        uint256 member = dice % ROSTER;
        if (isBad(round.job(), member)) return;
        address addr = members[member].addr;
        for (uint8 code = 0; code < 6; ++code) {
            MemberFault fault = MemberFault(code);
            bytes memory call = abi.encodeCall(charges.penalise, (round, addr, fault));
            _refused(address(charges), call, "penalty of an honest member");
            bytes32 statement = faultOf(round, member, fault);
            call = abi.encodeCall(
                charges.penaliseCertified, (round, addr, fault, _pairOfBad(round.job(), statement))
            );
            _refused(address(charges), call, "penalty of an honest member");
        }
    }

    function _attackRound(RoundId round) private {
        JobId job = round.job();
        bytes[2] memory pair = _pairOfBad(job, rollStatement(round, 1));
        bytes memory call = abi.encodeCall(
            rounds.commitRoll, (round, rootOf(round, 1), 1, pairsOf(round, 1), pair)
        );
        _refused(address(rounds), call, "roll with one signature");
        pair = _pairOfBad(job, resultOf(round));
        call = abi.encodeCall(rounds.finalise, (round, aggregateOf(round), modelAfter(round), pair));
        _refused(address(rounds), call, "result with one signature");
    }

    function _attackSeats(JobId job) private {
        for (uint256 standby = 0; standby < ROSTER; ++standby) {
            bytes[2] memory pair = _pairOfBad(job, seatChangeOf(job, 0, standby));
            address addr = members[standby].addr;
            bytes memory call = abi.encodeCall(jobs.changeSeat, (job, 0, addr, pair));
            _refused(address(jobs), call, "seat with one signature");
        }
    }

    function _attackClaims(RoundId round, uint256 dice) private {
        uint256 client = dice % CLIENTS;
        Play memory play = plays[round];
        address addr = clients[client].addr;
        bool open = (play.passed >> client) & 1 == 1 && play.verdict != 0;
        bytes[] memory verdicts = new bytes[](1);
        verdicts[0] = passesOf(play.passed);
        if (!open || claims[round][Role.Client][addr] != 0) {
            bytes memory call =
                abi.encodeCall(rewards.claimContributions, (addr, only(round), verdicts));
            _refused(address(rewards), call, "claim of nothing");
        }
        addr = members[dice % ROSTER].addr;
        if (play.verdict == 0 || claims[round][Role.Member][addr] != 0) {
            bytes memory call = abi.encodeCall(rewards.claimService, (addr, only(round)));
            _refused(address(rewards), call, "claim of nothing");
        }
    }

    /// @dev A stake leaves only after the delay.
    function _attackStakes(JobId job, uint256 dice) private {
        Role role = Role(dice & 1);
        address owner = role == Role.Client
            ? clients[(dice >> 1) % CLIENTS].addr
            : members[(dice >> 1) % ROSTER].addr;
        uint32 until = deposits.account(job, role, owner).withdrawableAt;
        if (until != 0 && block.number >= until) return;
        vm.prank(owner);
        _refused(
            address(deposits), abi.encodeCall(deposits.withdraw, (job, role)), "early withdrawal"
        );
    }

    function _attackTime(JobId job) private {
        Progress memory state = rounds.progress(job);
        if (state.closed) {
            _refused(
                address(rounds), abi.encodeCall(rounds.openRound, (job)), "round of a closed job"
            );
        } else {
            _refused(
                address(rewards), abi.encodeCall(rewards.refund, (job)), "refund of an open job"
            );
        }
        if (!state.closed || jobs.participants(job).undecided != 0) {
            vm.prank(members[0].addr);
            _refused(address(jobs), abi.encodeCall(jobs.unbondStake, (job)), "member left early");
        }
    }

    // ---- members ----

    /// @dev Takes every penalty that is due, and lets the bad one say two things.
    function _penalise(uint256 dice) private {
        if (played.length == 0) return;
        RoundId round = played[dice % played.length];
        uint256 member = bad[round.job()];
        address addr = members[member].addr;
        if (_isSeated(round, member)) {
            for (uint8 code = 0; code < 4; ++code) {
                bytes memory call =
                    abi.encodeCall(charges.penalise, (round, addr, MemberFault(code)));
                (bool taken,) = address(charges).call(call);
                if (taken) ++count[string.concat("fault ", vm.toString(code))];
            }
        }
        if ((dice >> 8) % 8 == 0 && !charges.isPenalised(round, addr, MemberFault.Equivocation)) {
            bytes32[2] memory contents = [keccak256("a"), keccak256("b")];
            bytes[2] memory signatures;
            for (uint256 i = 0; i < 2; ++i) {
                signatures[i] = signed(
                    members[member],
                    Statements.memberMessage(round, openingOf(round), 1, contents[i])
                );
            }
            charges.penaliseEquivocation(round, addr, 1, contents, signatures);
            ++count["equivocated"];
        }
        if ((dice >> 16) % 8 == 0) _certify(round, member, MemberFault.Absence, "absent");
        if ((dice >> 24) % 8 == 0) _certify(round, member, MemberFault.Falsehood, "false");
    }

    function _certify(RoundId round, uint256 member, MemberFault fault, string memory what)
        private
    {
        address addr = members[member].addr;
        if (charges.isPenalised(round, addr, fault)) return;
        (uint256 a, uint256 b) = _honestSeats([0, 1, 2], member);
        bytes[2] memory signatures = signedBy(a, b, faultOf(round, member, fault));
        charges.penaliseCertified(round, addr, fault, signatures);
        ++count[what];
    }

    function _changeSeat(uint256 dice) private {
        JobId job = slots[dice % SLOTS];
        uint8[3] memory seats = jobs.participants(job).seats;
        uint8 seat = uint8((dice >> 8) % 3);
        uint256 standby = (dice >> 16) % _staked(job);
        if (standby == seats[0] || standby == seats[1] || standby == seats[2]) return;
        (uint256 a, uint256 b) = _honestSeats(seats, bad[job]);
        changeSeat(job, seat, standby, a, b);
        ++count["seat changed"];
    }

    // ---- money ----

    function _claim(uint256 dice) private {
        if (played.length == 0) return;
        RoundId round = played[dice % played.length];
        if (plays[round].verdict == 0) return;
        if ((dice >> 64) & 1 == 0) _claimContribution(round, (dice >> 8) % CLIENTS);
        else _claimService(round, (dice >> 8) % 3);
    }

    function _claimAll(RoundId round) private {
        if (plays[round].verdict == 0) return;
        for (uint256 i = 0; i < CLIENTS; ++i) {
            _claimContribution(round, i);
        }
        for (uint256 seat = 0; seat < 3; ++seat) {
            _claimService(round, seat);
        }
    }

    function _claimContribution(RoundId round, uint256 client) private {
        address addr = clients[client].addr;
        if ((plays[round].passed >> client) & 1 == 0) return;
        if (claims[round][Role.Client][addr] != 0) return;
        uint256 before = addr.balance;
        claim(round, client, plays[round].passed);
        if (addr.balance != before + CLIENT_PAY) ++breaches["pay"];
        sent += CLIENT_PAY;
        ++claims[round][Role.Client][addr];
        ++count["contribution claimed"];
    }

    function _claimService(RoundId round, uint256 seat) private {
        uint256 member = rounds.round(round).seats[seat];
        address addr = members[member].addr;
        if ((rounds.majorityOf(round) >> seat) & 1 == 0) return;
        if (claims[round][Role.Member][addr] != 0) return;
        uint256 before = addr.balance;
        claimService(round, member);
        if (addr.balance != before + MEMBER_PAY) ++breaches["pay"];
        sent += MEMBER_PAY;
        ++claims[round][Role.Member][addr];
        ++count["service claimed"];
    }

    function _refund(uint256 dice) private {
        _tryRefund(allJobs[dice % allJobs.length]);
    }

    function _tryRefund(JobId job) private {
        uint256 before = creator.balance;
        (bool done,) = address(rewards).call(abi.encodeCall(rewards.refund, (job)));
        if (!done) return;
        sent += creator.balance - before;
        ++count["refunded"];
    }

    function _topUpOrLeave(uint256 dice) private {
        JobId job = allJobs[dice % allJobs.length];
        dice >>= 8;
        uint256 i = dice % CLIENTS;
        if ((dice >> 8) % 4 == 0) {
            _leave(job, i);
        } else if ((dice >> 8) % 4 == 1) {
            _leaveMember(job, i);
        } else if (deposits.account(job, Role.Client, clients[i].addr).withdrawableAt == 0) {
            uint96 amount = uint96((dice >> 16) % 1 ether);
            hoax(clients[i].addr, clients[i].addr.balance + amount);
            jobs.topUpDeposit{value: amount}(job);
            _note(job, Role.Client, clients[i].addr, amount);
            ++count["topped up"];
        }
    }

    function _leave(JobId job, uint256 client) private {
        address addr = clients[client].addr;
        if (deposits.account(job, Role.Client, addr).withdrawableAt != 0) return;
        vm.prank(addr);
        jobs.unbondDeposit(job);
        ++count["client left"];
    }

    function _leaveMember(JobId job, uint256 member) private {
        if (!rounds.progress(job).closed || jobs.participants(job).undecided != 0) return;
        if (member >= _staked(job)) return;
        address addr = members[member].addr;
        if (deposits.account(job, Role.Member, addr).withdrawableAt != 0) return;
        vm.prank(addr);
        jobs.unbondStake(job);
        ++count["member left"];
    }

    function _leaveAll(JobId job) private {
        for (uint256 i = 0; i < CLIENTS; ++i) {
            _leave(job, i);
        }
        _leaveMembers(job);
    }

    function _leaveMembers(JobId job) private {
        for (uint256 i = 0; i < ROSTER; ++i) {
            _leaveMember(job, i);
        }
    }

    function _withdraw(uint256 dice) private {
        JobId job = allJobs[dice % allJobs.length];
        dice >>= 8;
        if (dice % 4 == 0) _takeCredit(members[(dice >> 2) % ROSTER].addr);
        else if (dice % 4 == 1) _takeAllStakes();
        else _take(job, Role.Client, clients[(dice >> 2) % CLIENTS].addr);
    }

    function _takeAllStakes() private {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            _takeStakes(allJobs[j]);
        }
    }

    function _takeStakes(JobId job) private {
        for (uint256 i = 0; i < ROSTER; ++i) {
            _take(job, Role.Member, members[i].addr);
        }
    }

    function _take(JobId job, Role role, address owner) private {
        uint32 until = deposits.account(job, role, owner).withdrawableAt;
        uint256 amount = deposits.account(job, role, owner).balance;
        if (until == 0 || block.number < until || amount == 0) return;
        uint256 before = owner.balance;
        vm.prank(owner);
        deposits.withdraw(job, role);
        if (owner.balance != before + amount) ++breaches["withdrawal"];
        takenOut[job][role][owner] += amount;
        sent += amount;
        ++count[role == Role.Client ? "deposit withdrawn" : "stake withdrawn"];
    }

    function _takeCredit(address owner) private {
        uint256 amount = deposits.creditOf(owner);
        if (amount == 0) return;
        deposits.withdrawCredit(owner);
        sent += amount;
        ++count["credit withdrawn"];
    }

    // ---- values ----

    function _note(JobId job, Role role, address owner, uint256 amount) private {
        paidIn[job][role][owner] += amount;
        received += amount;
    }

    function _refused(address to, bytes memory call, string memory what) private {
        (bool done,) = to.call(call);
        if (done) ++breaches[what];
        ++count[string.concat("refused: ", what)];
    }

    /// @dev The bad member's signature, and that of somebody who has no seat.
    function _pairOfBad(JobId job, bytes32 statement) private view returns (bytes[2] memory) {
        return [signed(members[bad[job]], statement), signed(stranger, statement)];
    }

    function _honestSeats(uint8[3] memory seats, uint256 badNumber)
        private
        pure
        returns (uint256, uint256)
    {
        if (seats[0] == badNumber) return (seats[1], seats[2]);
        return seats[1] == badNumber ? (seats[0], seats[2]) : (seats[0], seats[1]);
    }

    /// @dev How many of the roster have staked: with the standbys, or without.
    function _staked(JobId job) private view returns (uint256) {
        return jobs.participants(job).joined >> 3 == 0 ? 3 : ROSTER;
    }

    function _isSeated(RoundId round, uint256 number) private view returns (bool) {
        uint8[3] memory seats = rounds.round(round).seats;
        return seats[0] == number || seats[1] == number || seats[2] == number;
    }

    function _chargeOf(Failure memory failure) private view returns (Charge memory) {
        return charges.chargeOf(failure.round, clients[failure.client].addr);
    }

    function _mix(uint256 dice) private returns (uint256) {
        return uint256(keccak256(abi.encode(dice, ++_salt)));
    }
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Statements} from "contracts/libraries/Statements.sol";
import {
    AUDIT_ALWAYS,
    BatchProof,
    ClientStatus,
    JobId,
    JobProgress,
    JobTerms,
    MemberFault,
    Penalties,
    Phases,
    Reason,
    Role,
    roundOf,
    RoundId,
    RoundStatus,
    Schedule,
    Slash,
    SlashStatus,
    Split,
    Verdict
} from "contracts/Types.sol";
import {MerkleTree} from "../support/MerkleTree.sol";
import {Protocol} from "../support/Protocol.sol";

/// @dev All of them enrol in every job.
uint256 constant CLIENTS = 5;

/// @title Plays whole jobs with honest and cheating clients and members, as the dice fall
/// @notice Every action is either valid by the handler's own account of what happened, and then must
/// succeed, or not, and then is tried all the same and must be refused.
contract Handler is Protocol {
    /// @dev What the handler knows of a round, apart from what the contracts say.
    struct Play {
        uint256 openedAt;
        bool committed;
        bool attested;
        /// bit i: client i committed directly, has a leaf in the batch, is faulted
        uint256 direct;
        uint256 batch;
        uint256 faulted;
        /// bit m: member m published a partial, withheld the beacon, was silent, dissented
        uint256 partials;
        uint256 withheld;
        uint256 silent;
        uint256 dissented;
        bool decided;
        bool decidedBeforeDelivery;
        Reason[CLIENTS] conduct;
        Verdict verdict;
        Verdict dissent;
    }

    /// @dev A slash that was requested.
    struct Charge {
        RoundId round;
        uint256 client;
        /// what the client had, and what the reason costs at most
        uint96 depositBefore;
        uint96 penalty;
        uint256 vetoes;
        uint256 executions;
    }

    /// @dev The money of one client in one job.
    struct Purse {
        uint256 paidIn;
        uint256 withdrawn;
        /// what is set aside or gone for slashes that were not vetoed
        uint256 charged;
        uint256 leftAt;
        bool everFaulted;
    }

    uint256 internal constant SLOTS = 3;
    uint256 internal constant MAX_JOBS = 9;

    JobId[] public allJobs;
    JobId[SLOTS] internal slots;
    RoundId[] internal rounds;
    Charge[] internal charges;
    mapping(RoundId => Play) internal plays;
    mapping(JobId => mapping(uint256 => Purse)) internal purses;
    mapping(RoundId => mapping(uint256 => uint256)) public requests;
    mapping(RoundId => mapping(uint256 => mapping(MemberFault => bool))) internal penalised;

    /// @dev All that slashes and penalties took, and all credits that were paid out.
    uint256 public distributed;
    uint256 public creditsPaid;
    /// @dev Set when something succeeded that the handler's account says must not.
    bool public withdrewDuringAudit;
    bool public slashedAfterWithdrawal;
    bool public slashedTwice;
    bool public slashedWithoutFault;

    /// @dev How often something happened, to know that the run was worth anything.
    mapping(string => uint256) public count;
    uint256 private _salt;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < CLIENTS; ++i) {
            clients.push(actor(string.concat("client", vm.toString(i))));
        }
        for (uint256 i = 0; i < SLOTS; ++i) {
            slots[i] = _newJob(i);
        }
    }

    // ---- actions ----

    /// @dev Any action, for tests that roll the dice themselves.
    function act(uint256 dice) external {
        function(uint256)[14] memory actions = [
            _waitBlocks,
            _advance,
            _advance,
            _advance,
            _advance,
            _request,
            _accuseFalsely,
            _veto,
            _execute,
            _penalise,
            _topUp,
            _unbond,
            _withdraw,
            _withdrawCredit
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

    function request(uint256 dice) external {
        _request(_mix(dice));
    }

    function accuseFalsely(uint256 dice) external {
        _accuseFalsely(_mix(dice));
    }

    function veto(uint256 dice) external {
        _veto(_mix(dice));
    }

    function execute(uint256 dice) external {
        _execute(_mix(dice));
    }

    function penalise(uint256 dice) external {
        _penalise(_mix(dice));
    }

    function topUp(uint256 dice) external {
        _topUp(_mix(dice));
    }

    function unbond(uint256 dice) external {
        _unbond(_mix(dice));
    }

    function withdraw(uint256 dice) external {
        _withdraw(_mix(dice));
    }

    function withdrawCredit(uint256 dice) external {
        _withdrawCredit(_mix(dice));
    }

    // ---- what the invariants read ----

    function balance() external view returns (uint256) {
        return address(deposits).balance;
    }

    /// @dev Stakes, what is set aside, credits and burn.
    function liabilities() external view returns (uint256 sum) {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            for (uint256 i = 0; i < CLIENTS; ++i) {
                sum += depositOf(allJobs[j], i);
            }
            for (uint256 i = 0; i < 3; ++i) {
                sum += stakeOf(allJobs[j], i);
            }
        }
        for (uint256 i = 0; i < charges.length; ++i) {
            Slash memory slash = _slashOf(charges[i]);
            if (slash.status == SlashStatus.Requested) sum += slash.captured;
        }
        sum += _credits() + deposits.creditOf(treasury) + deposits.burned();
    }

    function jobCount() external view returns (uint256) {
        return allJobs.length;
    }

    function chargeCount() external view returns (uint256) {
        return charges.length;
    }

    function chargeAt(uint256 i) external view returns (Charge memory, Slash memory) {
        return (charges[i], _slashOf(charges[i]));
    }

    function purseOf(JobId job, uint256 client) external view returns (Purse memory) {
        return purses[job][client];
    }

    /// @dev What the client has lost so far: what it paid in and neither has nor has withdrawn.
    function lossOf(JobId job, uint256 client) external view returns (uint256) {
        Purse memory purse = purses[job][client];
        return purse.paidIn - purse.withdrawn - depositOf(job, client);
    }

    /// @dev Where all that was distributed is.
    function distributedAndFound() external view returns (uint256) {
        return deposits.burned() + deposits.creditOf(treasury) + _credits() + creditsPaid;
    }

    /// @dev What the contract may still hold when everybody has gone.
    function dues() external view returns (uint256) {
        return deposits.burned() + deposits.creditOf(treasury);
    }

    // ---- the end of everything ----

    /// @dev Closes all jobs, executes all slashes and lets everyone take what is theirs.
    function resolveEverything() external {
        for (uint256 j = 0; j < allJobs.length; ++j) {
            _closeJob(allJobs[j]);
        }
        for (uint256 i = 0; i < charges.length; ++i) {
            Slash memory slash = _slashOf(charges[i]);
            if (slash.status != SlashStatus.Requested) continue;
            _rollTo(slash.executableAt);
            slashing.execute(charges[i].round, clients[charges[i].client].addr);
        }
        for (uint256 j = 0; j < allJobs.length; ++j) {
            for (uint256 i = 0; i < CLIENTS; ++i) {
                if (purses[allJobs[j]][i].leftAt == 0) _unbondDeposit(allJobs[j], i);
            }
            for (uint256 i = 0; i < 3; ++i) {
                if (_unbondingAt(allJobs[j], Role.Member, i) == 0) _unbondStake(allJobs[j], i);
            }
        }
        vm.roll(block.number + 1000);
        for (uint256 j = 0; j < allJobs.length; ++j) {
            for (uint256 i = 0; i < CLIENTS; ++i) {
                if (depositOf(allJobs[j], i) != 0) _take(allJobs[j], Role.Client, clients[i].addr);
            }
            for (uint256 i = 0; i < 3; ++i) {
                if (stakeOf(allJobs[j], i) != 0) _take(allJobs[j], Role.Member, members[i].addr);
            }
        }
        for (uint256 i = 0; i < 3; ++i) {
            if (deposits.creditOf(members[i].addr) != 0) {
                deposits.withdrawCredit(members[i].addr);
            }
        }
    }

    // ---- a round ----

    function _waitBlocks(uint256 dice) private {
        vm.roll(block.number + 1 + dice % 4);
        ++count["waited"];
    }

    /// @dev The next step of one of the running jobs.
    function _advance(uint256 dice) private {
        uint256 slot = dice % SLOTS;
        JobId job = slots[slot];
        dice >>= 8;
        JobProgress memory progress = jobs.progress(job);
        if (progress.closed) {
            if (allJobs.length < MAX_JOBS) slots[slot] = _newJob(dice);
            return;
        }
        if (progress.nextRound == 0) return _open(job, dice);
        RoundId round = roundOf(job, progress.nextRound - 1);
        Play storage play = plays[round];
        RoundStatus status = jobs.round(round).status;
        if (status == RoundStatus.Open) {
            Schedule memory deadlines = jobs.schedule(round);
            if (block.number <= deadlines.commit && !play.committed) {
                return _commitAll(round, dice);
            }
            if (block.number <= deadlines.beacon && beacon.seedOf(round) == 0) {
                return _signBeacon(round, dice);
            }
            if (block.number <= deadlines.attest && !play.attested) return _attestAll(round, dice);
            _rollTo(deadlines.attest + 1);
            return _void(round);
        }
        if (status == RoundStatus.Decided) return _finaliseOrVoid(round, dice);
        _open(job, dice);
    }

    function _open(JobId job, uint256 dice) private {
        rollPast(jobs.progress(job).enrolDeadline);
        RoundId round = jobs.openRound(job);
        plays[round].openedAt = block.number;
        rounds.push(round);
        ++count["opened"];
        if (dice >> 255 == 1) _commitAll(round, dice);
    }

    /// @dev Two bits a client: directly, in the batch, both or not at all. The relayer is careless
    /// and takes leaves of clients that are suspended or have left.
    function _commitAll(RoundId round, uint256 dice) private {
        Play storage play = plays[round];
        play.committed = true;
        for (uint256 i = 0; i < CLIENTS; ++i) {
            uint256 way = (dice >> (2 * i)) & 3;
            ClientStatus status = _statusOf(round.job(), i);
            if (way & 2 != 0 || status != ClientStatus.Active) play.batch |= 1 << i;
            if (way & 1 != 0 && status == ClientStatus.Active) {
                commit(round, i);
                play.direct |= 1 << i;
                ++count["committed directly"];
            }
            // Clients 0 and 1 are always honest.
            uint256 cheat = (dice >> (16 + 4 * i)) & 15;
            if (i >= 2 && cheat >= 1 && cheat <= 8) play.conduct[i] = Reason((cheat - 1) / 2 + 1);
            if (i >= 2 && status == ClientStatus.Suspended) {
                play.conduct[i] = Reason.CommitmentMismatch;
            }
        }
        if (play.batch != 0) {
            bytes32[] memory leaves = _leaves(round);
            vm.prank(relayer);
            jobs.commitBatch(round, MerkleTree.root(leaves), uint32(leaves.length));
            ++count["committed in a batch"];
        }
    }

    function _signBeacon(RoundId round, uint256 dice) private {
        Schedule memory deadlines = jobs.schedule(round);
        rollPast(deadlines.commit);
        Play storage play = plays[round];
        uint256 kind = dice % 8;
        if (kind < 4 && play.partials == 0) {
            publishBeacon(round);
            ++count["beacon by aggregate"];
            return;
        }
        // The others publish their parts; for kinds 6 and 7 one member never does.
        uint256 silent = kind < 6 ? 3 : (dice >> 3) % 3;
        for (uint256 i = 0; i < 3; ++i) {
            if (i == silent || (play.partials >> i) & 1 == 1) continue;
            publishPartial(round, i);
            play.partials |= 1 << i;
        }
        if (play.partials == 7) {
            ++count["beacon by partials"];
        } else {
            rollPast(deadlines.beacon);
            ++count["beacon withheld"];
        }
    }

    /// @dev Usually all attest the truth; one may be silent or dissent, or two, and nobody decides.
    function _attestAll(RoundId round, uint256 dice) private {
        Play storage play = plays[round];
        play.attested = true;
        Schedule memory deadlines = jobs.schedule(round);
        if (dice % 8 != 0) rollPast(deadlines.deliver);
        play.decidedBeforeDelivery = block.number <= deadlines.deliver;
        if (beacon.seedOf(round) == 0) play.withheld = 7 & ~play.partials;
        play.verdict = _truth(round);
        // Faults everybody, honest or not.
        for (uint32 i = 0; i < CLIENTS; ++i) {
            play.dissent.faults =
                abi.encodePacked(play.dissent.faults, i, uint8(Reason.ReplayOutside));
        }

        uint256 kind = (dice >> 3) % 8;
        uint256 bad = (dice >> 6) % 3;
        if (kind == 0 || kind == 1) play.silent = 1 << bad;
        if (kind == 2 || kind == 3) play.dissented = 1 << bad;
        if (kind == 4) {
            play.silent = 1 << bad;
            play.dissented = 1 << ((bad + 1) % 3);
        }
        for (uint256 i = 0; i < 3; ++i) {
            if ((play.silent >> i) & 1 == 1) continue;
            bool truthful = (play.dissented >> i) & 1 == 0;
            attest(round, i, truthful ? play.verdict : play.dissent);
        }
        play.decided = kind != 4;
        if (!play.decided) {
            ++count["undecided"];
            return;
        }
        for (uint256 i = 0; i < CLIENTS; ++i) {
            if ((play.faulted >> i) & 1 == 1) purses[round.job()][i].everFaulted = true;
        }
        ++count["decided"];
    }

    /// @dev What the gates find: the replay only for those who are audited.
    function _truth(RoundId round) private returns (Verdict memory verdict) {
        Play storage play = plays[round];
        verdict.passes = new bytes(1);
        for (uint32 i = 0; i < CLIENTS; ++i) {
            if (((play.direct | play.batch) >> i) & 1 == 0) continue;
            Reason reason = play.conduct[i];
            bool found = reason == Reason.CommitmentMismatch || reason == Reason.NotDelivered
                || (reason != Reason.None && beacon.isAudited(round, clients[i].addr));
            if (found) {
                verdict.faults = abi.encodePacked(verdict.faults, i, uint8(reason));
                play.faulted |= 1 << i;
            } else {
                verdict.passes[0] |= bytes1(uint8(1 << i));
            }
        }
    }

    function _finaliseOrVoid(RoundId round, uint256 dice) private {
        uint32 deadline = jobs.schedule(round).finalise;
        if (dice % 8 == 0) rollPast(deadline);
        if (block.number > deadline) return _void(round);
        finalise(round);
        ++count["finalised"];
    }

    function _void(RoundId round) private {
        jobs.voidRound(round);
        ++count["voided"];
    }

    // ---- slashes ----

    function _request(uint256 dice) private {
        if (rounds.length == 0) return;
        (RoundId round, uint256 client) = _pickFault(dice);
        Play storage play = plays[round];
        if (!play.decided || (play.faulted >> client) & 1 == 0) return;
        bool inTime = block.number <= jobs.schedule(round).request;
        bool delivered = play.conduct[client] != Reason.NotDelivered || !play.decidedBeforeDelivery;
        bool first = requests[round][client] == 0;
        bool valid = inTime && delivered && first && _tookPart(round, client);
        uint96 before = depositOf(round.job(), client);
        if (_tryRequest(round, client, play.verdict, _position(play.faulted, client))) {
            if (!valid) slashedWithoutFault = true;
            if (!first) slashedTwice = true;
            if (purses[round.job()][client].withdrawn != 0) slashedAfterWithdrawal = true;
            ++requests[round][client];
            _charge(round, client, before);
            return;
        }
        assertFalse(valid, "a valid request was refused");
        if (!first) ++count["second request refused"];
        else if (!inTime) ++count["late request refused"];
        else if (!delivered) ++count["charge of non-delivery before the deadline refused"];
        else ++count["request on a leaver's leaf refused"];
    }

    function _charge(RoundId round, uint256 client, uint96 before) private {
        Penalties memory penalties = jobs.terms(round.job()).penalties;
        uint96 penalty = _penalty(penalties, plays[round].conduct[client]);
        charges.push(Charge(round, client, before, penalty, 0, 0));
        purses[round.job()][client].charged += _slashOf(charges[charges.length - 1]).captured;
        if (before < penalty) ++count["capture clamped"];
        bool direct = (plays[round].direct >> client) & 1 == 1;
        ++count[direct ? "requested on a direct commitment" : "requested on a leaf"];
    }

    /// @dev A dissenter's verdict, or the decided one against somebody that it does not fault.
    function _accuseFalsely(uint256 dice) private {
        if (rounds.length == 0) return;
        RoundId round = rounds[(dice >> 16) % rounds.length];
        Play storage play = plays[round];
        uint256 client = dice % CLIENTS;
        if (!play.attested || (play.faulted >> client) & 1 == 1) return;
        bool forged = (dice >> 8) & 1 == 1;
        Verdict memory verdict = forged ? play.dissent : play.verdict;
        bool requested = _tryRequest(round, client, verdict, forged ? client : (dice >> 9) % 4);
        if (requested) slashedWithoutFault = true;
        ++count["false accusation refused"];
    }

    function _veto(uint256 dice) private {
        (bool found, uint256 i) = _pendingCharge(dice);
        if (!found) return;
        Charge storage charge = charges[i];
        Slash memory slash = _slashOf(charge);
        address client = clients[charge.client].addr;
        bool receipts = slash.reason == Reason.NotDelivered && (dice >> 200) & 1 == 1;
        bytes32 statement = receipts
            ? Statements.deliveryReceipt(
                charge.round, client, beacon.isAudited(charge.round, client)
            )
            : Statements.acquittal(charge.round, client);
        bytes[2] memory signatures = signedBy(dice % 3, (dice + 1) % 3, statement);
        bool valid = block.number < slash.executableAt;
        bytes memory call = receipts
            ? abi.encodeCall(slashing.vetoWithReceipts, (charge.round, client, signatures))
            : abi.encodeCall(slashing.vetoWithAcquittals, (charge.round, client, signatures));
        (bool vetoed,) = address(slashing).call(call);
        assertEq(vetoed, valid, "veto");
        if (!vetoed) {
            ++count["late veto refused"];
            return;
        }
        ++charge.vetoes;
        purses[charge.round.job()][charge.client].charged -= slash.captured;
        ++count[receipts ? "vetoed by receipts" : "vetoed by acquittals"];
    }

    /// @dev Of a pending slash, or of one that is over and must stay so.
    function _execute(uint256 dice) private {
        if (charges.length == 0) return;
        (bool found, uint256 i) = _pendingCharge(dice);
        if (!found) i = dice % charges.length;
        Charge storage charge = charges[i];
        Slash memory slash = _slashOf(charge);
        if (found && (dice >> 200) % 2 == 0) _rollTo(slash.executableAt);
        bool valid = found && block.number >= slash.executableAt;
        uint256 before = this.distributedAndFound();
        try slashing.execute(charge.round, clients[charge.client].addr) {
            if (!valid) slashedTwice = true;
            ++charge.executions;
            distributed += slash.captured;
            assertEq(this.distributedAndFound() - before, slash.captured, "distributed");
            ++count["executed"];
        } catch {
            assertFalse(valid, "a due execution was refused");
            ++count[found ? "early execution refused" : "second execution refused"];
        }
    }

    function _penalise(uint256 dice) private {
        if (rounds.length == 0) return;
        RoundId round = rounds[(dice >> 16) % rounds.length];
        MemberFault fault = MemberFault((dice >> 8) % 3);
        uint256 guilty = _guiltyOf(plays[round], fault);
        uint256 member = dice % 3;
        // Rather somebody who is guilty.
        for (uint256 i = 0; i < 3 && (dice >> 64) % 4 != 0 && (guilty >> member) & 1 == 0; ++i) {
            member = (member + 1) % 3;
        }
        bool due = fault != MemberFault.VerdictSilence || block.number > jobs.schedule(round).attest;
        bool first = !penalised[round][member][fault];
        bool valid = plays[round].decided && due && first && (guilty >> member) & 1 == 1;
        address addr = members[member].addr;
        uint256 stake = stakeOf(round.job(), member);
        uint256 own = deposits.creditOf(addr);
        uint256 before = this.distributedAndFound();
        try slashing.penaliseMember(round, addr, fault) {
            assertTrue(valid, "a member was penalised without a fault");
            penalised[round][member][fault] = true;
            uint256 taken = stake - stakeOf(round.job(), member);
            distributed += taken;
            assertEq(this.distributedAndFound() - before, taken, "distributed");
            assertEq(deposits.creditOf(addr), own, "paid from its own penalty");
            string[3] memory names = ["withholding", "dissent", "silence"];
            ++count[string.concat("penalised for ", names[uint8(fault)])];
        } catch {
            assertFalse(valid, "a due penalty was refused");
            ++count["penalty refused"];
        }
    }

    // ---- money ----

    function _topUp(uint256 dice) private {
        JobId job = slots[dice % SLOTS];
        uint256 amount = 1 + (dice >> 8) % jobs.terms(job).clientDeposit;
        if ((dice >> 200) & 1 == 1) {
            uint256 member = (dice >> 208) % 3;
            if (_unbondingAt(job, Role.Member, member) != 0) return;
            hoax(members[member].addr, amount);
            jobs.topUpStake{value: amount}(job);
            ++count["stake topped up"];
            return;
        }
        uint256 client = (dice >> 208) % CLIENTS;
        bool suspended = _statusOf(job, client) == ClientStatus.Suspended;
        // Rather somebody who needs it.
        for (uint256 i = 0; i < CLIENTS && !suspended; ++i) {
            client = (client + 1) % CLIENTS;
            suspended = _statusOf(job, client) == ClientStatus.Suspended;
        }
        if (purses[job][client].leftAt != 0) return;
        hoax(clients[client].addr, amount);
        jobs.topUpDeposit{value: amount}(job);
        purses[job][client].paidIn += amount;
        ++count["deposit topped up"];
        if (suspended && _statusOf(job, client) == ClientStatus.Active) ++count["reinstated"];
    }

    function _unbond(uint256 dice) private {
        dice >>= 8;
        if (dice % 4 == 0) {
            JobId job = allJobs[(dice >> 16) % allJobs.length];
            uint256 member = (dice >> 8) % 3;
            if (_unbondingAt(job, Role.Member, member) != 0) return;
            bool free = jobs.progress(job).closed;
            vm.prank(members[member].addr);
            try jobs.unbondStake(job) {
                assertTrue(free, "a member left while in service");
                ++count["member left"];
            } catch {
                assertFalse(free, "a member could not leave");
                ++count["member stayed in service"];
            }
            return;
        }
        // Not always, or there would soon be nobody left.
        JobId running = slots[(dice >> 16) % SLOTS];
        uint256 client = (dice >> 8) % CLIENTS;
        if (dice % 4 == 1 || purses[running][client].leftAt != 0) return;
        _unbondDeposit(running, client);
        ++count["client left"];
    }

    function _withdraw(uint256 dice) private {
        (JobId job, Role role, uint256 who) = _pickStake(dice);
        uint32 due = _unbondingAt(job, role, who);
        if (due != 0 && (dice >> 200) % 8 == 0) _rollTo(due);
        bool asClient = role == Role.Client;
        uint96 amount = asClient ? depositOf(job, who) : stakeOf(job, who);
        vm.prank(asClient ? clients[who].addr : members[who].addr);
        try deposits.withdraw(job, role) {
            if (_auditIsOpen(job, asClient, who)) withdrewDuringAudit = true;
            if (asClient) purses[job][who].withdrawn += amount;
            ++count[asClient ? "client withdrew" : "member withdrew"];
        } catch {
            bool valid = due != 0 && block.number >= due && amount != 0;
            assertFalse(valid, "a due withdrawal was refused");
            ++count["withdrawal refused"];
        }
    }

    function _withdrawCredit(uint256 dice) private {
        address creditor = members[dice % 3].addr;
        uint256 credit = deposits.creditOf(creditor);
        if (credit == 0) return;
        deposits.withdrawCredit(creditor);
        creditsPaid += credit;
        ++count["credit withdrawn"];
    }

    // ---- steps ----

    /// @dev Short phases, and every third job in amounts that do not divide.
    function _newJob(uint256 dice) private returns (JobId job) {
        JobTerms memory terms = defaultTerms();
        bool small = dice % 3 == 2;
        terms.rounds = uint32(2 + dice % 9);
        terms.auditRate = dice % 2 == 0 ? AUDIT_ALWAYS / 2 : AUDIT_ALWAYS;
        terms.phases = Phases(2, 6, 6, 5, 9, 9, 20, 8);
        terms.unbondingDelay = 64;
        if (small) {
            terms.clientDeposit = 101;
            terms.memberStake = 53;
            terms.penalties = Penalties(31, 7, 63, 101, 53, 29, 11);
            terms.split = Split(3333, 3333, 3334);
        }
        job = startJob(terms, CLIENTS);
        for (uint256 i = 0; i < CLIENTS; ++i) {
            purses[job][i].paidIn = terms.clientDeposit;
        }
        allJobs.push(job);
        ++count["job started"];
    }

    function _closeJob(JobId job) private {
        while (!jobs.progress(job).closed) {
            uint32 next = jobs.progress(job).nextRound;
            RoundId round = roundOf(job, next == 0 ? 0 : next - 1);
            RoundStatus status = jobs.round(round).status;
            if (status == RoundStatus.Open || status == RoundStatus.Decided) {
                rollPast(jobs.schedule(round).finalise);
                jobs.voidRound(round);
            } else {
                rollPast(jobs.progress(job).enrolDeadline);
                jobs.openRound(job);
            }
        }
    }

    function _tryRequest(RoundId round, uint256 client, Verdict memory verdict, uint256 position)
        private
        returns (bool)
    {
        BatchProof memory proof =
            (plays[round].batch >> client) & 1 == 1 ? _proof(round, client) : noProof();
        try slashing.request(round, clients[client].addr, verdict, position, proof) {
            return true;
        } catch {
            return false;
        }
    }

    function _unbondDeposit(JobId job, uint256 client) private {
        vm.prank(clients[client].addr);
        jobs.unbondDeposit(job);
        purses[job][client].leftAt = block.number;
    }

    function _unbondStake(JobId job, uint256 member) private {
        vm.prank(members[member].addr);
        jobs.unbondStake(job);
    }

    function _take(JobId job, Role role, address owner) private {
        vm.prank(owner);
        deposits.withdraw(job, role);
    }

    function _rollTo(uint256 target) private {
        if (block.number < target) vm.roll(target);
    }

    /// @dev The fuzzer likes small and round numbers; the dice should fall on all sides.
    function _mix(uint256 dice) private returns (uint256) {
        return uint256(keccak256(abi.encode(dice, _salt++)));
    }

    // ---- values ----

    function _slashOf(Charge memory charge) private view returns (Slash memory) {
        return slashing.slashOf(charge.round, clients[charge.client].addr);
    }

    /// @dev A fault that was not requested yet, if a recent round has one; or just any pair.
    function _pickFault(uint256 dice) private view returns (RoundId round, uint256 client) {
        uint256 recent = rounds.length < 6 ? rounds.length : 6;
        client = dice % CLIENTS;
        for (uint256 i = 0; i < recent * CLIENTS && (dice >> 32) % 4 != 0; ++i) {
            round = rounds[rounds.length - 1 - i / CLIENTS];
            client = (client + 1) % CLIENTS;
            bool faulted = (plays[round].faulted >> client) & 1 == 1;
            bool late = block.number > jobs.schedule(round).request;
            if (faulted && !late && requests[round][client] == 0) return (round, client);
        }
        round = rounds[(dice >> 16) % rounds.length];
    }

    /// @dev One that is unbonding, if there is one; or just any.
    function _pickStake(uint256 dice) private view returns (JobId job, Role role, uint256 who) {
        uint256 all = allJobs.length * (CLIENTS + 3);
        for (uint256 i = 0; i < all; ++i) {
            uint256 tried = (dice % all + i) % all;
            job = allJobs[tried / (CLIENTS + 3)];
            who = tried % (CLIENTS + 3);
            role = who < CLIENTS ? Role.Client : Role.Member;
            if (role == Role.Member) who -= CLIENTS;
            bool full = (role == Role.Client ? depositOf(job, who) : stakeOf(job, who)) != 0;
            if ((dice >> 32) % 4 == 0 || (full && _unbondingAt(job, role, who) != 0)) break;
        }
    }

    function _guiltyOf(Play storage play, MemberFault fault) private view returns (uint256) {
        if (fault == MemberFault.BeaconWithheld) return play.withheld;
        return fault == MemberFault.VerdictDissent ? play.dissented : play.silent;
    }

    function _pendingCharge(uint256 dice) private view returns (bool, uint256) {
        for (uint256 i = 0; i < charges.length; ++i) {
            uint256 tried = (dice % charges.length + i) % charges.length;
            if (_slashOf(charges[tried]).status == SlashStatus.Requested) return (true, tried);
        }
        return (false, 0);
    }

    /// @dev Whether somebody could still be slashed or penalised for a round that it was part of.
    function _auditIsOpen(JobId job, bool asClient, uint256 who) private view returns (bool) {
        for (uint256 i = 0; i < rounds.length; ++i) {
            RoundId round = rounds[i];
            if (JobId.unwrap(round.job()) != JobId.unwrap(job)) continue;
            if (asClient && !_tookPart(round, who)) continue;
            uint256 last = uint256(jobs.schedule(round).request) + jobs.terms(job).phases.veto;
            if (block.number <= last) return true;
        }
        return false;
    }

    /// @dev Directly, or with a leaf and without having left before the round.
    function _tookPart(RoundId round, uint256 client) private view returns (bool) {
        Play storage play = plays[round];
        uint256 leftAt = purses[round.job()][client].leftAt;
        bool hadLeft = leftAt != 0 && leftAt < play.openedAt;
        bool relayed = (play.batch >> client) & 1 == 1 && !hadLeft;
        return (play.direct >> client) & 1 == 1 || relayed;
    }

    function _credits() private view returns (uint256 sum) {
        for (uint256 i = 0; i < 3; ++i) {
            sum += deposits.creditOf(members[i].addr);
        }
    }

    function _statusOf(JobId job, uint256 client) private view returns (ClientStatus) {
        return jobs.client(job, clients[client].addr).status;
    }

    function _unbondingAt(JobId job, Role role, uint256 who) private view returns (uint32) {
        address owner = role == Role.Client ? clients[who].addr : members[who].addr;
        return deposits.account(job, role, owner).withdrawableAt;
    }

    function _leaves(RoundId round) private view returns (bytes32[] memory leaves) {
        uint256 batch = plays[round].batch;
        leaves = new bytes32[](CLIENTS);
        uint256 length;
        for (uint256 i = 0; i < CLIENTS; ++i) {
            if ((batch >> i) & 1 == 0) continue;
            leaves[length++] = batchLeaf(round, clients[i].addr, gradientOf(round, i));
        }
        assembly ("memory-safe") {
            mstore(leaves, length)
        }
    }

    function _proof(RoundId round, uint256 client) private view returns (BatchProof memory proof) {
        proof.commitment = gradientOf(round, client);
        uint256 position = _position(plays[round].batch, client);
        proof.path = MerkleTree.proof(_leaves(round), position);
        bytes32 statement =
            Statements.gradientCommitment(round, clients[client].addr, proof.commitment);
        proof.signature = signed(clients[client], statement);
    }

    /// @dev How many bits below this one are set.
    function _position(uint256 mask, uint256 bit) private pure returns (uint256 position) {
        for (uint256 i = 0; i < bit; ++i) {
            position += (mask >> i) & 1;
        }
    }

    function _penalty(Penalties memory penalties, Reason reason) private pure returns (uint96) {
        if (reason == Reason.CommitmentMismatch) return penalties.commitmentMismatch;
        if (reason == Reason.NotDelivered) return penalties.notDelivered;
        if (reason == Reason.InputNotCommitted) return penalties.inputNotCommitted;
        return penalties.replayOutside;
    }
}

"""A job on a real chain that produces every kind of event of a trail."""

from eth_utils.crypto import keccak

from opfl_chain.chain.bindings.types import MemberFault, Outcome, Role
from opfl_chain.chain.terms import DEPOSIT

ROUNDS = 6
EVERYBODY = tuple(range(8))
HONEST, FAULTY, WITHHELD, SPLIT, NO_ROLL, LAST = range(ROUNDS)
"""The rounds, by what happens in them."""
PASSED = {HONEST: EVERYBODY, FAULTY: (0, 3, 6, 7), WITHHELD: (0, 1, 2, 6), LAST: (0, 2)}
"""The clients that the decided verdicts accept."""


class PlayedJob:
    """Plays the job with one of two standbys taking the seat of a bad member."""

    def __init__(self, player):
        self.player = player
        self.ids, self.rolls = {}, {}
        player.register_keys()
        self.job = player.create_job(rounds=ROUNDS)
        player.join(self.job, player.roster)
        player.enrol(self.job)
        jobs = player.contracts.jobs
        call = jobs.replace_dataset_root(self.job, keccak(text="better"))
        player.send(player.clients[6], call)

    def play(self):
        self._honest_round()
        self._faulty_round()
        self._withheld_round()
        self._seat_change()
        self._split_round()
        self._round_without_a_roll()
        self._last_round()
        self._earn_and_leave()
        return self

    def _open(self, number):
        self.ids[number] = self.player.open_round(self.job)
        return self.ids[number]

    def _commit(self, number, indices, *, audited=(), spared=()):
        round_id = self.ids[number]
        roll = self.player.roll_with(self.job, round_id, indices, audited=audited, spared=spared)
        self.rolls[number] = roll
        self.player.commit_roll(round_id, roll)
        return roll

    def _hold(self, number, index):
        self.player.hold(self.ids[number], self.rolls[number], PASSED[number], index)

    def _honest_round(self):
        player, round_id = self.player, self._open(HONEST)
        roll = self._commit(HONEST, EVERYBODY, audited=(1,), spared=(0,))
        player.publish_beacon(round_id, roll)
        player.attest(round_id, PASSED[HONEST], player.members)
        player.finalise(round_id)

    def _faulty_round(self):
        """A beacon of partial signatures, four failed audits, and a dissenting member."""
        player, round_id = self.player, self._open(FAULTY)
        roll = self._commit(FAULTY, EVERYBODY, audited=(1, 2, 4, 5), spared=(0, 3))
        player.publish_partials(round_id, roll, player.members)
        player.attest(round_id, PASSED[FAULTY], player.members[:1])
        player.attest(round_id, (0,), player.members[2:])
        player.attest(round_id, PASSED[FAULTY], player.members[1:2])
        player.penalise(round_id, player.members[2], MemberFault.DISSENT)
        player.finalise(round_id)
        for index in (1, 2, 4):
            self._hold(FAULTY, index)
        player.charge(round_id, 1, Outcome.OUTSIDE)
        player.acquit(round_id, 2)
        top_up = player.contracts.jobs.top_up_deposit(self.job, value=DEPOSIT)
        player.send(player.clients[1], top_up)

    def _withheld_round(self):
        """A member withholds its part and is silent, so all are audited; a deposit runs dry."""
        player, round_id = self.player, self._open(WITHHELD)
        bad = player.members[2]
        roll = self._commit(WITHHELD, (0, 1, 2, 3, 5, 6))
        player.publish_partials(round_id, roll, player.members[:2])
        player.mine_past(player.schedule(round_id).beacon)
        player.attest(round_id, PASSED[WITHHELD], player.members[:2])
        player.penalise(round_id, bad, MemberFault.WITHHELD)
        player.finalise(round_id)
        self._hold(FAULTY, 5)
        self._hold(WITHHELD, 5)
        self._hold(WITHHELD, 3)
        player.mine_past(player.schedule(round_id).response)
        player.penalise(round_id, bad, MemberFault.SILENCE)
        others = [player.members[0], player.standbys[0]]
        player.certify(round_id, bad, MemberFault.ABSENCE, others)
        # The rest of its stake.
        player.certify(self.ids[FAULTY], bad, MemberFault.FALSEHOOD, others)
        player.charge(self.ids[FAULTY], 4, Outcome.UNANSWERED)

    def _seat_change(self):
        """The standby that took the seat decides audits of earlier rounds."""
        player = self.player
        player.change_seat(self.job, 2, player.standbys[0])
        seated = [player.standbys[0], player.members[1]]
        player.charge(self.ids[FAULTY], 5, Outcome.OUTSIDE, seated)
        player.charge(self.ids[WITHHELD], 5, Outcome.UNANSWERED, seated)
        player.charge(self.ids[WITHHELD], 3, Outcome.OUTSIDE, seated)

    def _split_round(self):
        """Two members attest different verdicts, and none is decided."""
        player, round_id = self.player, self._open(SPLIT)
        roll = self._commit(SPLIT, (0, 1))
        player.publish_beacon(round_id, roll)
        player.attest(round_id, (0,), player.members[:1])
        player.attest(round_id, (0, 1), player.standbys[:1])
        player.void(round_id, player.schedule(round_id).attest)

    def _round_without_a_roll(self):
        player, round_id = self.player, self._open(NO_ROLL)
        player.void(round_id, player.schedule(round_id).roll)

    def _last_round(self):
        """Decided and not finalised; one member said two things in a slot."""
        player, round_id = self.player, self._open(LAST)
        roll = self._commit(LAST, (0, 1, 2), audited=(1, 2), spared=(0,))
        player.publish_beacon(round_id, roll)
        seated = [*player.members[:2], player.standbys[0]]
        player.attest(round_id, PASSED[LAST], seated)
        player.show_equivocation(round_id, player.members[0], 7)
        player.void(round_id, player.schedule(round_id).finalise)

    def _earn_and_leave(self):
        """The last failed audit is held late, and undecided at the end."""
        player, decided = self.player, [HONEST, FAULTY, WITHHELD, LAST]
        ids = [self.ids[number] for number in decided]
        player.claim(player.clients[0], ids, [PASSED[number] for number in decided])
        player.claim(player.clients[6], ids[:1], [PASSED[HONEST]])
        player.claim_service(player.members[1], ids)
        player.claim_service(player.standbys[0], ids[-1:])
        player.refund(self.job)
        player.leave(self.job, [player.clients[0], player.clients[2]], Role.CLIENT)
        player.leave(self.job, [player.members[1]], Role.MEMBER)
        for account in (player.members[0], player.treasury):
            call = player.contracts.deposits.withdraw_credit(account.address)
            player.send(player.operator, call)
        self._hold(LAST, 1)

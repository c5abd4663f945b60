"""Exchanges of members on rounds of a played job, signed with their keys."""

from dataclasses import dataclass, field, replace

from opfl_chain.chain.bindings.events import ClientCharged, JobCreated
from opfl_chain.chain.bindings.types import Outcome
from opfl_chain.chain.keys import sign_statement
from opfl_chain.protocol.audit_exchange import Answers, RefereeReveal, Report, ReportRow, Reveal
from opfl_chain.protocol.echo import Slot, slot_number
from opfl_chain.protocol.proof.folding import Answer
from opfl_chain.protocol.published_answers import PublishedMessage, encode_round
from opfl_chain.protocol.shares import held_indices
from opfl_chain.protocol.statements import SigningDomain
from opfl_chain.trail.history import History

SUBJECT = b"\x05" * 32
ACCEPTED = Answer(2, 3, 6, 0), Answer(0, 0, 0, 0), Answer(0, 0, 0, 0)
REJECTED = Answer(2, 3, 6, 1), *ACCEPTED[1:]


@dataclass
class Exchange:
    """The messages of a session that what is on chain follows from, until one is changed."""

    played: object
    number: int
    attempt: int = 0
    subjects: list[bytes] = field(default_factory=lambda: [SUBJECT] * 3)
    rows: list[dict] = field(default_factory=lambda: [{}, {}, {}])
    words: list[dict] = field(default_factory=lambda: [{}, {}, {}])
    parts: dict = field(default_factory=dict)
    """The true words on all components, by client."""
    judged: dict = field(default_factory=dict)
    """A standby's words, by client and component."""

    @classmethod
    def of(cls, played, number):
        """Return the exchange on all audited clients: who was charged for no answer gave none."""
        self = cls(played, number)
        charged = {
            entry.event.client: entry.event.outcome for entry in self.round.of(ClientCharged)
        }
        for client in self.history.contributors(self.round):
            index = self.history.clients[client].event.index
            accepted = index in self.round.passed
            answered = accepted or charged.get(client) is Outcome.OUTSIDE
            if self.round.is_audited(client) and answered:
                self.add(index, accepted=accepted)
        return self

    @property
    def history(self):
        return History(self.played.trail, next(self.played.trail.of(JobCreated)))

    @property
    def round(self):
        return self.history.rounds[self.number]

    def add(self, index, *, accepted):
        """Add the answer of a client to what all members say."""
        self.parts[index] = parts = ACCEPTED if accepted else REJECTED
        for seat in range(3):
            own, following = (parts[part] for part in held_indices(seat))
            self.words[seat][index] = Answers(seat, own, following)
            self.rows[seat][index] = ReportRow(self.words[seat][index].commitment)

    def confirm(self, seat):
        """Have the standby say what a member would have said about all clients."""
        self.judged = {
            index: {component: parts[component] for component in held_indices(seat)}
            for index, parts in self.parts.items()
        }

    def change_words(self, seat, index, *, commit=True):
        """Change the words of a member on its own component, with or without its commitment."""
        old = self.words[seat][index]
        new = replace(old, own=replace(old.own, rest=old.own.rest + 1))
        self.words[seat][index] = new
        if commit:
            self.rows[seat][index] = ReportRow(new.commitment)

    def number_of(self, seat):
        """Return the roster number of the member in a seat."""
        return self.history.roster.index(self.round.seats[seat])

    def messages(self):
        found = {}
        for seat in range(3):
            report = Report(seat, self.subjects[seat], self.rows[seat])
            number = self.number_of(seat)
            found[seat, Slot.REPORT] = self.signed(number, Slot.REPORT, report.encode())
            reveal = Reveal(seat, self.words[seat]).encode()
            found[seat, Slot.REVEAL] = self.signed(number, Slot.REVEAL, reveal)
        if self.judged:
            standby = 3 if self.number_of(2) == 2 else 4
            body = RefereeReveal(standby, self.judged).encode()
            found["referee", Slot.REFEREE] = self.signed(standby, Slot.REFEREE, body)
        return found

    def signed(self, number, slot, body, round_=None):
        trail, slot = self.played.trail, slot_number(slot, self.attempt)
        message = PublishedMessage(number, slot, body, b"")
        statement = message.statement(
            trail.job, self.number if round_ is None else round_, self.opening
        )
        domain = SigningDomain(trail.chain_id, trail.contracts["Jobs"])
        account = self.played.player.roster[number].account
        return replace(message, signature=sign_statement(account, statement, domain))

    @property
    def opening(self):
        return self.round.opened.event.opening

    def line(self, messages=None):
        messages = self.messages() if messages is None else messages
        return encode_round(self.number, self.opening, list(messages.values())) + "\n"

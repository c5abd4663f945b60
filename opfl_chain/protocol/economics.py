"""Money: where a penalty goes, and what deposit deters a cheat."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, isfinite, log1p
from typing import Final

from opfl_chain.protocol.errors import EconomicsError, PenaltyError

ETHER: Final = 10**18
"""Wei in an ether; all amounts are in wei."""
BASIS_POINTS: Final = 10_000


@dataclass(frozen=True)
class PenaltySplit:
    """The split of a penalty, in wei."""

    burnt: int
    treasury: int
    paid: tuple[int, ...]
    """Amounts for those whom the fault may have cost something, in their order."""

    @property
    def total(self) -> int:
        return self.burnt + self.treasury + sum(self.paid)


def split_penalty(
    amount: int, recipients: int, compensation: int, treasury_share: int
) -> PenaltySplit:
    """Split a penalty: compensation first, then basis points of the rest; what is left is burnt."""
    if amount < 0 or recipients < 0 or compensation < 0:
        raise PenaltyError(
            f"amount {amount}, {recipients} recipients and compensation {compensation} must not be"
            " negative"
        )
    if not 0 <= treasury_share <= BASIS_POINTS:
        raise PenaltyError(
            f"the treasury's share is {treasury_share} basis points, it must be in"
            f" [0, {BASIS_POINTS}]"
        )
    paid = []
    rest = amount
    for _ in range(recipients):
        paid.append(min(compensation, rest))
        rest -= paid[-1]
    treasury = rest * treasury_share // BASIS_POINTS
    return PenaltySplit(rest - treasury, treasury, tuple(paid))


@dataclass(frozen=True)
class BestResponse:
    """Gain and risk of a cheat, for one contribution. Amounts are in one unit of money.

    A cheat is compared with an honest client, contribution by contribution: contributions are
    audited independently of each other, so what pays once pays always, and the other way round.
    """

    saved_cost: float = 1.0
    """The computation that a contribution costs, and a cheat saves."""
    outside_gain: float = 0.0
    """Payment of somebody else for the cheat."""
    pay: float = 0.0
    """Pay of an accepted contribution."""
    honest_rejection: float = 0.0
    """The probability that the audit of an honest contribution rejects it."""
    cheapest_penalty: float = 1.0
    """The smallest part of the deposit that a cheat can still choose to lose after the seed."""
    margin: float = 0.1
    """The expected loss by cheating, as a part of what it would gain."""

    def __post_init__(self) -> None:
        for name in ("saved_cost", "outside_gain", "pay", "margin"):
            if not (isfinite(value := getattr(self, name)) and value >= 0):
                raise EconomicsError(f"{_words(name)} is {value}, it must be zero or more")
        if not 0 <= self.honest_rejection < 1:
            raise EconomicsError(
                f"probability of an honest rejection is {self.honest_rejection}, it must be in"
                " [0, 1)"
            )
        if not 0 < self.cheapest_penalty <= 1:
            raise EconomicsError(
                f"cheapest penalty is {self.cheapest_penalty} of the deposit, it must be in (0, 1]"
            )

    def required_deposit(self, audit_rate: float) -> float:
        """Return the lowest deposit with which cheating loses at least the margin."""
        if not 0 < audit_rate <= 1:
            raise EconomicsError(f"audit rate is {audit_rate}, it must be in (0, 1]")
        if self.cheapest_penalty <= self.honest_rejection:
            raise EconomicsError(
                f"no deposit deters: a cheat loses {self.cheapest_penalty:g} of it when audited, an"
                f" honest client the same in {self.honest_rejection:g} of its audits. Raise the"
                " penalty, or widen the boundary"
            )
        wanted = (1 + self.margin) * (self.saved_cost + self.outside_gain)
        lost_pay = audit_rate * self.pay * (1 - self.honest_rejection)
        edge = audit_rate * (self.cheapest_penalty - self.honest_rejection)
        return max(0.0, (wanted - lost_pay) / edge)

    def expected_gain(self, audit_rate: float, deposit: float) -> float:
        """Return what a cheat gains over an honest client; negative if the deposit deters."""
        lost_pay = self.pay * (1 - self.honest_rejection)
        lost_deposit = (self.cheapest_penalty - self.honest_rejection) * deposit
        return self.saved_cost + self.outside_gain - audit_rate * (lost_pay + lost_deposit)


def _words(name: str) -> str:
    return name.replace("_", " ")


@dataclass(frozen=True)
class Deterrence:
    """The paper's assumptions: a client skips rounds, and one audit of them costs its deposit.

    Amounts are in units of the cost that a client saves by skipping ``skipped_rounds`` rounds.
    """

    skipped_rounds: int = 100
    """The number of rounds that a deviating client skips."""
    false_rejection: float = 0.01
    """The probability allowed for an honest client to be rejected over the whole job."""
    margin: float = 0.1
    """The expected loss from deviation, as a fraction of the saved cost."""

    def __post_init__(self) -> None:
        if self.skipped_rounds < 1:
            raise EconomicsError(f"skipped rounds are {self.skipped_rounds}, at least 1 is needed")
        if not 0 <= self.false_rejection < 1:
            raise EconomicsError(
                f"false-rejection probability is {self.false_rejection}, it must be in [0, 1)"
            )
        if not (isfinite(self.margin) and self.margin >= 0):
            raise EconomicsError(f"margin is {self.margin}, it must be zero or more")

    @property
    def lowest_audit_rate(self) -> float:
        """The audit rate at and below which no deposit deters."""
        return -expm1(log1p(-self.false_rejection) / self.skipped_rounds)

    def detection_probability(self, audit_rate: float) -> float:
        """Return the probability that at least one skipped round is audited."""
        if not 0 <= audit_rate <= 1:
            raise EconomicsError(f"audit rate is {audit_rate}, it must be in [0, 1]")
        if audit_rate == 1:
            return 1.0
        # 1 - (1 - p)^k, without losing the digits of a small p
        return -expm1(self.skipped_rounds * log1p(-audit_rate))

    def required_deposit(self, audit_rate: float) -> float:
        """Return the deposit with which deviation loses exactly the margin."""
        detection = self.detection_probability(audit_rate)
        if detection <= self.false_rejection:
            raise EconomicsError(
                f"no deposit deters at audit rate {audit_rate:g}: skipping {self.skipped_rounds}"
                f" rounds is detected with probability {detection:.3g}, not above the"
                f" false-rejection probability {self.false_rejection:g}. Raise the audit rate"
                f" above {self.lowest_audit_rate:.3g}, lower the false-rejection probability,"
                f" or assume more skipped rounds"
            )
        return (1 + self.margin) / (detection - self.false_rejection)

    def expected_gain(self, audit_rate: float, deposit: float) -> float:
        """Return the gain of deviation over honest execution; negative if the deposit deters."""
        detection = self.detection_probability(audit_rate)
        return 1 - (detection - self.false_rejection) * deposit


@dataclass(frozen=True)
class TradeOff:
    """One line of the trade-off between audit rate and deposit."""

    audit_rate: float
    detection_probability: float
    deposit: float
    deposit_ratio: float
    """The deposit relative to the lowest in the table."""
    expected_gain: float


def trade_off(audit_rates: Sequence[float], deterrence: Deterrence) -> tuple[TradeOff, ...]:
    """Return one line for each audit rate, in the order given."""
    if not audit_rates:
        raise EconomicsError("a trade-off needs at least one audit rate, got none")
    deposits = [deterrence.required_deposit(rate) for rate in audit_rates]
    lowest = min(deposits)
    return tuple(
        TradeOff(
            audit_rate=rate,
            detection_probability=deterrence.detection_probability(rate),
            deposit=deposit,
            deposit_ratio=deposit / lowest,
            expected_gain=deterrence.expected_gain(rate, deposit),
        )
        for rate, deposit in zip(audit_rates, deposits, strict=True)
    )

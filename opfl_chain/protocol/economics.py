"""Money: how much a slash takes and where it goes, and what deposit deters a cheat."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, isfinite, log1p
from typing import Final

from opfl_chain.protocol.errors import EconomicsError, SlashError

ETHER: Final = 10**18
"""Wei in an ether; all amounts are in wei."""
BASIS_POINTS: Final = 10_000


@dataclass(frozen=True)
class SlashSplit:
    """The split of a slash, in wei. ``each_member`` is the part of every single member."""

    burn: int
    treasury: int
    each_member: int
    members: int

    @property
    def committee(self) -> int:
        return self.each_member * self.members

    @property
    def total(self) -> int:
        return self.burn + self.treasury + self.committee


def slash_amount(penalty: int, captured: int) -> int:
    """Return the amount of a slash: the penalty, at most the captured deposit."""
    if penalty < 0 or captured < 0:
        raise SlashError(f"penalty {penalty} and captured deposit {captured} must not be negative")
    return min(penalty, captured)


def split_slash(amount: int, burn_bps: int, treasury_bps: int, members: int) -> SlashSplit:
    """Split ``amount``: the committee gets the remainder after burn and treasury; dust is burnt."""
    if amount < 0:
        raise SlashError(f"slashed amount {amount} must not be negative")
    if members < 1:
        raise SlashError(f"a committee of {members} members cannot be paid")
    if burn_bps < 0 or treasury_bps < 0 or burn_bps + treasury_bps > BASIS_POINTS:
        raise SlashError(
            f"burn {burn_bps} and treasury {treasury_bps} basis points must not be negative"
            f" and not add up to more than {BASIS_POINTS}"
        )
    burn = amount * burn_bps // BASIS_POINTS
    treasury = amount * treasury_bps // BASIS_POINTS
    each_member, dust = divmod(amount - burn - treasury, members)
    return SlashSplit(burn + dust, treasury, each_member, members)


@dataclass(frozen=True)
class Deterrence:
    """The assumptions under which a deposit is chosen; the paper's by default.

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

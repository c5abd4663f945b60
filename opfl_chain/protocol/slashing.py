"""How much a slash takes, and where it goes."""

from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol.errors import SlashError

BASIS_POINTS: Final = 10_000


@dataclass(frozen=True)
class SlashSplit:
    """Where slashed money goes, in wei. ``each_member`` is the part of every single member."""

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
    """Return what a slash takes: the penalty, or the whole captured deposit if that is less."""
    if penalty < 0 or captured < 0:
        raise SlashError(f"penalty {penalty} and captured deposit {captured} must not be negative")
    return min(penalty, captured)


def split_slash(amount: int, burn_bps: int, treasury_bps: int, members: int) -> SlashSplit:
    """Split ``amount``; the committee gets what the basis points leave, and dust is burnt."""
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

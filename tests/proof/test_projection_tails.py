"""The tails of docs/PROOF.md: how long a vector may be whose ternary projections seem short.

A coin b0 - b1 has the characteristic function cos(u / 2)^2. For a unit vector v, Y = <c, v> and
a standard normal g, E exp(-h Y^2) is E prod cos(g v_j sqrt(h / 2))^2, by Hölder at most the largest
of E |cos(g t sqrt(h / 2))|^(2 / t^2) over t in (0, 1]: the bound is Chernoff's with that.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opfl_chain.lab.boundary.slack_attack import PROVED_LONG, PROVED_SHORT, PROVED_SLACK

PROOF = Path(__file__).resolve().parents[2] / "docs" / "PROOF.md"
SIZES = np.concatenate([np.linspace(0.02, 1, 99), 1 / np.sqrt(np.arange(1, 40))])
RATES = np.geomspace(0.2, 100, 50)
NORMAL = np.linspace(0, 12, 6001)
DENSITY = np.exp(-(NORMAL**2) / 2)
DENSITY[0] /= 2
DENSITY /= DENSITY.sum()


@cache
def moment(h: float) -> float:
    """Return the largest E exp(-h Y^2) of any unit vector; 1 / sqrt(1 + h) is that of t -> 0."""
    found = [1 / math.sqrt(1 + h)]
    for t in SIZES:
        cosines = np.abs(np.cos(NORMAL * t * math.sqrt(h / 2)))
        found.append(float((DENSITY * np.maximum(cosines, 1e-300) ** (2 / t**2)).sum()))
    return max(found)


def passing_bits(projections: int, longer: float) -> float:
    """Return log2 of the chance that a vector so many times longer than the bound passes."""
    allowed = projections / 2 / longer**2
    return min(h * allowed + projections * math.log(moment(h)) for h in RATES) / math.log(2)


def longest(projections: int, bits: int) -> float:
    """Return how much longer than the bound a vector may be that passes more often than 2^-bits."""
    low, high = 1.0, 64.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if passing_bits(projections, middle) > -bits else (low, middle)
    return high


def longest_seeming(projections: int, bits: int) -> float:
    """Return by how much a vector seems longer; coins are sub-Gaussian by their variance."""
    low, high = 1.0, 64.0
    for _ in range(60):
        x = (low + high) / 2
        low, high = (
            (x, high) if projections / 2 * (math.log(x) + 1 - x) > -bits * math.log(2) else (low, x)
        )
    return math.sqrt(high)


def of_single_entry(projections: int, bits: int) -> float:
    """Return the same of a vector with one entry, exactly: a binomial distribution."""
    total, fewest = 0, -1
    while total * 2.0**-projections <= 2.0**-bits:
        fewest += 1
        total += math.comb(projections, fewest)
    return math.sqrt(projections / 2 / fewest)


@pytest.mark.parametrize(("projections", "bits"), [(128, 40), (128, 100), (320, 40), (320, 100)])
def test_table_of_the_page(projections: int, bits: int) -> None:
    vector = longest(projections, bits)
    compared = longest(projections, bits + 1) * longest_seeming(projections, bits + 1)
    single = of_single_entry(projections, bits)
    assert single <= vector
    row = f"| {projections} | 2^-{bits} | {vector:.2f} | {single:.2f} | {compared:.2f} |"
    assert row in PROOF.read_text(encoding="utf-8"), row


def test_attackers_of_the_lab_spend_all_that_is_proved() -> None:
    assert longest(128, 100) <= PROVED_SLACK < 1.01 * longest(128, 100)
    assert longest(128, 101) <= PROVED_SHORT < 1.01 * longest(128, 101)
    assert longest_seeming(128, 101) <= PROVED_LONG < 1.01 * longest_seeming(128, 101)


@pytest.mark.parametrize("entries", [1, 2, 3, 7, 40])
def test_moments_bound_those_of_vectors_of_equal_entries(entries: int) -> None:
    outcomes = np.arange(-entries, entries + 1)
    chances = np.array([math.comb(2 * entries, entries + k) for k in outcomes]) / 4.0**entries
    for h in RATES[::7]:
        exact = float((chances * np.exp(-h * outcomes**2 / entries)).sum())
        assert exact <= moment(h) * (1 + 1e-9)


def test_entry_beyond_twice_the_bound_passes_at_most_every_second_projection() -> None:
    """In a cyclic group of 31, for all offsets, entries and bounds."""
    modulus = 31
    for bound in range(modulus // 4):
        near = {x % modulus for x in range(-bound, bound + 1)}
        for entry in range(2 * bound + 1, modulus - 2 * bound):
            for rest in range(modulus):
                found = [rest, rest, rest + entry, rest - entry]
                assert sum(x % modulus in near for x in found) <= 2

"""The runs of the benchmark: every attack of every member on every kind of client, counted.

The tampering member's two peers are honest; where it aims at the verdict, the one that could
contradict it is away as well. The client is honest, cheats, or forges its proof; then
it colludes, and the member knows all its secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from opfl_chain.bench.tampering.attacks import Tampering
from opfl_chain.bench.tampering.audits import Played, audit, uncompared
from opfl_chain.bench.tampering.contributions import CLIENTS, Proved, proved
from opfl_chain.bench.tampering.leak import leak_runs
from opfl_chain.learning.model import Model
from opfl_chain.mpc.session.ranks import MEMBERS

Progress = Callable[[str], None]
COUNTED: Final = (
    "runs",
    "wrong_verdicts",
    "aborts",
    "settled",
    "named",
    "misnamed",
    "unnamed",
    "uncompared_attacks",
    "uncompared_wrong_verdicts",
    "unconfirmed_wrong_verdicts",
    "guessed_ways",
    "leaks",
    "uncompared_guesses",
    "uncompared_leaks",
)


def bench_tamper(model: Model, repeats: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Play all attacks by each member on each kind of client, `repeats` times."""
    rows: list[dict[str, Any]] = []
    for client, prover in CLIENTS:
        total: Counter[str] = Counter()
        opened = 0
        for repeat in range(repeats):
            progress(f"{client} client, {prover} ({repeat + 1} of {repeats})")
            contribution = proved(model, client, prover, seed + repeat)
            for attacker in range(MEMBERS):
                found, bits = _attacked(contribution, attacker, seed + repeat)
                total += found
                opened = max(opened, bits)
        rows.append({"client": client, "proof": prover, **_shown(total, opened)})
    together: Counter[str] = Counter()
    for row in rows:
        together += Counter({name: row[name] for name in COUNTED})
    opened = max(row["opened_bits_per_contribution"] for row in rows)
    progress("an attacker that knows all but one bit")
    leak = leak_runs(model, seed)
    return {
        "model": model.name,
        "seed": seed,
        **_shown(together, opened),
        "clients": rows,
        "leak": leak,
    }


def _shown(total: Counter[str], opened: int) -> dict[str, int]:
    return {**{name: total[name] for name in COUNTED}, "opened_bits_per_contribution": opened}


def _attacked(contribution: Proved, attacker: int, seed: int) -> tuple[Counter[str], int]:
    """Play all attacks of one member, and count how they end.

    Whatever it sends, honest members reveal one answer each: the opened bit is the verdict.
    """
    total: Counter[str] = Counter()
    opened: set[tuple[int, bytes]] = set()
    seen: dict[str, dict[bool, Played]] = {}
    for attack in Tampering(contribution, attacker, seed).all():
        played = audit(contribution, attacker, attack)
        opened |= played.opened
        total["runs"] += 1
        verdicts = {end.accepted for end in played.ends.values()}
        total["wrong_verdicts"] += (not contribution.right) in verdicts
        total["aborts"] += played.is_aborted
        total["settled"] += played.is_settled
        named = played.named
        total["named"] += named == {attacker}
        total["misnamed"] += bool(named - {attacker})
        # What changes nothing has no author to be named.
        total["unnamed"] += not named and (played.is_aborted or played.is_settled)
        if attack.aims_at_verdict:
            verdict = uncompared(contribution, attacker, attack)
            total["uncompared_attacks"] += 1
            total["uncompared_wrong_verdicts"] += verdict is not contribution.right
            alone = audit(contribution, attacker, attack, away=(attacker - 1) % MEMBERS)
            verdicts = {end.accepted for end in alone.ends.values()}
            total["unconfirmed_wrong_verdicts"] += (not contribution.right) in verdicts
        if attack.guess is not None:
            seen.setdefault(attack.guess.how, {})[attack.guess.is_right] = played
            if attack.guess.how == "own":
                total["uncompared_guesses"] += 1
                verdict = uncompared(contribution, attacker, attack)
                total["uncompared_leaks"] += verdict is attack.guess.is_right
    total["guessed_ways"] += len(seen)
    total["leaks"] += sum(each[True] != each[False] for each in seen.values())
    ranks = Counter(rank for rank, _ in opened)
    return total, max(ranks.values())

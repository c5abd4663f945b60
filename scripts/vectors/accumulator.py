"""The accumulator of a round, after every commitment."""

from vectors.made_up import CHAIN_ID, JOBS, NOBODY, address, word, words
from vectors.specification import spec
from vectors.values import Vector


def accumulator_chain(job: int, round_: int, kinds: list[int]) -> Vector:
    """Kind 1 is a direct commitment, kind 2 a batch; `clients` or `counts` of the other is zero."""
    model_hash = word(f"model {round_}")
    initial = spec.initial_accumulator(CHAIN_ID, JOBS, job, round_, model_hash)
    clients = [address(f"client {i}") if kind == 1 else NOBODY for i, kind in enumerate(kinds)]
    counts = [0 if kind == 1 else 100**i for i, kind in enumerate(kinds)]
    values = words(f"committed in {round_}", len(kinds))
    accumulators = []
    accumulator = initial
    for kind, client, count, value in zip(kinds, clients, counts, values, strict=True):
        if kind == 1:
            accumulator = spec.accumulate_direct(accumulator, client, value)
        else:
            accumulator = spec.accumulate_batch(accumulator, value, count)
        accumulators.append(accumulator)
    return {
        "accumulators": accumulators,
        "clients": clients,
        "counts": counts,
        "final": accumulator,
        "initial": initial,
        "job": str(job),
        "kinds": kinds,
        "modelHash": model_hash,
        "round": round_,
        "roundId": str(spec.round_id(job, round_)),
        "values": values,
    }


def accumulator() -> Vector:
    cases = [
        accumulator_chain(1, 0, []),
        accumulator_chain(1, 1, [1]),
        accumulator_chain(1, 2, [2]),
        accumulator_chain(2, 3, [1, 1, 2, 1]),
        accumulator_chain(2**64 - 1, 2**32 - 1, [2, 1, 2, 2, 1]),
    ]
    return {"cases": cases, "chainId": CHAIN_ID, "count": len(cases), "jobs": JOBS}

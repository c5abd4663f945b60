"""Deliveries from a client to one member, and malformed ones."""

from vectors.made_up import made_up_words, word, words
from vectors.specification import is_refused, spec
from vectors.values import Vector

DELIVERED_WORDS = {"gradient": 3, "input": 2, "advice": 4}


def shared_packages(label: str, scheme: str, xs: list[int]) -> list[bytes]:
    """Each member's package of one secret."""
    seed0, seed1, *salts = words(f"{label} in {scheme}", 5)
    sent = [seed0, seed1, spec.ring_bytes(spec.split(xs, seed0, seed1)[2])]
    parts = list(zip(salts, sent, strict=True))
    hashes = [spec.share_hash(k, *part) for k, part in enumerate(parts)]
    return [
        spec.encode_package(scheme, rank, len(xs), hashes, [parts[k] for k in spec.held_by(rank)])
        for rank in range(3)
    ]


def delivery_cases(scheme: str, rank: int) -> list[Vector]:
    """Deliveries without an audit, with a plain replay, and with a guided replay."""
    salt = 4 if scheme == "mpc" else 0
    packages = {
        name: shared_packages(
            f"delivered {name}",
            scheme,
            made_up_words(name, count if name == "advice" else count + salt),
        )[rank]
        for name, count in DELIVERED_WORDS.items()
    }
    commitment, proof = word("delivered input"), words("delivered proof", 3)
    training_input = spec.encode_delivered_input(commitment, proof, packages["input"])
    counts = DELIVERED_WORDS["gradient"], DELIVERED_WORDS["input"]
    cases = []
    for audited, guided in [(False, False), (True, False), (True, True)]:
        advice = packages["advice"] if guided else b""
        advice_words = DELIVERED_WORDS["advice"] if guided else 0
        given = training_input if audited else b""
        data = spec.encode_delivery(packages["gradient"], given, advice)
        spec.decode_delivery(data, scheme, rank, *counts, advice_words)
        cases.append(
            {
                "advice": advice,
                "adviceWords": advice_words,
                "audited": audited,
                "commitment": commitment if audited else b"",
                "data": data,
                "gradient": packages["gradient"],
                "input": packages["input"] if audited else b"",
                "proof": proof if audited else [],
                "rank": rank,
                "scheme": scheme,
            }
        )
    return cases


def delivery() -> Vector:
    """Deliveries to each member in both schemes; malformed ones are for member 1 in `shares`."""
    cases = [case for s in spec.SCHEMES for rank in range(3) for case in delivery_cases(s, rank)]
    bare, _, full = delivery_cases("shares", 1)
    counts = tuple(DELIVERED_WORDS.values())
    good, gradient, advice = full["data"], full["gradient"], full["advice"]
    encoded, at = spec.encode_delivered_input, 29 + len(gradient)
    training_input = good[at : len(good) - len(advice)]
    longest = words("longest proof", spec.MOST_PROOF_NODES)

    def with_input(data: bytes) -> bytes:
        return bytes(spec.encode_delivery(gradient, data))

    def with_sizes(*sizes: int) -> bytes:
        return good[:5] + b"".join(spec.uint(size, 64) for size in sizes) + good[29:]

    sizes = len(gradient), len(training_input), len(advice)
    malformed = {
        "empty": b"",
        "magic": b"opfd" + good[4:],
        "version": good[:4] + b"\x02" + good[5:],
        "a package alone": gradient,
        "ends in the header": good[:28],
        "header alone": good[:29],
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "twice": good + good,
        "no gradient": spec.encode_delivery(b"", training_input, advice),
        "nothing at all": spec.encode_delivery(b""),
        "sizes beyond all memory": with_sizes(2**64 - 1, 2**64 - 1, 2**64 - 1),
        "sizes that wrap around": with_sizes(sizes[0] + 2**63, sizes[1] + 2**63, sizes[2]),
        "gradient that ends early": with_sizes(sizes[0] - 1, sizes[1] + 1, sizes[2]),
        "gradient that ends late": with_sizes(sizes[0] + 1, sizes[1] - 1, sizes[2]),
        "input that ends late": with_sizes(sizes[0], sizes[1] + 1, sizes[2] - 1),
        "input and advice in one": with_sizes(sizes[0], sizes[1] + sizes[2], 0),
        "input in place of the gradient": spec.encode_delivery(full["input"]),
        "advice in place of the input": spec.encode_delivery(gradient, advice),
        "input in place of the advice": spec.encode_delivery(gradient, b"", full["input"]),
        "one node too many": with_input(
            b"\x21" + encoded(word("input"), longest, word("one more") + full["input"])[1:]
        ),
        "number of nodes alone": with_input(b"\x00"),
        "ends in the commitment": with_input(training_input[:32]),
        "ends in the proof": with_input(training_input[: 33 + 95]),
        "input without a package": with_input(training_input[: 33 + 96]),
        "a node less than it says": with_input(b"\x04" + training_input[1:]),
        "a node more than it says": with_input(b"\x02" + training_input[1:]),
        "for another member": delivery_cases("shares", 2)[2]["data"],
        "of the other scheme": delivery_cases("mpc", 1)[2]["data"],
    }
    for why, data in malformed.items():
        assert is_refused(spec.decode_delivery, data, "shares", 1, *counts), why
    deep = with_input(encoded(word("input"), longest, full["input"]))
    spec.decode_delivery(deep, "shares", 1, *counts)
    spec.decode_delivery(bare["data"], "shares", 1, *counts)
    assert is_refused(spec.decode_delivery, good, "shares", 1, *counts[:2], 0)
    assert is_refused(encoded, word("input"), [*longest, word("one more")], full["input"])
    return {
        "cases": cases,
        "gradientWords": counts[0],
        "inputWords": counts[1],
        "longestProof": deep,
        "malformed": list(malformed.values()),
        "malformedAdviceWords": counts[2],
        "malformedWhy": list(malformed),
    }

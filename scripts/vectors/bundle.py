"""Bundles of contributions and answers: sealed, opened, complained about, and malformed."""

from vectors.made_up import CHAIN_ID, JOBS, address, made_up_words, word, words
from vectors.sealing import SECRETS
from vectors.specification import is_refused, spec
from vectors.values import Vector

WORDS = {"gradient": 3, "input": 2, "advice": 4}
JOB, ROUND = 7, 3
SEED = word("seed of a bundle")
KEYS = [spec.public_key(secret) for secret in SECRETS]
CLIENT = address("client of a bundle")
OPENING = word("opening of a bundle")
PUBLIC_SIZES = {"contribution": range(96, 97), "answer": range(193, 193 + 32 * 33)}


def shared(label: str, scheme: str, count: int) -> tuple[list[bytes], list[bytes]]:
    """The leaf hashes of one secret, and salt and what is sent of each component."""
    xs = made_up_words(label, count + (4 if scheme == "mpc" and label != "advice" else 0))
    seed0, seed1, *salts = words(f"{label} in {scheme}", 5)
    sent = [seed0, seed1, spec.ring_bytes(spec.split(xs, seed0, seed1)[2])]
    parts = list(zip(salts, sent, strict=True))
    return [spec.share_hash(k, *part) for k, part in enumerate(parts)], [s + x for s, x in parts]


def context(kind: str) -> bytes:
    separator = spec.domain_separator(CHAIN_ID, JOBS)
    round_id = spec.round_id(JOB, ROUND)
    return bytes(spec.bundle_context(separator, round_id, OPENING, CLIENT, kind))


def contribution(scheme: str) -> dict:
    leaves, texts = shared("gradient", scheme, WORDS["gradient"])
    commitment = word("tree of a gradient")
    if scheme == "shares":
        commitment = spec.shares_commitment(spec.TAG_GRADIENT, *leaves)
    public = b"".join(leaves)
    return spec.seal("contribution", context("contribution"), commitment, public, texts, KEYS, SEED)


def answer(scheme: str, guided: bool, nodes: int) -> dict:
    leaves, texts = shared("input", scheme, WORDS["input"])
    commitment = word("tree of an input")
    if scheme == "shares":
        commitment = spec.shares_commitment(spec.TAG_INPUT, *leaves)
    if guided:
        more, extra = shared("advice", scheme, WORDS["advice"])
        leaves, texts = leaves + more, [a + b for a, b in zip(texts, extra, strict=True)]
    public = spec.answer_public(words("path", nodes), leaves)
    return spec.seal("answer", context("answer"), commitment, public, texts, KEYS, SEED)


def bundle_case(scheme: str, guided: bool, bundle: dict) -> Vector:
    data, kind = spec.encode_bundle(bundle), bundle["kind"]
    bodies = [len(body) for body in bundle["bodies"]]
    assert spec.decode_bundle(data, kind, PUBLIC_SIZES[kind], bodies) == bundle
    spec.check_knowledge(bundle["ephemeral"], bundle["knowledge"], context(kind))
    rest = spec.rest_hash(bundle)
    texts = [
        spec.open_bundle(
            bundle, seat, spec.shared_point(bundle["ephemeral"], secret), context(kind)
        )
        for seat, secret in enumerate(SECRETS)
    ]
    return {
        "commitment": bundle["commitment"],
        "contentHash": spec.content_hash(bundle["commitment"], rest),
        "context": context(kind),
        "data": data,
        "guided": guided,
        "kind": kind,
        "public": bundle["public"],
        "restHash": rest,
        "scheme": scheme,
        "texts": texts,
    }


def complained(bundle: dict) -> Vector:
    """The seats whose complaints about a contribution stand."""
    here = context("contribution")
    filed = [
        spec.file_complaint(secret, seat, bundle["ephemeral"], here)
        for seat, secret in enumerate(SECRETS)
    ]
    return {
        "complaints": [spec.encode_complaint(each) for each in filed],
        "data": spec.encode_bundle(bundle),
        "stand": [
            spec.complaint_stands(bundle, key, each, here)
            for key, each in zip(KEYS, filed, strict=True)
        ],
    }


def bundle() -> Vector:
    cases = [
        bundle_case(scheme, guided, made)
        for scheme in spec.SCHEMES
        for guided, made in [
            (False, contribution(scheme)),
            (False, answer(scheme, False, 3)),
            (True, answer(scheme, True, 0)),
            (True, answer(scheme, True, spec.MOST_PATH_NODES)),
        ]
    ]
    good = contribution("shares")
    envelopes, bodies = good["envelopes"], good["bodies"]
    spoilt = [
        good,
        *(
            spec.Bundle(good, envelopes=[*envelopes[:i], word("bad"), *envelopes[i + 1 :]])
            for i in range(6)
        ),
        *(
            spec.Bundle(good, bodies=[*bodies[:k], bytes(len(bodies[k])), *bodies[k + 1 :]])
            for k in range(3)
        ),
    ]
    judged = [complained(each) for each in spoilt]
    assert [each["stand"] for each in judged] == [
        [False] * 3,
        *[[seat == holder for seat in range(3)] for k in range(3) for holder in spec.holders(k)],
        *[[seat in spec.holders(k) for seat in range(3)] for k in range(3)],
    ]
    data, sizes = spec.encode_bundle(good), [len(body) for body in bodies]
    malformed = {
        "empty": b"",
        "magic": b"opfb" + data[4:],
        "version": data[:4] + b"\x01" + data[5:],
        "kind": data[:5] + b"\x02" + data[6:],
        "no kind": data[:5] + b"\x00" + data[6:],
        "ends in the header": data[:33],
        "header alone": data[:34],
        "one byte short": data[:-1],
        "one byte long": data + b"\x00",
        "twice": data + data,
        "a public part beyond all memory": data[:6] + b"\xff" * 4 + data[10:],
        "bodies beyond all memory": data[:10] + b"\xff" * 24 + data[34:],
        "bodies that end elsewhere": data[:17]
        + bytes([data[17] + 1])
        + data[18:25]
        + bytes([data[25] - 1])
        + data[26:],
        "an answer": spec.encode_bundle(answer("shares", False, 3)),
    }
    for why, wrong in malformed.items():
        kind = "contribution"
        assert is_refused(spec.decode_bundle, wrong, kind, PUBLIC_SIZES[kind], sizes), why
    unsealed = spec.seal(
        "contribution",
        context("contribution"),
        good["commitment"],
        good["public"],
        [b"x" * 64] * 3,
        [KEYS[0], bytes(33), KEYS[2]],
        SEED,
    )
    assert [envelope == bytes(32) for envelope in unsealed["envelopes"]] == [
        seat == 1 for k in range(3) for seat in spec.holders(k)
    ]
    return {
        "adviceWords": WORDS["advice"],
        "cases": cases,
        "chainId": CHAIN_ID,
        "clients": [CLIENT],
        "complained": judged,
        "count": len(cases),
        "gradientWords": WORDS["gradient"],
        "inputWords": WORDS["input"],
        "job": JOB,
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "opening": OPENING,
        "path": words("path", spec.MOST_PATH_NODES),
        "round": ROUND,
        "sealingKeys": KEYS,
        "sealingSecrets": [secret.to_bytes(32, "big") for secret in SECRETS],
        "seed": SEED,
        "verifyingContract": JOBS,
    }

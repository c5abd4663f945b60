"""Openings of rounds, rolls, and the messages by which members agree on them."""

from vectors.made_up import CHAIN_ID, ROUNDS, addresses, word, words
from vectors.sealing import SECRETS
from vectors.specification import is_refused, spec
from vectors.trees import tree
from vectors.values import Vector


def opening() -> Vector:
    ids = [(1, 0), (1, 1), (2**64 - 1, 2**32 - 1)]
    models, blocks = words("model", len(ids)), words("block", len(ids))
    return {
        "chainId": CHAIN_ID,
        "jobs": [str(job) for job, _ in ids],
        "modelHashes": models,
        "openings": [
            spec.opening_of(CHAIN_ID, ROUNDS, *ids[i], models[i], blocks[i])
            for i in range(len(ids))
        ],
        "previousBlocks": blocks,
        "roundIds": [str(spec.round_id(*each)) for each in ids],
        "rounds": [round_ for _, round_ in ids],
        "roundsContract": ROUNDS,
    }


def roll_case(indices: list[int]) -> Vector:
    label, count = f"on a roll of {len(indices)}", len(indices)
    clients, commitments = addresses(label, count), words(f"gradient {label}", count)
    rests = words(f"rest {label}", count)
    contents = [spec.content_hash(c, r) for c, r in zip(commitments, rests, strict=True)]
    entries = list(zip(indices, clients, commitments, contents, strict=True))
    pairs = spec.roll_pairs(entries)
    return {
        "clientIndices": indices,
        "clients": clients,
        "commitments": commitments,
        "contentHashes": contents,
        "count": count,
        "pairs": pairs,
        "pairsHash": spec.keccak256(pairs),
        "restHashes": rests,
        **tree(spec.roll_leaves(entries)),
    }


def roll() -> Vector:
    cases = [roll_case([0]), roll_case([2, 3]), roll_case([0, 1, 4, 9, 2**32 - 1])]
    entry = (1, addresses("client", 1)[0], word("commitment"), word("content"))
    for entries in ([], [entry, entry], [(2, *entry[1:]), entry]):
        assert is_refused(spec.roll_leaves, entries)
    return {"cases": cases, "count": len(cases), "hashOfNoPairs": spec.keccak256(b"")}


def lists() -> Vector:
    """Lists of three members, the complaints of member 1, and who is left."""
    a, b, c, d, e = words("listed", 5)
    said = [{0: a, 1: b, 2: c, 4: d}, {0: a, 1: b, 2: d, 7: e}, {1: a, 2: d, 4: d, 7: c}]
    found = spec.candidates(said)
    assert found == {0: a, 1: b, 2: d, 4: d}
    filed = {
        i: (found[i], spec.file_complaint(SECRETS[1], 1, spec.public_key(9 + i), word("context")))
        for i in (1, 4)
    }
    standing = {(4, d), (1, e)}
    left = spec.exclude(found, standing)
    assert left == {0: a, 1: b, 2: d}
    good, complaints = spec.encode_list(said[0]), spec.encode_complaints(filed)
    assert spec.decode_list(good, 4) == said[0]
    assert spec.decode_complaints(complaints, 1, 2) == filed
    malformed = {
        "empty": b"",
        "header alone": good[:9],
        "magic": b"opfl" + good[4:],
        "version": good[:4] + b"\x01" + good[5:],
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "a row more than it says": good + bytes(36),
        "more rows than there are clients": spec.encode_list(dict(enumerate(words("row", 5)))),
        "one client twice": good[:8] + b"\x02" + good[9:45] * 2,
        "decreasing order": good[:8] + b"\x02" + good[45:81] + good[9:45],
        "more rows than memory": good[:5] + b"\xff" * 4 + good[9:],
        "complaints": complaints,
    }
    for why, data in malformed.items():
        assert is_refused(spec.decode_list, data, 4), why
    assert is_refused(spec.decode_complaints, complaints, 2, 2)
    return {
        "candidateClients": list(found),
        "candidateHashes": list(found.values()),
        "complaints": complaints,
        "complaintSeat": 1,
        "encoded": [spec.encode_list(each) for each in said],
        "leftClients": list(left),
        "leftHashes": list(left.values()),
        "listedClients": [list(each) for each in said],
        "listedHashes": [list(each.values()) for each in said],
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "most": 4,
        "standingClients": [client for client, _ in sorted(standing)],
        "standingHashes": [content for _, content in sorted(standing)],
    }

"""Sealing keys, proofs of knowledge and complaints, and forms of them that are refused."""

from vectors.made_up import word, words
from vectors.specification import is_refused, spec
from vectors.values import Vector

SECRETS = [int.from_bytes(each, "big") % spec.CURVE_ORDER for each in words("sealing key", 3)]
"""The members' secrets, by seat."""


def sealing() -> Vector:
    ephemeral = int.from_bytes(word("ephemeral key"), "big") % spec.CURVE_ORDER
    public, context = spec.public_key(ephemeral), word("context of a bundle")
    keys = [spec.public_key(secret) for secret in SECRETS]
    shared = [spec.shared_point(public, secret) for secret in SECRETS]
    assert shared == [spec.shared_point(key, ephemeral) for key in keys]
    knowledge = spec.prove_knowledge(ephemeral, context)
    spec.check_knowledge(public, knowledge, context)
    complaints = [spec.file_complaint(SECRETS[seat], seat, public, context) for seat in range(3)]
    for seat, complaint in enumerate(complaints):
        assert spec.complaint_is_sound(complaint, keys[seat], public, context)
        assert not spec.complaint_is_sound(complaint, keys[seat - 1], public, context)
    order, z = spec.CURVE_ORDER, int.from_bytes(knowledge[33:], "big")
    wrong_knowledge = {
        "of another context": spec.prove_knowledge(ephemeral, word("another context")),
        "of another key": spec.prove_knowledge(SECRETS[0], context),
        "response of zero": knowledge[:33] + bytes(32),
        "response plus one": knowledge[:33] + (z + 1).to_bytes(32, "big"),
        "response of n": knowledge[:33] + order.to_bytes(32, "big"),
        "negated commitment": bytes([knowledge[0] ^ 1]) + knowledge[1:],
        "not a point": bytes(33) + knowledge[33:],
        "one byte short": knowledge[:-1],
        "one byte long": knowledge + b"\x00",
    }
    for why, proof in wrong_knowledge.items():
        assert is_refused(spec.check_knowledge, public, proof, context), why
    good = spec.encode_complaint(complaints[1])
    assert spec.decode_complaint(good) == complaints[1]
    malformed = {
        "empty": b"",
        "one byte short": good[:-1],
        "one byte long": good + b"\x00",
        "no seat": b"\x03" + good[1:],
        "uncompressed": good[:1] + b"\x04" + good[2:],
        "not on the curve": good[:1] + b"\x02" + b"\x05" * 32 + good[34:],
        "x beyond the field": good[:1] + b"\x02" + (spec.FIELD_PRIME + 1).to_bytes(32) + good[34:],
        "infinity": good[:1] + bytes(33) + good[34:],
        "response of zero": good[:100] + bytes(32),
        "response of n": good[:100] + order.to_bytes(32, "big"),
    }
    for why, data in malformed.items():
        assert is_refused(spec.decode_complaint, data), why
    seat, point, a, b, response = complaints[1]
    other = spec.file_complaint(SECRETS[1], 1, public, word("another context"))
    forged = {
        "another shared point": (seat, shared[0], a, b, response),
        "negated shared point": (seat, bytes([point[0] ^ 1]) + point[1:], a, b, response),
        "of another context": other,
        "of another member": spec.file_complaint(SECRETS[2], 1, public, context),
        "commitments swapped": (seat, point, b, a, response),
    }
    for why, complaint in forged.items():
        assert not spec.complaint_is_sound(complaint, keys[1], public, context), why
    return {
        "complaints": [spec.encode_complaint(each) for each in complaints],
        "context": context,
        "ephemeral": public,
        "ephemeralSecret": ephemeral.to_bytes(32, "big"),
        "envelopeKeys": [
            [spec.envelope_key(shared[seat], public, k, seat, context) for k in spec.held_by(seat)]
            for seat in range(3)
        ],
        "forged": [spec.encode_complaint(each) for each in forged.values()],
        "forgedSeat": seat,
        "forgedWhy": list(forged),
        "knowledge": knowledge,
        "malformed": list(malformed.values()),
        "malformedWhy": list(malformed),
        "publicKeys": keys,
        "secretKeys": [secret.to_bytes(32, "big") for secret in SECRETS],
        "sharedPoints": shared,
        "wrongKnowledge": list(wrong_knowledge.values()),
        "wrongKnowledgeWhy": list(wrong_knowledge),
    }

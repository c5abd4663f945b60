"""The clients that a seed selects for audit."""

from vectors.made_up import addresses, words
from vectors.specification import spec
from vectors.values import Vector


def sampling() -> Vector:
    seeds = [bytes(32), b"\xff" * 32, *words("seed", 2)]
    draws = []
    for seed in seeds:
        for client in addresses("client", 2):
            ticket = spec.audit_ticket(seed, client)
            rates = [0, 1, spec.audit_rate(0.05), spec.audit_rate(0.5), ticket, ticket + 1]
            draws += [(seed, client, rate) for rate in [*rates, spec.ALWAYS - 1, spec.ALWAYS]]
    probabilities = [0.0, 2.0**-64, 0.01, 0.05, 0.1, 0.5, 1.0]
    return {
        "audited": [spec.is_audited(*draw) for draw in draws],
        "clients": [client for _, client, _ in draws],
        "probabilities": [repr(p) for p in probabilities],
        "probabilityRates": [str(spec.audit_rate(p)) for p in probabilities],
        "rates": [str(rate) for _, _, rate in draws],
        "seeds": [seed for seed, _, _ in draws],
        "tickets": [str(spec.audit_ticket(seed, client)) for seed, client, _ in draws],
    }

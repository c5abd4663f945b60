"""Three members in threads, with queues between them: for circuits, without SPU."""

import secrets
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import numpy as np

from opfl_chain.circuits.boolean import BooleanCircuit
from opfl_chain.mpc.session.errors import MessageInvalid


class QueueTransport:
    """A transport that records the messages to this member."""

    def __init__(self, rank, queues):
        self.rank = rank
        self._queues = queues
        self.received = []

    def send(self, rank, data):
        self._queues[self.rank, rank].put(data)

    def receive(self, rank):
        data = self._queues[rank, self.rank].get(timeout=600)
        self.received.append(data)
        return data

    def invalid(self, rank, reason):
        return MessageInvalid(rank, f"queue {rank}", reason)


def run_members(function, circuit_of=BooleanCircuit):
    """Run function(circuit) for each member at once; return their results and transports.

    `circuit_of` makes a member's circuit: another one for a member that tampers.
    """
    queues = defaultdict(Queue)
    for pair in [(a, b) for a in range(3) for b in range(3)]:
        queues[pair] = Queue()
    transports = [QueueTransport(rank, queues) for rank in range(3)]

    def member(transport):
        return function(circuit_of(transport, secrets.token_bytes(32)))

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(member, transports)), transports


def compute(function):
    """Return the result of a computation, on which all members must agree."""
    results, _ = run_members(function)
    for other in results[1:]:
        assert np.array_equal(results[0], other)
    return results[0]


def ring_components(words, rng):
    """Return random x0, x1, x2 with x0 + x1 + x2 = words modulo 2^64."""
    words = np.asarray(words)
    words = words.view(np.uint64) if words.dtype == np.int64 else words.astype(np.uint64)
    first, second = (rng.integers(0, 2**64, words.shape, dtype=np.uint64) for _ in range(2))
    return [first, second, words - first - second]


def held(components, rank):
    return components[rank], components[(rank + 1) % 3]

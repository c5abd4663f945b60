"""Identifiers of the protocol, kept apart by type."""

from typing import NewType, TypeAlias

from opfl_chain.protocol.widths import unsigned

JobId = NewType("JobId", int)
"""A job: uint64, counted from one."""

RoundNumber = NewType("RoundNumber", int)
"""A round of a job: uint32, counted from zero."""

RoundId = NewType("RoundId", int)
"""A round among all jobs, as contracts name it: the job, then the number of the round in it."""

ClientIndex = NewType("ClientIndex", int)
"""A client's place in its job, and its bit in verdicts: uint32, counted from zero."""

Address: TypeAlias = str
"""An account or contract: 0x and 40 hex digits, with a valid checksum if the case is mixed."""


def round_id_of(job: JobId, number: RoundNumber) -> RoundId:
    """Return the identifier of a round, as contracts use it."""
    return RoundId(unsigned("job", job, 64) << 32 | unsigned("round", number, 32))


def job_and_number(round_id: RoundId) -> tuple[JobId, RoundNumber]:
    """Split the identifier of a round."""
    unsigned("round identifier", round_id, 96)
    return JobId(round_id >> 32), RoundNumber(round_id & 0xFFFFFFFF)

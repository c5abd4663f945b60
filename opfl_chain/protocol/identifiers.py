"""Identifiers of the protocol, kept apart by type."""

from typing import NewType, TypeAlias

JobId = NewType("JobId", int)
"""A job: uint64, counted from one."""

RoundId = NewType("RoundId", int)
"""A round of a job: uint32, counted from zero."""

ClientIndex = NewType("ClientIndex", int)
"""A client's place in its job, and its bit in verdicts: uint32, counted from zero."""

Address: TypeAlias = str
"""An account or contract: 0x and 40 hex digits, with a valid checksum if the case is mixed."""

"""The audit trail of a job: read from the chain, recomputed, and exported for people.

The chain is read once into a `Trail`. The checks and the export are functions of it.
"""

from opfl_chain.trail.answers import check_published
from opfl_chain.trail.export import check_export, write_export
from opfl_chain.trail.reading import read_trail
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import Report
from opfl_chain.trail.verification import check_trail

__all__ = [
    "Report",
    "Trail",
    "check_export",
    "check_published",
    "check_trail",
    "read_trail",
    "write_export",
]

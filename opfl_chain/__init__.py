"""Optimistic verification of federated learning: the public API.

`calibrate` finds the boundary between an honest gradient and its replay, `audit_step` audits one
step among three parties on this machine, `run_job` runs a whole job with all daemons on a local
chain, `read_trail` and `verify_trail` recompute a job from the chain. docs/API.md shows each;
`opfl_chain.extend` has what plug-ins implement.

Names are imported when they are first used: `import opfl_chain` itself takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opfl_chain.api import Progress
    from opfl_chain.api.audit import StepVerdict, audit_step
    from opfl_chain.api.calibration import Calibration, calibrate
    from opfl_chain.api.job import JobResult, run_job
    from opfl_chain.api.trail import read_trail
    from opfl_chain.jobs.localnet.plan import Plan as JobPlan
    from opfl_chain.learning.data.datasets import load_dataset
    from opfl_chain.learning.data.examples import Dataset, Examples
    from opfl_chain.mpc.replay.default_policy import default_policy
    from opfl_chain.protocol.policy import Policy
    from opfl_chain.rules.boundary import Boundary
    from opfl_chain.rules.registry import boundary_from_json
    from opfl_chain.trail.record import Trail
    from opfl_chain.trail.report import Report as TrailReport
    from opfl_chain.trail.verification import check_trail as verify_trail


__all__ = [
    "Boundary",
    "Calibration",
    "Dataset",
    "Examples",
    "JobPlan",
    "JobResult",
    "Policy",
    "Progress",
    "StepVerdict",
    "Trail",
    "TrailReport",
    "audit_step",
    "boundary_from_json",
    "calibrate",
    "default_policy",
    "load_dataset",
    "read_trail",
    "run_job",
    "verify_trail",
]

_PLACES = {
    "Boundary": "rules.boundary:Boundary",
    "Calibration": "api.calibration:Calibration",
    "Dataset": "learning.data.examples:Dataset",
    "Examples": "learning.data.examples:Examples",
    "JobPlan": "jobs.localnet.plan:Plan",
    "JobResult": "api.job:JobResult",
    "Policy": "protocol.policy:Policy",
    "Progress": "api:Progress",
    "StepVerdict": "api.audit:StepVerdict",
    "Trail": "trail.record:Trail",
    "TrailReport": "trail.report:Report",
    "audit_step": "api.audit:audit_step",
    "boundary_from_json": "rules.registry:boundary_from_json",
    "calibrate": "api.calibration:calibrate",
    "default_policy": "mpc.replay.default_policy:default_policy",
    "load_dataset": "learning.data.datasets:load_dataset",
    "read_trail": "api.trail:read_trail",
    "run_job": "api.job:run_job",
    "verify_trail": "trail.verification:check_trail",
}
"""`module:name` of each, in this package."""

if not TYPE_CHECKING:  # type checkers would take any other name for one of these

    def __getattr__(name: str) -> Any:
        from opfl_chain.system.lazy import lazy_names  # here, so that `protocol` loads alone

        return lazy_names(__name__, _PLACES)[0](name)

    def __dir__() -> list[str]:
        return sorted([*__all__, *(name for name in globals() if name[:2] == "__")])

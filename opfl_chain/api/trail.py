"""The audit trail of a job, from a node's address."""

from __future__ import annotations

from pathlib import Path

from opfl_chain.chain.deployment import Deployment
from opfl_chain.chain.rpc import Rpc
from opfl_chain.trail import reading
from opfl_chain.trail.record import Trail


def read_trail(rpc_url: str, deployment: Path | str, job: int) -> Trail:
    """Read everything about a job from the chain, up to its newest block.

    `deployment` is the file that `opfl deploy` wrote. Nobody is trusted but the node: give the
    trail to `verify_trail` to have everything recomputed that it states.
    """
    with Rpc(rpc_url) as rpc:
        return reading.read_trail(rpc, Deployment.read(Path(deployment)), job)

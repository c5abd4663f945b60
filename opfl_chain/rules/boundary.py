"""The boundary of a job: the allowed distance of a replay from a committed gradient."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from opfl_chain.protocol.documents import Document, Name, Positive
from opfl_chain.protocol.policy import Policy

B = TypeVar("B", bound="Boundary")


class Boundary(Document):
    """The fields of every boundary. A rule adds its bounds, and fixes `rule` to its own name."""

    format: Literal["opfl.boundary.v1"] = "opfl.boundary.v1"
    rule: Name
    policy_hash: Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
    spu_version: Name
    coordinates: Positive

    @classmethod
    def of_policy(cls: type[B], policy: Policy, coordinates: int, **bounds: Any) -> B:
        """Make a boundary of a policy from the bounds that the rule adds."""
        return cls.from_mapping(
            {
                "policy_hash": "0x" + policy.hash.hex(),
                "spu_version": policy.spu.version,
                "coordinates": coordinates,
                **bounds,
            }
        )

"""Domain tags, by name."""

from vectors.specification import spec
from vectors.values import Vector


def tags() -> Vector:
    return {"names": list(spec.TAG_NAMES), "tags": [spec.tag(name) for name in spec.TAG_NAMES]}

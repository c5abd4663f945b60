"""How Solidity types appear in generated Python."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from opfl_chain.protocol import identifiers

Parameter = Mapping[str, Any]
_ARRAY = re.compile(r"^(.*)\[\d*\]$")


def canonical(parameter: Parameter) -> str:
    """The type as signatures and eth_abi spell it: tuples written out."""
    kind: str = parameter["type"]
    if kind.startswith("tuple"):
        members = ",".join(canonical(member) for member in parameter["components"])
        return f"({members}){kind.removeprefix('tuple')}"
    return kind


def annotation(parameter: Parameter) -> str:
    if element := _element(parameter):
        return f"tuple[{annotation(element)}, ...]"
    if named := named_type(parameter):
        return named
    kind: str = parameter["type"]
    if kind == "address":
        return "Address"
    if kind in ("bool", "string"):
        return {"bool": "bool", "string": "str"}[kind]
    return "bytes" if kind.startswith("bytes") else "int"


def decoder(parameter: Parameter, raw: str) -> str:
    """An expression that turns what eth_abi decoded into the annotated type."""
    if element := _element(parameter):
        inner = decoder(element, "item")
        return f"tuple({raw})" if inner == "item" else f"tuple({inner} for item in {raw})"
    if parameter["type"] == "tuple":
        return f"{named_type(parameter)}.from_abi({raw})"
    if named := named_type(parameter):
        return f"{named}({raw})"
    return f"checksum({raw})" if parameter["type"] == "address" else raw


def named_type(parameter: Parameter) -> str | None:
    """The Python name of a struct, an enum or an identifier of the protocol."""
    internal: str = parameter.get("internalType", "")
    prefix, _, name = internal.rpartition(" ")
    if prefix in ("struct", "enum"):
        return name.rpartition(".")[2]
    value_type = internal.rpartition(".")[2]
    return value_type if not prefix and hasattr(identifiers, value_type) else None


def parameter_names(parameters: list[Parameter]) -> list[str]:
    return [
        python_name(parameter["name"]) if parameter["name"] else f"argument_{position}"
        for position, parameter in enumerate(parameters)
    ]


def python_name(solidity_name: str) -> str:
    """snake_case; Solidity adds underscores only where names would collide."""
    name = snake_case(solidity_name.strip("_"))
    return f"{name}_" if keyword.iskeyword(name) else name


def snake_case(name: str) -> str:
    with_breaks = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return with_breaks.lower()


def nested(parameter: Parameter) -> list[Parameter]:
    """The parameter and all that it contains, innermost first."""
    if element := _element(parameter):
        return nested(element)
    inner = [found for member in parameter.get("components", []) for found in nested(member)]
    return [*inner, parameter]


def _element(parameter: Parameter) -> Parameter | None:
    outer = _ARRAY.match(parameter["type"])
    if outer is None:
        return None
    internal = _ARRAY.match(parameter.get("internalType", ""))
    return {**parameter, "type": outer[1], "internalType": internal[1] if internal else ""}

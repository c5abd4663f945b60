"""Pieces of generated Python: annotations, decoders, arguments and docstrings of Solidity types."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from opfl_chain.chain.contracts.compiler import Artifact
from opfl_chain.protocol import identifiers

Parameter = Mapping[str, Any]
_ARRAY = re.compile(r"^(.*)\[\d*\]$")
_LINE = 100
_NO_NOTICE = "The contract says no more about it."


def canonical(parameter: Parameter) -> str:
    """Return the type as in signatures and eth_abi, with tuples written out."""
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
    """Return an expression that converts eth_abi's value to the annotated type."""
    if element := _element(parameter):
        inner = decoder(element, "item")
        return f"tuple({raw})" if inner == "item" else f"tuple({inner} for item in {raw})"
    if parameter["type"] == "tuple":
        return f"{named_type(parameter)}.from_abi({raw})"
    if named := named_type(parameter):
        return f"{named}({raw})"
    return f"checksum({raw})" if parameter["type"] == "address" else raw


def named_type(parameter: Parameter) -> str | None:
    """Return the Python name of a struct, an enum or a protocol identifier."""
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
    """Return the name in snake_case, without the underscores that avoid collisions."""
    name = snake_case(solidity_name.strip("_"))
    return f"{name}_" if keyword.iskeyword(name) else name


def snake_case(name: str) -> str:
    with_breaks = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return with_breaks.lower()


def nested(parameter: Parameter) -> list[Parameter]:
    """Return the parameter and all nested ones, innermost first."""
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


def typed(parameter: Parameter, raw: str) -> str:
    decoded = decoder(parameter, raw)
    return f"{annotation(parameter)}({raw})" if decoded == raw else decoded


def arguments(inputs: list[Parameter]) -> str:
    names = zip(parameter_names(inputs), inputs, strict=True)
    return "".join(f", {name}: {annotation(parameter)}" for name, parameter in names)


def values(inputs: list[Parameter]) -> str:
    return "{" + ", ".join(f"{name!r}: {name}" for name in parameter_names(inputs)) + "}"


def fields(parameters: list[Parameter]) -> str:
    names = zip(parameter_names(parameters), parameters, strict=True)
    return "".join(f"    {name}: {annotation(parameter)}\n" for name, parameter in names)


def kinds(parameters: list[Parameter]) -> str:
    return repr(tuple(canonical(parameter) for parameter in parameters))


def signature(entry: Parameter) -> str:
    return f"{entry['name']}({','.join(canonical(p) for p in entry['inputs'])})"


def notice(artifact: Artifact, kind: str, entry: Parameter) -> str:
    section = {"function": "methods", "event": "events", "error": "errors"}[kind]
    found = artifact.documentation.get(section, {}).get(signature(entry), {})
    if isinstance(found, list):
        found = found[0] if found else {}
    return str(found.get("notice", _NO_NOTICE))


def undocumented(text: str) -> bool:
    return _NO_NOTICE in text


def docstring(text: str, indent: int) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', "'")
    pad = " " * indent
    if len(escaped) + indent + 6 <= _LINE:
        return f'{pad}"""{escaped}"""'
    first, *rest = textwrap.wrap(escaped, _LINE - indent - 3)
    return "\n".join([f'{pad}"""{first}', *(pad + line for line in rest), f'{pad}"""'])

"""The small pieces that generated Python is made of."""

from __future__ import annotations

import textwrap

from opfl_chain.chain.codegen.abi_types import (
    Parameter,
    annotation,
    canonical,
    decoder,
    parameter_names,
)
from opfl_chain.chain.compiler import Artifact

_LINE = 100
_NO_NOTICE = "The contract says no more about it."


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

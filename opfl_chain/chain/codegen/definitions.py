"""Definitions that several contracts share: enums, structs, errors and events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from opfl_chain.chain.codegen.abi_types import Parameter, decoder, named_type, nested, snake_case
from opfl_chain.chain.codegen.pieces import (
    docstring,
    fields,
    kinds,
    notice,
    signature,
    undocumented,
)
from opfl_chain.chain.compiler import Artifact
from opfl_chain.chain.errors import CompilationFailed


def render_types(artifacts: list[Artifact], enums: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The definitions by name, in an order in which each can be read before it is used."""
    found: dict[str, str] = {}
    sources: dict[str, str] = {}
    for artifact in artifacts:
        for entry in artifact.abi:
            for top in [*entry.get("inputs", []), *entry.get("outputs", [])]:
                for parameter in nested(top):
                    kind, _, scoped = parameter.get("internalType", "").rpartition(" ")
                    if kind not in ("enum", "struct"):
                        continue
                    name = named_type(parameter) or scoped
                    if sources.setdefault(name, scoped) != scoped:
                        raise CompilationFailed(
                            f"{sources[name]} and {scoped} would both be called {name} in Python. "
                            "Rename one of them."
                        )
                    if kind == "enum":
                        found[name] = _enum(name, enums[scoped])
                    else:
                        found[name] = _struct(name, parameter)
    return found


def _enum(name: str, members: tuple[str, ...]) -> str:
    lines = "".join(
        f"    {snake_case(member).upper()} = {value}\n" for value, member in enumerate(members)
    )
    return f"\n\nclass {name}(ContractEnum):\n{lines}"


def _struct(name: str, parameter: Parameter) -> str:
    members = parameter["components"]
    decoded = ", ".join(decoder(member, f"raw[{i}]") for i, member in enumerate(members))
    return (
        f"\n\n@dataclass(frozen=True)\nclass {name}:\n{fields(members)}\n"
        f"    @classmethod\n    def from_abi(cls, raw: Sequence[Any]) -> Self:\n"
        f"        return cls({decoded})\n"
    )


def unique(
    artifacts: list[Artifact], kind: str, render: Callable[[Parameter, str], str]
) -> Iterable[str]:
    """Every error or event once, though several contracts declare it."""
    rendered: dict[str, str] = {}
    for artifact in artifacts:
        for entry in artifact.abi:
            if entry["type"] == kind:
                text = render(entry, notice(artifact, kind, entry))
                if undocumented(rendered.setdefault(entry["name"], text)):
                    rendered[entry["name"]] = text
                if _code(rendered[entry["name"]]) != _code(text):
                    raise CompilationFailed(
                        f"two {kind}s are called {entry['name']} and differ in their arguments. "
                        "Rename one of them."
                    )
    return [text for _, text in sorted(rendered.items())]


def render_error(entry: Parameter, about: str) -> str:
    inputs = entry["inputs"]
    decoded = ", ".join(decoder(p, f"values[{i}]") for i, p in enumerate(inputs))
    return (
        f"\n\n@dataclass(eq=False)\nclass {entry['name']}(CustomError):\n"
        f"{docstring(about, 4)}\n\n"
        f"    SIGNATURE: ClassVar[str] = {signature(entry)!r}\n"
        f"    TYPES: ClassVar[tuple[str, ...]] = {kinds(inputs)}\n"
        f"{fields(inputs)}\n"
        f"    @classmethod\n    def from_abi(cls, values: Sequence[Any]) -> Self:\n"
        f"        return cls({decoded})\n"
    )


def render_event(entry: Parameter, about: str) -> str:
    inputs = entry["inputs"]
    # An indexed value of a dynamic type is not in the log, only its hash.
    indexed = [p if _is_static(p) else {"type": "bytes32"} for p in inputs if p["indexed"]]
    plain = [p for p in inputs if not p["indexed"]]
    positions = {"indexed": iter(range(len(indexed))), "plain": iter(range(len(plain)))}
    decoded: list[str] = []
    shown: list[Parameter] = []
    for parameter in inputs:
        place = "indexed" if parameter["indexed"] else "plain"
        kept = parameter if place == "plain" or _is_static(parameter) else {"type": "bytes32"}
        shown.append({**kept, "name": parameter["name"]})
        decoded.append(decoder(kept, f"{place}[{next(positions[place])}]"))
    return (
        f"\n\n@dataclass(frozen=True)\nclass {entry['name']}(Event):\n"
        f"{docstring(about, 4)}\n\n"
        f"    SIGNATURE: ClassVar[str] = {signature(entry)!r}\n"
        f"    INDEXED: ClassVar[tuple[str, ...]] = {kinds(indexed)}\n"
        f"    PLAIN: ClassVar[tuple[str, ...]] = {kinds(plain)}\n"
        f"{fields(shown)}\n"
        f"    @classmethod\n"
        f"    def _from_abi(cls, indexed: Sequence[Any], plain: Sequence[Any]) -> Self:\n"
        f"        return cls({', '.join(decoded)})\n"
    )


def _is_static(parameter: Parameter) -> bool:
    kind: str = parameter["type"]
    return not (kind in ("bytes", "string") or kind.startswith("tuple") or kind.endswith("]"))


def _code(rendered: str) -> str:
    return rendered.partition("SIGNATURE")[2]

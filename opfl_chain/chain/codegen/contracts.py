"""One class for each contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opfl_chain.chain.codegen.abi_types import Parameter, annotation, python_name
from opfl_chain.chain.codegen.pieces import (
    arguments,
    docstring,
    kinds,
    notice,
    typed,
    values,
)
from opfl_chain.chain.compiler import Artifact
from opfl_chain.chain.errors import CompilationFailed


def render_contract(artifact: Artifact, documentation: Sequence[Mapping[str, Any]]) -> str:
    about = next((doc["notice"] for doc in documentation if "notice" in doc), artifact.name)
    constructor: Parameter = {"inputs": []}
    methods: dict[str, str] = {}
    for entry in artifact.abi:
        if entry["type"] == "constructor":
            constructor = entry
        elif entry["type"] == "function":
            name = python_name(entry["name"])
            if name in methods:
                raise CompilationFailed(
                    f"{artifact.name} has two functions that Python would call {name}. "
                    "Rename one of them."
                )
            methods[name] = _method(name, entry, notice(artifact, "function", entry))
    return (
        f"\n\nclass {artifact.name}(Contract):\n{docstring(about, 4)}\n\n"
        f"    NAME = {artifact.name!r}\n" + _creation(constructor) + "".join(methods.values())
    )


def _creation(constructor: Parameter) -> str:
    inputs = constructor["inputs"]
    return (
        f"\n    @classmethod\n    def creation(cls, bytecode: bytes{arguments(inputs)}) -> Call:\n"
        '        """Prepare the transaction that creates the contract."""\n'
        f"        return cls._creation(bytecode, {kinds(inputs)}, {values(inputs)})\n"
    )


def _method(name: str, entry: Parameter, about: str) -> str:
    inputs, outputs = entry["inputs"], entry["outputs"]
    head = f"\n    def {name}(self{arguments(inputs)}"
    call = f"{entry['name']!r}, {kinds(inputs)}"
    if entry["stateMutability"] in ("view", "pure"):
        shown = [annotation(output) for output in outputs]
        result = {0: "None", 1: "".join(shown)}.get(len(shown), f"tuple[{', '.join(shown)}]")
        read = f"self._read({call}, {kinds(outputs)}, {values(inputs)}, block)"
        returned = ", ".join(typed(output, f"values[{i}]") for i, output in enumerate(outputs))
        body = f"values = {read}\n        return {returned}" if outputs else read
        return (
            f"{head}, *, block: BlockTag = 'latest') -> {result}:\n"
            f"{docstring(about, 8)}\n        {body}\n"
        )
    payable = entry["stateMutability"] == "payable"
    return (
        f"{head}{', *, value: int' if payable else ''}) -> Call:\n"
        f"{docstring(about, 8)}\n"
        f"        return self._prepare({call}, {values(inputs)}{', value' if payable else ''})\n"
    )

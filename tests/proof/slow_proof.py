"""Proofs, slow and obvious: statements written out word by word, and SPEC.md's own functions.

`written_out` reads the description of a statement's wires, which is what its hash covers, and never
runs their recipes. Everything after that is Python integers.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from opfl_chain.protocol.proof.closing import (
    MASKS,
    PROJECTED_COMMITMENT,
    RESIDUAL_PROJECTIONS,
    STAGES,
    WORD_DIGITS,
    Statement,
)
from opfl_chain.protocol.proof.package import ProofPackage
from opfl_chain.protocol.proof.wires import Product, Quadratic, Wire

ROOT = Path(__file__).resolve().parents[2]
Form = dict[int, int]
"""Multiples of the entries of x, by index."""


def _specification() -> ModuleType:
    path = ROOT / "scripts" / "vectors" / "specification.py"
    found = importlib.util.spec_from_file_location("specification_of_proofs", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    loaded: ModuleType = module.spec
    return loaded


SPEC: Any = _specification()


class _Forms:
    """Writes wires out as forms, by the kinds and details that a statement's hash covers."""

    def __init__(self) -> None:
        self._known: dict[int, list[Form]] = {}

    def set(self, wire: Wire, first: int) -> None:
        self._known[id(wire.compute)] = [{first + i: 1} for i in range(wire.size)]

    def __call__(self, wire: Wire) -> list[Form]:
        key = id(wire.compute)
        if key not in self._known:
            self._known[key] = self._written(wire)
            assert len(self._known[key]) == wire.size
        return self._known[key]

    def _written(self, wire: Wire) -> list[Form]:
        parents = [self(parent) for parent in wire.parents]
        match wire.kind:
            case "constant":
                return [{0: int(each)} for each in wire.detail.split()]
            case "reshape":
                return parents[0]
            case "gather":
                padded = [*parents[0], {}]
                return [padded[i] for i in np.frombuffer(wire.detail, "<i8").tolist()]
            case "add":
                return [_added(*pair) for pair in zip(*parents, strict=True)]
            case "scale":
                return [_times(each, int(wire.detail)) for each in parents[0]]
            case "sum":
                places = np.arange(len(parents[0])).reshape(wire.parents[0].shape)
                rows = np.moveaxis(places, wire.detail[0], -1).reshape(wire.size, -1)
                return [_added(*(parents[0][i] for i in row)) for row in rows.tolist()]
            case "matrix":
                rows, inner = wire.parents[0].shape
                columns = np.frombuffer(wire.detail, "<i8").reshape(inner, -1).T.tolist()
                return [
                    _added(*(_times(parents[0][row * inner + i], column[i]) for i in range(inner)))
                    for row in range(rows)
                    for column in columns
                ]
        raise AssertionError(f"wires of kind {wire.kind} are unknown here")


def _added(*forms: Form) -> Form:
    total: Form = {}
    for form in forms:
        for i, multiple in form.items():
            total[i] = total.get(i, 0) + multiple
    return total


def _times(form: Form, factor: int) -> Form:
    return {i: multiple * factor for i, multiple in form.items()}


def written_out(statement: Statement) -> Any:
    """Return a statement as SPEC.md has it."""
    return _Writer(statement).written


class _Writer:
    def __init__(self, statement: Statement) -> None:
        self.forms, self.factors = _Forms(), list[Form]()
        self._first: dict[int, int] = {}
        places: dict[str, int] = {}
        at = 1
        for stage in range(STAGES):
            for group in statement.stage(stage):
                places[group.name] = at
                self.forms.set(group.wire, at)
                at += group.wire.size
        for ring in _ordered(statement):
            self.forms.set(ring.wire, at)
            at += ring.wire.size
        rules = statement.rules
        self.written = SPEC.ProofStatement(
            hash=statement.hash,
            projections=rules.projections,
            unit_bits=rules.unit_bits,
            word_bits=rules.word_bits,
            sizes=[statement.count(stage) for stage in range(STAGES)],
            groups=[
                SPEC.Group(
                    name=each.name,
                    quantum=each.quantum,
                    gradient=each.gradient_factor,
                    equations=self._quadratics(each.expression),
                )
                for each in statement.equations
            ],
            gradient=[each for term in statement.gradient for each in self._part(statement, term)],
            small=[form for wire in statement.shown_small for form in self.forms(wire)],
            factors=self.factors,
            residuals=places[RESIDUAL_PROJECTIONS],
            digits=places[WORD_DIGITS],
            masks=places[MASKS],
        )

    def _factor(self, wire: Wire) -> int:
        """Return the index of the first of a wire's factors, which are added if they are new."""
        key = id(wire.compute)
        if key not in self._first:
            self._first[key] = len(self.factors)
            self.factors += self.forms(wire)
        return self._first[key]

    def _quadratics(self, expression: Quadratic) -> list[Any]:
        size = math.prod(expression.shape)
        linear = self.forms(expression.linear) if expression.linear else [{} for _ in range(size)]
        found: list[Any] = [(form, []) for form in linear]
        for product in expression.products:
            self._add_product(found, product)
        return found

    def _add_product(self, found: list[Any], product: Product) -> None:
        first, others = self._factor(product.left), self.forms(product.right)
        summed = len(others) // len(found)
        for i, other in enumerate(others):
            found[i // summed][1].append((first + i, _times(other, product.factor)))

    def _part(self, statement: Statement, term: Any) -> list[Any]:
        scale = 1 << (statement.gradient_bits - term.bits)
        rows, outputs = term.right.shape
        right = self.forms(term.right)
        if term.left is None:
            columns = [[right[r * outputs + o] for r in range(rows)] for o in range(outputs)]
            return [(_times(_added(*column), scale), []) for column in columns]
        first, left, inputs = self._factor(term.right), self.forms(term.left), term.left.shape[1]
        return [
            (
                {},
                [
                    (first + r * outputs + o, _times(left[r * inputs + i], scale))
                    for r in range(rows)
                ],
            )
            for i in range(inputs)
            for o in range(outputs)
        ]


def _ordered(statement: Statement) -> list[Any]:
    """Return ring words in the order of x: those of the input first."""
    return sorted(statement.rings, key=lambda ring: ring.name == PROJECTED_COMMITMENT)


@dataclass
class SlowProof:
    """Findings about a proof from its three packages and the rings that it is about."""

    statement: Statement
    context: bytes
    packages: Sequence[ProofPackage]
    gradient: Sequence[Sequence[int]]
    """The components of the committed gradient, as integers in [0, 2^64)."""
    training_input: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        self.written = written_out(self.statement)
        products = len(self.written["factors"])
        levels = SPEC.level_count(products)
        self.sizes = [*self.written["sizes"], *[15] * (levels - 1), 17]
        sent = {part.index: part.sent for each in self.packages for part in each.held}
        seeds, (salt, words) = [sent[0], sent[1]], (sent[2][:32], sent[2][32:])
        elements = iter(SPEC.field_elements(words))
        second = [[next(elements) for _ in range(size)] for size in self.sizes]
        assert next(elements, None) is None
        self.leaves = SPEC.proof_leaves(seeds, salt, second)
        self.encoded = [
            SPEC.encode_proof(rank, self.leaves, seeds, salt, [x for each in second for x in each])
            for rank in range(3)
        ]
        self.states = SPEC.proof_states(self.context, self.statement.hash, self.leaves)
        first = [
            [SPEC.expand_stage(seed, stage, size) for stage, size in enumerate(self.sizes)]
            for seed in seeds
        ]
        self.components = [*first, second]
        count = self.statement.rules.projections
        self.coins = SPEC.ternary_coins(
            self.states[0], "gradient", len(self.written["gradient"]), count
        )

    def x(self, component: int) -> list[int]:
        """Return one component of the vector of all words."""
        words = [x for stage in self.components[component][:STAGES] for x in stage]
        rings: list[int] = []
        for ring in _ordered(self.statement):
            if ring.name == PROJECTED_COMMITMENT:
                rings += SPEC.project_ring(self.coins, self.gradient[component])
            else:
                given = self.training_input[component]
                rings += given[ring.start : ring.start + ring.wire.size]
        return [int(component == 0), *words, *rings]

    @property
    def whole(self) -> list[int]:
        """The vector itself."""
        return [sum(each) % SPEC.P for each in zip(*(self.x(k) for k in range(3)), strict=True)]

    @property
    def stated(self) -> list[list[int]]:
        """The polynomials that the client stated."""
        levels = zip(*(each[STAGES:] for each in self.components), strict=True)
        return [[sum(x) % SPEC.P for x in zip(*level, strict=True)] for level in levels]

    def polynomials(self) -> list[list[int]]:
        """The polynomials that an honest client states on these words."""
        x = self.whole
        left, right, _ = SPEC.combine(self.written, self.states, x)
        masks = x[self.written["masks"] :][:2]
        found = []
        for state in self.states[STAGES:]:
            found.append(SPEC.stated_polynomial(left, right, masks))
            point = SPEC.level_point(len(left), state)
            left, right = SPEC.fold(left, masks[0], point), SPEC.fold(right, masks[1], point)
        return found

    def answer(self, component: int) -> list[int]:
        """Return the answer on one component."""
        answered: list[int] = SPEC.answer(
            self.written, self.states, self.x(component), self.components[component][STAGES:]
        )
        return answered

    def broken(self) -> set[str]:
        """Return the names of the exact equations that do not hold, and of the bounds."""
        x, written = self.whole, self.written
        count, bits = written["projections"], written["word_bits"]
        coordinates = [SPEC.quadratic_value(written, each, x) for each in written["gradient"]]
        left_over = SPEC.residuals(written, x, SPEC.project(self.coins, coordinates))
        groups = {group["name"]: group for group in written["groups"]}
        names = {
            name for name, found in left_over.items() if not groups[name]["quantum"] and any(found)
        }
        unit = 2 ** (written["unit_bits"] + 1)
        scaled = [
            each * (unit // group["quantum"]) % SPEC.P
            for name, group in groups.items()
            if group["quantum"]
            for each in left_over[name]
        ]
        coins = SPEC.ternary_coins(self.states[1], "residuals", len(scaled), count)
        first = written["residuals"]
        if SPEC.project(coins, scaled) != x[first : first + count]:
            names.add(RESIDUAL_PROJECTIONS)
        small = [SPEC.value(form, x) for form in written["small"]]
        coins = SPEC.ternary_coins(self.states[2], "words", len(small), count)
        for k, projected in enumerate(SPEC.project(coins, small)):
            first = written["digits"] + k * (bits + 1)
            shown = sum(2**b * x[first + b] for b in range(bits + 1))
            if (shown - 2**bits - projected) % SPEC.P:
                names.add(WORD_DIGITS)
        return names

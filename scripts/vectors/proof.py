"""A proof of a small statement: two words, their product, and a gradient of two coordinates."""

from typing import Any

from vectors.made_up import made_up_words, word, words
from vectors.specification import spec
from vectors.values import Vector

COUNT, UNIT_BITS, WORD_BITS = 8, 4, 13
A, B, C, OF_INPUT = 1, 2, 3, 4
"""Two words, their product, and the carry of the input."""
CARRY, PART, STEP = 5, 5 + COUNT, 5 + 2 * COUNT
RESIDUALS = STEP + COUNT
DIGITS = RESIDUALS + COUNT
MASKS = DIGITS + COUNT * (WORD_BITS + 1)
INPUT = MASKS + 2
COMMITTED = INPUT + 1


def small_statement() -> Any:
    ks = range(COUNT)
    digits = range(DIGITS, MASKS)
    return spec.ProofStatement(
        hash=word("statement of a small proof"),
        projections=COUNT,
        unit_bits=UNIT_BITS,
        word_bits=WORD_BITS,
        sizes=[4, 3 * COUNT, COUNT, COUNT * (WORD_BITS + 1) + 2],
        factors=[{A: 1}, *({i: 1} for i in digits), {B: 1}],
        groups=[
            spec.Group(name="product", quantum=0, gradient=0, equations=[({C: 1}, [(0, {B: -1})])]),
            spec.Group(
                name="half",
                quantum=2,
                gradient=0,
                equations=[({A: 2, INPUT: -1, OF_INPUT: 2**64}, [])],
            ),
            spec.Group(
                name="lift",
                quantum=0,
                gradient=0,
                equations=[({COMMITTED + k: 1, CARRY + k: -(2**64), PART + k: -1}, []) for k in ks],
            ),
            spec.Group(
                name="step", quantum=4, gradient=-1, equations=[({STEP + k: 4}, []) for k in ks]
            ),
            spec.Group(
                name="words.digits",
                quantum=0,
                gradient=0,
                equations=[({i: -1}, [(1 + j, {i: 1})]) for j, i in enumerate(digits)],
            ),
        ],
        gradient=[({}, [(1 + len(digits), {A: 1})]), ({B: 4}, [])],
        small=[{i: 1} for i in range(A, DIGITS)],
        residuals=RESIDUALS,
        digits=DIGITS,
        masks=MASKS,
    )


def form_text(form: dict[int, int]) -> str:
    return " ".join(f"{i}:{multiple}" for i, multiple in form.items())


def quadratic_text(quadratic: Any) -> str:
    form, products = quadratic
    return "|".join([form_text(form), *(f"{factor}*{form_text(g)}" for factor, g in products)])


def as_signed(x: int) -> int:
    return x - spec.P if x > spec.P // 2 else x


class SmallProof:
    """Proves the small statement stage by stage, as SPEC.md says; `error` is added to c."""

    def __init__(self, error: int, tossed: list[bytes]) -> None:
        self.statement, self.tossed = small_statement(), tossed
        self.context = word("context of a small proof")
        self.seeds, self.salt = words("seed of a small proof", 2), word("salt of a small proof")
        a, b = 5, -3
        self.input = spec.split([2 * a + 1], *words("seed of a small input", 2))
        self.gradient = spec.split([7, -9], *words("seed of a small gradient", 2))
        self.component: list[list[int]] = []
        self.words: list[int] = []
        carry = sum(part[0] % 2**64 for part in self.input) // 2**64
        self._stage([a, b, a * b + error, carry])
        coins = spec.ternary_coins(self.states[0], "gradient", 2, COUNT)
        self.committed = [
            spec.project_ring(coins, [x % 2**64 for x in part]) for part in self.gradient
        ]
        projected = [as_signed(x) for x in spec.project(coins, [a * b, 4 * b])]
        sums = [sum(parts) for parts in zip(*self.committed, strict=True)]
        carries = [(x + 2**63) // 2**64 for x in sums]
        parts = [x - 2**64 * carry for x, carry in zip(sums, carries, strict=True)]
        self._stage([*carries, *parts, *((x + 2) // 4 for x in projected)])
        # The scaled residuals: half is in units of 2, step in units of 4.
        steps = self.words[STEP - 1 : STEP - 1 + COUNT]
        left_over = [-1 * 16, *((4 * s - x) * 8 for s, x in zip(steps, projected, strict=True))]
        coins = spec.ternary_coins(self.states[1], "residuals", 1 + COUNT, COUNT)
        self._stage([as_signed(x) for x in spec.project(coins, left_over)])
        small = list(self.words)
        coins = spec.ternary_coins(self.states[2], "words", len(small), COUNT)
        shifted = [as_signed(x) + 2**WORD_BITS for x in spec.project(coins, small)]
        assert all(0 <= x < 2 ** (WORD_BITS + 1) for x in shifted)
        digits = [x >> b & 1 for x in shifted for b in range(WORD_BITS + 1)]
        masks = spec.uniform_elements(word("masks of a small proof"), 2)
        self._stage([*digits, *masks])
        self.levels: list[list[int]] = []
        left, right, self.rest = spec.combine(self.statement, self.states, self.whole)
        self.left, self.right = left, right
        for _ in range(spec.level_count(len(left))):
            self.levels.append(spec.stated_polynomial(left, right, masks))
            self._stage(self.levels[-1])
            point = spec.level_point(len(left), self.states[-1])
            left, right = spec.fold(left, masks[0], point), spec.fold(right, masks[1], point)

    def _stage(self, stage_words: list[int]) -> None:
        stage = len(self.component)
        self.component.append(spec.mask_stage(self.seeds, stage, stage_words))
        if stage < 4:
            self.words += stage_words
        self.leaves = spec.proof_leaves(self.seeds, self.salt, self.component)
        tossed = self.tossed[: stage + 1]
        self.states = spec.proof_states(
            self.context, self.statement["hash"], self.leaves, tossed or None
        )

    @property
    def whole(self) -> list[int]:
        rings = [
            [*(x % 2**64 for x in given), *committed]
            for given, committed in zip(self.input, self.committed, strict=True)
        ]
        return [1, *self.words, *(sum(each) for each in zip(*rings, strict=True))]

    def answer(self, k: int) -> list[int]:
        stages = self.component
        if k < 2:
            sizes = map(len, stages)
            stages = [spec.expand_stage(self.seeds[k], stage, n) for stage, n in enumerate(sizes)]
        own = [x for stage in stages[:4] for x in stage]
        ring = [*(x % 2**64 for x in self.input[k]), *self.committed[k]]
        answered: list[int] = spec.answer(
            self.statement, self.states, [int(k == 0), *own, *ring], stages[4:]
        )
        return answered

    def vector(self) -> Vector:
        flat = [x for stage in self.component for x in stage]
        answers = [self.answer(k) for k in range(3)]
        return {
            "accepts": spec.accepts(answers),
            "answers": [spec.field_bytes(each) for each in answers],
            "left": spec.field_bytes(self.left),
            "leaves": self.leaves,
            "packages": [
                spec.encode_proof(rank, self.leaves, self.seeds, self.salt, flat)
                for rank in range(3)
            ],
            "rest": spec.field_bytes([self.rest]),
            "right": spec.field_bytes(self.right),
            "states": self.states,
            "tossed": self.tossed,
        }


def proof() -> Vector:
    levels = spec.level_count(len(small_statement()["factors"]))
    coins = words("coins of members", 4 + levels)
    honest, cheating, tossed = SmallProof(0, []), SmallProof(1, []), SmallProof(0, coins)
    cases = [each.vector() for each in (honest, cheating, tossed)]
    assert [case["accepts"] for case in cases] == [True, False, True]
    statement = honest.statement
    values = [*made_up_words("elements", 3), -1, spec.P - 1]
    return {
        "cases": cases,
        "context": honest.context,
        "elements": [str(x) for x in values],
        "encodedElements": spec.field_bytes(values),
        "gradient": [spec.ring_bytes(part) for part in honest.gradient],
        "input": [spec.ring_bytes(part) for part in honest.input],
        "salt": honest.salt,
        "seeds": honest.seeds,
        "statement": {
            "factors": [form_text(form) for form in statement["factors"]],
            "gradient": [quadratic_text(each) for each in statement["gradient"]],
            "groups": [
                {**group, "equations": [quadratic_text(each) for each in group["equations"]]}
                for group in statement["groups"]
            ],
            "small": [form_text(form) for form in statement["small"]],
            **{
                name: statement[name]
                for name in (
                    "digits",
                    "hash",
                    "masks",
                    "projections",
                    "residuals",
                    "sizes",
                    "unit_bits",
                    "word_bits",
                )
            },
        },
        "words": spec.field_bytes(honest.words),
    }

"""One component of one contribution, handed over to whoever settles a dispute about it.

Two answers on a component differ: with the component itself anyone recomputes the right one. One
component is uniform whatever the contribution is, so it tells nothing. A hand-over holds exactly
one, and nothing here takes two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from opfl_chain.protocol.commitments import (
    COMPONENTS,
    SEED_BYTES,
    SENT_AS_WORDS,
    Subject,
    shares_commitment,
)
from opfl_chain.protocol.delivery import MOST_PROOF_NODES, Claim, Delivery, Expected, joint_digest
from opfl_chain.protocol.errors import HandOverInvalid, ProtocolError
from opfl_chain.protocol.identifiers import ClientIndex, RoundNumber
from opfl_chain.protocol.inputs import is_input_of_round
from opfl_chain.protocol.proof.package import (
    ProofComponent,
    ProofForm,
    ProofLeaves,
    verify_component,
)
from opfl_chain.protocol.ring import RING_WORD_BYTES, UnsignedWords
from opfl_chain.protocol.shares import HASH_BYTES, SALT_BYTES, Component, SharePackage

FORMAT: Final = 1
_MOST_NUMBER: Final = 1 << 32
_KEYS: Final = {"format", "round", "client", "component", "gradient", "input", "proof"}
_PART_KEYS: Final = {"leaf_hashes", "salt", "sent"}


@dataclass(frozen=True)
class SharePart:
    """One component of a shared vector, and the leaf hashes of all three."""

    leaf_hashes: tuple[bytes, ...]
    part: Component

    @classmethod
    def of(cls, package: SharePackage, index: int) -> SharePart:
        """Take one component out of a member's package."""
        return cls(package.leaf_hashes, _chosen(package.held, index))

    def commitment(self, subject: Subject) -> bytes:
        """Return the commitment that the leaf hashes make."""
        return shares_commitment(subject, self.leaf_hashes)

    def words(self, count: int) -> UnsignedWords:
        """Return the words of the component."""
        return self.part.words(count)

    def verify(self, name: str, count: int) -> None:
        """Raise unless the component has its size, and matches its leaf hash."""
        index = self.part.index
        size = RING_WORD_BYTES * count if index == SENT_AS_WORDS else SEED_BYTES
        if len(self.part.sent) != size:
            raise HandOverInvalid(
                f"component {index} of the {name} has {len(self.part.sent):,} bytes, this job takes"
                f" {size:,}"
            )
        if self.part.leaf_hash != self.leaf_hashes[index]:
            raise HandOverInvalid(f"component {index} of the {name} does not match its leaf hash")

    @property
    def document(self) -> dict[str, Any]:
        return {
            "leaf_hashes": _texts(self.leaf_hashes),
            "salt": _text(self.part.salt),
            "sent": _text(self.part.sent),
        }


@dataclass(frozen=True)
class HandOver:
    """One component of the gradient, the input and the proof of an audited contribution."""

    round_number: RoundNumber
    client: ClientIndex
    component: int
    gradient: SharePart
    training_input: SharePart
    input_commitment: bytes
    input_path: tuple[bytes, ...]
    proof: ProofComponent
    proof_leaves: ProofLeaves

    @classmethod
    def of(cls, claim: Claim, delivery: Delivery, component: int) -> HandOver:
        """Take one component out of a delivery that has it, to hand it over."""
        given, proof = delivery.training_input, delivery.proof
        if given is None or proof is None:
            raise HandOverInvalid(
                f"the delivery of client {claim.client} in round {claim.round_number} has no proof:"
                " only audited contributions have one, and only those are disputed"
            )
        return cls(
            claim.round_number,
            claim.client,
            component,
            SharePart.of(delivery.gradient, component),
            SharePart.of(given.package, component),
            given.commitment,
            given.proof,
            _chosen(proof.held, component),
            proof.leaves,
        )

    @property
    def digest(self) -> bytes:
        """The digest of all leaf hashes that members report."""
        leaves = (*self.gradient.leaf_hashes, *self.training_input.leaf_hashes)
        return joint_digest(leaves, self.proof_leaves)

    @property
    def gradient_commitment(self) -> bytes:
        """The commitment to the gradient that follows from the leaf hashes."""
        return self.gradient.commitment(Subject.GRADIENT)

    def verify(self, claim: Claim, expected: Expected, form: ProofForm) -> None:
        """Raise unless the chain binds every part of this hand-over.

        The leaf hashes of the proof are bound by the digest that members report.
        """
        found = self.round_number, self.client
        if found != (claim.round_number, claim.client):
            raise HandOverInvalid(
                f"the component is of client {self.client} in round {self.round_number}, not of"
                f" client {claim.client} in round {claim.round_number}"
            )
        self.gradient.verify("gradient", expected.gradient_words)
        self.training_input.verify("input", expected.input_words)
        if self.gradient_commitment != claim.commitment:
            raise HandOverInvalid(
                "the leaf hashes of the gradient do not make the commitment on chain"
                f" {_text(claim.commitment)}"
            )
        if self.training_input.commitment(Subject.INPUT) != self.input_commitment:
            raise HandOverInvalid("the leaf hashes of the input do not make its commitment")
        if not is_input_of_round(
            claim.dataset_root, claim.round_number, self.input_commitment, self.input_path
        ):
            raise HandOverInvalid(
                f"input {_text(self.input_commitment)} is not the input of round"
                f" {claim.round_number} in the data set {_text(claim.dataset_root)} of the client"
            )
        self._verify_proof(form)

    def _verify_proof(self, form: ProofForm) -> None:
        hashes = 2 + len(form.sizes)
        if len(self.proof_leaves.hashes) != hashes:
            raise HandOverInvalid(
                f"the proof has {len(self.proof_leaves.hashes)} leaf hashes, this job takes"
                f" {hashes}"
            )
        size = form.sent_size(self.component)
        if len(self.proof.sent) != size:
            raise HandOverInvalid(
                f"component {self.component} of the proof has {len(self.proof.sent):,} bytes, this"
                f" job takes {size:,}"
            )
        try:
            verify_component(self.proof, self.proof_leaves, form)
            self.proof.stages(form)
        except ProtocolError as error:
            raise HandOverInvalid(str(error)) from error

    def encode(self) -> str:
        """Return the file format."""
        given = {
            **self.training_input.document,
            "commitment": _text(self.input_commitment),
            "path": _texts(self.input_path),
        }
        content = {
            "format": FORMAT,
            "round": self.round_number,
            "client": self.client,
            "component": self.component,
            "gradient": self.gradient.document,
            "input": given,
            "proof": {
                "leaf_hashes": _texts(self.proof_leaves.hashes),
                "sent": _text(self.proof.sent),
            },
        }
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def decode(cls, text: str) -> HandOver:
        """Read a file. Whether anything binds it, `verify` says."""
        try:
            content = from_json(text.encode())
        except ValueError as error:
            raise HandOverInvalid(f"not JSON: {error}") from None
        if isinstance(content, list):
            raise HandOverInvalid(
                f"a list of {len(content)} hand-overs: a hand-over is one component of one"
                " contribution, and components must not come together"
            )
        found = _fields("a hand-over", content, _KEYS)
        if found["format"] != FORMAT:
            raise HandOverInvalid(f"format {found['format']!r:.40}, expected {FORMAT}")
        index = _number("component", found["component"], COMPONENTS)
        given = _fields("the input", found["input"], {*_PART_KEYS, "commitment", "path"})
        proof = _fields("the proof", found["proof"], {"leaf_hashes", "sent"})
        path = _hashes("path of the input", given["path"])
        if len(path) > MOST_PROOF_NODES:
            raise HandOverInvalid(
                f"path of the input has {len(path)} nodes, at most {MOST_PROOF_NODES} are allowed"
            )
        return cls(
            RoundNumber(_number("round", found["round"], _MOST_NUMBER)),
            ClientIndex(_number("client", found["client"], _MOST_NUMBER)),
            index,
            _part("gradient", _fields("the gradient", found["gradient"], _PART_KEYS), index),
            _part("input", given, index),
            _bytes("commitment to the input", given["commitment"], HASH_BYTES),
            path,
            ProofComponent(index, _bytes("component of the proof", proof["sent"])),
            ProofLeaves(_hashes("leaf hashes of the proof", proof["leaf_hashes"])),
        )


def _chosen(held: Sequence[Any], index: int) -> Any:
    for part in held:
        if part.index == index:
            return part
    have = " and ".join(str(part.index) for part in held)
    raise HandOverInvalid(f"component {index} is not in the delivery, which has {have}")


def _part(name: str, content: dict[str, Any], index: int) -> SharePart:
    hashes = _hashes(f"leaf hashes of the {name}", content["leaf_hashes"])
    if len(hashes) != COMPONENTS:
        raise HandOverInvalid(f"the {name} has {len(hashes)} leaf hashes, expected {COMPONENTS}")
    salt = _bytes(f"salt of the {name}", content["salt"], SALT_BYTES)
    return SharePart(hashes, Component(index, salt, _bytes(name, content["sent"])))


def _fields(name: str, content: Any, keys: set[str]) -> dict[str, Any]:
    if not isinstance(content, dict) or set(content) != keys:
        raise HandOverInvalid(f"{name} is an object with the keys {', '.join(sorted(keys))}")
    return content


def _number(name: str, value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value < limit:
        raise HandOverInvalid(
            f"{name} is {value!r:.40}, it must be one number from 0 to {limit - 1:,}"
        )
    return value


def _hashes(name: str, value: Any) -> tuple[bytes, ...]:
    if not isinstance(value, list):
        raise HandOverInvalid(f"{name} must be a list")
    return tuple(_bytes(f"{name}[{i}]", each, HASH_BYTES) for i, each in enumerate(value))


def _bytes(name: str, value: Any, size: int | None = None) -> bytes:
    try:
        if not isinstance(value, str) or not value.startswith("0x"):
            raise ValueError
        found = bytes.fromhex(value[2:])
    except ValueError:
        raise HandOverInvalid(f"{name} is not a hexadecimal text with 0x") from None
    if size is not None and len(found) != size:
        raise HandOverInvalid(f"{name} has {len(found):,} bytes, it must have {size}")
    return found


def _text(value: bytes) -> str:
    return "0x" + value.hex()


def _texts(values: Sequence[bytes]) -> list[str]:
    return [_text(value) for value in values]

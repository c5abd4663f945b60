"""Documents of a job whose hash is on chain, in canonical JSON.

Canonical JSON has sorted keys, no spaces, UTF-8, and the shortest digits that read back as the same
float64. Its integers are below 2^53, so that every JSON parser reads them exactly; what may be
larger is a decimal string. Other encodings of the same document are refused, or one document would
have several hashes.
"""

import json
from math import isfinite
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
)
from pydantic_core import ErrorDetails

from opfl_chain.protocol.errors import DocumentError, ProtocolError
from opfl_chain.protocol.hashing import keccak256

D = TypeVar("D", bound="Document")

MAX_JSON_INTEGER: Final = (1 << 53) - 1
_MOST_DIGITS: Final = 78  # of 256 bits
_MOST_REPORTED: Final = 5
_LONGEST_VALUE: Final = 60

Natural: TypeAlias = Annotated[int, Field(ge=0, le=MAX_JSON_INTEGER)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=MAX_JSON_INTEGER)]
Name: TypeAlias = Annotated[str, Field(min_length=1)]


def _option(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise ValueError("an option is a boolean, an integer, a float or a string")
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("it must be a finite number")
    if isinstance(value, int) and abs(value) > MAX_JSON_INTEGER:
        raise ValueError("an integer must be within 2^53; write a larger one as a string")
    return value


Options: TypeAlias = dict[Name, Annotated[bool | int | float | str, PlainValidator(_option)]]
"""Named values that documents store without interpreting them."""


def _from_decimal(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not (value.isascii() and value.isdecimal()) or (value[0] == "0" and value != "0"):
        raise ValueError("it must be decimal digits without a leading zero")
    if len(value) > _MOST_DIGITS:
        raise ValueError(f"it must have at most {_MOST_DIGITS} digits")
    return int(value)


Decimal: TypeAlias = Annotated[int, BeforeValidator(_from_decimal), PlainSerializer(str)]
"""An integer that may not fit into 53 bits: a decimal string in JSON."""


class Record(BaseModel):
    """A part of a document: immutable, without unknown fields or type conversions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",  # so that inf and nan are refused later, not written as null
    )


class Document(Record):
    """A whole document."""

    @property
    def canonical_json(self) -> bytes:
        """The bytes that go on chain."""
        return canonical_json(self)

    @property
    def hash(self) -> bytes:
        """The keccak256 of those bytes."""
        return keccak256(self.canonical_json)

    @classmethod
    def from_json(cls: type[D], data: bytes) -> D:
        """Read a document from its canonical bytes."""
        try:
            document = cls.model_validate_json(data)
        except ValidationError as error:
            raise DocumentError(_explanation(cls, error)) from None
        if (canonical := document.canonical_json) != data:
            pairs = enumerate(zip(canonical, data, strict=False))
            at = next((i for i, (a, b) in pairs if a != b), min(len(canonical), len(data)))
            raise DocumentError(
                f"{cls.__name__}: not canonical JSON from byte {at}:"
                f" {data[at : at + 20]!r} must be {canonical[at : at + 20]!r}"
            )
        return document

    @classmethod
    def from_mapping(cls: type[D], fields: dict[str, Any]) -> D:
        """Make a document from plain values, such as those of a configuration file."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise DocumentError(_explanation(cls, error)) from None


def canonical_json(model: BaseModel) -> bytes:
    """Return the canonical encoding of a document."""
    try:
        return json.dumps(
            model.model_dump(mode="json"),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        ).encode("utf-8")
    except ValueError as error:  # nan, infinity, or half of a surrogate pair
        raise DocumentError(f"{type(model).__name__} has no canonical JSON: {error}") from None


def _explanation(model: type[BaseModel], error: ValidationError) -> str:
    details = error.errors(include_url=False)
    reasons = [_reason(detail) for detail in details[:_MOST_REPORTED]]
    if more := len(details) - len(reasons):
        reasons.append(f"and {more} more")
    return f"{model.__name__}: {'; '.join(reasons)}"


def _reason(detail: ErrorDetails) -> str:
    place = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "json_invalid":
        return str(detail["msg"])
    if detail["type"] == "extra_forbidden":
        return f"{place} is an unknown field"
    if detail["type"] == "missing":
        return f"{place} is missing"
    message = detail["msg"].removeprefix("Value error, ")
    whole = isinstance(detail["input"], dict)  # several fields do not fit together
    if detail["type"] == "value_error" and (
        whole or isinstance(detail["ctx"]["error"], ProtocolError)
    ):
        return f"{place}: {message}" if place else message
    value = repr(detail["input"])
    if len(value) > _LONGEST_VALUE:
        value = value[:_LONGEST_VALUE] + "..."
    return f"{place} is {value}: {message[0].lower()}{message[1:]}"

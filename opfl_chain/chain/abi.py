"""The contracts' binary encoding, strict about lengths.

eth_abi fills short byte strings up with zeros, which would turn a mistake into a commitment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.encoding import BytesEncoder
from eth_abi.exceptions import DecodingError
from eth_abi.registry import ABIRegistry, BaseEquals, registry


class _ExactBytesEncoder(BytesEncoder):
    def validate_value(self, value: Any) -> None:
        super().validate_value(value)  # type: ignore[no-untyped-call]
        wanted = (self.value_bit_size or 0) // 8
        if len(value) != wanted:
            self.invalidate_value(value, msg=f"has {len(value)} bytes instead of {wanted}")


class _AnyTextDecoder(StringDecoder):
    def __init__(self) -> None:
        super().__init__("backslashreplace")  # type: ignore[no-untyped-call]


def _strict_registry() -> ABIRegistry:
    strict: ABIRegistry = registry.copy()  # type: ignore[no-untyped-call]
    label = "bytes<M>"
    any_size = BaseEquals("bytes", with_sub=True)  # type: ignore[no-untyped-call]
    strict.unregister_encoder(label)
    strict.register_encoder(any_size, _ExactBytesEncoder, label=label)
    return strict


def _of_any_text(strict: ABIRegistry) -> ABIRegistry:
    lenient: ABIRegistry = strict.copy()  # type: ignore[no-untyped-call]
    text = BaseEquals("string")  # type: ignore[no-untyped-call]
    lenient.unregister_decoder("string")
    lenient.register_decoder(text, _AnyTextDecoder, label="string")
    return lenient


_CODEC = ABICodec(_strict_registry())
_EVENT_CODEC = ABICodec(_of_any_text(_strict_registry()))
encode = _CODEC.encode


def decode(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """The values in `data`. Raises DecodingError also where eth_abi lets out errors of Python."""
    return _decode(_CODEC, types, data)


def decode_event_data(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """The same for an event, where text need not be UTF-8: anyone can announce such an endpoint on
    chain, and whoever reads the events must get past it.
    """
    return _decode(_EVENT_CODEC, types, data)


def _decode(codec: ABICodec, types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    try:
        return codec.decode(types, data)
    except (OverflowError, UnicodeDecodeError) as error:
        raise DecodingError(str(error)) from error

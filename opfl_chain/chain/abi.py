"""The contracts' binary encoding, strict about lengths and lenient about text.

eth_abi fills short byte strings up with zeros, which would turn a mistake into a commitment. And it
refuses text that is not UTF-8; anyone can announce such an endpoint on chain, and whoever reads the
events must get past it.
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


def _codec() -> ABICodec:
    strict: ABIRegistry = registry.copy()  # type: ignore[no-untyped-call]
    label = "bytes<M>"
    any_size = BaseEquals("bytes", with_sub=True)  # type: ignore[no-untyped-call]
    strict.unregister_encoder(label)
    strict.register_encoder(any_size, _ExactBytesEncoder, label=label)
    strict.unregister_decoder("string")
    text = BaseEquals("string")  # type: ignore[no-untyped-call]
    strict.register_decoder(text, _AnyTextDecoder, label="string")
    return ABICodec(strict)


_CODEC = _codec()
encode = _CODEC.encode


def decode(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """The values in `data`. Raises DecodingError also where eth_abi lets out errors of Python."""
    try:
        return _CODEC.decode(types, data)
    except OverflowError as error:
        raise DecodingError(str(error)) from error

"""JSON tokens that fuzzers would take long to find."""

from __future__ import annotations

import re
from collections.abc import Sequence

TOKEN = re.compile(rb'"[^"]*"|-?[0-9][0-9.e+-]*|true|false|null')
STRANGE_VALUES = (
    *(b"null", b"true", b"-1", b"0.5", b"1e999", b"NaN", b"9" * 30, b"9" * 5000, b"{}", b"[]"),
    *(b'""', b'"\\ud800"', b'"\\u0000"', b'"\xff"', b"[" * 300, b"[1]", b'{"$": "share"}', b'"0"'),
)
_LONGEST = 64


def dictionary(seeds: Sequence[bytes]) -> str:
    """Return a libFuzzer dictionary: the tokens of the seeds, and unusual ones."""
    tokens = {token for seed in seeds for token in TOKEN.findall(seed)} | set(STRANGE_VALUES)
    short = sorted(token for token in tokens if len(token) <= _LONGEST)
    quoted = ("".join(f"\\x{byte:02x}" for byte in token) for token in short)
    return "".join(f'"{token}"\n' for token in quoted)

"""Where the checkout keeps what is not Python: contracts, tools and built files."""

from __future__ import annotations

from pathlib import Path

from opfl_chain.chain.errors import CompilerMissing

_ROOT = Path(__file__).resolve().parents[2]


def checkout_root() -> Path:
    """The folder with `contracts/` and `foundry.toml`, found from where this package lies."""
    for needed in ("contracts", "foundry.toml", "package.json"):
        if not (_ROOT / needed).exists():
            raise CompilerMissing(
                f"{_ROOT / needed} is missing. opfl_chain compiles its contracts from a checkout: "
                "clone the repository and install it with `make setup` (pip install -e .)."
            )
    return _ROOT


def build_folder(name: str) -> Path:
    """A folder for files that can be made again at any time."""
    folder = _ROOT / ".build" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder

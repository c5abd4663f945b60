"""Generates `opfl_chain/chain/bindings` from the compiled contracts.

`python -m opfl_chain.chain.codegen` writes the files; with `--check` it writes nothing and
fails if they are out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opfl_chain.chain.codegen.package import generate
from opfl_chain.chain.contracts.compiler import compile_contracts
from opfl_chain.system.files import write_atomically

_BINDINGS = Path(__file__).parents[1] / "bindings"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only check that files are up to date")
    check = parser.parse_args().check
    wanted = generate(compile_contracts(), "opfl_chain.chain.bindings")
    present = {path.name: path.read_text() for path in _BINDINGS.glob("*.py")}
    stale = sorted(name for name in wanted | present if wanted.get(name) != present.get(name))
    if not check:
        for name in stale:
            if name in wanted:
                write_atomically(_BINDINGS / name, wanted[name])
            else:
                (_BINDINGS / name).unlink()
    for name in stale:
        print(f"{'stale' if check else 'written'}: opfl_chain/chain/bindings/{name}")
    if check and stale:
        print("Run `python -m opfl_chain.chain.codegen` and commit the result.")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())

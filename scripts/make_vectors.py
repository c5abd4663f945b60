"""Write tests/vectors/*.json from the executable definitions of docs/SPEC.md.

    python scripts/make_vectors.py            write all files
    python scripts/make_vectors.py --check    fail if a file differs from SPEC.md

Nothing of opfl_chain is imported: the vectors test the package and the contracts alike. Only
the BLS arithmetic of beacon.json comes from a library, which published.json checks in turn.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from vectors.aggregate import aggregate
from vectors.beacon import beacon
from vectors.bundle import bundle
from vectors.commitments import gradient_tree, shares
from vectors.documents import boundary, policy
from vectors.echo import echo
from vectors.exchange import exchange
from vectors.fixed_point import fixed_point
from vectors.guided import guided
from vectors.inputs import inputs
from vectors.model import model
from vectors.money import charges, rewards
from vectors.penalties import deposits, penalties
from vectors.profile import profile
from vectors.proof import proof
from vectors.referee import referee, resharing, seats
from vectors.ring_shares import packages, ring_shares
from vectors.roll import lists, opening, roll
from vectors.sampling import sampling
from vectors.sealing import sealing
from vectors.signatures import signatures
from vectors.statements import statements
from vectors.steps import deadlines, steps
from vectors.tags import tags
from vectors.trees import dataset, merkle
from vectors.values import Vector, to_json
from vectors.verdict import verdict

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "tests" / "vectors"

MAKERS: dict[str, Callable[[], Vector]] = {
    "aggregate": aggregate,
    "beacon": beacon,
    "boundary": boundary,
    "bundle": bundle,
    "charges": charges,
    "dataset": dataset,
    "deadlines": deadlines,
    "deposits": deposits,
    "echo": echo,
    "exchange": exchange,
    "fixed_point": fixed_point,
    "gradient_tree": gradient_tree,
    "guided": guided,
    "inputs": inputs,
    "lists": lists,
    "merkle": merkle,
    "model": model,
    "opening": opening,
    "packages": packages,
    "penalties": penalties,
    "policy": policy,
    "profile": profile,
    "proof": proof,
    "referee": referee,
    "resharing": resharing,
    "rewards": rewards,
    "ring_shares": ring_shares,
    "roll": roll,
    "sampling": sampling,
    "sealing": sealing,
    "seats": seats,
    "shares": shares,
    "signatures": signatures,
    "statements": statements,
    "steps": steps,
    "tags": tags,
    "verdict": verdict,
}


def rendered() -> Iterator[tuple[Path, str]]:
    for name, make in MAKERS.items():
        yield VECTORS / f"{name}.json", json.dumps(to_json(make()), indent=2) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write tests/vectors/*.json from docs/SPEC.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    check = parser.parse_args().check
    stale = []
    for path, text in rendered():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path} is out of date" if check else f"wrote {path}")
    if check and stale:
        print("run python scripts/make_vectors.py and commit the changed files", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

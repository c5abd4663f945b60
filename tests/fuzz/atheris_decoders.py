"""Coverage-guided fuzzing of the decoders with atheris, each in its own process.

    atheris_decoders.py --seconds 60                 all decoders, sharing the time
    atheris_decoders.py --seconds 60 --target policy one decoder
    atheris_decoders.py --input 7b7d --target policy one input, in hex

Inputs that reach new code stay in .build/fuzz/TARGET/corpus, where the next run continues.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from json_tokens import dictionary

FOLDER = Path(__file__).parents[2] / ".build" / "fuzz"
MOST_BYTES = 4096
MOST_MEGABYTES = 2048
MOST_SECONDS = 10
"""Limit for one input."""
TAIL_LINES = 20
_RUNS = re.compile(r"stat::number_of_executed_units: *(\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--input", type=bytes.fromhex)
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_this_process:
        fuzz(arguments.target, arguments.seconds)

    from targets import TARGETS

    if arguments.input is not None:
        accepted = TARGETS[arguments.target].accepts(arguments.input)
        print("accepted" if accepted else "refused")
        return 0
    names = [arguments.target] if arguments.target else list(TARGETS)
    failed = [name for name in names if not withstands(name, arguments.seconds / len(names))]
    print(f"Failures in: {', '.join(failed)}" if failed else "No failures.")
    return len(failed)


def withstands(name: str, seconds: float) -> bool:
    """Fuzz one decoder in another process, print the result and return whether it passed."""
    started = time.time()
    command = [sys.executable, __file__, "--in-this-process", "--target", name]
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], capture_output=True, text=True, errors="replace"
    )
    runs = _RUNS.search(done.stderr)
    print(f"{name:20} {int(runs[1]) if runs else 0:>12,} runs", flush=True)
    if done.returncode == 0:
        return True
    print(done.stdout, *done.stderr.splitlines()[-TAIL_LINES:], sep="\n")
    for crash in (FOLDER / name / "crashes").glob("*"):
        if crash.stat().st_mtime >= started:
            content = crash.read_bytes().hex()
            print(f"\n{name} fails on {content}, stored in {crash}. To reproduce:")
            print(f"  .venv/bin/python {sys.argv[0]} --target {name} --input {content}")
    return False


def fuzz(name: str, seconds: float) -> None:
    """Fuzz one decoder, then exit the process."""
    import atheris

    with atheris.instrument_imports(include=["opfl_chain"]):
        from targets import TARGETS

    target = TARGETS[name]
    corpus, crashes = FOLDER / name / "corpus", FOLDER / name / "crashes"
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate((*target.seeds, *target.findings)):
        (corpus / f"seed-{number}").write_bytes(seed)
    tokens = FOLDER / name / "tokens"
    tokens.write_text(dictionary(target.seeds))
    options = {
        "max_total_time": max(1, int(seconds)),
        "max_len": MOST_BYTES,
        "timeout": MOST_SECONDS,
        "rss_limit_mb": MOST_MEGABYTES,
        "artifact_prefix": f"{crashes}/",
        "dict": tokens,
        "print_final_stats": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    # Earlier findings are tried first.
    atheris.Setup([sys.argv[0], *flags, str(corpus), str(crashes)], target.accepts)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())

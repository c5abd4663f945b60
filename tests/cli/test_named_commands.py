"""Commands and options that pages, examples and docstrings name are there."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from opfl_chain.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")]
SOURCES = [path for path in (ROOT / "opfl_chain").rglob("*.py") if "bindings" not in path.parts]
COMMAND = re.compile(r"(?:`|^|bin/)opfl +([^`#\n]+)", re.MULTILINE)


def named_commands(path: Path) -> list[list[str]]:
    """Return the words after `opfl` of every command that a file names."""
    text = path.read_text(encoding="utf-8").replace("\\\n", "")
    found = [match[1].split() for match in COMMAND.finditer(text)]
    return [words for words in found if words and words[0].strip("-").islower()]


def missing(words: list[str]) -> str | None:
    """Return the word that is neither a command nor one of its options."""
    command, depth = get_command(app), 0
    context = command.make_context("opfl", [], resilient_parsing=True)
    for word in words:
        if not hasattr(command, "get_command") or word.startswith("-"):
            break
        found = command.get_command(context, word)
        if found is None:
            return word
        command, depth = found, depth + 1
    options = {option for each in command.get_params(context) for option in each.opts}
    options |= {option for each in command.params for option in each.secondary_opts}
    named = {word.partition("=")[0] for word in words[depth:] if re.match(r"--?[a-z]", word)}
    return next(iter(sorted(named - options - {"-h"})), None)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("evaluate lab", "lab"),
        ("demo --rounds 3", None),
        ("demo --turns 3", "--turns"),
        ("bench gas --markdown docs/GAS.md", None),
    ],
)
def test_missing_commands_are_found(words: str, found: str | None) -> None:
    assert missing(words.split()) == found


def test_named_commands_exist() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), " ".join(words))
        for path in (*PAGES, *SOURCES)
        for words in named_commands(path)
    }
    assert len(named) > 50
    assert sorted(each for each in named if missing(each[1].split())) == []

"""Files of signed answers, and their comparison with the chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.protocol.errors import AnswersInvalid
from opfl_chain.protocol.identifiers import RoundNumber
from opfl_chain.protocol.published_answers import PublishedRound, decode_rounds
from opfl_chain.trail.checks.answers import check_answers, limits_of_answers
from opfl_chain.trail.history import History
from opfl_chain.trail.record import Trail
from opfl_chain.trail.report import AnswersUnreadable, Failure, Finding, Report

CHECK: Final = "signed answers"


def read_answers(path: Path) -> dict[RoundNumber, PublishedRound]:
    """Read a file that a member published."""
    try:
        return decode_rounds(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswersUnreadable(path, "does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AnswersUnreadable(path, f"cannot be read: {error}") from None
    except AnswersInvalid as error:
        raise AnswersUnreadable(path, f"is not a file of answers: {error}") from None


def check_published(trail: Trail, files: Sequence[Path]) -> Report:
    """Recompute the verdicts of proved audits from files that members published."""
    created = next(trail.of(JobCreated), None)
    contents = [read_answers(path) for path in files]
    if created is None:
        return Report({CHECK: 0}, ())
    history = History(trail, created)
    found: list[Finding] = []
    notes: dict[str, None] = {}
    for published in contents:
        found += check_answers(history, published)
        notes |= dict.fromkeys(limits_of_answers(history, published))
    failures = [Failure(CHECK, finding) for finding in found if not finding.holds]
    failures.sort(key=lambda failure: failure.finding.place)
    return Report({CHECK: len(found)}, tuple(failures), tuple(notes))

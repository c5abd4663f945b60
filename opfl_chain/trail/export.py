"""A trail as JSON, CSV and pages, and the comparison of an export with the chain."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from opfl_chain.chain.bindings.events import JobCreated
from opfl_chain.system.files import write_atomically
from opfl_chain.trail.canonical import canonical_bytes, digest, readable, trail_document
from opfl_chain.trail.history import History
from opfl_chain.trail.pages.index_page import index_page
from opfl_chain.trail.pages.round_page import round_page
from opfl_chain.trail.pages.words import round_file
from opfl_chain.trail.record import Place, Trail
from opfl_chain.trail.report import END, START, ExportInvalid, Failure, Finding, Report

TRAIL_JSON: Final = "trail.json"
TRAIL_CSV: Final = "trail.csv"
INDEX_PAGE: Final = "index.html"
_COLUMNS = ("block", "log_index", "transaction", "contract", "event", "round", "who", "arguments")
CHECK: Final = "export"
_HEADER = ("format", "chain_id", "genesis", "contracts", "job", "first_block")


def write_export(trail: Trail, folder: Path) -> list[Path]:
    """Write all files into a folder, which is created if missing, and return their paths."""
    files = export_files(trail)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [folder / name for name in files]


def export_files(trail: Trail) -> dict[str, str]:
    """Return the files of an export, by name."""
    document = trail_document(trail)
    files = {
        TRAIL_JSON: json.dumps(document, indent=1) + "\n",
        TRAIL_CSV: _csv(trail),
    }
    created = next(trail.of(JobCreated), None)
    if created is not None:
        history = History(trail, created)
        files[INDEX_PAGE] = index_page(history, document["digest"])
        for number, round_ in history.rounds.items():
            files[round_file(number)] = round_page(history, round_)
    return files


def _csv(trail: Trail) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for entry in trail.entries:
        writer.writerow(
            (
                entry.block,
                entry.log_index,
                entry.transaction,
                entry.contract,
                entry.name,
                "" if entry.round is None else entry.round,
                entry.who or "",
                json.dumps(readable(entry.event), separators=(",", ":")),
            )
        )
    return lines.getvalue()


def check_export(trail: Trail, folder: Path) -> Report:
    """Compare an export with the trail up to the same block.

    The chain may have newer blocks. Any other difference is a failure.
    """
    found = list(_compare(trail, folder))
    failures = [Failure(CHECK, finding) for finding in found if not finding.holds]
    failures.sort(key=lambda failure: failure.finding.place)
    return Report({CHECK: len(found)}, tuple(failures))


def read_export(folder: Path) -> dict[str, Any]:
    """Read the document of an export. Its structure is checked, its values are not."""
    path = folder / TRAIL_JSON
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExportInvalid(path, "does not exist") from None
    except (ValueError, RecursionError) as error:
        raise ExportInvalid(path, f"is not JSON: {error}") from None
    keys = {*_HEADER, "block", "events", "calls", "parents", "digest"}
    if not isinstance(document, dict) or set(document) != keys:
        raise ExportInvalid(path, f"must be an object with the keys {', '.join(sorted(keys))}")
    events, calls, block = document["events"], document["calls"], document["block"]
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise ExportInvalid(path, "has events that are not a list of objects")
    if not isinstance(calls, dict) or type(block) is not int:
        raise ExportInvalid(path, "has calls that are not an object, or a block that is not an int")
    return document


def _compare(trail: Trail, folder: Path) -> Iterator[Finding]:
    exported = read_export(folder)
    last: int = exported["block"]
    yield Finding(
        START,
        "the chain has the block that the export was made at",
        last <= trail.block,
        f"at most {trail.block}",
        last,
    )
    past = trail.until(min(last, trail.block))
    wanted = trail_document(past)
    for key in _HEADER:
        yield Finding(START, key, wanted[key] == exported[key], wanted[key], exported[key])
    yield from _events(wanted["events"], exported["events"])
    for name in sorted({*wanted["calls"], *exported["calls"]}):
        a, b = wanted["calls"].get(name), exported["calls"].get(name)
        yield Finding(END, f"what was sent in {name}", a == b, a, b)
    parents = (wanted["parents"], exported["parents"])
    yield Finding(END, "blocks before openings", parents[0] == parents[1], *parents)
    stated = exported["digest"]
    yield Finding(END, "digest of the export", stated == digest(exported), digest(exported), stated)
    for name, content in export_files(past).items():
        if name != TRAIL_JSON:
            same = _read(folder / name) == content.encode()
            says = "what the events say"
            yield Finding(END, name, same, says, says if same else "something else, or nothing")


def _events(wanted: list[dict[str, Any]], exported: list[dict[str, Any]]) -> Iterator[Finding]:
    """Compare event by event, up to the first difference: the rest may be shifted."""
    for number, (a, b) in enumerate(zip_longest(wanted, exported)):
        holds = a is not None and b is not None and canonical_bytes(a) == canonical_bytes(b)
        known = a if a is not None else b
        name = f"event {number}, {known['event'] if a is not None else known.get('event')}"
        yield Finding(
            _place(a),
            name,
            holds,
            _difference(a, b),
            _difference(b, a),
            (a or {}).get("round"),
            None,
        )
        if not holds:
            return


def _difference(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Any:
    """Return the fields of the first that differ in the second, each argument separately."""
    if one is None:
        return "no event"
    if other is None:
        return dict(one)
    flat_one, flat_other = _flat(one), _flat(other)
    absent = object()
    return {k: v for k, v in flat_one.items() if flat_other.get(k, absent) != v}


def _flat(event: Mapping[str, Any]) -> dict[str, Any]:
    arguments = event.get("arguments")
    rest = {key: value for key, value in event.items() if key != "arguments"}
    return {**rest, **arguments} if isinstance(arguments, dict) else dict(event)


def _place(event: Mapping[str, Any] | None) -> Place:
    return END if event is None else (event["block"], event["log_index"])


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

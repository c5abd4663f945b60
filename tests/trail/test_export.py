"""The export, and the detection of every change to it."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from played_job import FAULTY, LAST, ROUNDS, SPLIT, WITHHELD
from tampered_trails import one

from opfl_chain.chain.bindings.events import AuditHeld, ClientEnrolled, RoundFinalised
from opfl_chain.trail import check_export, write_export
from opfl_chain.trail.canonical import digest
from opfl_chain.trail.report import ExportInvalid


@pytest.fixture(scope="module")
def written(trail, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_export(trail, folder)
    return folder


@pytest.fixture
def export(written, tmp_path):
    return shutil.copytree(written, tmp_path / "export")


def edit(export, change):
    """Change the document and adjust its digest, as an attacker would."""
    path = export / "trail.json"
    document = json.loads(path.read_text())
    change(document)
    document["digest"] = digest(document)
    path.write_text(json.dumps(document))


def test_export_is_what_the_chain_says(trail, export):
    report = check_export(trail, export)
    assert report.holds, report.first_failure
    assert report.facts["export"] > len(trail.entries)


def test_json_holds_every_event_decoded(trail, export):
    document = json.loads((export / "trail.json").read_text())
    assert len(document["events"]) == len(trail.entries)
    assert document["digest"] == digest(document)
    assert (document["chain_id"], document["job"]) == (trail.chain_id, trail.job)
    assert document["contracts"] == trail.contracts
    held = one(trail, AuditHeld, LAST)
    (found,) = [
        event
        for event in document["events"]
        if (event["event"], event["round"]) == ("AuditHeld", LAST)
    ]
    assert found["transaction"] == held.transaction
    assert (found["block"], found["log_index"]) == held.place
    assert found["arguments"]["client"] == held.event.client
    assert found["arguments"]["held"] == str(held.event.held)
    (charged,) = [
        event["arguments"]["outcome"]
        for event in document["events"]
        if event["event"] == "ClientCharged" and event["round"] == WITHHELD
    ][:1]
    assert charged == "unanswered"


def test_csv_has_a_line_for_every_event(trail, export):
    with (export / "trail.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["event"] for row in rows] == [entry.name for entry in trail.entries]
    assert all(json.loads(row["arguments"]) is not None for row in rows)


class Reader(HTMLParser):
    """Checks that tags are closed in order, and collects text and addresses."""

    VOID = ("meta", "br")

    def __init__(self):
        super().__init__()
        self.open, self.links, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read_page(path):
    reader = Reader()
    reader.feed(path.read_text())
    assert not reader.open
    return reader


def test_pages_are_whole_and_need_nothing_from_elsewhere(export):
    pages = sorted(export.glob("*.html"))
    assert [page.name for page in pages] == [
        "index.html",
        *(f"round-{number:04d}.html" for number in range(ROUNDS)),
    ]
    for page in pages:
        reader = read_page(page)
        assert all((export / link).exists() for link in reader.links)
        assert not re.search(r"https?://|@import|url\(", page.read_text())


def test_round_page_tells_what_happened(trail, export):
    def said(number):
        return " ".join(read_page(export / f"round-{number:04d}.html").words)

    for words in (
        "8 contributions",
        "dissents",
        "majority",
        "did not pass",
        "acquitted in block",
        "outside the boundary",
        "not answered in time",
        "falsehood",
        "audited",
    ):
        assert words in said(FAULTY), words
    final = one(trail, RoundFinalised, FAULTY).event
    assert "0x" + final.model_hash.hex() in said(FAULTY)
    for words in ("withheld", "silence", "absence", "silent"):
        assert words in said(WITHHELD), words
    assert "as before" in said(SPLIT)
    for words in ("equivocation", "undecided", "standby 0"):
        assert words in said(LAST), words


def test_index_has_all_parties(trail, export):
    text = (export / "index.html").read_text()
    for entry in trail.of(ClientEnrolled):
        assert entry.event.client in text
    terms = trail.final_state.terms
    for member in (*terms.members, *terms.standbys, terms.treasury):
        assert member in text


def test_export_of_earlier_holds_after_the_chain_went_on(trail, tmp_path):
    block = one(trail, RoundFinalised, FAULTY).block
    write_export(trail.until(block), tmp_path)
    report = check_export(trail, tmp_path)
    assert report.holds, report.first_failure
    assert report.facts["export"] < len(trail.entries)


def test_changed_amount_is_named(trail, export):
    at = next(i for i, e in enumerate(trail.entries) if e.name == "AuditHeld")
    edit(export, lambda d: d["events"][at]["arguments"].update(held="1"))
    failure = check_export(trail, export).first_failure
    assert failure.finding.fact == f"event {at}, AuditHeld"
    assert failure.finding.place == trail.entries[at].place
    assert failure.finding.found == {"held": "1"}


def test_event_that_was_left_out_is_named(trail, export):
    edit(export, lambda d: d["events"].pop(20))
    failure = check_export(trail, export).first_failure
    assert failure.finding.fact == f"event 20, {trail.entries[20].name}"


def test_event_that_was_added_is_named(trail, export):
    edit(export, lambda d: d["events"].append(d["events"][-1]))
    failure = check_export(trail, export).first_failure
    assert failure.finding.expected == "no event"


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda d: d.update(chain_id=1), "chain_id"),
        (lambda d: d.update(genesis="0x00"), "genesis"),
        (lambda d: d["contracts"].update(Jobs="0x00"), "contracts"),
        (lambda d: d.update(block=10**9), "the chain has the block"),
        (lambda d: d["calls"].popitem(), "what was sent in"),
        (lambda d: d["parents"].popitem(), "blocks before openings"),
        (lambda d: d["events"][3].update(block_hash="0x00"), "event 3"),
    ],
)
def test_anything_else_that_was_changed_is_named(trail, export, change, fact):
    edit(export, change)
    assert fact in check_export(trail, export).first_failure.finding.fact


def test_digest_that_does_not_fit(trail, export):
    path = export / "trail.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "digest": "0x" + "00" * 32}))
    assert "digest" in check_export(trail, export).first_failure.finding.fact


@pytest.mark.parametrize("name", ["trail.csv", "index.html", "round-0002.html"])
def test_file_that_says_something_else(trail, export, name):
    path = export / name
    path.write_text(path.read_text().replace("ETH", "wei", 1).replace("Captured", "captured", 1))
    assert check_export(trail, export).first_failure.finding.fact == name
    path.unlink()
    assert check_export(trail, export).first_failure.finding.fact == name


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object with the keys"),
        ('{"job": 1}', "must be an object with the keys"),
    ],
)
def test_malformed_export_is_refused(trail, export, content, reason):
    (export / "trail.json").write_text(content)
    with pytest.raises(ExportInvalid, match=reason):
        check_export(trail, export)


def test_folder_without_an_export_is_refused(trail, tmp_path):
    with pytest.raises(ExportInvalid, match="does not exist"):
        check_export(trail, tmp_path)

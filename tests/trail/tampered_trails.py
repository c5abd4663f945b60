"""Changing one fact of a recorded trail."""

from dataclasses import replace

from opfl_chain.trail import check_trail


def entries_of(trail, kind, round_=None, **arguments):
    """The entries of a kind, in a round if one is given, whose events have these arguments."""
    return [
        entry
        for entry in trail.of(kind)
        if round_ in (None, entry.round)
        and all(getattr(entry.event, name) == value for name, value in arguments.items())
    ]


def one(trail, kind, round_=None, **arguments):
    (entry,) = entries_of(trail, kind, round_, **arguments)
    return entry


def changed(trail, entry, **arguments):
    """The trail with other arguments in one event."""
    return swapped(trail, entry, replace(entry, event=replace(entry.event, **arguments)))


def moved(trail, entry, block):
    """Return the trail with one event moved to another block, in order."""
    elsewhere = replace(entry, block=block, block_hash="0x" + "77" * 32)
    entries = sorted(swapped(trail, entry, elsewhere).entries, key=lambda e: e.place)
    return replace(trail, entries=tuple(entries))


def swapped(trail, old, new):
    entries = tuple(new if entry is old else entry for entry in trail.entries)
    return replace(trail, entries=entries)


def without(trail, *dropped):
    places = {entry.place for entry in dropped}
    return replace(trail, entries=tuple(e for e in trail.entries if e.place not in places))


def with_final_state(trail, **changes):
    return replace(trail, final_state=replace(trail.final_state, **changes))


def first_failure(trail):
    report = check_trail(trail)
    assert not report.holds
    return report.first_failure


def assert_named(trail, check, fact, *, round_=None, who=None):
    """Assert that this is the first failure."""
    failure = first_failure(trail)
    assert (failure.check, failure.finding.round) == (check, round_), failure
    assert fact in failure.finding.fact, failure
    if who is not None:
        assert failure.finding.who == who, failure
    return failure

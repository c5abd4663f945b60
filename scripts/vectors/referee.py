"""Hand-overs to a referee, results of meetings, changes of seats, and words shared anew."""

from vectors.bundle import context, contribution
from vectors.made_up import addresses, words
from vectors.sealing import SECRETS
from vectors.specification import spec
from vectors.values import Vector


def referee() -> Vector:
    bundle, here = contribution("shares"), context("contribution")
    content = spec.content_hash(bundle["commitment"], spec.rest_hash(bundle))
    keys = [
        [
            spec.body_key(bundle, k, seat, spec.shared_point(bundle["ephemeral"], secret), here)
            for k in spec.held_by(seat)
        ]
        for seat, secret in enumerate(SECRETS)
    ]
    answer, other, nothing = *words("answer to hand over", 2), bytes(32)
    whole = [(4, k, content, answer) for k in range(3)]
    places = [(2, 1, content, answer), (3, 0, content, nothing), *whole]
    zeros = dict.fromkeys(places, (nothing, nothing))
    handed = [
        {**zeros, places[0]: (keys[0][1], answer)},
        {**zeros, places[0]: (keys[1][0], answer), places[1]: (other, nothing)},
        {places[0]: (nothing, nothing), (2, 0, content, other): (other, other)},
    ]
    wanted = spec.agreed_wanted([set(each) for each in handed])
    assert wanted == places[:2]
    # One seat leaves a component out: then nothing is wanted by two.
    assert spec.agreed_wanted([set(places), set(places[1:]), set(places[:1])]) == []
    handed_keys = [
        [],
        [("contribution", 4, content, 2, keys[1][1])],
        [("answer", 2**32 - 1, answer, k, other) for k in (1, 0)],
    ]
    messages = [spec.encode_handed_keys(each) for each in handed_keys]
    assert [spec.decode_handed_keys(each) for each in messages] == handed_keys
    said = [[{1, 9}, {1, 9}, None], [{1}, None, None], [set(), {3}, set()], [{1}, {2}, {3}]]
    return {
        "bodyKeys": keys,
        "bundle": spec.encode_bundle(bundle),
        "handedKeys": messages,
        "handedKeysMalformed": [
            messages[1][:-1],
            messages[1] * 3,
            b"\x03" + messages[1][1:],
            messages[1][:37] + b"\x03" + messages[1][38:],
        ],
        "handOvers": [spec.encode_hand_over(each) for each in handed],
        "most": 3,
        "results": [[spec.encode_results(each) for each in case] for case in said],
        "resultsAgreed": [spec.encode_results(spec.agreed_results(case)) for case in said],
        "wantedAnswers": [wanted_answer for *_, wanted_answer in wanted],
        "wantedClients": [client for client, *_ in wanted],
        "wantedComponents": [component for _, component, *_ in wanted],
        "wantedContributions": [found for *_, found, _ in wanted],
    }


def seats() -> Vector:
    """Changes by places on the roster: seats, bench, who is at fault, changes before."""
    roster = addresses("on the roster", 5)
    first, second, third = ([0, 1, 2], 0), ([3, 1, 2], 1), ([3, 0, 2], 2)
    inputs = [
        ([0, 1, 2], [3, 4], [], [], False),
        ([0, 1, 2], [3, 4], [1], [], False),
        ([0, 1, 2], [3, 4], [2, 0], [], False),
        ([0, 1, 2], [3, 4], [1, 3], [], False),
        ([0, 1, 2], [3, 4], [1, 3, 4], [], False),
        ([0, 3, 2], [1, 4], [1], [([0, 1, 2], 1)], False),
        ([0, 1, 2], [], [1], [], False),
        # Meetings fail one after the other.
        ([0, 1, 2], [3, 4], [], [], True),
        ([3, 1, 2], [0, 4], [], [first], True),
        ([3, 0, 2], [1, 4], [], [first, second], True),
        ([3, 0, 1], [2, 4], [], [first, second, third], True),
        ([3, 0, 1], [2, 4], [], [first, second, third], False),
        # Nobody but the excluded is on the bench.
        ([3, 0, 1], [2], [], [first, second, third], True),
        # Who pays goes first, and its change says nothing about meetings.
        ([0, 1, 2], [3, 4], [2], [], True),
        ([0, 3, 2], [1, 4], [1], [([0, 1, 2], 1)], True),
        ([3, 1, 2], [0, 4], [0], [first], True),
        # A failure clears everyone that is suspected.
        ([3, 0, 4], [1, 2], [2], [first, second, third], True),
        ([0, 1, 2], [], [], [], True),
    ]

    def members(places: list[int]) -> list[bytes]:
        return [roster[place] for place in places]

    found = [
        spec.due_change(
            members(seated),
            members(bench),
            set(members(bad)),
            [(members(before), seat) for before, seat in history],
            failed,
        )
        for seated, bench, bad, history, failed in inputs
    ]
    return {
        "atFault": [bad for _, _, bad, _, _ in inputs],
        "before": [[before for before, _ in history] for *_, history, _ in inputs],
        "benches": [bench for _, bench, *_ in inputs],
        "dueSeats": [-1 if each is None else each[0] for each in found],
        "dueStandbys": [-1 if each is None else roster.index(each[1]) for each in found],
        "failed": [failed for *_, failed in inputs],
        "left": [[seat for _, seat in history] for *_, history, _ in inputs],
        "members": roster,
        "seated": [seated for seated, *_ in inputs],
    }


def resharing() -> Vector:
    """Words that are shared anew among those who meet now."""
    given = [[None, 1, 2], [None, 0, 2], [2, None, 0], [1, 2, 0]]
    first, second, *seeds = words("share anew", 5)
    components = spec.split([5, -7, 2**61, 0], first, second)
    cases = []
    for each in given:
        dealt = [[components[k] for k in spec.dealt_by(seat, each)] for seat in range(3)]
        sums = [
            [spec.signed(sum(at)) for at in zip([0] * 4, *parts, strict=True)] for parts in dealt
        ]
        anew = [spec.first_component(sums[s], seeds[s], seeds[s - 1]) for s in range(3)]
        assert spec.reconstruct(anew) == spec.reconstruct(components)
        cases.append([spec.ring_bytes(part) for part in anew])
    return {
        "components": [spec.ring_bytes(each) for each in components],
        "dealt": [[spec.dealt_by(seat, each) for seat in range(3)] for each in given],
        "given": [[-1 if was is None else was for was in each] for each in given],
        "seeds": seeds,
        "shared": cases,
    }

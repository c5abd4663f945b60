"""What seats hand to a referee, results of meetings, and changes of seats."""

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
    said = [[{1, 9}, {1, 9}, None], [{1}, None, None], [set(), {3}, set()], [{1}, {2}, {3}]]
    return {
        "bodyKeys": keys,
        "bundle": spec.encode_bundle(bundle),
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
    """Who changes: seats, bench and who is at fault, as places on the roster."""
    roster = addresses("on the roster", 5)
    inputs = [
        ([0, 1, 2], [3, 4], []),
        ([0, 1, 2], [3, 4], [1]),
        ([0, 1, 2], [3, 4], [2, 0]),
        ([0, 1, 2], [3, 4], [1, 3]),
        ([0, 1, 2], [3, 4], [1, 3, 4]),
        ([0, 3, 2], [1, 4], [1]),
        ([0, 1, 2], [], [1]),
    ]
    found = [
        spec.due_change(
            *([roster[i] for i in each] for each in case[:2]), {roster[i] for i in case[2]}
        )
        for case in inputs
    ]
    return {
        "atFault": [each for *_, each in inputs],
        "benches": [bench for _, bench, _ in inputs],
        "dueSeats": [-1 if each is None else each[0] for each in found],
        "dueStandbys": [-1 if each is None else roster.index(each[1]) for each in found],
        "members": roster,
        "seated": [each for each, *_ in inputs],
    }

from __future__ import annotations

import pytest

from opfl_chain.transport.errors import RouteInvalid
from opfl_chain.transport.routes import Refusal, Response, Route, Router


def route(method: str, pattern: str) -> Route:
    return Route(method, pattern, lambda _: Response())


SUM = route("GET", "/rounds/{round}/sum")
DELIVERY = route("POST", "/rounds/{round}/deliveries/{client}")
FETCH = route("GET", "/rounds/{round}/deliveries/{client}")
ROOT = route("GET", "/")
ROUTER = Router([SUM, DELIVERY, FETCH, ROOT])


@pytest.mark.parametrize(
    ("method", "path", "expected", "parts"),
    [
        ("GET", "/rounds/7/sum", SUM, {"round": "7"}),
        ("POST", "/rounds/7/deliveries/0xab", DELIVERY, {"round": "7", "client": "0xab"}),
        ("GET", "/rounds/a%2Fb/sum", SUM, {"round": "a/b"}),
        ("GET", "/rounds/%ff/sum", SUM, {"round": "\ufffd"}),
        ("GET", "/", ROOT, {}),
    ],
)
def test_the_route_that_fits_is_found(
    method: str, path: str, expected: Route, parts: dict[str, str]
) -> None:
    assert ROUTER.find(method, path) == (expected, parts)


@pytest.mark.parametrize(
    "path", ["", "*", "/rounds", "/rounds//sum", "/rounds/7/sum/", "/rounds/7/Sum", "//", "/.."]
)
def test_other_paths_are_not_there(path: str) -> None:
    with pytest.raises(Refusal, match="no such path") as caught:
        ROUTER.find("GET", path)
    assert caught.value.status == 404


def test_another_method_is_told_which_ones_there_are() -> None:
    with pytest.raises(Refusal, match="use GET, POST here") as caught:
        ROUTER.find("PUT", "/rounds/7/deliveries/0xab")
    assert (caught.value.status, caught.value.headers) == (405, {"Allow": "GET, POST"})


@pytest.mark.parametrize("pattern", ["", "rounds", "/rounds/", "/{a b}", "/{}", "/a?b", "/{a}x"])
def test_a_pattern_that_is_no_path_is_refused(pattern: str) -> None:
    with pytest.raises(RouteInvalid, match="is not a route pattern"):
        route("GET", pattern)

"""Which handler a request is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import unquote

from opfl_chain.transport.errors import RouteInvalid
from opfl_chain.transport.messages import Refusal, Request, Response

Handler: TypeAlias = Callable[[Request], Response]

_NAMED: Final = re.compile(r"\{([a-z_]+)\}")
_LITERAL: Final = re.compile(r"[A-Za-z0-9._~-]+")


@dataclass(frozen=True)
class Route:
    """`pattern` is a path of which parts may be named, as in "/rounds/{round}/sum".

    A named part takes any text but none that is empty. Bodies may have up to `max_body_bytes`.
    """

    method: str
    pattern: str
    handler: Handler
    max_body_bytes: int = 0
    _segments: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first, *segments = self.pattern.split("/")
        valid = all(_NAMED.fullmatch(each) or _LITERAL.fullmatch(each) for each in segments)
        if first or not segments or not (valid or segments == [""]):
            raise RouteInvalid(
                f"{self.pattern!r} is not the path of a route. Give /words/and/{{names}}."
            )
        object.__setattr__(self, "_segments", tuple(segments))

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """The named parts, or None if this is another path."""
        if len(segments) != len(self._segments):
            return None
        parts = {}
        for segment, wanted in zip(segments, self._segments, strict=True):
            if name := _NAMED.fullmatch(wanted):
                if not segment:
                    return None
                parts[name[1]] = segment
            elif segment != wanted:
                return None
        return parts


class Router:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The first route that fits. Refuses with 404 or, where only the method differs, 405."""
        segments = [unquote(each) for each in path.split("/")[1:]]
        allowed = set()
        for route in self._routes:
            parts = route.match(segments)
            if parts is not None and route.method == method:
                return route, parts
            if parts is not None:
                allowed.add(route.method)
        if allowed:
            methods = ", ".join(sorted(allowed))
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"only {methods} here", {"Allow": methods})
        raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing here")

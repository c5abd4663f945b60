"""Bundles of clients: taken in, served to peers, and opened.

A delivery to one honest member is a delivery to all: whoever lacks a bundle that others list asks
them for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

from opfl_chain.chain.keys import signer_of
from opfl_chain.chain.rpc import checksum, tohex, unhex
from opfl_chain.protocol.bundle import Bundle, check_bundle
from opfl_chain.protocol.bundle import context as bundle_context
from opfl_chain.protocol.bundle_form import BundleKind, Limits
from opfl_chain.protocol.delivery import Expected
from opfl_chain.protocol.errors import ProtocolError
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.statements import Answer, Contribution
from opfl_chain.roles.member.requests import round_in, signature_in
from opfl_chain.roles.member.store import MemberStore, SignedBundle
from opfl_chain.roles.node import Node
from opfl_chain.roles.peers import AT_ONCE
from opfl_chain.roles.view.records import RoundView
from opfl_chain.transport.errors import TransportError
from opfl_chain.transport.routes import Refusal, Request, Response, Route

MOST_OF_CLIENT: Final = 2
"""Bundles of one kind that are kept of a client in a round: of several the smallest hash counts."""
_PATHS: Final = {BundleKind.CONTRIBUTION: "contributions", BundleKind.ANSWER: "answers"}
_SIGNATURE_BYTES: Final = 65
_MOST_AT_ONCE: Final = 1 << 26
"""Bytes of bundles that are asked for at the same time."""
_HASH_BYTES: Final = 32

_LOGGER = logging.getLogger("opfl.committee")


class BundleMissing(ProtocolError):
    """A bundle that members agreed on has not reached us."""


Welcome = Callable[[RoundView, Address], str | None]
"""Says why a bundle of a client is not taken at present, or None if it is."""


class Intake:
    """Bundles of one kind that one member has."""

    def __init__(
        self,
        node: Node,
        store: MemberStore,
        kind: BundleKind,
        expected: Callable[[RoundView], Expected],
        refusal: Welcome,
    ) -> None:
        self._node = node
        self._store = store
        self._kind = kind
        self._expected = expected
        self._refusal = refusal

    def routes(self, expected: Expected) -> list[Route]:
        name = _PATHS[self._kind]
        return [
            Route(
                "POST",
                f"/rounds/{{round}}/{name}/{{client}}",
                self.take,
                max_body_bytes=Limits.of(self._kind, expected).largest,
                signed=True,
            ),
            Route("GET", f"/rounds/{{round}}/{name}/{{client}}", self.serve_first),
            Route("GET", f"/rounds/{{round}}/{name}/{{client}}/{{hash}}", self.serve),
        ]

    def hashes(self, round_: RoundView) -> dict[Address, list[bytes]]:
        """Content hashes of what we have, by client, the smallest first."""
        return self._store.bundle_hashes(round_.opening, self._kind)

    def has(self, round_: RoundView, client: Address, content_hash: bytes) -> bool:
        return self.signed(round_, client, content_hash) is not None

    def signed(
        self, round_: RoundView, client: Address, content_hash: bytes
    ) -> SignedBundle | None:
        return self._store.bundle(round_.opening, self._kind, client, content_hash)

    def bundle(self, round_: RoundView, client: Address, content_hash: bytes) -> Bundle | None:
        kept = self.signed(round_, client, content_hash)
        return self._decoded(round_, kept.body) if kept else None

    def required(self, round_: RoundView, client: Address, content_hash: bytes) -> Bundle:
        """Return a bundle that must be here."""
        if (found := self.bundle(round_, client, content_hash)) is None:
            raise BundleMissing(
                f"the {self._kind.name.lower()} of {client} in round {round_.number} is not here"
            )
        return found

    def expected(self, round_: RoundView) -> Expected:
        """The form of what clients send in a round."""
        return self._expected(round_)

    def context(self, round_: RoundView, client: Address) -> bytes:
        """Return the context that binds a bundle to its client and round."""
        separator = self._node.job.domain.separator
        return bundle_context(separator, round_.id, round_.opening, client, self._kind)

    def fetch(
        self,
        round_: RoundView,
        client: Address,
        content_hash: bytes,
        members: list[Address],
        first: Address | None = None,
    ) -> bool:
        """Have a bundle that these members list; return whether it is here.

        `first` is asked first: who has just named it.
        """
        for member in self._node.peers.likely(members, first):
            if self.has(round_, client, content_hash):
                return True
            which = f"{client}/{tohex(content_hash)}"
            answer: bytes | TransportError
            try:
                answer = self._requested(round_, member, which)
            except TransportError as error:
                answer = error
            found = self._received(round_, member, client, answer)
            if found is not None and found.content_hash == content_hash:
                self._store.keep_bundle(round_.opening, self._kind, client, found)
        return self.has(round_, client, content_hash)

    def collect(
        self, round_: RoundView, clients: Iterable[Address], members: list[Address]
    ) -> None:
        """Have a bundle of each client that has sent us none, if one of these members has one."""
        peers, largest = self._node.peers, self._limits(round_).largest
        lacking = (
            (client, member)
            for client in clients
            for member in peers.likely(members)
            if client not in self.hashes(round_)
        )
        asked = peers.together(
            lacking,
            lambda each: self._requested(round_, each[1], each[0]),
            at_once=max(1, min(AT_ONCE, _MOST_AT_ONCE // largest)),
        )
        for (client, member), answer in asked:
            found = self._received(round_, member, client, answer)
            if found is not None and client not in self.hashes(round_):
                self._store.keep_bundle(round_.opening, self._kind, client, found)

    def _requested(self, round_: RoundView, member: Address, which: str) -> bytes:
        most = self._limits(round_).largest + _SIGNATURE_BYTES
        path = f"/rounds/{round_.id}/{_PATHS[self._kind]}/{which}"
        return self._node.peers.ask_member(member, path, most)

    def _received(
        self, round_: RoundView, member: Address, client: Address, answer: bytes | TransportError
    ) -> SignedBundle | None:
        """Return the bundle in a member's answer, if there is a right one."""
        try:
            if isinstance(answer, TransportError):
                raise answer
            body, signature = answer[_SIGNATURE_BYTES:], answer[:_SIGNATURE_BYTES]
            return self._checked(round_, client, body, signature)
        except (TransportError, ProtocolError) as error:
            if isinstance(error, ProtocolError):
                self._node.peers.patience.misled(member)
            reason = {"member": member, "client": client, "reason": str(error)}
            _LOGGER.info("bundle not fetched", extra=reason)
            return None

    # --- endpoints

    def take(self, request: Request) -> Response:
        """Store a client's bundle."""
        round_, client = round_in(self._node, request), self._client(request)
        if self._node.moment is None:
            raise Refusal(HTTPStatus.TOO_EARLY, "this member is reading the chain: try again")
        try:
            found = self._checked(round_, client, request.body, signature_in(request))
        except ProtocolError as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from error
        if not self.has(round_, client, found.content_hash):
            if (reason := self._refusal(round_, client)) is not None:
                raise Refusal(HTTPStatus.GONE, reason)
            if len(self.hashes(round_).get(client, ())) >= MOST_OF_CLIENT:
                raise Refusal(
                    HTTPStatus.CONFLICT, f"{MOST_OF_CLIENT} others of this client are stored"
                )
            self._store.keep_bundle(round_.opening, self._kind, client, found)
            self._node.wake()
        return Response.json({"content_hash": tohex(found.content_hash)})

    def serve_first(self, request: Request) -> Response:
        """Serve the bundle of a client with the smallest hash that we have."""
        round_, client = round_in(self._node, request), self._client(request)
        hashes = self.hashes(round_).get(client)
        kept = self.signed(round_, client, hashes[0]) if hashes else None
        if kept is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has no bundle of this client")
        return Response.binary(kept.signature + kept.body)

    def serve(self, request: Request) -> Response:
        """Serve a bundle, after the client's signature: only its holders can open it."""
        round_, client = round_in(self._node, request), self._client(request)
        try:
            content_hash = unhex(request.parts["hash"])
        except ValueError:
            content_hash = b""
        kept = self.signed(round_, client, content_hash)
        if len(content_hash) != _HASH_BYTES or kept is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this member has no bundle with this hash")
        return Response.binary(kept.signature + kept.body)

    def _checked(
        self, round_: RoundView, client: Address, body: bytes, signature: bytes
    ) -> SignedBundle:
        """Return a bundle that its client signed for this opening, or raise what is wrong."""
        bundle = self._decoded(round_, body)
        statement = _STATEMENTS[self._kind](
            self._node.job.id, round_.number, round_.opening, client, bundle.content_hash
        )
        if signer_of(statement, self._node.job.domain, signature) != client:
            raise ProtocolError(
                f"{client} has not signed this bundle for round {round_.number} with opening"
                f" {tohex(round_.opening)}: has the chain been reorganised?"
            )
        check_bundle(bundle, self.context(round_, client), self._expected(round_))
        return SignedBundle(bundle.content_hash, body, signature)

    def _decoded(self, round_: RoundView, body: bytes) -> Bundle:
        return Bundle.decode(body, self._limits(round_))

    def _limits(self, round_: RoundView) -> Limits:
        return Limits.of(self._kind, self._expected(round_))

    def _client(self, request: Request) -> Address:
        try:
            client = checksum(request.parts["client"])
        except ValueError as error:
            raise Refusal(HTTPStatus.NOT_FOUND, "the client is not an address") from error
        if self._node.view.client(client) is None:
            raise Refusal(HTTPStatus.FORBIDDEN, f"{client} is not a client of this job")
        return client


_STATEMENTS: Final[dict[BundleKind, type[Contribution] | type[Answer]]] = {
    BundleKind.CONTRIBUTION: Contribution,
    BundleKind.ANSWER: Answer,
}

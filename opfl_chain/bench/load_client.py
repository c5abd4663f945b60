"""A client with made-up gradients and real messages."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Final

import numpy as np
from eth_account.signers.local import LocalAccount

from opfl_chain.chain.keys import sign_statement
from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.protocol.bundle import Bundle, context, contribution_parts, seal
from opfl_chain.protocol.bundle_form import BundleKind
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.shares import Committed, commit
from opfl_chain.protocol.statements import Contribution
from opfl_chain.roles.job import Job
from opfl_chain.roles.view.records import RoundView
from opfl_chain.roles.view.view import ChainView
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import PeerRefused, TransportError

_LARGEST_WORD: Final = 1 << 30
_ANSWER_BYTES: Final = 1 << 16
_LAG_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.2


class BundleLost(TransportError):
    """A member acknowledged something other than what was delivered."""


@dataclass(frozen=True)
class LoadClient:
    """A client with its own key, secret, data set root, commitments, shares and signatures."""

    job: Job
    account: LocalAccount

    @cached_property
    def _secret(self) -> bytes:
        return secrets.token_bytes(32)

    @cached_property
    def dataset_root(self) -> bytes:
        """The root of made-up inputs, never opened because nobody is audited."""
        scheme, words = self.job.policy.commitment_scheme, self.job.policy.input_format.words
        inputs = (
            commit(scheme, Subject.INPUT, self._words("input", t, words), self._derived("i", t))
            for t in range(self.job.terms.rounds)
        )
        return dataset_tree(each.commitment for each in inputs).root

    def contribution(self, t: int) -> Committed:
        words = self._words("gradient", t, self.job.boundary.coordinates)
        entropy = self._derived("gradient entropy", t)
        return commit(self.job.policy.commitment_scheme, Subject.GRADIENT, words, entropy)

    def bundle(self, view: ChainView, round_: RoundView, made: Committed) -> Bundle:
        """Seal a contribution to the members in the seats of a round."""
        place = context(
            self.job.domain.separator,
            round_.id,
            round_.opening,
            Address(self.account.address),
            BundleKind.CONTRIBUTION,
        )
        keys = [view.sealing_key(member) or b"" for member in view.seats_of(round_)]
        seed = self._derived("bundle", round_.number)
        return seal(BundleKind.CONTRIBUTION, place, contribution_parts(made), keys, seed)

    def deliver(
        self, http: HttpClient, view: ChainView, round_: RoundView, bundle: Bundle
    ) -> list[int]:
        """Deliver to all members, and return the bytes sent to each."""
        body, content_hash = bundle.encode(), bundle.content_hash
        client = Address(self.account.address)
        statement = Contribution(self.job.id, round_.number, round_.opening, client, content_hash)
        signature = sign_statement(self.account, statement, self.job.domain)
        urls, roster = view.endpoints(), list(self.job.roster)
        for member in view.seats_of(round_):
            name = certificate_name(roster.index(member))
            answer = self._post(http, urls[member], name, round_, body, signature)
            if unhex(json.loads(answer)["content_hash"]) != content_hash:
                raise BundleLost(f"{name} acknowledged a bundle that {client} did not send")
        return [len(body)] * len(view.seats_of(round_))

    def _post(
        self,
        http: HttpClient,
        url: str,
        name: str,
        round_: RoundView,
        body: bytes,
        signature: bytes,
    ) -> bytes:
        path = f"/rounds/{round_.id}/contributions/{self.account.address}"
        headers = {"Opfl-Signature": tohex(signature)}
        deadline = time.monotonic() + _LAG_SECONDS
        while True:
            try:
                return http.post(
                    url, name, path, body, _ANSWER_BYTES, headers=headers, idempotent=True
                )
            except PeerRefused as error:
                # A member that lags behind the chain says so; retry as any client does.
                if error.status != HTTPStatus.TOO_EARLY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _words(
        self, purpose: str, t: int, count: int
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        seed = int.from_bytes(self._derived(purpose, t), "big")
        generator = np.random.default_rng(seed)
        return generator.integers(-_LARGEST_WORD, _LARGEST_WORD, count, dtype=np.int64)

    def _derived(self, purpose: str, t: int) -> bytes:
        return keccak256(self._secret, purpose.encode(), t.to_bytes(8, "big"))

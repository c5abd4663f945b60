"""A client with made-up gradients and real messages."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Final

import numpy as np
from eth_account.signers.local import LocalAccount

from opfl_chain.chain.keys import sign_statement, signer_of
from opfl_chain.chain.rpc import tohex, unhex
from opfl_chain.mpc.session.ranks import certificate_name
from opfl_chain.protocol.commitments import Subject
from opfl_chain.protocol.delivery import Delivery, encode_delivery
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.inputs import dataset_tree
from opfl_chain.protocol.shares import Committed, commit
from opfl_chain.protocol.statements import DeliveryEnvelope, DeliveryReceipt, GradientCommitment
from opfl_chain.roles.job import Job
from opfl_chain.roles.peers import SERVER_NAME
from opfl_chain.roles.view.view import RoundView
from opfl_chain.transport.client import HttpClient
from opfl_chain.transport.errors import PeerRefused, TransportError

_LARGEST_WORD: Final = 1 << 30
_ANSWER_BYTES: Final = 1 << 16
_LAG_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.2


class ReceiptWrong(TransportError):
    """A member signed something other than the receipt of a delivery."""


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

    def relay(self, http: HttpClient, server: str, round_: RoundView, commitment: bytes) -> None:
        """Have the server put our commitment into the round's batch."""
        address = self.account.address
        statement = GradientCommitment(self.job.id, round_.number, address, commitment)
        signature = sign_statement(self.account, statement, self.job.domain)
        http.post(
            server,
            SERVER_NAME,
            f"/rounds/{round_.id}/commitments/{address}",
            commitment,
            _ANSWER_BYTES,
            headers={"Opfl-Signature": tohex(signature)},
            idempotent=True,
        )

    def deliver(
        self, http: HttpClient, urls: Sequence[str], round_: RoundView, made: Committed
    ) -> list[int]:
        """Deliver to all members, check their receipts, and return the bytes sent to each."""
        sizes = []
        for rank, package in enumerate(made.packages):
            body = encode_delivery(Delivery(package))
            self._deliver_to(http, rank, urls[rank], round_, body)
            sizes.append(len(body))
        return sizes

    def _deliver_to(
        self, http: HttpClient, rank: int, url: str, round_: RoundView, body: bytes
    ) -> None:
        address, member = self.account.address, self.job.members[rank]
        envelope = DeliveryEnvelope(self.job.id, round_.number, address, member, keccak256(body))
        signature = sign_statement(self.account, envelope, self.job.domain)
        path = f"/rounds/{round_.id}/deliveries/{address}"
        headers = {"Opfl-Signature": tohex(signature)}
        deadline = time.monotonic() + _LAG_SECONDS
        while True:
            try:
                answer = http.post(
                    url,
                    certificate_name(rank),
                    path,
                    body,
                    _ANSWER_BYTES,
                    headers=headers,
                    idempotent=True,
                )
                break
            except PeerRefused as error:
                # A member that lags behind the chain says so; retry as any client does.
                if error.status != HTTPStatus.TOO_EARLY or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
        receipt = DeliveryReceipt(self.job.id, round_.number, address, audited=False)
        signed = unhex(json.loads(answer)["signature"])
        if signer_of(receipt, self.job.domain, signed) != member:
            raise ReceiptWrong(f"member {rank} did not sign the receipt for {address}")

    def _words(
        self, purpose: str, t: int, count: int
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        seed = int.from_bytes(self._derived(purpose, t), "big")
        generator = np.random.default_rng(seed)
        return generator.integers(-_LARGEST_WORD, _LARGEST_WORD, count, dtype=np.int64)

    def _derived(self, purpose: str, t: int) -> bytes:
        return keccak256(self._secret, purpose.encode(), t.to_bytes(8, "big"))

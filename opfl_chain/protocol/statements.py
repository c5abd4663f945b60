"""The EIP-712 statements that clients and members sign off chain.

All but a change of seats bind the opening of a round, which binds its model and its chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol import abi
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber

DOMAIN_NAME: Final = "opfl_chain"
DOMAIN_VERSION: Final = "2"

_ROUND: Final = "uint64 job,uint32 round,bytes32 opening"


@dataclass(frozen=True)
class SigningDomain:
    """The domain in which a signature is valid: one jobs contract on one chain."""

    chain_id: int
    jobs: Address

    @property
    def separator(self) -> bytes:
        return _struct_hash(
            "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
            abi.word("name", keccak256(DOMAIN_NAME.encode())),
            abi.word("version", keccak256(DOMAIN_VERSION.encode())),
            abi.uint("chain id", self.chain_id, 256),
            abi.address("jobs", self.jobs),
        )

    def digest(self, struct_hash: bytes) -> bytes:
        """Return the digest to sign for a struct under this domain."""
        return keccak256(b"\x19\x01", self.separator, struct_hash)


@dataclass(frozen=True)
class _OfRound:
    """The fields that open every statement about a round."""

    job: JobId
    round: RoundNumber
    opening: bytes

    def _digest(self, domain: SigningDomain, name: str, rest: str, *fields: abi.Field) -> bytes:
        return domain.digest(
            _struct_hash(
                f"{name}({_ROUND},{rest})",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.word("opening", self.opening),
                *fields,
            )
        )


@dataclass(frozen=True)
class Contribution(_OfRound):
    """Signed by a client: the bundle of this content hash is its contribution to a round."""

    client: Address
    content_hash: bytes

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "Contribution",
            "address client,bytes32 contentHash",
            abi.address("client", self.client),
            abi.word("content hash", self.content_hash),
        )


@dataclass(frozen=True)
class Answer(_OfRound):
    """Signed by an audited client: the bundle of this content hash is its answer. Not on chain."""

    client: Address
    content_hash: bytes

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "Answer",
            "address client,bytes32 contentHash",
            abi.address("client", self.client),
            abi.word("content hash", self.content_hash),
        )


@dataclass(frozen=True)
class Roll(_OfRound):
    """Signed by a member: the contributions of a round."""

    root: bytes
    count: int
    pairs_hash: bytes
    """keccak256 of the pairs of client and commitment that go on chain, or of nothing."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "Roll",
            "bytes32 root,uint32 count,bytes32 pairsHash",
            abi.word("root", self.root),
            abi.uint("count", self.count, 32),
            abi.word("pairs hash", self.pairs_hash),
        )


@dataclass(frozen=True)
class RoundResult(_OfRound):
    """Signed by a member: the sum of the accepted contributions of a round."""

    verdict_hash: bytes
    aggregate_hash: bytes
    model_hash: bytes

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "RoundResult",
            "bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash",
            abi.word("verdict hash", self.verdict_hash),
            abi.word("aggregate hash", self.aggregate_hash),
            abi.word("model hash", self.model_hash),
        )


@dataclass(frozen=True)
class AuditOutcome(_OfRound):
    """Signed by a member: how the audit of a client ended."""

    client: Address
    outcome: int
    """An `Outcome` of `verdict`."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "AuditOutcome",
            "address client,uint8 outcome",
            abi.address("client", self.client),
            abi.uint("outcome", self.outcome, 8),
        )


@dataclass(frozen=True)
class MemberMessage(_OfRound):
    """Signed by a member: what it says in a slot of a round. Two in one slot cost its stake."""

    slot: int
    content_hash: bytes
    """keccak256 of the message."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "MemberMessage",
            "uint32 slot,bytes32 contentHash",
            abi.uint("slot", self.slot, 32),
            abi.word("content hash", self.content_hash),
        )


@dataclass(frozen=True)
class MemberFaultStatement(_OfRound):
    """Signed by a member: another one was away, or lied."""

    member: Address
    fault: int
    """A `MemberFault` of the contracts."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return self._digest(
            domain,
            "MemberFault",
            "address member,uint8 fault",
            abi.address("member", self.member),
            abi.uint("fault", self.fault, 8),
        )


@dataclass(frozen=True)
class SeatChange:
    """Signed by a member: a standby takes a seat, for rounds that open afterwards."""

    job: JobId
    epoch: int
    seat: int
    standby: Address

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "SeatChange(uint64 job,uint8 epoch,uint8 seat,address standby)",
                abi.job_id(self.job),
                abi.uint("epoch", self.epoch, 8),
                abi.uint("seat", self.seat, 8),
                abi.address("standby", self.standby),
            )
        )


Statement = (
    Contribution
    | Answer
    | Roll
    | RoundResult
    | AuditOutcome
    | MemberMessage
    | MemberFaultStatement
    | SeatChange
)


def _struct_hash(struct_type: str, *fields: abi.Field) -> bytes:
    return keccak256(
        abi.abi_encode(abi.word("type hash", keccak256(struct_type.encode())), *fields)
    )

"""The EIP-712 statements that clients and members sign off chain."""

from dataclasses import dataclass
from typing import Final

from opfl_chain.protocol import abi
from opfl_chain.protocol.hashing import keccak256
from opfl_chain.protocol.identifiers import Address, JobId, RoundNumber

DOMAIN_NAME: Final = "opfl_chain"
DOMAIN_VERSION: Final = "1"


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
class GradientCommitment:
    """Signed by a client: its commitment, to be relayed in a batch."""

    job: JobId
    round: RoundNumber
    client: Address
    commitment: bytes

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "GradientCommitment(uint64 job,uint32 round,address client,bytes32 commitment)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.address("client", self.client),
                abi.word("commitment", self.commitment),
            )
        )


@dataclass(frozen=True)
class DeliveryEnvelope:
    """Signed by a client: these bytes are its delivery to this member. It never goes on chain."""

    job: JobId
    round: RoundNumber
    client: Address
    member: Address
    content_hash: bytes
    """keccak256 of the delivery in its wire format."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "DeliveryEnvelope(uint64 job,uint32 round,address client,address member,"
                "bytes32 contentHash)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.address("client", self.client),
                abi.address("member", self.member),
                abi.word("content hash", self.content_hash),
            )
        )


@dataclass(frozen=True)
class DeliveryReceipt:
    """Signed by a member: it holds the client's shares, and those of its input if ``audited``."""

    job: JobId
    round: RoundNumber
    client: Address
    audited: bool

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "DeliveryReceipt(uint64 job,uint32 round,address client,bool audited)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.address("client", self.client),
                abi.boolean(self.audited),
            )
        )


@dataclass(frozen=True)
class Acquittal:
    """Signed by a member: a second replay found no fault."""

    job: JobId
    round: RoundNumber
    client: Address

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "Acquittal(uint64 job,uint32 round,address client)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.address("client", self.client),
            )
        )


@dataclass(frozen=True)
class RoundResult:
    """Signed by a member: the sum of the accepted contributions of a round."""

    job: JobId
    round: RoundNumber
    verdict_hash: bytes
    aggregate_hash: bytes
    model_hash: bytes

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "RoundResult(uint64 job,uint32 round,"
                "bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.word("verdict hash", self.verdict_hash),
                abi.word("aggregate hash", self.aggregate_hash),
                abi.word("model hash", self.model_hash),
            )
        )


@dataclass(frozen=True)
class AuditMessage:
    """Signed by a member: its report on a round, or its answers. It never goes on chain."""

    job: JobId
    round: RoundNumber
    stage: int
    """1 for the report, 2 for the answers."""
    content_hash: bytes
    """keccak256 of the message in its wire format."""

    def digest(self, domain: SigningDomain) -> bytes:
        """Return the digest to sign."""
        return domain.digest(
            _struct_hash(
                "AuditMessage(uint64 job,uint32 round,uint8 stage,bytes32 contentHash)",
                abi.job_id(self.job),
                abi.round_number(self.round),
                abi.uint("stage", self.stage, 8),
                abi.word("content hash", self.content_hash),
            )
        )


Statement = (
    GradientCommitment | DeliveryEnvelope | DeliveryReceipt | Acquittal | RoundResult | AuditMessage
)


def _struct_hash(struct_type: str, *fields: abi.Field) -> bytes:
    return keccak256(
        abi.abi_encode(abi.word("type hash", keccak256(struct_type.encode())), *fields)
    )

"""What members tell each other before an audit: what each found in the deliveries it received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opfl_chain.mpc.agreement import Agreement
from opfl_chain.mpc.runtime import Runtime
from opfl_chain.mpc.session import Session
from opfl_chain.protocol.verdict import FaultReason

_DIGEST_BYTES = 32
_FINDING_BYTES = 1 + _DIGEST_BYTES


@dataclass(frozen=True)
class Finding:
    """A fault, or a digest of the leaf hashes of a delivery without one."""

    fault: FaultReason | None
    leaves: bytes = bytes(_DIGEST_BYTES)

    def encode(self) -> bytes:
        return bytes([self.fault or 0]) + self.leaves


def compare_findings(
    session: Session, subject: bytes, findings: Sequence[Finding]
) -> list[FaultReason | None]:
    """Return the faults that stand, after all members have told theirs.

    A fault that one member found stands, as members follow the protocol; where they found different
    ones, the lowest. Members that hold parts of different sharings charge the client with it.
    `subject` is a digest of what the findings are about, which must be the same for all.
    """
    codes: list[int] = session.call(
        exchange_findings,
        subject=subject,
        findings=b"".join(finding.encode() for finding in findings),
    )
    return [FaultReason(code) if code else None for code in codes]


def exchange_findings(runtime: Runtime, *, subject: bytes, findings: bytes) -> list[int]:
    """A procedure: the code of the fault of each delivery, 0 for none."""
    runtime.agree(Agreement("findings on a round", "", subject.hex()))
    tables = [findings]
    for peer, table in runtime.exchange(findings).items():
        if len(table) != len(findings):
            reason = f"findings of {len(table)} bytes, there must be {len(findings)}"
            raise runtime.invalid(peer, reason)
        known = {0, *FaultReason}
        if strange := set(table[::_FINDING_BYTES]) - known:
            raise runtime.invalid(peer, f"a finding with the unknown fault {min(strange)}")
        tables.append(table)
    rows = range(0, len(findings), _FINDING_BYTES)
    return [_joint([table[at : at + _FINDING_BYTES] for table in tables]) for at in rows]


def _joint(findings: Sequence[bytes]) -> int:
    faults = [finding[0] for finding in findings if finding[0]]
    if faults:
        return min(faults)
    return 0 if len(set(findings)) == 1 else FaultReason.COMMITMENT_MISMATCH

"""The certificate authority of a job's members and server, and the certificates under it.

Each certificate is for one DNS name and valid for both servers and clients. Keys are on P-256.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from opfl_chain.transport.errors import TlsInvalid
from opfl_chain.transport.tls import TlsFiles

AUTHORITY_DAYS: Final = 3650
MEMBER_DAYS: Final = 365
_CLOCK_SKEW: Final = timedelta(hours=1)
"""Certificates are valid from before now, for members whose clocks are behind."""
_AUTHORITY: Final = "authority"
_LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_BOTH_ENDS: Final = x509.ExtendedKeyUsage(
    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
)


class Authority:
    """A certificate authority in a folder, which also receives the certificates it issues."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate, self.private_key = _files(folder, _AUTHORITY)
        try:
            self._certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
            key = serialization.load_pem_private_key(self.private_key.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise TlsInvalid(f"there is no authority in {folder} ({error}). Create one.") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != self._certificate.public_key()
        ):
            raise TlsInvalid(
                f"{self.private_key} is not the key of {self.certificate}. Restore both from a "
                "backup, or create another authority and reissue all certificates."
            )
        self._key = key

    @classmethod
    def create(cls, folder: Path, days: int = AUTHORITY_DAYS) -> Authority:
        """Create an authority. Whoever holds its key can impersonate any member."""
        folder.mkdir(parents=True, exist_ok=True)
        key, name = ec.generate_private_key(ec.SECP256R1()), _common_name("committee")
        unsigned = (
            _certificate(name, key, name, key, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
        )
        _write(folder, _AUTHORITY, key, unsigned.sign(key, hashes.SHA256()))
        return cls(folder)

    @classmethod
    def open_or_create(cls, folder: Path) -> Authority:
        """Open the authority in the folder; create one if neither of its files exists."""
        there = any(path.exists() for path in _files(folder, _AUTHORITY))
        return cls(folder) if there else cls.create(folder)

    def issue_all(self, names: Sequence[str], days: int = MEMBER_DAYS) -> dict[str, TlsFiles]:
        """Issue a certificate for every name, or for none if any name is not usable."""
        for name in names:
            self._require_unused(name)
        return {name: self.issue(name, days) for name in names}

    def issue(self, name: str, days: int = MEMBER_DAYS) -> TlsFiles:
        """Create a key and a certificate for this DNS name, in NAME.key and NAME.pem."""
        self._require_unused(name)
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = (
            _certificate(_common_name(name), key, self._certificate.subject, self._key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(_BOTH_ENDS, critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        _write(self._folder, name, key, unsigned.sign(self._key, hashes.SHA256()))
        return TlsFiles(*_files(self._folder, name), self.certificate)

    def _require_unused(self, name: str) -> None:
        if name == _AUTHORITY or not _DNS_NAME.fullmatch(name):
            raise TlsInvalid(
                f"{name!r} is not a valid certificate name. Use a DNS name in lower case, other "
                f"than {_AUTHORITY!r}."
            )
        _require_new(self._folder, name)


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the paths of a certificate and of its key."""
    return folder / f"{name}.pem", folder / f"{name}.key"


def _require_new(folder: Path, name: str) -> None:
    certificate, key = _files(folder, name)
    for path in (key, certificate):
        if path.exists():
            raise TlsInvalid(f"{path} exists already and may be in use. Move it away first.")


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    days: int,
) -> x509.CertificateBuilder:
    """Return a builder with the fields that all certificates share."""
    now, issuer_public = datetime.now(UTC), issuer_key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public), critical=False
        )
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(
    folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    """Write new files; only the owner can read the key."""
    _require_new(folder, name)
    certificate_file, key_file = _files(folder, name)
    key_file.touch(0o600, exist_ok=False)
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

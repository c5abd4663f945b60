"""The authority and its certificates; their use by members is in test_party_tls.py."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from opfl_chain.transport.certificates import MEMBER_DAYS, Authority
from opfl_chain.transport.errors import TlsInvalid
from opfl_chain.transport.tls import TlsFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "new" / "folder")


def certificate_in(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_accepted(files: TlsFiles) -> list[str]:
    """Verify by the rules of web certificates, which are stricter than TLS libraries."""
    store = Store([certificate_in(files.authority)])
    verifier = PolicyBuilder().store(store).build_client_verifier()
    subjects = verifier.verify(certificate_in(files.certificate), []).subjects
    return [name.value for name in subjects or []]


def test_only_the_owner_can_read_keys(authority: Authority) -> None:
    files = authority.issue("member-0")
    for key in (authority.certificate.with_suffix(".key"), files.private_key):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_certificate_is_for_its_name_alone_and_for_a_while(authority: Authority) -> None:
    files = authority.issue("member-0")
    assert names_accepted(files) == ["member-0"]
    certificate, now = certificate_in(files.certificate), datetime.now(UTC)
    assert certificate.not_valid_before_utc < now
    remaining = certificate.not_valid_after_utc - now
    assert timedelta(days=MEMBER_DAYS - 1) < remaining <= timedelta(days=MEMBER_DAYS)


def test_an_authority_opened_again_goes_on_issuing(authority: Authority) -> None:
    again = Authority(authority.certificate.parent)
    assert names_accepted(again.issue("peer.example")) == ["peer.example"]


def test_a_certificate_of_another_authority_does_not_verify(
    authority: Authority, tmp_path: Path
) -> None:
    theirs = Authority.create(tmp_path / "theirs").issue("member-0")
    mixed = TlsFiles(theirs.certificate, theirs.private_key, authority.certificate)
    with pytest.raises(VerificationError):
        names_accepted(mixed)


def test_a_member_cannot_issue(authority: Authority) -> None:
    member = certificate_in(authority.issue("member-0").certificate)
    assert not member.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not member.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_nothing_is_replaced(authority: Authority) -> None:
    files = authority.issue("member-0")
    before = files.private_key.read_bytes()
    with pytest.raises(TlsInvalid, match=r"member-0.key exists already"):
        authority.issue("member-0")
    with pytest.raises(TlsInvalid, match=r"authority.key exists already"):
        Authority.create(authority.certificate.parent)
    assert files.private_key.read_bytes() == before


@pytest.mark.parametrize("name", ["", "authority", "../member-0", "Member", "a b", "a..b", "-a"])
def test_names_that_are_not_dns_names_are_refused(authority: Authority, name: str) -> None:
    with pytest.raises(TlsInvalid, match="not a valid certificate name"):
        authority.issue(name)


def test_a_folder_without_an_authority_says_so(tmp_path: Path) -> None:
    with pytest.raises(TlsInvalid, match=r"there is no authority in .*Create one"):
        Authority(tmp_path)


def test_a_key_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority.create(tmp_path / "other").certificate.with_suffix(".key")
    authority.certificate.with_suffix(".key").write_bytes(other.read_bytes())
    with pytest.raises(TlsInvalid, match="is not the key of"):
        Authority(authority.certificate.parent)

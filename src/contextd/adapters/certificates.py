"""An authority of its own: it signs the daemon's certificate and its clients', for hours and not years."""

import hashlib
import ipaddress
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contextd.adapters.certificate_ledger import CertificateFile
from contextd.adapters.secret_key import write_once
from contextd.domain.certificates import Certificate
from contextd.domain.errors import BadFormat, OutOfRange, StoreUnavailable
from contextd.domain.ports import Clock

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding

_AUTHORITY_LIFE: Final = timedelta(days=3650)
_SERVING_LIFE: Final = timedelta(days=1)
_MOST_DAYS: Final = 30
_CLOCKS_DIFFER: Final = timedelta(minutes=5)
_LONGEST_NAME: Final = 64
"""Of a common name, by X.520."""


@dataclass(frozen=True, slots=True)
class Keypair:
    """A certificate with its key, both PEM."""

    key: bytes
    certificate: bytes
    created_at: datetime
    ends_at: datetime

    def is_ageing(self, now: datetime) -> bool:
        """In the last third of its life: time for another."""
        return self.ends_at - now < (self.ends_at - self.created_at) / 3


class CertificateAuthority:
    """Made on first need. The key stays in its folder, readable by the owner only."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self.ledger = CertificateFile(folder / "certificates.json", clock)

    def root(self) -> bytes:
        """The authority's own certificate: what the other side trusts."""
        return self._authority()[1].public_bytes(_pem())

    def serving(self, host: str) -> Keypair:
        """For the daemon at this host, and by the names of this machine."""
        return self._signed("contextd", _SERVING_LIFE, [host, "localhost", "127.0.0.1", "::1", _own_name()])

    def issue(self, name: str, projects: tuple[str, ...] | None, days: int) -> Keypair:
        """For a client; it is good until it ends or is revoked. Raises Invalid, Conflict."""
        _check(name, days)
        pair = self._signed(name, timedelta(days=days), None)
        self.ledger.add(
            Certificate(name, projects, _fingerprint(pair.certificate), pair.created_at, pair.ends_at)
        )
        return pair

    def _signed(self, name: str, life: timedelta, hosts: list[str] | None) -> Keypair:
        """`hosts` None makes a client's."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        authority_key, authority = self._authority()
        key = ec.generate_private_key(ec.SECP256R1())
        now = self._clock.now().replace(microsecond=0)
        builder = _certificate(name, authority.subject, key, authority_key, now, now + life)
        builder = builder.add_extension(_basic(ca=False), critical=True)
        if hosts is None:
            builder = builder.add_extension(_purpose(ExtendedKeyUsageOID.CLIENT_AUTH), critical=False)
        else:
            builder = builder.add_extension(_purpose(ExtendedKeyUsageOID.SERVER_AUTH), critical=False)
            builder = builder.add_extension(_names(hosts), critical=False)
        made = builder.sign(authority_key, hashes.SHA256())
        return Keypair(_key_pem(key), made.public_bytes(_pem()), now, now + life)

    def _authority(self) -> "tuple[EllipticCurvePrivateKey, x509.Certificate]":
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self._folder / "authority.pem"
        try:
            if not path.exists():
                write_once(path, self._make_authority())
            both = path.read_bytes()
            key, certificate = load_pem_private_key(both, None), x509.load_pem_x509_certificate(both)
        except (OSError, ValueError) as error:
            raise StoreUnavailable(
                "the authority's key does not open",
                "check pki/authority.pem in the data folder; without it, another is made and every"
                " certificate must be issued again",
            ) from error
        assert isinstance(key, EllipticCurvePrivateKey)
        return key, certificate

    def _make_authority(self) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        now = self._clock.now().replace(microsecond=0)
        name = _subject(f"contextd on {_own_name()}"[:_LONGEST_NAME])
        builder = _certificate(None, name, key, key, now, now + _AUTHORITY_LIFE)
        builder = builder.add_extension(_basic(ca=True), critical=True)
        builder = builder.add_extension(_signing(), critical=True)
        return _key_pem(key) + builder.sign(key, hashes.SHA256()).public_bytes(_pem())


def _check(name: str, days: int) -> None:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadFormat(
            "name", "the name cannot be used", f"give 1 to {_LONGEST_NAME} printable characters"
        )
    if not 1 <= days <= _MOST_DAYS:
        raise OutOfRange("days", "days is out of range", f"give 1 to {_MOST_DAYS}; then issue another")


def _certificate(
    name: str | None,
    issuer: "x509.Name",
    key: "EllipticCurvePrivateKey",
    signer: "EllipticCurvePrivateKey",
    begins: datetime,
    ends: datetime,
) -> "x509.CertificateBuilder":
    """What all of them have. `name` None signs itself."""
    from cryptography import x509

    ids = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(issuer if name is None else _subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _CLOCKS_DIFFER)
        .not_valid_after(ends)
        .add_extension(ids, critical=False)
        .add_extension(signer_id, critical=False)
    )


def _subject(name: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _basic(*, ca: bool) -> "x509.BasicConstraints":
    from cryptography import x509

    return x509.BasicConstraints(ca=ca, path_length=0 if ca else None)


def _signing() -> "x509.KeyUsage":
    from cryptography import x509

    others = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    more = ("key_agreement", "encipher_only", "decipher_only")
    return x509.KeyUsage(key_cert_sign=True, crl_sign=True, **dict.fromkeys((*others, *more), False))


def _purpose(purpose: "x509.ObjectIdentifier") -> "x509.ExtendedKeyUsage":
    from cryptography import x509

    return x509.ExtendedKeyUsage([purpose])


def _names(hosts: list[str]) -> "x509.SubjectAlternativeName":
    from cryptography import x509

    def general(host: str) -> "x509.GeneralName":
        try:
            return x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            return x509.DNSName(host)

    return x509.SubjectAlternativeName([general(host) for host in dict.fromkeys(hosts)])


def _own_name() -> str:
    return socket.gethostname() or "localhost"


def _fingerprint(pem: bytes) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    return hashlib.sha256(x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)).hexdigest()


def _key_pem(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import NoEncryption, PrivateFormat

    return key.private_bytes(_pem(), PrivateFormat.PKCS8, NoEncryption())


def _pem() -> "Encoding":
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.PEM

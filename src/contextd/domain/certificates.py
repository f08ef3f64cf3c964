"""Client certificates: who may call over the network, and for how long."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Certificate:
    """One that was issued, as it is listed: never the key."""

    name: str
    projects: tuple[str, ...] | None
    fingerprint: str
    """SHA-256 of the certificate itself, in hex."""
    created_at: datetime
    ends_at: datetime


class CertificateLedger(Protocol):
    """What was issued and not revoked. A certificate that is not in it is refused, whoever signed it."""

    def add(self, certificate: Certificate) -> None:
        """Raises Conflict when one of this name is still good."""

    def verify(self, fingerprint: str) -> Certificate | None:
        """None when it is unknown, was revoked, or has ended."""

    def revoke(self, name: str) -> bool: ...

    def __iter__(self) -> Iterator[Certificate]: ...

"""Which client certificates are good, in a file of its own: names, projects, fingerprints, no keys."""

import json
import os
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from contextd.domain.certificates import Certificate
from contextd.domain.errors import Conflict, StoreUnavailable
from contextd.domain.ports import Clock


class CertificateFile:
    """Followed while it changes: what is revoked at the command line is refused by a running daemon."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, Certificate] = {}

    def add(self, certificate: Certificate) -> None:
        if any(known.name == certificate.name for known in self):
            raise Conflict("a certificate of this name is good", "choose another name, or revoke it first")
        self._known = {known.fingerprint: known for known in (*self, certificate)}
        self._write()

    def verify(self, fingerprint: str) -> Certificate | None:
        self._follow()
        known = self._known.get(fingerprint)
        return known if known is not None and self._clock.now() < known.ends_at else None

    def revoke(self, name: str) -> bool:
        self._follow()
        kept = {key: known for key, known in self._known.items() if known.name != name}
        if len(kept) == len(self._known):
            return False
        self._known = kept
        self._write()
        return True

    def __iter__(self) -> Iterator[Certificate]:
        """Those that are good, the oldest first."""
        self._follow()
        now = self._clock.now()
        good = [known for known in self._known.values() if now < known.ends_at]
        return iter(sorted(good, key=lambda known: known.created_at))

    def _follow(self) -> None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._stamp, self._known = None, {}
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._known = self._read()
            self._stamp = stamp

    def _read(self) -> dict[str, Certificate]:
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))["certificates"]
            return {row["sha256"]: _certificate(row) for row in rows}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreUnavailable(
                "the list of certificates cannot be read",
                f"mend or remove pki/{self._path.name} in the data folder; removing it revokes all",
            ) from error

    def _write(self) -> None:
        rows = [
            {
                "name": known.name,
                "sha256": known.fingerprint,
                "projects": known.projects,
                "created_at": known.created_at.isoformat(),
                "ends_at": known.ends_at.isoformat(),
            }
            for known in self._known.values()
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".certificates-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"certificates": rows}, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(self._path)
        self._stamp = None


def _certificate(row: dict[str, Any]) -> Certificate:
    projects = row["projects"]
    return Certificate(
        name=row["name"],
        projects=None if projects is None else tuple(projects),
        fingerprint=row["sha256"],
        created_at=datetime.fromisoformat(row["created_at"]),
        ends_at=datetime.fromisoformat(row["ends_at"]),
    )

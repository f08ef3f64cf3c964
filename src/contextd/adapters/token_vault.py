"""Bearer tokens in a file of their own: hashes, names and projects, readable by the owner only."""

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from contextd.domain.errors import BadLength, BadText, Conflict, MissingField, StoreUnavailable
from contextd.domain.ports import Token

_PREFIX: Final = "ctxd_"
_LONGEST_NAME: Final = 100


class TokenFile:
    """A token holds 256 random bits, so a plain SHA-256 is enough: there is nothing to guess."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def create(self, name: str, projects: tuple[str, ...] | None) -> str:
        """The secret, which is not kept. Raises Invalid for a name that cannot be shown in a list."""
        _check_name(name)
        if any(token.name == name for token in self):
            raise Conflict("a token of this name exists", "choose another, or revoke that one first")
        secret = _PREFIX + secrets.token_urlsafe(32)
        self._tokens[_digest(secret)] = Token(name, projects, datetime.now(UTC))
        self._write()
        return secret

    def verify(self, secret: str) -> Token | None:
        self._follow()
        return self._tokens.get(_digest(secret))

    def revoke(self, name: str) -> bool:
        self._follow()
        kept = {digest: token for digest, token in self._tokens.items() if token.name != name}
        if len(kept) == len(self._tokens):
            return False
        self._tokens = kept
        self._write()
        return True

    def __iter__(self) -> Iterator[Token]:
        self._follow()
        return iter(sorted(self._tokens.values(), key=lambda token: token.created_at))

    def _follow(self) -> None:
        """Another process may have made or revoked one: the file's stamp tells."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._stamp, self._tokens = None, {}
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._tokens = self._read()
            self._stamp = stamp

    def _read(self) -> dict[str, Token]:
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))["tokens"]
            return {row["sha256"]: _token(row) for row in rows}
        except (OSError, ValueError, KeyError, TypeError) as error:
            # Fail closed: a vault that cannot be read must not look like one without tokens.
            raise StoreUnavailable(
                "the token file cannot be read", f"mend or remove {self._path.name} in the data folder"
            ) from error

    def _write(self) -> None:
        rows = [
            {
                "name": token.name,
                "sha256": digest,
                "projects": token.projects,
                "created_at": token.created_at.isoformat(),
            }
            for digest, token in self._tokens.items()
        ]
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".tokens-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"tokens": rows}, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(self._path)
        self._stamp = None


def _check_name(name: str) -> None:
    if not name.strip():
        raise MissingField("name", "the name of a token is blank", "say whose it is")
    if len(name) > _LONGEST_NAME:
        raise BadLength("name", f"the name of a token is longer than {_LONGEST_NAME} characters")
    if not name.isprintable():
        raise BadText(
            "name", "the name of a token has control characters", "use letters, digits, signs and spaces"
        )


def _token(row: dict[str, Any]) -> Token:
    projects = row["projects"]
    return Token(
        row["name"],
        None if projects is None else tuple(projects),
        datetime.fromisoformat(row["created_at"]),
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

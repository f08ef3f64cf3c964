"""A key that every process of this data folder shares, readable by the owner only."""

import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from contextd.domain.errors import StoreUnavailable

_BYTES: Final = 32


def kept_key(path: Path) -> bytes:
    """The key in the file, which is made on the first call. Of several who make it at once, one wins."""
    try:
        if not path.exists():
            write_once(path, secrets.token_bytes(_BYTES))
        key = path.read_bytes()
    except OSError as error:
        raise StoreUnavailable(
            f"the key file {path.name} does not open ({error.strerror})",
            "check that contextd may write to CONTEXTD_DATA_DIR",
        ) from error
    if len(key) < _BYTES:
        raise StoreUnavailable(
            f"the key file {path.name} is damaged", "remove it; contextd makes another at its next start"
        )
    return key


def write_once(path: Path, data: bytes) -> None:
    """Whole or not at all, for its owner alone. Of several who make it at once, one wins: a link fails
    where a file stands already."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".key-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        Path(temporary).unlink()

"""The seal: the number and hash of the last line, under the log's key. It shows that the end was cut off.

It is written after the lines that it is of are on disk. So it may lag behind, when a process ends in
between, and never runs ahead: a seal of a line that is not there tells of a cut.
"""

import hashlib
import hmac
import json
import os
import tempfile
from pathlib import Path
from typing import Final

from contextd.adapters.audit_line import Tip

_NAME: Final = "seal.json"
_UNSIGNED: Final = ""


class BrokenSeal(Exception):
    """It is there, and was not written under this key."""


def has_seal(folder: Path) -> bool:
    return (folder / _NAME).exists()


def begin_seal(folder: Path) -> None:
    """Before there is a key: so that a log that was never begun is told from one that is gone."""
    _write(folder, Tip(), _UNSIGNED)


def write_seal(folder: Path, tip: Tip, key: bytes) -> None:
    _write(folder, tip, _signature(tip, key))


def read_seal(folder: Path, key: bytes | None) -> Tip | None:
    """None when there is none. Without a key it is not checked. Raises BrokenSeal."""
    try:
        fields = json.loads((folder / _NAME).read_bytes())
        tip, signature = Tip(int(fields["seq"]), str(fields["hash"])), str(fields["hmac"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise BrokenSeal from None
    if signature == _UNSIGNED and tip == Tip():
        return tip
    if key is not None and not hmac.compare_digest(signature.encode(), _signature(tip, key).encode()):
        raise BrokenSeal
    return tip


def _signature(tip: Tip, key: bytes) -> str:
    return hmac.new(key, f"seal {tip.seq} {tip.hash}".encode(), hashlib.sha256).hexdigest()


def _write(folder: Path, tip: Tip, signature: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".seal-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump({"seq": tip.seq, "hash": tip.hash, "hmac": signature}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(folder / _NAME)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise

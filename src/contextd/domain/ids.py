"""Ids that sort by time and name their drawer, so that a record is found without a search."""

import re
import secrets
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

# A drawer's key becomes a file's name: nothing but these characters may pass.
_OURS = re.compile(r"[a-z]+-([a-z0-9]{1,32})-[a-z0-9.]{1,64}")


def new_id(prefix: str, drawer: str, at: datetime) -> str:
    """`cp-3f2a9c1b0d-01jq8z…`: what it is, whose it is, when it was made and 40 random bits."""
    return f"{prefix}-{drawer}-{_base32(int(at.timestamp() * 1000), 9)}{_base32(secrets.randbits(40), 8)}"


def drawer_of(id: str) -> str | None:
    """The drawer's key inside an id, or None when it is not an id of ours."""
    found = _OURS.fullmatch(id)
    return found.group(1) if found else None


def short_hash(digest: bytes) -> str:
    """Fifty bits of a digest, in ten characters: short, because every mark in an answer names it."""
    return _base32(int.from_bytes(digest[:8]) >> 14, 10)


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))

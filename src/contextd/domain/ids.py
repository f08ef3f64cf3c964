"""Ids that sort by time and name their drawer, so that a record is found without a search."""

import secrets
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str, drawer: str, at: datetime) -> str:
    """`cp-3f2a9c1b0d-01jq8z…`: what it is, whose it is, when it was made and 40 random bits."""
    return f"{prefix}-{drawer}-{_base32(int(at.timestamp() * 1000), 9)}{_base32(secrets.randbits(40), 8)}"


def drawer_of(id: str) -> str | None:
    """The drawer's key inside an id, or None when it is not an id of ours."""
    parts = id.split("-")
    return parts[1] if len(parts) == 3 and all(parts) else None


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))

"""`[REDACTED:<rule>:<6 hex>]`: what stands where a secret stood."""

import hmac
from typing import Final

from contextd.domain.placeholders import MARK, PLACEHOLDER

MASK: Final = "\x01"
"""Stands in for each character of a placeholder while patterns run: no keyword, no word, no space."""


def placeholder(rule: str, secret: str, key: bytes) -> str:
    """The same secret has the same six digits under one key, so a reader can tell two secrets apart."""
    digest = hmac.digest(key, secret.encode("utf-8", "surrogatepass"), "sha256")
    return f"{MARK}{rule}:{digest.hex()[:6]}]"


def masked(text: str) -> str:
    """The text with its placeholders covered, each character in its place."""
    if MARK not in text:
        return text
    return PLACEHOLDER.sub(lambda match: MASK * len(match[0]), text)


def without_placeholders(text: str) -> str:
    return PLACEHOLDER.sub("", text) if MARK in text else text

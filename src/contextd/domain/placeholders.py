"""`[REDACTED:<rule>:<6 hex>]`: what stands where a secret stood, and the way back for those who may."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

MARK: Final = "[REDACTED:"
PLACEHOLDER: Final = re.compile(r"\[REDACTED:([a-z0-9][a-z0-9_-]{0,63}):[0-9a-f]{6}\]")


def placeholders_of(text: str) -> Counter[str]:
    """Each one that stands in the text, and how often."""
    return Counter(match[0] for match in PLACEHOLDER.finditer(text)) if MARK in text else Counter()


def rule_of(placeholder: str) -> str:
    return placeholder.split(":")[1]


def restored(text: str, secrets: Mapping[str, str]) -> str:
    """The text with these secrets in their places again; other placeholders stay.

    A secret of several lines leaves as many line ends behind its placeholder, so that lines keep their
    numbers. They go again if all of them are still there.
    """
    if MARK not in text or not secrets:
        return text
    parts: list[str] = []
    at = 0
    for match in PLACEHOLDER.finditer(text):
        secret = secrets.get(match[0])
        if secret is None:
            continue
        inner = {name: other for name, other in secrets.items() if name != match[0]}
        parts += text[at : match.start()], restored(secret, inner)
        at = match.end() + _padding(text, match.end(), secret.count("\n"))
    return "".join([*parts, text[at:]])


def _padding(text: str, at: int, most: int) -> int:
    """How many of the line ends from here were put in for the secret's own."""
    return most if text.startswith("\n" * most, at) else 0

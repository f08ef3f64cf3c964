"""What one rule is. Rules are data; the detector gives them life."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from contextd.scrubbing.values import is_not_a_placeholder

Judge: TypeAlias = Callable[[str, str], bool]
"""Given the whole match and the secret within, says whether it is a secret at all."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret, with the samples that prove it.

    `pattern` is RE2 syntax. It sees text in which every non-ASCII character is a `?`, and it
    runs only near one of the `keywords`, which are lower-case and must be part of every match
    or stand close to it.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: str
    vendor: str
    """Whose secret it is; empty for a generic rule, which yields to a vendor's on the same text."""
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    group: int = 0
    """The group that holds the secret; 0 is the first group that took part, else the whole match."""
    window: int = 1_500
    """How many characters either side of a keyword the pattern sees."""
    judge: Judge = is_not_a_placeholder
    anywhere: bool = False
    """Runs on every text, whatever is in it, and needs no keywords. Slow: for rules that came without."""

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(f"rule name {self.name!r}: use lower-case letters, digits, '-' and '_'")
        if not (self.keywords or self.anywhere) or not all(_is_keyword(word) for word in self.keywords):
            raise ValueError(f"rule {self.name}: keywords are non-empty, ASCII and lower-case")


def _is_keyword(word: str) -> bool:
    return bool(word) and word.isascii() and word == word.lower()

"""What went wrong, as a tool printed it: the few lines of a log or a transcript that say so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from contextd.domain.cutting import pieces
from contextd.domain.masking import mask
from contextd.domain.telling_lines import telling

MOST: Final = 10
_MOST_ON_THE_WAY: Final = 4
"""Of a transcript: what was seen on the way is mostly solved, and decisions and commands need the room."""
_HEAD: Final = 6
"""Of a log, as many of them are its first errors, which caused the others; the rest is how it ended."""
_LOOKED_AT: Final = 400
"""From either end of the telling lines: masking takes longer than all the rest."""
_WIDTH: Final = 160
_LEAST_WORDS: Final = 2

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_WORD: Final = re.compile(r"\w+")
_SAYS_NOTHING: Final = re.compile(
    r"[ |+]{0,40}(?:Exception Group )?Traceback \(|\W{0,40}(?:FAILURES|ERRORS)\W{0,40}\Z|_{3}"
    r"|.{0,200}\b(?:code|status|CODE)\W{0,3}0\W{0,3}\Z"
    r"|(?!.{0,200}(?:fail|error)).{0,200}\b(?:passed|skipped|no tests ran)\b"
)
"""The head of something that tells more below, and ends that were no failure."""


@dataclass(frozen=True, slots=True)
class ShownError:
    text: str
    line: int
    """From 1."""


def shown_errors(content: str, *, newest: bool) -> list[ShownError]:
    """At most MOST, in order: one of each shape before a second of any.

    `newest` is for a transcript, where the earlier ones were mostly solved on the way.
    """
    lines = pieces(content)
    marked = [at for at, mark in enumerate(telling(lines)) if mark]
    if newest:
        marked = marked[-_LOOKED_AT:]
    elif len(marked) > 2 * _LOOKED_AT:
        marked = marked[:_LOOKED_AT] + marked[-_LOOKED_AT:]
    told = {at: text for at in marked if (text := _text(lines[at]))}
    chosen = _chosen(told, newest)
    if not chosen:
        return []
    numbers = [0, *accumulate(line.endswith("\n") for line in lines)]
    return [ShownError(told[at], numbers[at] + 1) for at in sorted(chosen)]


def _text(line: str) -> str:
    """On one line, without colours; empty where it tells nothing by itself."""
    plain = " ".join((_ANSI.sub("", line) if "\x1b" in line else line).split())
    if _SAYS_NOTHING.match(plain) or len(_WORD.findall(plain)) < _LEAST_WORDS:
        return ""
    return plain if len(plain) <= _WIDTH else plain[: _WIDTH - 1] + "…"


def _chosen(told: dict[int, str], newest: bool) -> list[int]:
    order = [*told][::-1] if newest else [*told]
    firsts: list[int] = []
    others: list[int] = []
    shapes: set[str] = set()
    texts: set[str] = set()
    for at in order:
        shape = mask(told[at])
        if shape not in shapes:
            firsts.append(at)
        elif told[at] not in texts:
            others.append(at)
        shapes.add(shape)
        texts.add(told[at])
    if newest:
        return [*firsts, *others][:_MOST_ON_THE_WAY]
    return [*_bounded(firsts), *others][:MOST]


def _bounded(firsts: Sequence[int]) -> Sequence[int]:
    return firsts if len(firsts) <= MOST else [*firsts[:_HEAD], *firsts[_HEAD - MOST :]]

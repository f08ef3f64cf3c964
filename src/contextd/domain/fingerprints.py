"""Errors that differ only in what changes from run to run have one fingerprint."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

from contextd.domain.ecosystems import ecosystem_of
from contextd.domain.error_lines import telling
from contextd.domain.error_types import Telling
from contextd.domain.log_heads import without_heads
from contextd.domain.masking import HOLE, essence, mask
from contextd.domain.stack_frames import Frame, parse_frames

__all__ = ["ErrorText", "essence", "mask", "read_error", "same_type", "similarity_to", "string_similarity"]

T = TypeVar("T")

_DIGEST: Final = 16


@dataclass(frozen=True, slots=True)
class ErrorText:
    message: str
    error_type: str | None
    masked: str
    """The telling line with holes."""
    frames: tuple[Frame, ...]
    ecosystem: str | None
    fingerprint: str
    line: str = ""
    """The telling line as it was written, without its type."""


def read_error(message: str, stack_trace: str = "") -> ErrorText:
    """Reads a message, which may have its trace in it, or beside it.

    The fingerprint is of the message alone when that says anything, so that an error is the same
    with its trace and without.
    """
    in_message, in_trace = telling(message), telling(stack_trace) if stack_trace else None
    told = in_message
    if in_trace is not None and (told is None or not _says_something(told)):
        told = in_trace
    told = told or Telling(message.strip(), None)
    named = told.error_type or (in_trace.error_type if in_trace else None)
    masked = mask(told.line)
    bare, bare_trace = without_heads(message), without_heads(stack_trace)
    return ErrorText(
        message=message,
        error_type=named,
        masked=f"{told.error_type}: {masked}"
        if told.error_type and masked
        else masked or told.error_type or "",
        frames=parse_frames(bare_trace) or parse_frames(bare),
        ecosystem=_ecosystem((message, stack_trace), (bare, bare_trace)),
        fingerprint=_digest(told, masked),
        line=told.line,
    )


def same_type(a: str | None, b: str | None) -> bool:
    """Whether two names mean one type, whatever package they are written with."""
    return bool(a and b) and _bare_type(str(a)) == _bare_type(str(b))


def string_similarity(a: str, b: str) -> float:
    """Of two masked messages: 1 for the same words in the same order, 0 for none in common."""
    return similarity_to(a)(b)


def similarity_to(masked: str) -> Callable[[str], float]:
    """`string_similarity` to one message, for many others."""
    words = _words(masked)
    counted, paired = Counter(words), Counter(pairwise(words))

    def similarity(other: str) -> float:
        others = _words(other)
        if others == words:
            return 1.0
        return (_dice(counted, Counter(others)) + _dice(paired, Counter(pairwise(others)))) / 2

    return similarity


# --- inside ---------------------------------------------------------------------------


def _ecosystem(written: tuple[str, str], bare: tuple[str, str]) -> str | None:
    """What stands before a line may tell, too: npm and Maven mark theirs."""
    told = ecosystem_of(*written)
    return ecosystem_of(*bare) if told is None and bare != written else told


_WORD: Final = re.compile(r"[^\W_][\w']*")
_SAME: Final = {"were": "was", "are": "is"}


def _digest(told: Telling, masked: str) -> str:
    kind = _bare_type(told.error_type) if told.error_type else ""
    words = _words(masked)
    if not words and not kind:
        # All of it is volatile: then its names, or failing those its own characters, have to do.
        words = _words(essence(told.line)) or [told.line.strip().lower()]
    return hashlib.sha256("\0".join([kind, *words]).encode()).hexdigest()[:_DIGEST]


def _says_something(told: Telling) -> bool:
    return told.error_type is not None or bool(_words(mask(told.line)))


def _words(masked: str) -> list[str]:
    """The words around the holes: lower-case, singular, without punctuation."""
    return [_singular(word.lower()) for word in _WORD.findall(masked.replace(HOLE, " "))]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return _SAME.get(word, word)


def _bare_type(name: str) -> str:
    return re.split(r"::|[.\\/]", name.strip())[-1].lower()


def _dice(left: Counter[T], right: Counter[T]) -> float:
    both = left.total() + right.total()
    return (
        2 * sum(min(count, left[each]) for each, count in right.items() if each in left) / both
        if both
        else 0.0
    )

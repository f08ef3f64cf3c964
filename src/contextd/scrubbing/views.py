"""Other ways to read a text, each with the way back to where its characters stand."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import re2

_WRAP: Final = re.compile(
    r"\n(?<=[A-Za-z0-9+/]{56}\n)(?=[A-Za-z0-9+/=])|\r\n(?<=[A-Za-z0-9+/]{56}\r\n)(?=[A-Za-z0-9+/=])"
)
_WRAPPED: Final = re2.compile(rb"[A-Za-z0-9+/]{56}\r?\n[A-Za-z0-9+/=]")
"""The same question for RE2, which is quick to say no."""
_ESCAPED: Final = re.compile(r"(?P<gone>\\)[^\w\s]")
_ANY_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_PERCENT: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True)
class View:
    text: str
    starts: tuple[int, ...]
    """Where each stretch begins in `text`."""
    shifts: tuple[int, ...]
    """How much further on it stood."""
    widths: Mapping[int, int] = field(default_factory=dict)
    """Characters that were written as several."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where these characters stood, with what was among them."""
        last = end - 1
        return self._origin(start), self._origin(last) + self.widths.get(last, 1)

    def _origin(self, at: int) -> int:
        return at + self.shifts[bisect_right(self.starts, at) - 1]


def without(text: str, unseen: re.Pattern[str]) -> View:
    """The text without these, or without the part of them that is named `gone`."""
    gone = "gone" if "gone" in unseen.groupindex else 0
    parts: list[str] = []
    starts, shifts = [0], [0]
    at = length = 0
    for match in unseen.finditer(text):
        parts.append(text[at : match.start(gone)])
        length += match.start(gone) - at
        at = match.end(gone)
        if starts[-1] == length:
            shifts[-1] = at - length
        else:
            starts.append(length)
            shifts.append(at - length)
    return View("".join([*parts, text[at:]]), tuple(starts), tuple(shifts))


def encoded(text: str) -> Iterator[View]:
    """Views that known values may show in: base64 or hex in lines, URL-encoding and
    backslashes of any part."""
    if _WRAPPED.search(text.encode("ascii", "replace")):
        yield without(text, _WRAP)
    if _ANY_PERCENT.search(text):
        yield _decoded(text)
    if "\\" in text:
        yield without(text, _ESCAPED)


def _decoded(text: str) -> View:
    parts: list[str] = []
    starts, shifts = [0], [0]
    widths: dict[int, int] = {}
    at = length = 0
    for match in _PERCENT.finditer(text):
        parts.append(text[at : match.start()])
        length += match.start() - at
        at = match.start()
        for char in bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogateescape"):
            widths[length] = 3 * len(char.encode("utf-8", "surrogateescape"))
            at += widths[length]
            length += 1
            parts.append(char)
            starts.append(length)
            shifts.append(at - length)
    return View("".join([*parts, text[at:]]), tuple(starts), tuple(shifts), widths)

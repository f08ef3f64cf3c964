"""Texts and values made to fit a number of tokens, cut between sentences or words.

Prose of a few lines is cut finer than a tool's output, whose lines are its pieces: see `domain/cutting.py`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from contextd.domain.cutting import Prices, gaps, rendered
from contextd.domain.ports import TokenCounter
from contextd.domain.records import Json

_MARK: Final = " […] "
_MARK_TOKENS: Final = 4
_QUOTES: Final = 2
_TRIES: Final = 12
_VALUE_ROOMS: Final = (300, 150, 75, 40, 20)
_PIECE: Final = re.compile(r"[^\n]{0,200}?(?:\n+|(?<=[.!?;])[ \t]+|\Z)|[^\n]{1,200}(?:\s|\Z)|[^\n]{1,200}")


class Shortener:
    def __init__(self, tokens: TokenCounter) -> None:
        self._tokens = tokens

    def cost(self, value: Json) -> int:
        """Tokens of a value as it stands in an answer."""
        return self._tokens.count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def head(self, text: str, room: int) -> str:
        """Its beginning; whole if it fits."""
        return self._fitting(text, room, lambda size: _head(text, size))

    def tail(self, text: str, room: int) -> str:
        """Its end; whole if it fits."""
        return self._fitting(text, room, lambda size: "…" + text[len(text) - size :] if size else "…")

    def middle(self, text: str, room: int) -> str:
        """Without sentences from its middle, each gap marked; whole if it fits."""
        if self.cost(text) <= room:
            return text
        parts = [*_sentences(text)]
        costs = [max(0, self.cost(part) - _QUOTES) for part in parts]
        while room > _QUOTES:
            left_out = gaps(parts, costs, room - _QUOTES, Prices(_MARK_TOKENS, _MARK_TOKENS))
            shown = rendered(parts, left_out, lambda gap, is_first: _MARK).strip()
            over = self.cost(shown) - room
            if over <= 0 or shown == _MARK.strip():
                return shown if over <= 0 else ""
            room -= over
        return ""

    def values(self, values: Mapping[str, Json], room: int) -> dict[str, Json]:
        """Long values shortened alike; the last ones go where even that is too much."""
        if self.cost(dict(values)) <= room:
            return dict(values)
        shown: dict[str, Json] = {}
        for each in _VALUE_ROOMS:
            shown = {key: self._value(value, each) for key, value in values.items()}
            if self.cost(shown) <= room:
                return shown
        while shown and self.cost(shown) > room:
            for key in [*shown][-max(1, len(shown) // 8) :]:
                del shown[key]
        return shown

    def _value(self, value: Json, room: int) -> Json:
        if self.cost(value) <= room:
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self.head(text, room)

    def _fitting(self, text: str, room: int, cut: Callable[[int], str]) -> str:
        cost = self.cost(text)
        if cost <= room:
            return text
        size = len(text)
        for _ in range(_TRIES):
            size = min(size - 1, size * max(room - 2, 0) // max(cost, 1))
            if size <= 0:
                break
            shown = cut(size)
            cost = self.cost(shown)
            if cost <= room:
                return shown
        return "…"


def _head(text: str, size: int) -> str:
    """Cut after a word, unless that would cost much of it."""
    taken = text[:size]
    space = max(taken.rfind(" "), taken.rfind("\n"))
    return (taken[:space] if space > size * 2 // 3 else taken).rstrip() + "…"


def _sentences(text: str) -> Iterator[str]:
    """Joined they are the text again; none is longer than 200, but for its spaces."""
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        end = found.end() if found and found.end() > at else at + 1
        yield text[at:end]
        at = end

"""A long text made short by leaving out whole lines, so that every gap can be named and fetched again.

Head and tail stay, and so does each line that says what went wrong: a shortened answer that hides the
error is worse than a long one.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from contextd.domain.telling_lines import FOLDED_AT, telling

WIDEST: Final = FOLDED_AT
"""Characters of a piece, its line end not counted."""
_HEAD_OF_TEN: Final = 6
"""Tenths of the free room that go to the head; the tail has the others."""
_HEAD_OF_PROSE: Final = 8
"""The same for a text that tells of no error: it begins with what it is about."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Pieces that are left out."""

    first: int
    """Counted from 1, as `last`; both are left out."""
    last: int
    telling: int = 0
    """How many of them are telling: none, unless not even those had room."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a marker costs in tokens: the first one names the ref, the others only their lines."""

    first: int
    next: int


def pieces(text: str) -> list[str]:
    """Lines with their ends, split at "\\n" only; joined they are the text again.

    A line wider than WIDEST is folded into pieces that each count as a line: a bundle or a dump on one
    line can then be cut as well. An empty text has none.
    """
    *lines, last = text.split("\n")
    whole = [line + "\n" for line in lines]
    if last:
        whole.append(last)
    if not any(len(line) > WIDEST for line in whole):
        return whole
    return [piece for line in whole for piece in _folded(line)]


def _folded(line: str) -> Iterator[str]:
    """The line end stays with the last piece, so that none is empty but for its end."""
    width = len(line) - line.endswith("\n")
    for start in range(0, max(width, 1), WIDEST):
        end = start + WIDEST
        yield line[start:end] if end < width else line[start:]


def gaps(lines: Sequence[str], costs: Sequence[int], room: int, prices: Prices) -> tuple[Gap, ...]:
    """Which ranges to leave out so that what stays, with a marker for each gap, costs at most `room`.

    Empty when all fits. Otherwise in order, never adjacent, and none that would cost no more to keep than
    the marker that it saves. What is kept, the most precious first: the last line, the first (the other way
    round in a text that tells of no error), the telling ones (of those, one of each kind before a second of
    any), then more of the head and of the tail.

    Where not a single line fits beside a marker, one gap covers everything: its marker alone then costs
    `prices.first`, even if that is more than `room`. A text that costs no more than that marker is kept.
    """
    cut = _Cut(costs, room, prices)
    if cut.totals[-1] <= max(room, prices.first):
        return ()
    marks = telling(lines)
    if cut.left < 0:
        return (Gap(1, len(lines), sum(marks)),)
    kept = _precious(cut, lines, marks)
    left_out = _Gaps(cut.between(kept), cut)
    left_out.narrow(*_ends(cut, kept, _HEAD_OF_TEN if any(marks) else _HEAD_OF_PROSE))
    return tuple(Gap(start + 1, end, sum(marks[start:end])) for start, end in left_out.ranges)


def rendered(lines: Sequence[str], gaps: Sequence[Gap], marker: Callable[[Gap, bool], str]) -> str:
    """What stays, with a marker in the place of each gap: told True for the first, and put in as it is."""
    parts: list[str] = []
    at = 0
    for number, gap in enumerate(gaps):
        parts += lines[at : gap.first - 1]
        parts.append(marker(gap, number == 0))
        at = gap.last
    parts += lines[at:]
    return "".join(parts)


class _Cut:
    """The costs of a text, and how much of the room is left beside what has been taken."""

    def __init__(self, costs: Sequence[int], room: int, prices: Prices) -> None:
        self.costs = costs
        self.totals = [0, *accumulate(costs)]
        self.next = prices.next
        # Counted as the dearest of them, the first marker never turns out to cost more than was counted.
        self.left = room - max(prices.first, prices.next) + prices.next - self.apart(-1, len(costs))

    def apart(self, one: int, other: int) -> int:
        """The cost of what stands between two kept lines: itself, or a marker where that is cheaper."""
        return min(self.totals[other] - self.totals[one + 1], self.next)

    def taken(self, wanted: Iterable[int], kept: Sequence[int]) -> list[int]:
        """What is kept together with those of the wanted lines that had room, tried in order.

        Both are in ascending order, so the neighbours of each line are known without a search. A line
        never makes the whole cheaper; hence if all of them fit together, each of them is taken.
        """
        both: list[int] = []
        later = iter((*kept, len(self.costs)))
        before, after = -1, next(later)
        for line in wanted:
            while after < line:
                both.append(after)
                before, after = after, next(later)
            if line != after and self._takes(before, line, after):
                both.append(line)
                before = line
        return [*both, *(each for each in (after, *later) if each < len(self.costs))]

    def _takes(self, before: int, line: int, after: int) -> bool:
        price = self.costs[line] + self.apart(before, line) + self.apart(line, after)
        price -= self.apart(before, after)
        if price > self.left:
            return False
        self.left -= price
        return True

    def between(self, kept: Sequence[int]) -> list[tuple[int, int]]:
        """The ranges between kept lines that are dearer than a marker; their ends are not included."""
        borders = pairwise((-1, *kept, len(self.costs)))
        return [
            (one + 1, other)
            for one, other in borders
            if self.totals[other] - self.totals[one + 1] > self.next
        ]


def _precious(cut: _Cut, lines: Sequence[str], marks: Sequence[bool]) -> list[int]:
    """The last line, the first, and as many of the telling ones as there is room for.

    Of a text that tells of no error the first line comes before the last.
    """
    last = len(lines) - 1
    if not any(marks):
        return cut.taken((last,), cut.taken((0,), ()))
    kept = cut.taken((0,), cut.taken((last,), ()))
    wanted = [at for at, mark in enumerate(marks) if mark]
    left = cut.left
    all_of_them = cut.taken(wanted, kept)
    if len({*kept, *wanted}) == len(all_of_them):
        return all_of_them
    cut.left = left
    return cut.taken(wanted, cut.taken(_one_of_each(lines, wanted), kept))


_CHANGING: Final = re.compile(r"\d\w*+|/\S*+|\\\S*+|\"[^\"\n]*+\"?|'[^'\n]*+'?|`[^`'\n]*+['`]?")
"""Numbers, paths from their first slash, and quoted values. Masking as for a fingerprint would take longer
than all the rest."""
_PLACE: Final = re.compile(r"[^\s:(]{1,200}(?=[:(]\d)")


def _one_of_each(lines: Sequence[str], wanted: Iterable[int]) -> Iterator[int]:
    """The first line of each kind."""
    seen: set[str] = set()
    for at in wanted:
        line = lines[at]
        place = _PLACE.match(line)
        kind = _CHANGING.sub("*", line[place.end() :] if place else line)
        if kind not in seen:
            seen.add(kind)
            yield at


def _ends(cut: _Cut, kept: Sequence[int], tenths: int) -> tuple[int, int]:
    """How much more the head and the tail may have; what the first and last line cost is in their share."""
    first = cut.costs[0] if kept and kept[0] == 0 else 0
    last = cut.costs[-1] if kept and kept[-1] == len(cut.costs) - 1 else 0
    head = (cut.left + first + last) * tenths // 10 - first
    head = min(max(head, 0), cut.left)
    return head, cut.left - head


class _Gaps:
    """Ranges that are left out, narrowed from both ends of the text."""

    def __init__(self, ranges: list[tuple[int, int]], cut: _Cut) -> None:
        self.ranges = ranges
        self._totals = cut.totals
        self._next = cut.next

    def narrow(self, head: int, tail: int) -> None:
        """Spends what each end may have, and then what one end could not use on the other."""
        tail += self._narrow_head(head)
        self._narrow_head(self._narrow_tail(tail))

    def _narrow_head(self, room: int) -> int:
        closed = 0
        while (price := self._to_close(closed, room)) is not None:
            room -= price
            closed += 1
        del self.ranges[:closed]
        start, end = self.ranges[0]
        kept = bisect_right(self._totals, self._totals[start] + room, start, end) - 1
        self.ranges[0] = (kept, end)
        return room - (self._totals[kept] - self._totals[start])

    def _narrow_tail(self, room: int) -> int:
        while (price := self._to_close(-1, room)) is not None:
            room -= price
            self.ranges.pop()
        start, end = self.ranges[-1]
        kept = bisect_left(self._totals, self._totals[end] - room, start + 1, end)
        self.ranges[-1] = (start, kept)
        return room - (self._totals[end] - self._totals[kept])

    def _to_close(self, at: int, room: int) -> int | None:
        """What it costs to keep a whole range, whose marker is then saved; None when that is too much.

        The last range stays: if that could be kept too, all would fit.
        """
        if at == len(self.ranges) - 1 or len(self.ranges) == 1:
            return None
        start, end = self.ranges[at]
        price = self._totals[end] - self._totals[start] - self._next
        return price if price <= room else None

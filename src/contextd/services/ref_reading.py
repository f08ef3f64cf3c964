"""Reading what is held: page by page, by line numbers, or by a pattern, within a budget."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.answers import as_json
from contextd.domain.callers import Caller
from contextd.domain.cutting import pieces
from contextd.domain.errors import OutOfRange
from contextd.domain.ports import TokenCounter
from contextd.services.line_patterns import line_pattern
from contextd.services.references import References

_BESIDE: Final = 90
"""Tokens of the answer that are not its content."""
_LONG: Final = 100_000
"""Characters from which the work is done in a thread, so that other calls get their turn."""

Trail = Callable[[str, Caller], Awaitable[str]]
"""What a branch has read, by its id."""


@dataclass(frozen=True, slots=True)
class Wanted:
    ref: str
    start_line: int = 1
    end_line: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """Lines of a text. With a pattern, those that match, each behind its number."""

    content: str
    total_lines: int
    start_line: int
    end_line: int
    """The last line that was looked at."""
    has_more: bool
    matches: int | None = None


class RefReading:
    def __init__(self, references: References, trail: Trail, tokens: TokenCounter) -> None:
        self._references = references
        self._trail = trail
        self._tokens = tokens

    async def read(self, wanted: Wanted, caller: Caller) -> Pages:
        """What fits the budget, and at least a line.

        Raises NoSuchRef, NoSuchBranch, OutOfRange, BadFormat.
        """
        text = await self.whole(wanted.ref, caller)
        if len(text) > _LONG:
            return await asyncio.to_thread(self._pages, text, wanted, caller.tokens - _BESIDE)
        return self._pages(text, wanted, caller.tokens - _BESIDE)

    async def whole(self, ref: str, caller: Caller) -> str:
        """All of it. Raises NoSuchRef, NoSuchBranch."""
        if ref.startswith("br-"):
            return await self._trail(ref, caller)
        return (await self._references.get(ref, caller)).text

    def _pages(self, text: str, wanted: Wanted, room: int) -> Pages:
        lines = pieces(text)
        last = _last(wanted, len(lines))
        if wanted.pattern is not None:
            return self._matching(lines, wanted.start_line, last, wanted.pattern, room)
        chosen, end = self._fill(lines[wanted.start_line - 1 : last], room)
        end = wanted.start_line + end - 1
        return Pages("".join(chosen), len(lines), wanted.start_line, end, has_more=end < last)

    def _matching(self, lines: Sequence[str], start: int, last: int, pattern: str, room: int) -> Pages:
        numbers = list(_numbers(lines, start, last, pattern))
        shown = [f"{number}: {lines[number - 1].rstrip(chr(10))}\n" for number in numbers]
        chosen, count = self._fill(shown, room)
        more = count < len(shown)
        end = numbers[count - 1] if more else max(last, start)
        return Pages("".join(chosen), len(lines), start, end, has_more=more, matches=len(numbers))

    def _fill(self, lines: Sequence[str], room: int) -> tuple[Sequence[str], int]:
        """As many as there is room for, counted as they are in JSON."""
        for count, line in enumerate(lines):
            room -= self._tokens.count(as_json(line)[1:-1])
            if room < 0 and count:
                return lines[:count], count
        return lines, len(lines)


def _last(wanted: Wanted, total: int) -> int:
    """Raises OutOfRange for lines that cannot be there."""
    if wanted.end_line is not None and wanted.end_line < wanted.start_line:
        raise OutOfRange("end_line", "end_line is before start_line", "give a later end_line")
    if wanted.start_line > max(total, 1):
        raise OutOfRange(
            "start_line", "start_line is after the last line", f"give a line from 1 to {max(total, 1)}"
        )
    return total if wanted.end_line is None else min(wanted.end_line, total)


def _numbers(lines: Sequence[str], start: int, last: int, pattern: str) -> Iterator[int]:
    matches = line_pattern(pattern)
    for number in range(start, last + 1):
        if matches(lines[number - 1]):
            yield number

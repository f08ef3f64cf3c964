"""Files into chunks that follow their symbols, none larger than what the model reads at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from contextd.domain.code import Chunk, Outline, Symbol

_TOGETHER: Final = frozenset({"constant", "variable"})
"""Short declarations that stand in a row are one chunk: each alone says little."""
_TOGETHER_LINES: Final = 20
_LEAST_SHARE: Final = 3
"""A border is taken if what stands before it is at least a third of what would fit."""
REPEATED: Final = 64
"""Room, in pieces, for the signature that each part of a split symbol repeats."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines from `start` to `end`, both included."""

    start: int
    end: int
    symbol: int = -1


def chunks_of(outline: Outline, sizes: Sequence[int], blank: Sequence[bool], window: int) -> list[Chunk]:
    """The chunks of a file in order, whose lines have these sizes in the model's pieces.

    Every line that is not blank is in exactly one chunk. A symbol that holds others (a class with its
    methods) keeps what is left between them.
    """
    totals = [0, *accumulate(sizes)]
    spans = _joined(list(_spans(outline.symbols, len(sizes), blank)), outline.symbols, totals, window)
    chunks: list[Chunk] = []
    parts: dict[int, int] = {}
    for span in spans:
        symbol = outline.symbols[span.symbol] if span.symbol >= 0 else None
        for cut in _cut(span, symbol, totals, window, is_later=span.symbol in parts):
            start, end = _trimmed(*cut, blank)
            if start > end:
                continue
            part = parts.get(span.symbol, 0)
            if symbol is not None:
                parts[span.symbol] = part + 1
            chunks.append(Chunk(start, end, span.symbol, part))
    return chunks


def _spans(symbols: Sequence[Symbol], lines: int, blank: Sequence[bool]) -> Iterator[_Span]:
    """Stretches that belong to one symbol, the innermost, or to none; in order, without a gap."""
    owner = [-1] * (lines + 2)
    # In order of their beginning, with what holds others first: the inner ones write over the outer.
    order = sorted(range(len(symbols)), key=lambda at: (symbols[at].start_line, -symbols[at].end_line))
    for at in order:
        first, last = symbols[at].start_line, symbols[at].end_line
        if not _is_twin(symbols, at):
            owner[first : last + 1] = [at] * (last + 1 - first)
    start = 1
    for line in range(2, lines + 2):
        if line == lines + 1 or owner[line] != owner[start]:
            if not all(blank[start - 1 : line - 1]):
                yield _Span(start, line - 1, owner[start])
            start = line


def _is_twin(symbols: Sequence[Symbol], at: int) -> bool:
    """Names that are declared together have the same lines: the first of them owns these."""
    before = symbols[at - 1] if at else None
    here = symbols[at]
    return before is not None and (before.start_line, before.end_line) == (here.start_line, here.end_line)


def _joined(
    spans: list[_Span], symbols: Sequence[Symbol], totals: Sequence[int], window: int
) -> Iterator[_Span]:
    """Short declarations in a row as one; the first of them gives its name."""
    held: _Span | None = None
    for span in spans:
        if held is not None and _goes_with(held, span, symbols, totals, window):
            held = _Span(held.start, span.end, held.symbol)
            continue
        if held is not None:
            yield held
        held = span
    if held is not None:
        yield held


def _goes_with(
    held: _Span, span: _Span, symbols: Sequence[Symbol], totals: Sequence[int], window: int
) -> bool:
    if held.symbol < 0 or span.symbol < 0:
        return False
    one, other = symbols[held.symbol], symbols[span.symbol]
    alike = one.kind == other.kind and one.kind in _TOGETHER and one.container == other.container
    short = span.end - held.start < _TOGETHER_LINES and totals[span.end] - totals[held.start - 1] <= window
    return alike and short and span.start - held.end <= 2


def _cut(
    span: _Span, symbol: Symbol | None, totals: Sequence[int], window: int, *, is_later: bool
) -> Iterator[tuple[int, int]]:
    """Parts that fit the window, cut where a statement begins if one begins in the last two thirds."""
    borders = symbol.borders if symbol else ()
    if is_later or (symbol is not None and totals[span.end] - totals[span.start - 1] > window):
        window -= REPEATED
    start = span.start
    while start <= span.end:
        end = start
        while end < span.end and totals[end + 1] - totals[start - 1] <= window:
            end += 1
        if end < span.end:
            least = start + (end - start) // _LEAST_SHARE
            end = next((line - 1 for line in reversed(borders) if least < line <= end + 1), end)
        yield start, end
        start = end + 1


def _trimmed(start: int, end: int, blank: Sequence[bool]) -> tuple[int, int]:
    while start <= end and blank[start - 1]:
        start += 1
    while end >= start and blank[end - 1]:
        end -= 1
    return start, end

"""What a search found, with its text as the index has it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.code import Chunk
from contextd.domain.code_store import ChunkRow, CodeFinder, PatternRow
from contextd.domain.source_text import chunk_text, lines_of
from contextd.services.code_ranking import Ranked
from contextd.services.indexed_trees import Indexed

_CONTEXT_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class CodeHit:
    row: ChunkRow
    relevance: float
    content: str
    before: str
    after: str
    patterns: tuple[PatternRow, ...] = ()
    stale: bool = False
    """Whether the file changed since, and could not be read again."""


async def hits_of(
    store: CodeFinder, indexed: Indexed, ranked: Sequence[Ranked], stale: Collection[str]
) -> list[CodeHit]:
    """In the same order. `stale` has paths."""
    texts = await store.texts(indexed.project, {each.row.blob for each in ranked})
    lines = {blob: lines_of(text) for blob, text in texts.items()}
    symbols = [each.row.symbol.id for each in ranked if each.row.symbol is not None]
    patterns: dict[tuple[int, str], list[PatternRow]] = {}
    for row in await store.patterns(indexed.project, indexed.trees, symbols):
        patterns.setdefault((row.symbol, row.folder), []).append(row)
    return [
        _hit(each, lines[each.row.blob], patterns, each.row.path in stale)
        for each in ranked
        if each.row.blob in lines
    ]


def _hit(
    ranked: Ranked,
    lines: Sequence[str],
    patterns: Mapping[tuple[int, str], Sequence[PatternRow]],
    stale: bool,
) -> CodeHit:
    row = ranked.row
    folder = row.path.rpartition("/")[0]
    signature = row.symbol.signature if row.symbol is not None else ""
    chunk = Chunk(row.start_line, row.end_line, part=row.part)
    return CodeHit(
        row=row,
        relevance=ranked.relevance,
        content=chunk_text(chunk, lines, signature),
        before="\n".join(lines[max(0, row.start_line - 1 - _CONTEXT_LINES) : row.start_line - 1]).strip(
            "\n"
        ),
        after="\n".join(lines[row.end_line : row.end_line + _CONTEXT_LINES]).strip("\n"),
        patterns=tuple(patterns.get((row.symbol.id, folder), ())) if row.symbol is not None else (),
        stale=stale,
    )

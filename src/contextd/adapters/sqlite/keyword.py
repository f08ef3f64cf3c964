"""Search by words: FTS5 with BM25."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from contextd.adapters.sqlite import rows
from contextd.domain.records import Query
from contextd.domain.words import query_words

_BM25: Final = "bm25(4.0, 1.0, 2.0)"
"""Weights of title, text and tags: a word of the title says more."""

_MANY: Final = 500
_COMMON: Final = 0.2
"""A word that a fifth of many records has tells little, and costs most of the search."""


def by_words(connection: sqlite3.Connection, query: Query, depth: int) -> list[tuple[int, float]]:
    """The best as (seq, rank), best first; a lower rank is better.

    Ranked among all records of the drawer first, which is cheap, and then filtered. If the filter leaves
    too few of the best, all that match are looked at.
    """
    words = _telling(connection, query_words(query.text))
    if not words:
        return []
    # Quoted, so that no word of a user is an operator.
    expression = " OR ".join(f'"{word}"' for word in words)
    condition, values = rows.where(query.filter)

    def best_of(most: int) -> list[tuple[int, float]]:
        found = connection.execute(
            "SELECT records.seq, found.rank FROM"
            f" (SELECT rowid, rank FROM words WHERE words MATCH ? AND rank MATCH '{_BM25}'"
            "  ORDER BY rank LIMIT ?) AS found"
            f" JOIN records ON records.seq = found.rowid WHERE {condition} ORDER BY found.rank LIMIT ?",
            [expression, most, *values, depth],
        )
        return [(int(seq), float(rank)) for seq, rank in found]

    first = best_of(depth)
    return first if len(first) >= depth else best_of(-1)


def _telling(connection: sqlite3.Connection, words: Sequence[str]) -> Sequence[str]:
    """Without the words that most records have, while any other is left."""
    (most,) = connection.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
    if most < _MANY:
        return words
    telling = [word for word in words if _records_with(connection, word) <= most * _COMMON]
    return telling or words


def _records_with(connection: sqlite3.Connection, word: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM words WHERE words MATCH ?", (f'"{word}"',)
    ).fetchone()
    return int(count)

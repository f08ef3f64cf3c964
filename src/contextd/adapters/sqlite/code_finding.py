"""Candidates for a search of code: by words, by vector, by name, from one moment of the index."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeVar

from contextd.adapters.sqlite.code_rows import SYMBOL_COLUMNS, SYMBOL_WIDTH, to_symbol
from contextd.adapters.sqlite.code_trees import TreeView, view_of
from contextd.adapters.sqlite.code_vectors import CodeVectors
from contextd.domain.code_store import Candidates, ChunkRow, CodeFilter, Probe, Tree

T = TypeVar("T")
_BM25: Final = "bm25(3.0, 1.0)"
"""Weights of the names that a chunk defines, and of its text."""
_AT_ONCE: Final = 500
"""Values in one statement; SQLite takes 999 at least."""
_MOST_MATCHED: Final = 3_000
"""Chunks that the words of one search may match, but for the rarest word."""


def find(
    connection: sqlite3.Connection,
    view: TreeView,
    trees: Sequence[Tree],
    vectors: CodeVectors,
    probe: Probe,
) -> Candidates:
    whole = view
    view = view.narrowed(probe.filter)
    if probe.filter.ddd_patterns:
        view = _judged(connection, view, trees, probe.filter)
    allowed = _allowed(connection, view, trees, probe.filter)
    by_words, total = _by_words(connection, view, allowed, probe)
    near: list[tuple[int, float]] = []
    if probe.vector is not None and view.comparable:
        import numpy as np

        with vectors.lock:
            vectors.follow(connection)
            ids = None if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
            near = vectors.scan(probe.vector, view.alive, ids, probe.depth)
    by_name = _by_name(connection, view, allowed, probe)
    wanted = {chunk for chunk, _ in by_words} | {chunk for chunk, _ in near} | by_name.keys()
    rows = {row.id: row for row in _rows(connection, view, wanted, by_name)}
    typical: dict[int, float] = {}
    if near:
        with vectors.lock:
            typical = vectors.typical(sorted(rows), whole.alive)
    return Candidates(_in_order(by_words, rows), _in_order(near, rows), list(by_name), rows, total, typical)


def _in_order(found: Sequence[tuple[int, float]], rows: Mapping[int, ChunkRow]) -> list[tuple[int, float]]:
    """Those of one score by their places, not by when they were taken in: an index that followed its files
    answers as one that is made anew."""
    return sorted(found, key=lambda each: (-each[1], rows[each[0]].path, rows[each[0]].start_line))


def _by_words(
    connection: sqlite3.Connection, view: TreeView, allowed: Collection[int] | None, probe: Probe
) -> tuple[list[tuple[int, float]], int]:
    """The best, and how many there are. Ranked first, which is cheap, and then sifted; if that leaves too
    few, all that match are looked at."""
    if not probe.words and not probe.required:
        return [], 0
    # Quoted, so that no word of a user is an operator.
    parts = [f'"{word}"' for word in probe.required]
    if not parts and probe.whole and _matching(connection, f'"{probe.whole}"'):
        parts = [f'"{probe.whole}"']
    elif probe.words and not parts:
        parts = ["(" + " OR ".join(f'"{word}"' for word in _telling(connection, probe.words)) + ")"]
    expression = " AND ".join(parts)
    total = _matching(connection, expression)
    for most in (probe.depth * 2, -1):
        found = connection.execute(
            "SELECT found.rowid, found.rank, chunks.blob FROM"
            f" (SELECT rowid, rank FROM words WHERE words MATCH ? AND rank MATCH '{_BM25}'"
            "  ORDER BY rank LIMIT ?) AS found"
            " JOIN chunks ON chunks.id = found.rowid ORDER BY found.rank",
            (expression, most),
        ).fetchall()
        kept = [
            (int(chunk), -float(rank))
            for chunk, rank, blob in found
            if blob in view.places and (allowed is None or chunk in allowed)
        ]
        if len(kept) >= probe.depth or len(found) == total:
            break
    return kept[: probe.depth], len(kept) if len(found) == total else int(total)


def _telling(connection: sqlite3.Connection, words: Sequence[str]) -> Sequence[str]:
    """The rarest words, so many as match a bounded number of chunks together: the others tell little, and
    ranking what they match is most of a search's time."""
    counts = {word: _matching(connection, f'"{word}"') for word in words}
    rarest = sorted(words, key=lambda word: counts[word])
    sums = accumulate(counts[word] for word in rarest)
    return [word for word, total in zip(rarest, sums, strict=True) if total <= _MOST_MATCHED] or rarest[:1]


def _matching(connection: sqlite3.Connection, expression: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM words WHERE words MATCH ?", (expression,)
    ).fetchone()
    return int(count)


def _by_name(
    connection: sqlite3.Connection, view: TreeView, allowed: Collection[int] | None, probe: Probe
) -> dict[int, int]:
    """Chunks that hold the definition of a symbol of one of these names, whatever its case: which one."""
    if not probe.names:
        return {}
    found = connection.execute(
        "SELECT chunks.id, symbols.id, symbols.blob FROM symbols JOIN chunks ON chunks.blob = symbols.blob"
        " AND chunks.start_line <= symbols.line AND chunks.end_line >= symbols.line"
        f" WHERE symbols.name IN ({', '.join('?' * len(probe.names))}) ORDER BY chunks.id LIMIT ?",
        [*probe.names, probe.depth],
    )
    return {
        int(chunk): int(symbol)
        for chunk, symbol, blob in found
        if blob in view.places and (allowed is None or chunk in allowed)
    }


def _judged(
    connection: sqlite3.Connection, view: TreeView, trees: Sequence[Tree], filter: CodeFilter
) -> TreeView:
    """Only the files whose types follow a pattern where they stand: a copy has other neighbours."""
    found = connection.execute(
        "SELECT symbols.blob, patterns.folder FROM patterns JOIN symbols ON symbols.id = patterns.symbol"
        f" WHERE patterns.pattern IN ({', '.join('?' * len(filter.ddd_patterns))})"
        f" AND patterns.root IN ({', '.join('?' * len(trees))})",
        [*filter.ddd_patterns, *(tree.id for tree in trees)],
    )
    wanted = set(found)
    kept = {
        blob: [place for place in here if (blob, place.path.rpartition("/")[0]) in wanted]
        for blob, here in view.places.items()
    }
    return view_of({blob: here for blob, here in kept.items() if here}, view.comparable)


def _allowed(
    connection: sqlite3.Connection, view: TreeView, trees: Sequence[Tree], filter: CodeFilter
) -> set[int] | None:
    """Chunks that the filter leaves, by their symbols; None when it asks for nothing of the kind."""
    if not (filter.kinds or filter.packages or filter.ddd_patterns):
        return None
    clauses, values = ["1"], list[object]()
    if filter.kinds:
        clauses.append(f"symbols.kind IN ({', '.join('?' * len(filter.kinds))})")
        values += filter.kinds
    if filter.ddd_patterns:
        clauses.append(
            "symbols.id IN (SELECT symbol FROM patterns"
            f" WHERE pattern IN ({', '.join('?' * len(filter.ddd_patterns))})"
            f" AND root IN ({', '.join('?' * len(trees))}))"
        )
        values += [*filter.ddd_patterns, *(tree.id for tree in trees)]
    found = connection.execute(
        "SELECT chunks.id, chunks.blob, blobs.package FROM chunks JOIN blobs ON blobs.id = chunks.blob"
        f" LEFT JOIN symbols ON symbols.id = chunks.symbol WHERE {' AND '.join(clauses)}",
        values,
    )
    wanted = frozenset(filter.packages)
    return {
        int(chunk)
        for chunk, blob, package in found
        if blob in view.places and (not wanted or _is_of(package, view, blob, wanted))
    }


def _is_of(package: str, view: TreeView, blob: int, wanted: frozenset[str]) -> bool:
    """By the name it declares, by its folder, or by the end of a longer import path."""
    if package in wanted:
        return True
    folders = {place.path.rpartition("/")[0] for place in view.places[blob]}
    return any(
        folder == name or (folder and name.endswith(f"/{folder}")) for folder in folders for name in wanted
    )


def _rows(
    connection: sqlite3.Connection, view: TreeView, chunks: Collection[int], named: Mapping[int, int]
) -> Iterator[ChunkRow]:
    """Each chunk with its symbol. Several may be declared in one: then it is the one that was asked for."""
    for some in at_once(chunk for chunk in chunks if chunk not in named):
        yield from _read(connection, view, some, "chunks.symbol")
    for chunk, symbol in named.items():
        yield from _read(connection, view, [chunk], str(symbol))


def _read(
    connection: sqlite3.Connection, view: TreeView, some: Sequence[int], symbol: str
) -> Iterator[ChunkRow]:
    if some:
        found = connection.execute(
            "SELECT chunks.id, chunks.blob, chunks.part, chunks.start_line, chunks.end_line,"
            f" blobs.language, blobs.package, {_WITHOUT_FILE} FROM chunks"
            f" JOIN blobs ON blobs.id = chunks.blob LEFT JOIN symbols ON symbols.id = {symbol}"
            f" WHERE chunks.id IN ({', '.join('?' * len(some))})",
            some,
        )
        for row in found:
            yield _to_chunk(row, view)


_WITHOUT_FILE: Final = SYMBOL_COLUMNS.replace("files.path", "''").replace("symbols.facts", "''")


def _to_chunk(row: Sequence[Any], view: TreeView) -> ChunkRow:
    id, blob, part, start, end, language, package = row[:7]
    place = view.places[blob][0]
    return ChunkRow(
        id=id,
        blob=blob,
        path=place.path,
        marks=place.marks,
        language=language,
        package=package,
        part=part,
        start_line=start,
        end_line=end,
        symbol=to_symbol(row[7 : 7 + SYMBOL_WIDTH]) if row[7] is not None else None,
    )


def at_once(values: Iterable[T]) -> Iterator[list[T]]:
    """In portions that one statement takes."""
    every = list(values)
    for start in range(0, len(every), _AT_ONCE):
        yield every[start : start + _AT_ONCE]

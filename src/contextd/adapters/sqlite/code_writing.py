"""Writing a code index: blobs first, then the tree, in one step."""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from contextd.adapters.sqlite.code_rows import SYMBOL_COLUMNS, to_symbol
from contextd.domain.code import Digest
from contextd.domain.code_store import BlobCounts, BlobKey, Change, FileRow, Print, Purpose, Staged
from contextd.domain.ddd import patterns_of


def stage(connection: sqlite3.Connection, staged: Sequence[Staged], recipe: str, generation: int) -> None:
    """Insert texts with all that hangs on them; one that is there is left alone."""
    for each in staged:
        outline = each.digest.outline
        cursor = connection.execute(
            "INSERT INTO blobs"
            " (hash, language, recipe, generation, lines, package, build, over_window, content, troubles)"
            " VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            (
                each.blob.hash,
                each.blob.language,
                recipe,
                generation,
                each.digest.lines,
                outline.package,
                outline.build,
                each.digest.over_window,
                zlib.compress(each.text.encode("utf-8", "replace"), 1),
                json.dumps([[trouble.line, trouble.reason] for trouble in outline.troubles]),
            ),
        )
        if cursor.rowcount and cursor.lastrowid is not None:
            _write_digest(connection, cursor.lastrowid, each.digest)


def _write_digest(connection: sqlite3.Connection, blob: int, digest: Digest) -> None:
    outline = digest.outline
    first_symbol = _next_id(connection, "symbols")
    connection.executemany(
        "INSERT INTO symbols VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        [
            (
                first_symbol + at,
                blob,
                symbol.name,
                symbol.kind,
                symbol.container,
                symbol.signature,
                symbol.doc,
                symbol.line,
                symbol.start_line,
                symbol.end_line,
                symbol.exported,
                json.dumps(symbol.facts) if symbol.facts else "",
            )
            for at, symbol in enumerate(outline.symbols)
        ],
    )
    connection.executemany(
        "INSERT INTO uses VALUES (?,?,?,?,?,?)",
        [
            (blob, use.name, use.kind, use.line, use.qualifier, _at(first_symbol, use.within))
            for use in outline.references
        ],
    )
    connection.executemany(
        "INSERT INTO imports VALUES (?,?,?,?)",
        [(blob, each.module, each.alias, each.name) for each in outline.imports],
    )
    _write_chunks(connection, blob, digest, first_symbol)


def _write_chunks(connection: sqlite3.Connection, blob: int, digest: Digest, first_symbol: int) -> None:
    first = _next_id(connection, "chunks")
    vectors = list(_vectors(digest))
    connection.executemany(
        "INSERT INTO chunks VALUES (?,?,?,?,?,?,?)",
        [
            (
                first + at,
                blob,
                _at(first_symbol, chunk.symbol),
                chunk.part,
                chunk.start_line,
                chunk.end_line,
                vectors[at],
            )
            for at, chunk in enumerate(digest.chunks)
        ],
    )
    connection.executemany(
        "INSERT INTO words (rowid, names, body) VALUES (?,?,?)",
        [(first + at, names, body) for at, (names, body) in enumerate(digest.words)],
    )


def _vectors(digest: Digest) -> Iterator[bytes | None]:
    size = len(digest.vectors) // max(1, len(digest.chunks))
    for at in range(len(digest.chunks)):
        yield digest.vectors[at * size : (at + 1) * size] if size else None


def _at(first: int, index: int) -> int | None:
    return first + index if index >= 0 else None


def _next_id(connection: sqlite3.Connection, table: str) -> int:
    """Ids are given here, so that rows can name each other before they are inserted; none is used twice."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return int(row[0]) + 1 if row else 1


def change(
    connection: sqlite3.Connection,
    path: str,
    purpose: Purpose,
    change: Change,
    recipe: str,
    generation: int,
) -> int:
    """Make it the tree. Returns the tree's id. Its version moves if a file's content did, or a path."""
    (tree,) = connection.execute(
        "INSERT INTO roots (path, purpose, version, about) VALUES (?, ?, 0, ?)"
        " ON CONFLICT (path, purpose) DO UPDATE SET about = excluded.about RETURNING id",
        (path, purpose, json.dumps(change.about)),
    ).fetchone()
    gone = [(tree, path) for path in change.removed]
    moved = {path for path in change.removed if _blob_at(connection, tree, path) is not None}
    connection.executemany("DELETE FROM files WHERE root = ? AND path = ?", gone)
    connection.executemany("DELETE FROM left_out WHERE root = ? AND path = ?", gone)
    moved |= {file.path for file in change.kept if _write_file(connection, tree, file, recipe, generation)}
    connection.executemany(
        "INSERT OR REPLACE INTO left_out (root, path, print, reason) VALUES (?,?,?,?)",
        [(tree, path, _print(print), reason) for path, print, reason in change.left_out],
    )
    if moved:
        connection.execute("UPDATE roots SET version = version + 1 WHERE id = ?", (tree,))
        _judge(connection, tree, {_folder(path) for path in moved})
    sweep(connection)
    return int(tree)


def _write_file(
    connection: sqlite3.Connection, tree: int, file: FileRow, recipe: str, generation: int
) -> bool:
    """Whether the path has another content than before."""
    row = connection.execute(
        "SELECT id FROM blobs WHERE hash = ? AND language = ? AND recipe = ? AND generation <= ?"
        " ORDER BY generation DESC LIMIT 1",
        (file.blob.hash, file.blob.language, recipe, generation),
    ).fetchone()
    if row is None:
        raise LookupError(f"no blob was staged for {file.path}")
    before = _blob_at(connection, tree, file.path)
    connection.execute(
        "INSERT INTO files (root, path, blob, print, marks) VALUES (?,?,?,?,?) ON CONFLICT (root, path)"
        " DO UPDATE SET blob = excluded.blob, print = excluded.print, marks = excluded.marks",
        (tree, file.path, row[0], _print(file.print), file.marks),
    )
    connection.execute("DELETE FROM left_out WHERE root = ? AND path = ?", (tree, file.path))
    return before != int(row[0])


def _blob_at(connection: sqlite3.Connection, tree: int, path: str) -> int | None:
    row = connection.execute("SELECT blob FROM files WHERE root = ? AND path = ?", (tree, path)).fetchone()
    return int(row[0]) if row else None


def _print(print: Print) -> str:
    return " ".join(map(str, print))


def _folder(path: str) -> str:
    parent = str(PurePosixPath(path).parent)
    return "" if parent == "." else parent


def _judge(connection: sqlite3.Connection, tree: int, folders: Collection[str]) -> None:
    """The patterns of these folders' types, anew: a type's methods may stand in any file of its folder."""
    for folder in folders:
        connection.execute("DELETE FROM patterns WHERE root = ? AND folder = ?", (tree, folder))
        below = f"{folder}/" if folder else ""
        found = connection.execute(
            f"SELECT {SYMBOL_COLUMNS} FROM files JOIN blobs ON blobs.id = files.blob"
            " JOIN symbols ON symbols.blob = files.blob"
            " WHERE files.root = ? AND files.path >= ? AND files.path < ?"
            " AND instr(substr(files.path, ?), '/') = 0"
            " AND symbols.kind IN ('struct', 'class', 'interface', 'method', 'function')"
            " ORDER BY files.path, symbols.id",
            (tree, below, f"{folder}0" if folder else "\U0010ffff", len(below) + 1),
        )
        rows = [to_symbol(row) for row in found]
        connection.executemany(
            "INSERT OR IGNORE INTO patterns (root, folder, symbol, pattern, evidence) VALUES (?,?,?,?,?)",
            [
                (tree, folder, each.symbol, each.pattern, json.dumps(list(each.evidence)))
                for each in patterns_of(rows)
            ],
        )


def sweep(connection: sqlite3.Connection) -> None:
    """Drop blobs that no tree has, with their words, which do not follow by themselves."""
    orphans = "SELECT id FROM blobs WHERE id NOT IN (SELECT blob FROM files)"
    connection.execute(
        f"DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE blob IN ({orphans}))"
    )
    connection.execute(f"DELETE FROM blobs WHERE id IN ({orphans})")


def known(
    connection: sqlite3.Connection, blobs: Collection[BlobKey], recipe: str, generation: int
) -> dict[BlobKey, BlobCounts]:
    """Those that are there, with what hangs on each."""
    found: dict[BlobKey, BlobCounts] = {}
    for blob in blobs:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM symbols WHERE blob = blobs.id),"
            " (SELECT count(*) FROM chunks WHERE blob = blobs.id),"
            " (SELECT count(vector) FROM chunks WHERE blob = blobs.id), over_window, troubles FROM blobs"
            " WHERE hash = ? AND language = ? AND recipe = ? AND generation = ?",
            (blob.hash, blob.language, recipe, generation),
        ).fetchone()
        if row is not None:
            symbols, chunks, embeddings, over_window, troubles = row
            told = tuple((line, why) for line, why in json.loads(troubles))
            found[blob] = BlobCounts(symbols, chunks, embeddings, over_window, told)
    return found

"""Trees of a code index, their files as they were taken in, and the files' texts."""

import sqlite3
import zlib
from collections.abc import Collection, Sequence
from typing import Final

from contextd.adapters.sqlite.code_finding import at_once
from contextd.adapters.sqlite.code_rows import to_print, to_tree
from contextd.domain.code_store import BlobKey, KnownFile, Print, Tree

_TREES: Final = "SELECT id, path, purpose, version, about FROM roots"


def trees(connection: sqlite3.Connection) -> list[Tree]:
    return [to_tree(row) for row in connection.execute(f"{_TREES} ORDER BY id")]


def tree(connection: sqlite3.Connection, id: int) -> Tree:
    return to_tree(connection.execute(f"{_TREES} WHERE id = ?", (id,)).fetchone())


def known_files(connection: sqlite3.Connection, tree: int, recipe: str) -> dict[str, KnownFile]:
    """All that the tree's runs have looked into; a blob of another recipe is none."""
    held = connection.execute(
        "SELECT files.path, blobs.hash, blobs.language, blobs.recipe, files.print"
        " FROM files JOIN blobs ON blobs.id = files.blob WHERE files.root = ?",
        (tree,),
    )
    known = {
        path: KnownFile(to_print(print), BlobKey(hash, language) if made_by == recipe else None)
        for path, hash, language, made_by, print in held
    }
    others = connection.execute("SELECT path, print, reason FROM left_out WHERE root = ?", (tree,))
    return known | {path: KnownFile(to_print(print), None, why) for path, print, why in others}


def prints(
    connection: sqlite3.Connection, trees: Sequence[Tree], paths: Collection[str]
) -> dict[str, tuple[int, Print]]:
    """For each path, its tree and its print; one that several trees have is the first tree's."""
    ids = [tree.id for tree in trees]
    return {
        path: (tree, to_print(print))
        for some in at_once(paths)
        for tree, path, print in connection.execute(
            f"SELECT root, path, print FROM files WHERE root IN ({', '.join('?' * len(ids))})"
            f" AND path IN ({', '.join('?' * len(some))}) ORDER BY root DESC",
            [*ids, *some],
        )
    }


def texts(connection: sqlite3.Connection, blobs: Collection[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for some in at_once(set(blobs)):
        rows = connection.execute(
            f"SELECT id, content FROM blobs WHERE id IN ({', '.join('?' * len(some))})", some
        )
        found |= {int(id): zlib.decompress(content).decode() for id, content in rows}
    return found


def newest_generation(connection: sqlite3.Connection) -> int:
    """Of the blobs."""
    (newest,) = connection.execute("SELECT coalesce(max(generation), 0) FROM blobs").fetchone()
    return int(newest)


def has_texts(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM blobs LIMIT 1").fetchone() is not None

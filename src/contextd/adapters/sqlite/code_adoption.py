"""Beginning an index from another that has many of the same texts, and forgetting one."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from contextd.adapters.sqlite.code_files import newest_generation
from contextd.adapters.sqlite.code_writing import known, sweep
from contextd.adapters.sqlite.drawers import renew_epoch
from contextd.adapters.sqlite.readers import Readers
from contextd.domain.code_store import BlobKey

_SAMPLE: Final = 64
_ALIKE: Final = 0.3
"""An index is begun from another that has at least this share of the texts."""


def sample(blobs: Sequence[BlobKey]) -> Sequence[BlobKey]:
    """Some from all over, which stand for all of them."""
    return blobs[:: max(1, len(blobs) // _SAMPLE)][:_SAMPLE]


def most_alike(
    readers: Readers, others: Sequence[Path], some: Sequence[BlobKey], recipe: str
) -> Path | None:
    """Of the others' files, the one that has most of these texts; None if none has enough of them."""
    best, most = None, _ALIKE * len(some)
    for path in others:
        with readers.connection(path) as connection:
            here = len(known(connection, some, recipe, newest_generation(connection)))
        if here > most:
            best, most = path, here
    return best


def begin_from(connection: sqlite3.Connection, sibling: Path) -> None:
    """Take over its texts, with all that hangs on them, and none of its trees."""
    last = _last_tree(connection)
    connection.execute("COMMIT")
    with closing(sqlite3.connect(sibling)) as source:
        source.backup(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SAVEPOINT job")
    _drop_trees(connection)
    # No id of a tree is used twice: what is remembered of trees is remembered by it.
    connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'roots'", (last,))
    renew_epoch(connection)


def forget(connection: sqlite3.Connection) -> None:
    """All trees, and with them all blobs."""
    _drop_trees(connection)
    sweep(connection)
    connection.execute("COMMIT")
    with suppress(sqlite3.OperationalError):
        # Somebody may be reading; then the space is used again, and given back another time.
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SAVEPOINT job")


def _drop_trees(connection: sqlite3.Connection) -> None:
    for table in ("files", "left_out", "patterns", "roots"):
        connection.execute(f"DELETE FROM {table}")


def _last_tree(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'roots'").fetchone()
    return int(row[0]) if row else 0

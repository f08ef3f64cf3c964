"""A file's own marks: whose drawer it is, since when, and which memory of it is still good."""

import secrets
import sqlite3
from datetime import UTC, datetime
from typing import Final

from contextd.adapters.sqlite.rows import from_micros, to_micros
from contextd.domain.records import Drawer, Project

_KEPT_REVISIONS: Final = 5_000


def set_mark(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def claim(connection: sqlite3.Connection, project: Project) -> bool:
    """Make the file this project's drawer; False if it already was."""
    marks = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('created_at', 'dropped')"))
    if "created_at" in marks and marks.get("dropped") != "1":
        return False
    set_mark(connection, "path", project.path)
    set_mark(connection, "created_at", str(to_micros(datetime.now(UTC))))
    set_mark(connection, "dropped", "0")
    return True


def describe(connection: sqlite3.Connection, key: str) -> Drawer | None:
    marks = dict(connection.execute("SELECT name, value FROM meta"))
    if "created_at" not in marks or marks.get("dropped") == "1":
        return None
    counts = {
        str(kind): int(n)
        for kind, n in connection.execute("SELECT kind, count(*) FROM records GROUP BY kind")
    }
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return Drawer(
        Project(key, marks.get("path", "")),
        counts,
        pages * page_size,
        from_micros(int(marks["created_at"])),
    )


def prune_removals(connection: sqlite3.Connection) -> None:
    """Old removals are forgotten now and then; a reader that is older than `floor` loads anew."""
    marks = dict(connection.execute("SELECT name, value FROM meta WHERE name IN ('revision', 'floor')"))
    revision, floor = int(marks.get("revision", 0)), int(marks.get("floor", 0))
    if revision - floor > 2 * _KEPT_REVISIONS:
        floor = revision - _KEPT_REVISIONS
        connection.execute("DELETE FROM removals WHERE revision <= ?", (floor,))
        set_mark(connection, "floor", str(floor))


def empty(connection: sqlite3.Connection) -> None:
    """The file stays: another process may hold it open, and must not write into a ghost."""
    for table in ("words", "record_tags", "records", "removals"):
        connection.execute(f"DELETE FROM {table}")
    set_mark(connection, "dropped", "1")
    renew_epoch(connection)


def renew_epoch(connection: sqlite3.Connection) -> None:
    """What readers hold in memory is void: they load anew."""
    set_mark(connection, "epoch", secrets.token_hex(8))


def owner(connection: sqlite3.Connection, key: str) -> Project:
    row = connection.execute("SELECT value FROM meta WHERE name = 'path'").fetchone()
    return Project(key, str(row[0]) if row else "")

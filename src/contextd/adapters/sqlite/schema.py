"""The shape of a file, and how an older one becomes a newer one."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contextd.domain.errors import StoreUnavailable

BUSY_TIMEOUT_MS: Final = 15_000
REMEDY: Final = "check that contextd may write to CONTEXTD_DATA_DIR and that the disk has room"

RECORDS: Final = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE records (
        seq        INTEGER PRIMARY KEY AUTOINCREMENT,
        id         TEXT NOT NULL UNIQUE,
        kind       TEXT NOT NULL,
        title      TEXT NOT NULL,
        body       TEXT NOT NULL,
        fields     TEXT NOT NULL,
        tags       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        model      TEXT,
        vector     BLOB,
        revision   INTEGER NOT NULL
    );
    CREATE INDEX records_created ON records (kind, created_at DESC, id DESC);
    CREATE INDEX records_updated ON records (kind, updated_at DESC, id DESC);
    CREATE INDEX records_revision ON records (revision);
    CREATE INDEX records_model ON records (model);
    CREATE TABLE record_tags (
        tag TEXT NOT NULL, seq INTEGER NOT NULL REFERENCES records (seq) ON DELETE CASCADE,
        PRIMARY KEY (tag, seq)
    ) WITHOUT ROWID;
    CREATE INDEX record_tags_seq ON record_tags (seq);
    CREATE TABLE removals (revision INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    CREATE VIRTUAL TABLE words USING fts5 (title, body, tags, tokenize = 'porter unicode61', detail = full);
    """,
)
"""Migrations of a drawer, in order; `PRAGMA user_version` counts those applied.

`revision` grows with every write, so a reader that holds vectors in memory fetches what is new
and what was removed, and nothing else. A `seq` is never used again: a search finds rows in one moment
and reads them in the next.
"""

EVENTS: Final = (
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, tool TEXT NOT NULL, project TEXT, session TEXT,
        principal TEXT NOT NULL, outcome TEXT NOT NULL, duration_ms REAL NOT NULL,
        tokens_out INTEGER NOT NULL, tokens_kept_out INTEGER NOT NULL,
        cache_hits INTEGER NOT NULL, cache_misses INTEGER NOT NULL
    );
    CREATE INDEX events_at ON events (at);
    CREATE TABLE days (
        at INTEGER NOT NULL, tool TEXT NOT NULL, project TEXT, calls INTEGER NOT NULL, ok INTEGER NOT NULL,
        duration_ms REAL NOT NULL, tokens_out INTEGER NOT NULL, tokens_kept_out INTEGER NOT NULL,
        cache_hits INTEGER NOT NULL, cache_misses INTEGER NOT NULL
    );
    CREATE INDEX days_at ON days (at);
    CREATE TABLE day_sessions (at INTEGER NOT NULL, project TEXT, sessions INTEGER NOT NULL);
    CREATE TABLE outcomes (
        seq INTEGER PRIMARY KEY, subject TEXT NOT NULL, at INTEGER NOT NULL, good INTEGER,
        source TEXT NOT NULL
    );
    CREATE INDEX outcomes_subject ON outcomes (subject);
    CREATE INDEX outcomes_at ON outcomes (at);
    """,
    """
    INSERT INTO day_sessions SELECT at, '*', sum(sessions) FROM day_sessions GROUP BY at;
    """,
    """
    ALTER TABLE events ADD COLUMN tokens_envelope INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE events ADD COLUMN tokens_cut INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE events ADD COLUMN tokens_folded INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE days ADD COLUMN tokens_envelope INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE days ADD COLUMN tokens_cut INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE days ADD COLUMN tokens_folded INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE day_listings (at INTEGER NOT NULL, project TEXT NOT NULL, tokens_listed INTEGER NOT NULL);
    INSERT INTO day_listings
        SELECT day_sessions.at, day_sessions.project,
            cast(round(day_sessions.sessions * 1.0 * sum(days.tokens_out) / sum(days.calls)) AS INTEGER)
        FROM day_sessions JOIN days ON days.at = day_sessions.at AND days.tool = 'tools/list'
        WHERE day_sessions.project <> '*' GROUP BY day_sessions.rowid;
    """,
)
"""Analytics. `days` holds the sums of events that were rolled up.

In `day_sessions` the project `*` stands for all of them together. Of days that were rolled up before
there was such a row, nothing is known but the sum over the projects.

`day_listings` has what the sessions of a project were told about the tools. Of days that were rolled up
before there was such a table it is not known, and each of the project's sessions counts for one listing
as long as that day's were on average: rather too much overhead than too little.
"""


def connect(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    """Open a file that is current. Every connection waits for others instead of failing."""
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            _refuse_newer(connection, path, migrations)
            _tune(connection)
            _migrate(connection, migrations)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the store file {path.name} does not open ({error})", REMEDY) from error
    return connection


def _refuse_newer(connection: sqlite3.Connection, path: Path, migrations: Sequence[str]) -> None:
    """Before anything else, because even to tune a file is to change it."""
    if _version(connection) > len(migrations):
        raise StoreUnavailable(
            f"the store file {path.name} was written by a newer contextd",
            "upgrade contextd, or set CONTEXTD_DATA_DIR to another folder",
        )


def _tune(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _enter_wal(connection)
    # FULL, because a write is acknowledged only when it would survive a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Little, because there are many connections; the system's own cache is as quick, measured to 50,000.
    connection.execute("PRAGMA cache_size = -1000")


def _enter_wal(connection: sqlite3.Connection) -> None:
    """The switch to WAL does not honour the busy timeout, so wait here."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in migrations[_version(connection) :]:
            for statement in filter(str.strip, script.split(";")):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)

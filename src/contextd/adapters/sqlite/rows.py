"""Records as rows and filters as SQL."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from contextd.domain.records import Entry, Filter, Project, Record
from contextd.domain.words import index_words

COLUMNS: Final = "id, kind, title, body, fields, tags, created_at, updated_at"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def to_record(row: Sequence[object], project: Project) -> Record:
    record_id, kind, title, body, fields, tags, created_at, updated_at = row
    return Record(
        id=str(record_id),
        kind=str(kind),
        project=project,
        title=str(title),
        text=str(body),
        fields=json.loads(str(fields)),
        tags=tuple(json.loads(str(tags))),
        created_at=from_micros(int(str(created_at))),
        updated_at=from_micros(int(str(updated_at))),
    )


def where(filter: Filter, since_column: str = "created_at") -> tuple[str, list[object]]:
    """The condition on `records` for one drawer; which drawers are meant is the store's business."""
    clauses = [f"kind IN ({', '.join('?' * len(filter.kinds))})"]
    values: list[object] = [*filter.kinds]
    for tag in filter.tags:
        clauses.append("records.seq IN (SELECT seq FROM record_tags WHERE tag = ?)")
        values.append(tag)
    if filter.since is not None:
        clauses.append(f"{since_column} >= ?")
        values.append(to_micros(filter.since))
    if filter.until is not None:
        clauses.append(f"{since_column} < ?")
        values.append(to_micros(filter.until))
    return " AND ".join(clauses), values


def next_revision(connection: sqlite3.Connection) -> int:
    (revision,) = connection.execute(
        "INSERT INTO meta (name, value) VALUES ('revision', '1')"
        " ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING value"
    ).fetchone()
    return int(revision)


def write(connection: sqlite3.Connection, entry: Entry, vector: bytes | None) -> None:
    """Insert or replace one record with its words, tags and vector. `vector` is float16."""
    record = entry.record
    old = connection.execute("SELECT seq FROM records WHERE id = ?", (record.id,)).fetchone()
    if old is not None:
        remove(connection, [int(old[0])])
    cursor = connection.execute(
        f"INSERT INTO records ({COLUMNS}, model, vector, revision) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (
            record.id,
            record.kind,
            record.title,
            record.text,
            json.dumps(record.fields, ensure_ascii=False, separators=(",", ":")),
            json.dumps(record.tags, ensure_ascii=False),
            to_micros(record.created_at),
            to_micros(record.updated_at),
            entry.embedding.model if entry.embedding else None,
            vector,
            next_revision(connection),
        ),
    )
    seq = cursor.lastrowid
    if record.title or record.text or record.tags:
        # A record without words is found by its id alone, and what is not there costs nothing to keep.
        connection.execute(
            "INSERT INTO words (rowid, title, body, tags) VALUES (?, ?, ?, ?)",
            (seq, index_words(record.title), index_words(record.text), index_words(" ".join(record.tags))),
        )
    connection.executemany(
        "INSERT OR IGNORE INTO record_tags (tag, seq) VALUES (?, ?)", [(tag, seq) for tag in record.tags]
    )


def remove(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    for seq in seqs:
        connection.execute("DELETE FROM words WHERE rowid = ?", (seq,))
        connection.execute("DELETE FROM records WHERE seq = ?", (seq,))
        connection.execute(
            "INSERT INTO removals (revision, seq) VALUES (?, ?)", (next_revision(connection), seq)
        )

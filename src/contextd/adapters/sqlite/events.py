"""Analytics events in a file of their own, so that counting never waits for a save."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ports import Event, Tallies, ToolTally


class SqliteEventLog:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "analytics.db"
        self._writer = Writer(EVENTS)
        self._readers = Readers(EVENTS)

    async def append(self, events: Sequence[Event]) -> None:
        values = [
            (
                to_micros(event.at),
                event.tool,
                event.project,
                event.session,
                event.principal,
                event.outcome,
                event.duration_ms,
                event.tokens_out,
                event.cache_hits,
                event.cache_misses,
            )
            for event in events
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO events (at, tool, project, session, principal, outcome, duration_ms,"
                " tokens_out, cache_hits, cache_misses) VALUES (?,?,?,?,?,?,?,?,?,?)",
                values,
            )

        await self._writer.run(self._path, work)

    async def tallies(self, since: datetime | None, until: datetime | None, project: str | None) -> Tallies:
        condition, values = _within(since, until, project)

        def work() -> Tallies:
            if not self._path.exists():
                return Tallies((), 0)
            with self._readers.connection(self._path) as connection:
                sums = connection.execute(
                    "SELECT tool, count(*), sum(outcome = 'ok'), sum(duration_ms), sum(tokens_out),"
                    f" sum(cache_hits), sum(cache_misses) FROM events WHERE {condition} GROUP BY tool",
                    values,
                ).fetchall()
                (sessions,) = connection.execute(
                    f"SELECT count(DISTINCT session) FROM events WHERE {condition}", values
                ).fetchone()
            return Tallies(tuple(ToolTally(*row) for row in sums), sessions)

        return await self._readers.run(work)

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()


def _within(
    since: datetime | None, until: datetime | None, project: str | None
) -> tuple[str, list[object]]:
    clauses, values = ["1"], list[object]()
    if since is not None:
        clauses.append("at >= ?")
        values.append(to_micros(since))
    if until is not None:
        clauses.append("at < ?")
        values.append(to_micros(until))
    if project is not None:
        clauses.append("project = ?")
        values.append(project)
    return " AND ".join(clauses), values

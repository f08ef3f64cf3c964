"""Analytics events in a file of their own, so that counting never waits for a save."""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ports import Event, Tallies, ToolTally

_KEEP: Final = timedelta(days=30)
"""Younger events are kept one by one, older ones as sums by day."""
_DAY: Final = 86_400_000_000
_EVERY_PROJECT: Final = "*"
"""In `day_sessions`, all projects together. No project's key has such a character."""
_SUMS: Final = (
    "sum(calls), sum(ok), sum(duration_ms), sum(tokens_out), sum(tokens_kept_out), sum(cache_hits),"
    " sum(cache_misses)"
)
_AS_DAYS: Final = (
    "SELECT at, tool, project, 1 AS calls, outcome = 'ok' AS ok, duration_ms, tokens_out, tokens_kept_out,"
    " cache_hits, cache_misses FROM events"
)


class SqliteEventLog:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "analytics.db"
        self._writer = Writer(EVENTS)
        self._readers = Readers(EVENTS)
        self._rolled_up: int | None = None

    async def append(self, events: Sequence[Event]) -> None:
        values = [_row(event) for event in events]
        horizon = (to_micros(datetime.now(UTC) - _KEEP) // _DAY) * _DAY

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO events (at, tool, project, session, principal, outcome, duration_ms,"
                " tokens_out, tokens_kept_out, cache_hits, cache_misses) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                values,
            )
            if self._rolled_up != horizon:
                _roll_up(connection, horizon)
                self._rolled_up = horizon

        await self._writer.run(self._path, work)

    async def tallies(
        self, since: datetime | None, until: datetime | None, projects: Collection[str] | None
    ) -> Tallies:
        condition, values = within(since, until, projects)
        # A session that worked in two projects of a day is in the rows of both, and once in the day's own.
        days = within(since, until, (_EVERY_PROJECT,) if projects is None else projects)

        def work() -> Tallies:
            if not self._path.exists():
                return Tallies((), 0)
            with self._readers.connection(self._path) as connection:
                sums = connection.execute(
                    f"SELECT tool, {_SUMS} FROM ({_AS_DAYS} UNION ALL SELECT * FROM days)"
                    f" WHERE {condition} GROUP BY tool",
                    values,
                ).fetchall()
                (recent,) = connection.execute(
                    f"SELECT count(DISTINCT session) FROM events WHERE {condition}", values
                ).fetchone()
                (older,) = connection.execute(
                    f"SELECT coalesce(sum(sessions), 0) FROM day_sessions WHERE {days[0]}", days[1]
                ).fetchone()
            return Tallies(tuple(ToolTally(*row) for row in sums), recent + older)

        return await self._readers.run(work)

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()


def within(
    since: datetime | None, until: datetime | None, projects: Collection[str] | None
) -> tuple[str, list[object]]:
    """The condition on rows that have `at` and `project`; None is every project."""
    clauses, values = ["1"], list[object]()
    if since is not None:
        clauses.append("at >= ?")
        values.append(to_micros(since))
    if until is not None:
        clauses.append("at < ?")
        values.append(to_micros(until))
    if projects is not None:
        clauses.append(f"project IN ({','.join('?' * len(projects))})")
        values.extend(projects)
    return " AND ".join(clauses), values


def _roll_up(connection: sqlite3.Connection, horizon: int) -> None:
    """Events before the horizon become one row a day, tool and project.

    Their sessions become one row a day and project, and one a day.
    """
    day = f"(at / {_DAY}) * {_DAY}"
    connection.execute(
        f"INSERT INTO day_sessions SELECT {day}, ?, count(DISTINCT session) FROM events"
        f" WHERE at < ? GROUP BY {day}",
        (_EVERY_PROJECT, horizon),
    )
    connection.execute(
        f"INSERT INTO day_sessions SELECT {day}, project, count(DISTINCT session) FROM events"
        f" WHERE at < ? GROUP BY {day}, project",
        (horizon,),
    )
    connection.execute(
        f"INSERT INTO days SELECT {day}, tool, project, {_SUMS} FROM ({_AS_DAYS}) WHERE at < ?"
        f" GROUP BY {day}, tool, project",
        (horizon,),
    )
    connection.execute("DELETE FROM events WHERE at < ?", (horizon,))


def _row(event: Event) -> tuple[object, ...]:
    return (
        to_micros(event.at),
        event.tool,
        event.project,
        event.session,
        event.principal,
        event.outcome,
        event.duration_ms,
        event.tokens_out,
        event.tokens_kept_out,
        event.cache_hits,
        event.cache_misses,
    )

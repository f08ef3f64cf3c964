"""Analytics events in a file of their own, so that counting never waits for a save."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ports import LISTING, Event, Tallies, ToolTally

_KEEP: Final = timedelta(days=30)
"""Younger events are kept one by one, older ones as sums by day."""
_DAY: Final = 86_400_000_000
_EVERY_PROJECT: Final = "*"
"""In `day_sessions`, all projects together. No project's key has such a character."""
_NOTHING: Final = Tallies((), 0, 0)
_FIGURES: Final = (
    "duration_ms",
    "tokens_out",
    "tokens_envelope",
    "tokens_kept_out",
    "tokens_cut",
    "tokens_folded",
    "cache_hits",
    "cache_misses",
)
"""What each event has and a sum adds up, as `ToolTally` orders it."""
_OF_A_DAY: Final = f"at, tool, project, calls, ok, {', '.join(_FIGURES)}"
_SUMS: Final = ", ".join(f"sum({each})" for each in ("calls", "ok", *_FIGURES))
_AS_DAYS: Final = (
    f"SELECT at, tool, project, 1 AS calls, outcome = 'ok' AS ok, {', '.join(_FIGURES)} FROM events"
)
_OF_AN_EVENT: Final = ("at", "tool", "project", "session", "principal", "outcome", *_FIGURES)
_INSERT: Final = (
    f"INSERT INTO events ({', '.join(_OF_AN_EVENT)}) VALUES ({', '.join('?' * len(_OF_AN_EVENT))})"
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
            connection.executemany(_INSERT, values)
            if self._rolled_up != horizon:
                _roll_up(connection, horizon)
                self._rolled_up = horizon

        await self._writer.run(self._path, work)

    async def tallies(
        self, since: datetime | None, until: datetime | None, projects: Collection[str] | None
    ) -> Tallies:
        condition, values = within(since, until, projects)

        def work() -> Tallies:
            if not self._path.exists():
                return _NOTHING
            with self._readers.connection(self._path) as connection:
                sums = connection.execute(
                    f"SELECT tool, {_SUMS} FROM ({_AS_DAYS} UNION ALL SELECT {_OF_A_DAY} FROM days)"
                    f" WHERE {condition} GROUP BY tool",
                    values,
                ).fetchall()
                sessions = _sessions(connection, since, until, projects)
                tallies = _tallies(sums, sessions)
                if projects is None:
                    return tallies
                return replace(tallies, tokens_listed=_listed(connection, since, until, projects))

        return await self._readers.run(work)

    async def session(self, session: str, principal: str, projects: Collection[str] | None) -> Tallies:
        # Whoever may name a session in a header may name another's: the principal's own alone count.
        condition, values = "session = ? AND principal = ?", [session, principal]
        if projects is not None:
            condition += f" AND (project IS NULL OR project IN ({','.join('?' * len(projects))}))"
            values.extend(projects)

        def work() -> Tallies:
            if not self._path.exists():
                return _NOTHING
            with self._readers.connection(self._path) as connection:
                sums = connection.execute(
                    f"SELECT tool, {_SUMS} FROM ({_AS_DAYS} WHERE {condition}) GROUP BY tool", values
                ).fetchall()
            return _tallies(sums, 1 if sums else 0)

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


def _tallies(sums: Sequence[tuple[Any, ...]], sessions: int) -> Tallies:
    tallies = [ToolTally(*row) for row in sums]
    return Tallies(
        tuple(tally for tally in tallies if tally.tool != LISTING),
        sessions,
        sum(tally.tokens_out for tally in tallies if tally.tool == LISTING),
    )


def _sessions(
    connection: sqlite3.Connection,
    since: datetime | None,
    until: datetime | None,
    projects: Collection[str] | None,
) -> int:
    condition, values = within(since, until, projects)
    recent = _number(connection, f"SELECT count(DISTINCT session) FROM events WHERE {condition}", values)
    # A session that worked in two projects of a day is in the rows of both, and once in the day's own.
    condition, values = within(since, until, (_EVERY_PROJECT,) if projects is None else projects)
    return recent + _number(
        connection, f"SELECT coalesce(sum(sessions), 0) FROM day_sessions WHERE {condition}", values
    )


def _listed(
    connection: sqlite3.Connection,
    since: datetime | None,
    until: datetime | None,
    projects: Collection[str],
) -> int:
    """A client lists the tools before it names a project: whose listing it was, its session's calls say."""
    told, told_values = within(since, until, None)
    worked, worked_values = within(None, None, projects)
    recent = _number(
        connection,
        f"SELECT coalesce(sum(tokens_out), 0) FROM events WHERE tool = ? AND {told}"
        f" AND session IN (SELECT session FROM events WHERE {worked})",
        [LISTING, *told_values, *worked_values],
    )
    condition, values = within(since, until, projects)
    return recent + _number(
        connection, f"SELECT coalesce(sum(tokens_listed), 0) FROM day_listings WHERE {condition}", values
    )


def _number(connection: sqlite3.Connection, query: str, values: Sequence[object]) -> int:
    (number,) = connection.execute(query, values).fetchone()
    return int(number)


def _roll_up(connection: sqlite3.Connection, horizon: int) -> None:
    """Events before the horizon become one row a day, tool and project.

    Their sessions become one row a day and project, and one a day; what those of a project were told
    about the tools, one row a day and project.
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
        f"INSERT INTO day_listings SELECT {day}, worked.project, sum(tokens_out) FROM events"
        " JOIN (SELECT DISTINCT session, project FROM events WHERE project IS NOT NULL) AS worked"
        " USING (session)"
        f" WHERE tool = ? AND at < ? GROUP BY {day}, worked.project",
        (LISTING, horizon),
    )
    connection.execute(
        f"INSERT INTO days ({_OF_A_DAY}) SELECT {day}, tool, project, {_SUMS} FROM ({_AS_DAYS})"
        f" WHERE at < ? GROUP BY {day}, tool, project",
        (horizon,),
    )
    connection.execute("DELETE FROM events WHERE at < ?", (horizon,))


def _row(event: Event) -> tuple[object, ...]:
    who = (event.tool, event.project, event.session, event.principal, event.outcome)
    return (to_micros(event.at), *who, *(getattr(event, figure) for figure in _FIGURES))

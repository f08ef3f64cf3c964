"""Analytics events in a file of their own, so that counting never waits for a save."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ports import Event


class SqliteEventLog:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "analytics.db"
        self._writer = Writer(EVENTS)

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

    async def close(self) -> None:
        await self._writer.close()

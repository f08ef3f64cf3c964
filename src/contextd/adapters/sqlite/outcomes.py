"""What was used and how it went, beside the analytics events."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from contextd.adapters.sqlite.events import within
from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.rows import from_micros, to_micros
from contextd.adapters.sqlite.schema import EVENTS
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ports import Outcome, Usage

_COUNTS: Final = "count(*), coalesce(sum(good), 0), count(good), max(at)"


class SqliteOutcomeLog:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "analytics.db"
        self._writer = Writer(EVENTS)
        self._readers = Readers(EVENTS)

    async def note(self, outcomes: Sequence[Outcome]) -> None:
        values = [(o.subject, to_micros(o.at), o.good, o.source) for o in outcomes]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO outcomes (subject, at, good, source) VALUES (?, ?, ?, ?)", values
            )

        await self._writer.run(self._path, work)

    async def usage(self, subjects: Sequence[str]) -> dict[str, Usage]:
        def work() -> dict[str, Usage]:
            found = dict.fromkeys(subjects, Usage())
            if not subjects or not self._path.exists():
                return found
            with self._readers.connection(self._path) as connection:
                for subject in found:
                    row = connection.execute(
                        f"SELECT {_COUNTS} FROM outcomes WHERE subject = ?", (subject,)
                    ).fetchone()
                    found[subject] = _usage(row)
            return found

        return await self._readers.run(work)

    async def total(self, since: datetime | None, until: datetime | None, project: str | None) -> Usage:
        condition, values = within(since, until, None)
        if project is not None:
            # A subject's id names its drawer: `mem-<key>-…`.
            condition += " AND subject LIKE ?"
            values.append(f"%-{project}-%")

        def work() -> Usage:
            if not self._path.exists():
                return Usage()
            with self._readers.connection(self._path) as connection:
                row = connection.execute(
                    f"SELECT {_COUNTS} FROM outcomes WHERE {condition}", values
                ).fetchone()
            return _usage(row)

        return await self._readers.run(work)

    async def forget(self, subject: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM outcomes WHERE subject = ?", (subject,))

        if self._path.exists():
            await self._writer.run(self._path, work)

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()


def _usage(row: tuple[int, int, int, int | None]) -> Usage:
    uses, good, known, last = row
    return Usage(uses, good, known - good, None if last is None else from_micros(last))

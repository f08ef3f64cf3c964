"""The Store port on SQLite files: `shared.db`, and `projects/<key>.db` for each project."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final

from contextd.adapters.sqlite import rows
from contextd.adapters.sqlite.drawers import claim, describe, empty, owner, prune_removals
from contextd.adapters.sqlite.keyword import by_words
from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.schema import RECORDS
from contextd.adapters.sqlite.vectors import Indexes, to_half
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.ranking import fuse
from contextd.domain.records import (
    SHARED,
    Drawer,
    Embedding,
    Entry,
    Filter,
    Hit,
    Order,
    Page,
    Project,
    Query,
    Record,
)

_DEPTH: Final = 100
"""How many of each list take part in the fusion, at least."""

Place = tuple[str, int]
"""A drawer's key, and a row of it."""

_KEY: Final = re.compile(r"[0-9a-z]{1,64}")
"""A drawer's key is the name of its file, and may come from an id that a caller made up."""


class SqliteStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer = Writer(RECORDS)
        self._readers = Readers(RECORDS)
        self._indexes = Indexes()

    # --- writing ----------------------------------------------------------------------

    async def put(self, entries: Sequence[Entry]) -> None:
        prepared = [
            (entry, to_half(entry.embedding.vector) if entry.embedding else None) for entry in entries
        ]
        by_project = sorted(prepared, key=lambda item: item[0].record.project.key)
        for _, group in groupby(by_project, key=lambda item: item[0].record.project.key):
            items = list(group)
            project = items[0][0].record.project

            def work(
                connection: sqlite3.Connection,
                project: Project = project,
                items: list[tuple[Entry, bytes | None]] = items,
            ) -> None:
                claim(connection, project)
                for entry, vector in items:
                    rows.write(connection, entry, vector)
                prune_removals(connection)

            await self._writer.run(self._file(project), work)

    async def swap(self, entry: Entry, old: Record | None, beside: Sequence[Entry] = ()) -> bool:
        record = entry.record
        prepared = [
            (each, to_half(each.embedding.vector) if each.embedding else None) for each in (entry, *beside)
        ]
        expected = None if old is None else (rows.to_micros(old.updated_at),)

        def work(connection: sqlite3.Connection) -> bool:
            there = connection.execute(
                "SELECT updated_at FROM records WHERE id = ?", (record.id,)
            ).fetchone()
            if there != expected:
                return False
            claim(connection, record.project)
            for each, vector in prepared:
                rows.write(connection, each, vector)
            prune_removals(connection)
            return True

        return await self._writer.run(self._file(record.project), work)

    async def delete(self, project: Project, ids: Sequence[str]) -> int:
        def work(connection: sqlite3.Connection) -> int:
            found = [
                connection.execute("SELECT seq FROM records WHERE id = ?", (id,)).fetchone()
                for id in set(ids)
            ]
            there = [int(row[0]) for row in found if row]
            rows.remove(connection, there)
            prune_removals(connection)
            return len(there)

        if not ids or not self._file(project).exists():
            return 0
        return await self._writer.run(self._file(project), work)

    async def attach(self, entries: Sequence[Entry]) -> None:
        by_project = sorted(entries, key=lambda entry: entry.record.project.key)
        for _, group in groupby(by_project, key=lambda entry: entry.record.project.key):
            items = [
                (entry.embedding.model, to_half(entry.embedding.vector), entry.record)
                for entry in group
                if entry.embedding is not None
            ]

            def work(
                connection: sqlite3.Connection, items: list[tuple[str, bytes, Record]] = items
            ) -> None:
                for model, vector, record in items:
                    connection.execute(
                        "UPDATE records SET model = ?, vector = ?, revision = ?"
                        " WHERE id = ? AND updated_at = ?",
                        (
                            model,
                            vector,
                            rows.next_revision(connection),
                            record.id,
                            rows.to_micros(record.updated_at),
                        ),
                    )

            if items and self._file(items[0][2].project).exists():
                await self._writer.run(self._file(items[0][2].project), work)

    # --- reading ----------------------------------------------------------------------

    async def get(self, project: Project, id: str) -> Record | None:
        def work() -> Record | None:
            path = self._file(project)
            if not _KEY.fullmatch(project.key) or not path.exists():
                return None
            with self._readers.connection(path) as connection:
                row = connection.execute(
                    f"SELECT {rows.COLUMNS} FROM records WHERE id = ?", (id,)
                ).fetchone()
                return rows.to_record(row, owner(connection, project.key)) if row else None

        return await self._readers.run(work)

    async def page(self, filter: Filter, order: Order, offset: int, limit: int) -> Page:
        return await self._readers.run(lambda: self._page(filter, order, offset, limit))

    def _page(self, filter: Filter, order: Order, offset: int, limit: int) -> Page:
        """Each drawer gives its first `offset + limit`; the newest of all of them are the page."""
        condition, values = rows.where(filter)
        found: list[Record] = []
        total = 0
        drawers = list(self._files(filter))
        for key, path in drawers:
            skip = offset if len(drawers) == 1 else 0
            with self._readers.connection(path) as connection:
                (count,) = connection.execute(
                    f"SELECT count(*) FROM records WHERE {condition}", values
                ).fetchone()
                total += int(count)
                newest = connection.execute(
                    f"SELECT {rows.COLUMNS} FROM records WHERE {condition}"
                    f" ORDER BY {order} DESC, id DESC LIMIT ? OFFSET ?",
                    [*values, offset + limit - skip, skip],
                ).fetchall()
                project = owner(connection, key)
                found.extend(rows.to_record(row, project) for row in newest)
        if len(drawers) > 1:
            found.sort(key=lambda record: (getattr(record, order), record.id), reverse=True)
            found = found[offset : offset + limit]
        return Page(tuple(found), total)

    async def search(self, query: Query, coming: Awaitable[Embedding | None] | None = None) -> list[Hit]:
        if coming is None:
            return await self._readers.run(lambda: self._fused(query, self._by_words(query)))
        words = asyncio.ensure_future(self._readers.run(lambda: self._by_words(query)))
        try:
            whole = replace(query, embedding=await coming)
        finally:
            # Also when the vector fails or nobody waits any more: the thread reads on in any case.
            worded = await words
        return await self._readers.run(lambda: self._fused(whole, worded))

    def _fused(self, query: Query, worded: list[Place]) -> list[Hit]:
        fused = fuse(worded, self._by_vector(query), query.fusion)
        return self._hits(fused[: query.limit], query)

    def _by_words(self, query: Query) -> list[Place]:
        depth = max(_DEPTH, query.limit)
        found: list[tuple[float, Place]] = []
        for key, path in self._files(query.filter):
            with self._readers.connection(path) as connection:
                found += [(rank, (key, seq)) for seq, rank in by_words(connection, query, depth)]
        return [place for _, place in sorted(found)[:depth]]

    def _by_vector(self, query: Query) -> list[Place]:
        if query.embedding is None:
            return []
        depth = max(_DEPTH, query.limit)
        found: list[tuple[float, Place]] = []
        for key, path in self._files(query.filter):
            with self._readers.connection(path) as connection:
                near = self._nearest(connection, key, query, query.embedding, depth)
                found += [(-cosine, (key, seq)) for seq, cosine in near]
        return [place for _, place in sorted(found)[:depth]]

    def _nearest(
        self, connection: sqlite3.Connection, key: str, query: Query, embedding: Embedding, depth: int
    ) -> list[tuple[int, float]]:
        allowed: set[int] | None = None
        wanted = query.filter
        if wanted.tags or wanted.since or wanted.until:
            condition, values = rows.where(wanted)
            found = connection.execute(f"SELECT seq FROM records WHERE {condition}", values)
            allowed = {int(seq) for (seq,) in found}
        index = self._indexes.of(key, embedding.model)
        with index.lock:
            index.follow(connection)
            return index.scan(embedding.vector, wanted.kinds, allowed, depth)

    def _hits(self, fused: Sequence[tuple[Place, float]], query: Query) -> list[Hit]:
        """What still matches: a row that was found a moment ago may hold another record in an older file,
        whose rows were used again."""
        condition, values = rows.where(query.filter)
        records: dict[Place, Record] = {}
        for key in {key for (key, _), _ in fused}:
            seqs = [seq for (drawer, seq), _ in fused if drawer == key]
            with self._readers.connection(self._file(Project(key, ""))) as connection:
                found = connection.execute(
                    f"SELECT {rows.COLUMNS}, seq FROM records"
                    f" WHERE seq IN ({', '.join('?' * len(seqs))}) AND {condition}",
                    [*seqs, *values],
                ).fetchall()
                project = owner(connection, key)
                records.update({(key, int(row[-1])): rows.to_record(row[:-1], project) for row in found})
        return [
            Hit(records[place], score, self._distance(place, query))
            for place, score in fused
            if place in records
        ]

    def _distance(self, place: Place, query: Query) -> float | None:
        if query.embedding is None:
            return None
        index = self._indexes.of(place[0], query.embedding.model)
        with index.lock:
            cosine = index.similarity(query.embedding.vector, place[1])
        return None if cosine is None else max(0.0, 1.0 - cosine)

    async def unembedded(self, model: str, limit: int) -> list[Record]:
        def work() -> list[Record]:
            found: list[Record] = []
            for key, path in self._files(None):
                with self._readers.connection(path) as connection:
                    missing = connection.execute(
                        f"SELECT {rows.COLUMNS} FROM records WHERE (model IS NULL OR model <> ?)"
                        " AND (title <> '' OR body <> '') ORDER BY created_at, id LIMIT ?",
                        (model, limit),
                    ).fetchall()
                    project = owner(connection, key)
                    found.extend(rows.to_record(row, project) for row in missing)
            found.sort(key=lambda record: (record.created_at, record.id))
            return found[:limit]

        return await self._readers.run(work)

    # --- drawers ----------------------------------------------------------------------

    async def create(self, project: Project) -> bool:
        return await self._writer.run(self._file(project), lambda connection: claim(connection, project))

    async def drop(self, project: Project) -> Drawer | None:
        def work(connection: sqlite3.Connection) -> Drawer | None:
            drawer = describe(connection, project.key)
            if drawer is None:
                return None
            empty(connection)
            return drawer

        if not self._file(project).exists():
            return None
        return await self._writer.run(self._file(project), work)

    async def drawers(self) -> list[Drawer]:
        def work() -> list[Drawer]:
            found = []
            for key, path in self._files(None):
                with self._readers.connection(path) as connection:
                    drawer = describe(connection, key)
                if drawer is not None:
                    found.append(drawer)
            return sorted(found, key=lambda drawer: drawer.project.path)

        return await self._readers.run(work)

    async def check(self) -> None:
        await self._writer.run(
            self._file(SHARED), lambda connection: connection.execute("SELECT 1").fetchone()
        )

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()

    # --- files ------------------------------------------------------------------------

    def _file(self, project: Project) -> Path:
        name = f"{project.key}.db"
        return self._folder / name if project.key == SHARED.key else self._folder / "projects" / name

    def _files(self, filter: Filter | None) -> Iterator[tuple[str, Path]]:
        if filter is not None and filter.projects is not None:
            asked = {project.key: self._file(project) for project in filter.projects}
            yield from ((key, path) for key, path in asked.items() if path.exists())
            return
        shared = self._file(SHARED)
        if shared.exists():
            yield SHARED.key, shared
        for path in sorted((self._folder / "projects").glob("*.db")):
            yield path.stem, path

"""What every feature that keeps records shares: scrubbed on the way in, embedded, found again.

This is also the choke point of isolation: nothing is read or written for a project that the
caller may not use.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias, TypeVar, cast

from contextd.domain.callers import Caller
from contextd.domain.errors import NotFound
from contextd.domain.ids import drawer_of
from contextd.domain.ports import Clock, Scrubber, Store, Telemetry
from contextd.domain.records import (
    SHARED,
    Drawer,
    Entry,
    Filter,
    Fusion,
    Hit,
    Json,
    Order,
    Page,
    Project,
    Query,
    Record,
)
from contextd.services.embedding import Embeddings
from contextd.services.projects import permitted

T = TypeVar("T")
Place: TypeAlias = str | Project | None
"""A project's path; SHARED; or None for every project that the caller may read."""
_LONG: Final = 8_000


class Archive:
    def __init__(
        self, store: Store, embeddings: Embeddings, scrubber: Scrubber, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._store = store
        self._embeddings = embeddings
        self._scrubber = scrubber
        self._telemetry = telemetry
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def project(self, caller: Caller, path: str) -> Project:
        """The project at this path. Raises Forbidden."""
        project = permitted(caller, path)
        caller.tally.project = project
        return project

    async def keep(self, record: Record) -> Record:
        """Scrub, embed and store. Returns the record as kept, when it is durable."""
        entry = await self._entry(record)
        with self._timed("put"):
            await self._store.put([entry])
        self._watch(entry)
        return entry.record

    async def swap(self, record: Record, old: Record | None) -> Record | None:
        """Keep it if what is kept under its id is still `old`, or nothing when None; else None.

        Of several who try at once, in any process, one keeps its own.
        """
        entry = await self._entry(record)
        with self._timed("swap"):
            swapped = await self._store.swap(entry, old)
        if not swapped:
            return None
        self._watch(entry)
        return entry.record

    async def scrubbed(self, record: Record) -> Record:
        """The record as it would be kept."""
        size = len(record.passage) + _length(dict(record.fields))
        return await _aside(size, lambda: self._scrubbed(record))

    async def count_tokens(self, record: Record) -> int:
        return await _aside(len(record.text), lambda: self._embeddings.count_tokens(record.passage))

    async def fetch(self, caller: Caller, id: str, kind: str, what: str) -> Record:
        """By id, which names its drawer. Raises NotFound, also for what the caller may not see."""
        key = drawer_of(id)
        if key is None or not (key == SHARED.key or caller.principal.may_use(Project(key, ""))):
            raise NotFound(what, id)
        with self._timed("get"):
            record = await self._store.get(Project(key, ""), id)
        if record is None or record.kind != kind:
            raise NotFound(what, id)
        caller.tally.project = record.project
        return record

    async def remove(self, record: Record, *more: Record) -> bool:
        """Whether any was there; all of one drawer. The caller has fetched them, and so may."""
        with self._timed("delete"):
            return bool(await self._store.delete(record.project, [each.id for each in (record, *more)]))

    async def page(
        self,
        caller: Caller,
        kind: str,
        place: Place,
        order: Order,
        offset: int,
        limit: int,
        tags: Sequence[str] = (),
    ) -> Page:
        filter = Filter(kinds=(kind,), projects=self._scope(caller, place), tags=tuple(tags))
        with self._timed("page"):
            return await self._store.page(filter, order, offset, limit)

    async def search(
        self,
        caller: Caller,
        text: str,
        kinds: tuple[str, ...],
        place: Place,
        tags: Sequence[str],
        limit: int,
        fusion: Fusion,
    ) -> list[Hit]:
        filter = Filter(kinds=kinds, projects=self._scope(caller, place), tags=tuple(tags))
        clean = await _aside(len(text), lambda: self._scrubber.scrub(text).text)
        coming = asyncio.ensure_future(self._embeddings.query(clean, caller.tally))
        try:
            # A query that was asked before has its vector at once.
            await asyncio.sleep(0)
            known = coming.result() if coming.done() else None
            query = Query(clean, filter, limit, known, fusion)
            with self._timed("search"):
                return await self._store.search(query, None if coming.done() else coming)
        finally:
            coming.cancel()

    # --- drawers ----------------------------------------------------------------------

    async def create_drawer(self, caller: Caller, path: str) -> tuple[Drawer, bool]:
        project = self.project(caller, path)
        made = await self._store.create(project)
        return next(
            drawer for drawer in await self._store.drawers() if drawer.project.key == project.key
        ), made

    async def drop_drawer(self, caller: Caller, path: str) -> Drawer:
        """Raises NotFound when the project has no store."""
        dropped = await self._store.drop(self.project(caller, path))
        if dropped is None:
            raise NotFound("collection", path, "collection_list shows the projects that have one")
        return dropped

    async def drawers(self, caller: Caller) -> list[Drawer]:
        return [
            drawer
            for drawer in await self._store.drawers()
            if drawer.project.key != SHARED.key and caller.principal.may_use(drawer.project)
        ]

    # --- inside -----------------------------------------------------------------------

    async def _entry(self, record: Record) -> Entry:
        """Scrubbed and embedded. A record without words is found by its id alone, and needs no vector."""
        clean = await self.scrubbed(record)
        return Entry(clean, await self._embeddings.document(clean.passage) if clean.passage else None)

    def _watch(self, kept: Entry) -> None:
        if kept.embedding is None and kept.record.passage:
            self._embeddings.fall_behind()

    def _scope(self, caller: Caller, place: Place) -> tuple[Project, ...] | None:
        """The drawers that a query covers: one, or every one that the caller may read."""
        if isinstance(place, Project):
            return (place,)
        if place is not None:
            return (self.project(caller, place),)
        if caller.principal.projects is None:
            return None
        return tuple(Project(key, "") for key in sorted(caller.principal.projects))

    def _scrubbed(self, record: Record) -> Record:
        """Nothing secret reaches the store, nor a model that may be remote."""
        whole, found = self._scrubber.scrub_json(
            {
                "title": record.title,
                "text": record.text,
                "fields": dict(record.fields),
                "tags": list(record.tags),
            }
        )
        if not found:
            return record
        for rule, count in found.items():
            self._telemetry.count(
                "contextd_secrets_redacted_total", count, **{"rule": rule, "pass": "server"}
            )
        clean = cast(dict[str, Json], whole)
        return replace(
            record,
            title=cast(str, clean["title"]),
            text=cast(str, clean["text"]),
            fields=cast(dict[str, Json], clean["fields"]),
            tags=tuple(cast(list[str], clean["tags"])),
        )

    def _timed(self, operation: str) -> "_Timed":
        return _Timed(self._telemetry, self._clock, operation)


def _length(value: Json) -> int:
    if isinstance(value, dict):
        return sum(len(key) + _length(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(map(_length, value))
    return len(value) if isinstance(value, str) else 1


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Long texts are worked on in a thread, so that other calls get their turn."""
    return await asyncio.to_thread(work) if size > _LONG else work()


class _Timed:
    """A span and a timing around one operation of the store."""

    def __init__(self, telemetry: Telemetry, clock: Clock, operation: str) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._operation = operation
        self._span = telemetry.span(f"store.{operation}")

    def __enter__(self) -> None:
        self._span.__enter__()
        self._started = self._clock.monotonic()

    def __exit__(self, *error: object) -> None:
        elapsed = self._clock.monotonic() - self._started
        self._telemetry.observe(
            "contextd_store_operation_duration_seconds", elapsed, operation=self._operation
        )
        self._span.__exit__(None, None, None)

"""Chunks of trees in use are read with the text model too, in the background, to rank them better.

It reads a hundred times slower than the code model and understands more: with its vectors the best hits of
a search are put in a better order, at no cost to the search. docs/code-search.md has the figures.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final, Protocol

from contextd.domain.code_store import CloserReading
from contextd.domain.errors import EmbedderUnavailable, IndexingInProgress, StoreUnavailable
from contextd.domain.ports import Clock
from contextd.domain.records import Embedding, Project
from contextd.services.code_index import IndexLocks
from contextd.services.used_trees import UsedTrees

logger = logging.getLogger(__name__)

_BATCH: Final = 4
_QUIET_S: Final = 3.0
"""It reads when nobody has asked for anything for so long: searches come first."""
_SHARE: Final = 0.5
"""Of the time, at the most: in between, searches and saves have the model to themselves."""
_LOOK_AGAIN_S: Final = 10.0


class Documents(Protocol):
    """The part of Embeddings that is needed here."""

    async def documents(self, texts: list[str]) -> list[Embedding]: ...

    async def space(self) -> str: ...


class CloserReader:
    def __init__(
        self, store: CloserReading, embeddings: Documents, locks: IndexLocks, used: UsedTrees, clock: Clock
    ) -> None:
        self._store = store
        self._embeddings = embeddings
        self._locks = locks
        self._used = used
        self._clock = clock

    async def run(self) -> None:
        """Read what is unread in the projects in use, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S)
            for project in {used.project.key: used.project for used in self._used.now()}.values():
                with suppress(IndexingInProgress, EmbedderUnavailable, StoreUnavailable):
                    async with self._locks.hold(f"{project.key}-closer", background=True, patience_s=0.0):
                        await self.read(project)

    async def read(self, project: Project) -> int:
        """All chunks of a project that are unread, while it is in use. Returns how many were read."""
        count = 0
        model = await self._embeddings.space()
        while self._used.is_used(project):
            unread = await self._store.unread(project, model, _BATCH)
            if not unread:
                break
            if not count:
                await self._store.forget_others(project, model)
            while (waits := _QUIET_S - self._used.quiet_s()) > 0:  # noqa: ASYNC110 - time, no event
                await asyncio.sleep(waits)
            started = self._clock.monotonic()
            embeddings = await self._embeddings.documents([text for _, text in unread])
            vectors = [(chunk, each.vector) for (chunk, _), each in zip(unread, embeddings, strict=True)]
            await self._store.attach(project, model, vectors)
            count += len(vectors)
            await asyncio.sleep((self._clock.monotonic() - started) * (1 / _SHARE - 1))
        if count:
            self._used.read_closer(project)
            logger.info("read %d chunks closer", count)
        return count

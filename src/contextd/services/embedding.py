"""Vectors for what is kept and what is asked. Without a model, both go on by keyword."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from contextd.domain.callers import Tally
from contextd.domain.errors import EmbedderUnavailable, StoreUnavailable
from contextd.domain.ports import Clock, Embedder, Store, Telemetry
from contextd.domain.records import Content, Embedding, Entry, Purpose, space

logger = logging.getLogger(__name__)

_CACHED_QUERIES: Final = 1024
_CATCH_UP_BATCH: Final = 32
_RETRY_AFTER_S: Final = 5.0
_LONGEST_RETRY_S: Final = 60.0


class Embeddings:
    """Chooses the embedder by content, remembers queries, and knows when the model is away."""

    def __init__(self, embedders: Mapping[Content, Embedder], telemetry: Telemetry, clock: Clock) -> None:
        self._embedders = embedders
        self._telemetry = telemetry
        self._clock = clock
        self._queries: OrderedDict[tuple[str, str], Embedding] = OrderedDict()
        self._behind = asyncio.Event()
        self._behind.set()
        self._back = asyncio.Event()
        self.down: str | None = None
        """Why the last attempt failed; None while the model answers."""
        self.catching_up = False
        """Whether records wait for vectors of today's model; until then they are found by keyword."""

    async def document(self, text: str, content: Content = "text") -> Embedding | None:
        """None when the model is away: the record is kept, and embedded when it is back."""
        try:
            (embedding,) = await self._embed([text], content, "document")
        except EmbedderUnavailable:
            return None
        return embedding

    def fall_behind(self) -> None:
        """A record was kept without its vector. Said after it was kept, so that catching up finds it."""
        self._behind.set()

    async def query(self, text: str, tally: Tally, content: Content = "text") -> Embedding | None:
        """None when the model is away: the search goes on by keyword."""
        key = (self._embedders[content].model, text)
        known = self._queries.get(key)
        if known is not None:
            self._queries.move_to_end(key)
            tally.cache_hits += 1
            self._telemetry.count("contextd_embedding_cache_lookups_total", result="hit")
            return known
        tally.cache_misses += 1
        self._telemetry.count("contextd_embedding_cache_lookups_total", result="miss")
        try:
            (embedding,) = await self._embed([text], content, "query")
        except EmbedderUnavailable:
            return None
        self._queries[key] = embedding
        if len(self._queries) > _CACHED_QUERIES:
            self._queries.popitem(last=False)
        return embedding

    def count_tokens(self, text: str, content: Content = "text") -> int:
        return self._embedders[content].count_tokens(text)

    def model(self, content: Content = "text") -> str:
        return self._embedders[content].model

    async def catch_up(self, store: Store) -> None:
        """Give every record the vector it lacks; sleeps while there is none. Runs until cancelled."""
        delay = _RETRY_AFTER_S
        while True:
            await self._behind.wait()
            self._behind.clear()
            try:
                while await self._embed_some(store):
                    delay = _RETRY_AFTER_S
            except (EmbedderUnavailable, StoreUnavailable) as fault:
                logger.warning("embedding waits: %s", fault.problem)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._back.wait(), delay)
                delay = min(delay * 2, _LONGEST_RETRY_S)
                self._behind.set()

    async def _embed_some(self, store: Store) -> bool:
        if not await store.unembedded("", 1):
            # Nothing is kept at all: no need to ask an endpoint for its dimension.
            self.catching_up = False
            return False
        records = await store.unembedded(await self.space(), _CATCH_UP_BATCH)
        self.catching_up = bool(records)
        if not records:
            return False
        embeddings = await self._embed([record.passage for record in records], "text", "document")
        await store.attach(
            [Entry(record, embedding) for record, embedding in zip(records, embeddings, strict=True)]
        )
        logger.info("embedded %d records that had no vector of %s", len(records), self.model())
        return True

    async def documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Raises EmbedderUnavailable."""
        return await self._embed(texts, "text", "document")

    async def space(self) -> str:
        """What vectors of today are named by. An endpoint says its dimension with its first answer."""
        embedder = self._embedders["text"]
        try:
            return space(embedder.model, embedder.dimension)
        except EmbedderUnavailable:
            (embedding,) = await self._embed([embedder.model], "text", "document")
            return embedding.model

    async def _embed(self, texts: Sequence[str], content: Content, purpose: Purpose) -> list[Embedding]:
        embedder = self._embedders[content]
        started = self._clock.monotonic()
        with self._telemetry.span("embed", model=embedder.model, purpose=purpose, texts=len(texts)):
            try:
                vectors = await embedder.embed(texts, purpose)
            except EmbedderUnavailable as fault:
                self.down = fault.problem
                self._back.clear()
                raise
        if self.down is not None:
            self.down = None
            self._back.set()
        elapsed = self._clock.monotonic() - started
        self._telemetry.observe("contextd_embedding_duration_seconds", elapsed, purpose=purpose)
        return [Embedding(space(embedder.model, len(vector) // 4), vector) for vector in vectors]

    async def close(self) -> None:
        for embedder in {id(embedder): embedder for embedder in self._embedders.values()}.values():
            await embedder.close()

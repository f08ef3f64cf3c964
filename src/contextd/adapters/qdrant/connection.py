"""The way to the server: opened on first use, the collection made ready, outages told in our words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from contextd.adapters.qdrant.points import vector_name
from contextd.domain.errors import Misconfigured, StoreUnavailable
from contextd.domain.records import Embedding

OLDEST_SERVER: Final = (1, 18)
"""Since then a collection takes new named vectors, which is how a new model comes in."""

WORDS: Final = "words"
"""The sparse vector of each record."""

_NOT_NOW: Final = frozenset({401, 403, 404, 408, 429})
"""Besides every 5xx. Other refusals are mistakes of ours, and not to be called an outage."""

_INDEXES: Final[dict[str, models.PayloadSchemaType | models.KeywordIndexParams]] = {
    "project": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "kind": models.PayloadSchemaType.KEYWORD,
    "tags": models.PayloadSchemaType.KEYWORD,
    "created_at": models.PayloadSchemaType.DATETIME,
    "updated_at": models.PayloadSchemaType.DATETIME,
    "bytes": models.PayloadSchemaType.INTEGER,
}


def connect(url: str, api_key: str | None) -> AsyncQdrantClient:
    try:
        # The client's own check of the version is a thread that can only warn.
        return AsyncQdrantClient(url=url, api_key=api_key, timeout=10, check_compatibility=False)
    except ValueError as error:
        raise Misconfigured(
            "the address of Qdrant is no URL", "set QDRANT_URI to http://HOST:6333"
        ) from error


class Connection:
    def __init__(self, client: AsyncQdrantClient, collection: str) -> None:
        self.collection = collection
        self._client = client
        self._opening = asyncio.Lock()
        self._opened = False
        self._vectors: frozenset[str] = frozenset()

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[AsyncQdrantClient]:
        """The client, with the collection in place. Raises StoreUnavailable."""
        try:
            async with _outages_told():
                async with self._opening:
                    if not self._opened:
                        await self._open()
                yield self._client
        except StoreUnavailable:
            # What comes back may be another server, or one whose collection is gone.
            self._opened, self._vectors = False, frozenset()
            raise

    async def vector_names(self) -> frozenset[str]:
        """The dense vectors that the collection has by now: other processes add models too."""
        async with self.ready() as client:
            vectors = (await client.get_collection(self.collection)).config.params.vectors
        self._vectors = frozenset(vectors if isinstance(vectors, dict) else ())
        return self._vectors

    async def knows(self, embedding: Embedding) -> bool:
        name = vector_name(embedding)
        return name in self._vectors or name in await self.vector_names()

    async def make_room(self, embedding: Embedding) -> None:
        """Let the collection hold vectors of this model."""
        if await self.knows(embedding):
            return
        name = vector_name(embedding)
        dense = models.DenseVectorConfig(size=len(embedding.vector) // 4, distance=models.Distance.COSINE)
        async with self.ready() as client:
            await client.create_vector_name(
                self.collection, name, models.DenseVectorNameConfig(dense=dense)
            )

    async def check(self) -> None:
        async with _outages_told():
            await self._refuse_an_old_server()
            await self._client.collection_exists(self.collection)

    async def close(self) -> None:
        await self._client.close()

    async def _open(self) -> None:
        await self._refuse_an_old_server()
        if not await self._client.collection_exists(self.collection):
            await self._make_collection()
        indexed = (await self._client.get_collection(self.collection)).payload_schema
        for field, schema in _INDEXES.items():
            if field not in indexed:
                await self._client.create_payload_index(self.collection, field, schema, wait=True)
        self._opened = True

    async def _make_collection(self) -> None:
        words = models.SparseVectorParams(modifier=models.Modifier.IDF)
        try:
            await self._client.create_collection(
                self.collection, vectors_config={}, sparse_vectors_config={WORDS: words}
            )
        except UnexpectedResponse as error:
            # Another process made it in this very moment.
            if error.status_code != 409:
                raise

    async def _refuse_an_old_server(self) -> None:
        version = (await self._client.info()).version
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise Misconfigured(f"Qdrant {version} is too old", f"run Qdrant {oldest} or newer")


@asynccontextmanager
async def _outages_told() -> AsyncIterator[None]:
    try:
        yield
    except ResponseHandlingException as error:
        raise StoreUnavailable("Qdrant cannot be reached") from error
    except ResourceExhaustedResponse as error:
        raise StoreUnavailable("Qdrant is overloaded") from error
    except UnexpectedResponse as error:
        if error.status_code in _NOT_NOW or (error.status_code or 500) >= 500:
            raise StoreUnavailable(f"Qdrant answered with status {error.status_code}") from error
        raise

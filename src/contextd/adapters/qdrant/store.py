"""The Store port on Qdrant."""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from contextd.adapters.qdrant.points import (
    Payload,
    cosine,
    from_instant,
    point_id,
    to_floats,
    to_record,
)
from contextd.adapters.qdrant.terms import query_weights
from contextd.domain.errors import Misconfigured
from contextd.domain.records import (
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

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient


class QdrantStore:
    """A `client` that is given stays the giver's to close."""

    def __init__(
        self,
        url: str,
        prefix: str = "contextd",
        client: "AsyncQdrantClient | None" = None,
        api_key: str | None = None,
    ) -> None:
        try:
            from contextd.adapters.qdrant.collection import Collection
            from contextd.adapters.qdrant.connection import Connection, connect
        except ModuleNotFoundError as error:
            raise Misconfigured(
                "the Qdrant client is not installed", 'pip install "contextd[qdrant]"'
            ) from error
        self._owned = client is None
        self._connection = Connection(client or connect(url, api_key), f"{prefix}-records")
        self._records = Collection(self._connection)

    # --- writing ----------------------------------------------------------------------

    async def put(self, entries: Sequence[Entry]) -> None:
        if entries:
            await self._records.put(entries)

    async def swap(self, entry: Entry, old: Record | None, beside: Sequence[Entry] = ()) -> bool:
        if beside:
            await self.put(beside)
        return await self._records.swap(entry, old)

    async def delete(self, project: Project, ids: Sequence[str]) -> int:
        return await self._records.remove(project, [point_id(project, id) for id in ids]) if ids else 0

    async def attach(self, entries: Sequence[Entry]) -> None:
        await self._records.attach([entry for entry in entries if entry.embedding is not None])

    # --- reading ----------------------------------------------------------------------

    async def get(self, project: Project, id: str) -> Record | None:
        found = await self._records.read([project], [point_id(project, id)])
        return next((to_record(payload) for payload in found.values()), None)

    async def page(self, filter: Filter, order: Order, offset: int, limit: int) -> Page:
        total = await self._records.count(filter)
        if limit < 1 or offset >= total:
            return Page((), total)
        points = (await self._records.newest(filter, order, offset + limit))[offset:]
        found = await self._records.read(filter.projects, points)
        return Page(tuple(to_record(found[point]) for point in points if point in found), total)

    async def search(self, query: Query, coming: Awaitable[Embedding | None] | None = None) -> list[Hit]:
        embedding = query.embedding if coming is None else await coming
        if query.limit < 1:
            return []
        found = await self._records.search(
            query.filter, query_weights(query.text), embedding, query.fusion, query.limit
        )
        return [Hit(to_record(hit.payload), hit.score, _distance(hit.vector, embedding)) for hit in found]

    async def unembedded(self, model: str, limit: int) -> list[Record]:
        if limit < 1:
            return []
        return [to_record(payload) for payload in await self._records.without_vector(model, limit)]

    # --- drawers ----------------------------------------------------------------------

    async def create(self, project: Project) -> bool:
        return await self._records.mark(project)

    async def drop(self, project: Project) -> Drawer | None:
        """The marker goes last: what a crash leaves can be dropped again."""
        marker = await self._records.marker(project)
        if marker is None:
            return None
        drawer = await self._drawer(marker)
        await self._records.remove(project)
        await self._records.unmark(project)
        return drawer

    async def drawers(self) -> list[Drawer]:
        found = [await self._drawer(marker) for marker in await self._records.markers()]
        return sorted(found, key=lambda drawer: drawer.project.path)

    async def _drawer(self, marker: Payload) -> Drawer:
        """Its size is that of titles, texts and fields; the engine does not tell what a drawer takes up."""
        project = Project(marker["drawer"], marker["path"])
        kinds = await self._records.tally(project, "kind")
        sizes = await self._records.tally(project, "bytes")
        return Drawer(
            project,
            {str(kind): count for kind, count in kinds.items()},
            sum(int(size) * count for size, count in sizes.items()),
            from_instant(marker["made_at"]),
        )

    # --- the engine -------------------------------------------------------------------

    async def check(self) -> None:
        await self._connection.check()

    async def close(self) -> None:
        if self._owned:
            await self._connection.close()


def _distance(vector: list[float] | None, asked: Embedding | None) -> float | None:
    if vector is None or asked is None:
        return None
    return max(0.0, 1.0 - cosine(vector, to_floats(asked.vector)))

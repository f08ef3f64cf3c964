"""The requests that the store sends, in the domain's words."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast
from uuid import uuid4

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from contextd.adapters.qdrant.connection import WORDS, Connection
from contextd.adapters.qdrant.filters import at, markers, matching, these, unchanged, where
from contextd.adapters.qdrant.points import (
    Payload,
    from_instant,
    marker_id,
    names_of_model,
    point_id,
    to_floats,
    to_marker,
    to_payload,
    vector_name,
)
from contextd.adapters.qdrant.terms import Weights, document_weights
from contextd.domain.records import Embedding, Entry, Filter, Fusion, Order, Project, Record

_A_STRIDE: Final = 1_000
_DEPTH: Final = 100
"""How many of each list take part in the fusion, at least."""
_ALL_VALUES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Found:
    payload: Payload
    vector: list[float] | None
    score: float


class Collection:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._name = connection.collection

    # --- writing ----------------------------------------------------------------------

    async def put(self, entries: Sequence[Entry]) -> None:
        """One request: the drawers' markers where there are none, then all records in one operation."""
        points = {_id(entry): _point(entry) for entry in entries}
        drawers = [_marker(project) for project in {entry.record.project for entry in entries}]
        await self._make_room(entries)
        async with self._connection.ready() as client:
            await client.batch_update_points(
                self._name, [_insert(drawers), _upsert(points.values())], wait=True
            )

    async def swap(self, entry: Entry, old: Record | None) -> bool:
        """The server compares in the moment it writes; the mark that stands says whose write it was."""
        point, mark = _point(entry), str(uuid4())
        point.payload = {**(point.payload or {}), "put_by": mark}
        drawer = _insert([_marker(entry.record.project)])
        writes = [drawer, _insert([point])] if old is None else [_update(point, unchanged([Entry(old)]))]
        await self._make_room([entry])
        async with self._connection.ready() as client:
            await client.batch_update_points(self._name, writes, wait=True)
        standing = await self.read([entry.record.project], [_id(entry)])
        return any(payload.get("put_by") == mark for payload in standing.values())

    async def mark(self, project: Project) -> bool:
        """Write the drawer's marker unless there is one; whether the one that stands is ours."""
        marker = _marker(project)
        async with self._connection.ready() as client:
            await client.batch_update_points(self._name, [_insert([marker])], wait=True)
        return await self.marker(project) == marker.payload

    async def unmark(self, project: Project) -> None:
        async with self._connection.ready() as client:
            await client.delete(self._name, models.PointIdsList(points=[marker_id(project)]), wait=True)

    async def attach(self, entries: Sequence[Entry]) -> None:
        """Vectors for records that are as they were; the server compares in the moment it writes."""
        projects = {entry.record.project for entry in entries}
        there = await self.read(projects, [_id(entry) for entry in entries], payload=False)
        kept = [entry for entry in entries if _id(entry) in there]
        if not kept:
            return
        await self._make_room(kept)
        vectors = [models.PointVectors(id=_id(entry), vector=_dense(entry)) for entry in kept]
        async with self._connection.ready() as client:
            try:
                await client.update_vectors(self._name, vectors, update_filter=unchanged(kept), wait=True)
            except UnexpectedResponse as error:
                # One went away since; the server has written all the others before it says so.
                if error.status_code != 404:
                    raise
            older = await self._connection.vector_names() - {name for each in kept for name in _dense(each)}
            if older:
                # Nobody asks for them any more, and they would stay as long as the record.
                await client.delete_vectors(self._name, sorted(older), unchanged(kept), wait=True)

    async def remove(self, project: Project, points: Sequence[str] | None = None) -> int:
        """Remove these points of the project, by default all; returns how many were there."""
        meant = where([project]) if points is None else where([project], these(points))
        async with self._connection.ready() as client:
            found = await client.count(self._name, meant, exact=True)
            await client.delete(self._name, models.FilterSelector(filter=meant), wait=True)
        return found.count

    async def _make_room(self, entries: Iterable[Entry]) -> None:
        embeddings = [entry.embedding for entry in entries if entry.embedding]
        for embedding in {vector_name(embedding): embedding for embedding in embeddings}.values():
            await self._connection.make_room(embedding)

    # --- reading ----------------------------------------------------------------------

    async def read(
        self,
        projects: Iterable[Project] | None,
        points: Sequence[str],
        payload: bool = True,
    ) -> dict[str, Payload]:
        """What the projects hold of these points."""
        if not points:
            return {}
        async with self._connection.ready() as client:
            found, _ = await client.scroll(
                self._name,
                where(projects, these(points)),
                limit=len(points),
                with_payload=payload,
            )
        return {str(point.id): _payload(point) for point in found}

    async def count(self, filter: Filter) -> int:
        async with self._connection.ready() as client:
            return (await client.count(self._name, matching(filter), exact=True)).count

    async def newest(self, filter: Filter, order: Order, limit: int) -> list[str]:
        """The points of the newest `limit` records; of equals the greater id comes first.

        The engine breaks ties as it likes, so all that share the last instant are looked at.
        """
        found = await self._ordered(matching(filter), order, models.Direction.DESC, limit, [order, "id"])
        if len(found) == limit:
            last = from_instant(_payload(found[-1])[order])
            found += [point async for point in self._walk(matching(filter, at(order, last)), [order, "id"])]
        keys = {str(point.id): (_payload(point)[order], _payload(point)["id"]) for point in found}
        return sorted(keys, key=lambda point: keys[point], reverse=True)[:limit]

    async def without_vector(self, model: str, limit: int) -> list[Payload]:
        """Records of every project that have no vector of the model, oldest first."""
        names = names_of_model(await self._connection.vector_names(), model)
        having = [models.HasVectorCondition(has_vector=name) for name in names]
        lacking = where(None, models.HasVectorCondition(has_vector=WORDS), but_not=having)
        found = await self._ordered(lacking, "created_at", models.Direction.ASC, limit, True)
        return [_payload(point) for point in found]

    async def search(
        self, filter: Filter, words: Weights, embedding: Embedding | None, fusion: Fusion, limit: int
    ) -> list[Found]:
        """Fused by the engine, best first, in one request.

        The engine's score does not say which lists took part, and a list that found nothing takes
        none (`domain/ranking.py`): so the best by words is asked for beside it.
        """
        dense = embedding if embedding is not None and await self._connection.knows(embedding) else None
        lists = _prefetches(filter, words, dense, fusion, max(_DEPTH, limit))
        if not lists:
            return []
        vectors: bool | list[str] = [vector_name(dense)] if dense else False
        asks = [_fused(lists, fusion, limit, vectors)]
        if words:
            asks.append(_ask(_sparse(words), WORDS, filter, 1))
        async with self._connection.ready() as client:
            answers = [answer.points for answer in await client.query_batch_points(self._name, asks)]
        hits = [_found(point, vector_name(dense) if dense else None) for point in answers[0]]
        by_words = bool(words) and bool(answers[1])
        best = _best(fusion, by_words, by_vector=any(hit.vector for hit in hits))
        return [replace(hit, score=min(1.0, hit.score / best)) for hit in hits]

    async def marker(self, project: Project) -> Payload | None:
        async with self._connection.ready() as client:
            found = await client.retrieve(self._name, [marker_id(project)])
        return _payload(found[0]) if found else None

    async def markers(self) -> list[Payload]:
        return [_payload(point) async for point in self._walk(markers(), True)]

    async def tally(self, project: Project, field: str) -> dict[str | int, int]:
        """How many of the project's records have each value of the field."""
        async with self._connection.ready() as client:
            answer = await client.facet(self._name, field, where([project]), limit=_ALL_VALUES, exact=True)
        return {hit.value: hit.count for hit in answer.hits}

    async def _ordered(
        self,
        meant: models.Filter,
        order: Order,
        direction: models.Direction,
        limit: int,
        payload: bool | list[str],
    ) -> list[models.Record]:
        by = models.OrderBy(key=order, direction=direction)
        async with self._connection.ready() as client:
            found, _ = await client.scroll(self._name, meant, limit, by, with_payload=payload)
        return list(found)

    async def _walk(self, meant: models.Filter, payload: bool | list[str]) -> AsyncIterator[models.Record]:
        offset = None
        while True:
            async with self._connection.ready() as client:
                found, offset = await client.scroll(
                    self._name, meant, _A_STRIDE, offset=offset, with_payload=payload
                )
            for point in found:
                yield point
            if offset is None:
                return


def _id(entry: Entry) -> str:
    return point_id(entry.record.project, entry.record.id)


def _marker(project: Project) -> models.PointStruct:
    return models.PointStruct(id=marker_id(project), payload=to_marker(project), vector={})


def _point(entry: Entry) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {}
    words = document_weights(entry.record)
    if words:
        vectors[WORDS] = _sparse(words)
    return models.PointStruct(
        id=_id(entry), payload=to_payload(entry.record), vector=vectors | _dense(entry)
    )


def _dense(entry: Entry) -> dict[str, models.Vector]:
    embedding = entry.embedding
    return {vector_name(embedding): to_floats(embedding.vector)} if embedding else {}


def _sparse(words: Weights) -> models.SparseVector:
    return models.SparseVector(indices=list(words), values=list(words.values()))


def _insert(points: Sequence[models.PointStruct]) -> models.UpsertOperation:
    insert_only = models.UpdateMode.INSERT_ONLY
    return models.UpsertOperation(upsert=models.PointsList(points=list(points), update_mode=insert_only))


def _update(point: models.PointStruct, only: models.Filter) -> models.UpsertOperation:
    update_only = models.UpdateMode.UPDATE_ONLY
    points = models.PointsList(points=[point], update_mode=update_only, update_filter=only)
    return models.UpsertOperation(upsert=points)


def _upsert(points: Iterable[models.PointStruct]) -> models.UpsertOperation:
    return models.UpsertOperation(upsert=models.PointsList(points=list(points)))


def _ask(
    query: list[float] | models.SparseVector, using: str, filter: Filter, limit: int
) -> models.QueryRequest:
    return models.QueryRequest(query=query, using=using, filter=matching(filter), limit=limit)


def _prefetches(
    filter: Filter, words: Weights, dense: Embedding | None, fusion: Fusion, depth: int
) -> list[tuple[models.Prefetch, float]]:
    """The ranked lists that the engine fuses, each with its weight."""
    lists = []
    if words and fusion.keyword_weight > 0:
        lists.append((_list(_sparse(words), WORDS, filter, depth), fusion.keyword_weight))
    if dense is not None and fusion.vector_weight > 0:
        query = _list(to_floats(dense.vector), vector_name(dense), filter, depth)
        lists.append((query, fusion.vector_weight))
    return lists


def _list(
    query: list[float] | models.SparseVector, using: str, filter: Filter, depth: int
) -> models.Prefetch:
    return models.Prefetch(query=query, using=using, filter=matching(filter), limit=depth)


def _fused(
    lists: Sequence[tuple[models.Prefetch, float]], fusion: Fusion, limit: int, vectors: bool | list[str]
) -> models.QueryRequest:
    """The engine counts ranks from 0 and adds `k`, so its `k` is ours and one more."""
    rank_fusion = models.Rrf(k=fusion.k + 1, weights=[weight for _, weight in lists])
    return models.QueryRequest(
        prefetch=[prefetch for prefetch, _ in lists],
        query=models.RrfQuery(rrf=rank_fusion),
        limit=limit,
        with_payload=True,
        with_vector=vectors,
    )


def _best(fusion: Fusion, by_words: bool, by_vector: bool) -> float:
    """The engine's score of a first place in every list that took part."""
    weights = [fusion.keyword_weight] * by_words + [fusion.vector_weight] * by_vector
    return sum(1 / (1 / weight + fusion.k) for weight in weights if weight > 0) or 1.0


def _found(point: models.ScoredPoint, vector: str | None) -> Found:
    vectors = point.vector if isinstance(point.vector, dict) else {}
    dense = vectors.get(vector) if vector else None
    return Found(point.payload or {}, cast("list[float] | None", dense), point.score)


def _payload(point: models.Record) -> Payload:
    return point.payload or {}

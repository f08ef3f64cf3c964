"""The default store at its port: three ways to search, and many writers at once."""

import asyncio
import time
from itertools import islice
from pathlib import Path
from typing import Final

from contextd.adapters.minilm import DIMENSION, MODEL
from contextd.adapters.sqlite import SqliteStore
from contextd.domain.records import Embedding, Filter, Query, Vector, space
from contextd.services.checkpoints import KIND
from contextd.services.projects import project_at
from figures import Latency, ms
from loading import Loaded, entry, fill, median_sync_ms, project_paths
from processes import data_folder
from prose import checkpoints, questions
from report import Section, Table
from sizes import Sizes

_SEARCHES: Final = 100
_WARM_UP: Final = 3
_WRITERS: Final = (1, 8, 32)
_TOP: Final = 5


async def measure(sizes: Sizes) -> Section:
    searches = [row for count in sizes.stores for row in await _searches(count)]
    with data_folder() as folder:
        sync_ms = median_sync_ms(folder)
    writes = [await _writes(writers, sizes.writes) for writers in _WRITERS]
    return Section(
        "The store at its port",
        f"One project, in this process; {_SEARCHES} searches of each kind, one after another, in"
        " milliseconds. Vectors are random, of the shipped model's dimension; the texts are checkpoints."
        f" Saves are {sizes.writes} single records for each number of writers; a save has returned when it"
        f" is durable, and fdatasync of 4 KiB takes {ms(sync_ms)} ms here at the median.",
        (
            Table(("records", "search", "p50 ms", "p95 ms", "p99 ms"), tuple(searches)),
            Table(("concurrent writers", "saves a second", "p50 ms", "p99 ms"), tuple(writes)),
        ),
    )


def _random_vectors(count: int, seed: int) -> list[Vector]:
    import numpy

    rows = numpy.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=numpy.float32)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    return [Vector(row.astype("<f4").tobytes()) for row in rows]


def _made(count: int, seed: int) -> list[Loaded]:
    return [
        Loaded(made, vector)
        for made, vector in zip(checkpoints(count, seed), _random_vectors(count, seed), strict=True)
    ]


async def _searches(count: int) -> list[tuple[str, ...]]:
    (path,) = project_paths(1)
    filter = Filter((KIND,), (project_at(path),))
    texts = list(islice(questions(), _SEARCHES))
    embeddings = [
        Embedding(space(MODEL, DIMENSION), vector) for vector in _random_vectors(_SEARCHES, seed=9)
    ]
    kinds = {
        "by keyword": [Query(text, filter, _TOP) for text in texts],
        "by vector": [Query("", filter, _TOP, embedding) for embedding in embeddings],
        "by both": [
            Query(text, filter, _TOP, embedding) for text, embedding in zip(texts, embeddings, strict=True)
        ],
    }
    with data_folder() as folder:
        await fill(folder, _made(count, seed=7), [path])
        store = SqliteStore(folder)
        first = await _timed(store, kinds["by both"][:1])
        rows: list[tuple[str, ...]] = [(str(count), "the first, by both", ms(first.p50), "", "")]
        for name, queries in kinds.items():
            await _timed(store, queries[:_WARM_UP])
            took = await _timed(store, queries)
            rows.append((str(count), name, ms(took.p50), ms(took.p95), ms(took.p99)))
        await store.close()
    return rows


async def _timed(store: SqliteStore, queries: list[Query]) -> Latency:
    took: list[float] = []
    for query in queries:
        started = time.perf_counter()
        await store.search(query)
        took.append(time.perf_counter() - started)
    return Latency.of(took)


async def _writes(writers: int, count: int) -> tuple[str, ...]:
    with data_folder() as folder:
        took, whole_s = await _write(folder, writers, count)
    latency = Latency.of(took)
    return (str(writers), f"{len(took) / whole_s:.0f}", ms(latency.p50), ms(latency.p99))


async def _write(folder: Path, writers: int, count: int) -> tuple[list[float], float]:
    (path,) = project_paths(1)
    waiting = [entry(each, path, minute) for minute, each in enumerate(_made(count, seed=8))]
    store = SqliteStore(folder)
    await store.create(project_at(path))
    took: list[float] = []

    async def writer() -> None:
        while waiting:
            each = waiting.pop()
            started = time.perf_counter()
            await store.put([each])
            took.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(writers)))
    whole_s = time.perf_counter() - started
    await store.close()
    return took, whole_s

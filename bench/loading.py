"""A data folder filled through the store port, with vectors of the shipped model made beforehand."""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from contextd.adapters.minilm import DIMENSION, MODEL, MiniLM
from contextd.adapters.sqlite import SqliteStore
from contextd.domain.ids import new_id
from contextd.domain.records import Embedding, Entry, Record, Vector, space
from contextd.services.checkpoints import KIND
from contextd.services.projects import project_at
from prose import Checkpoint, checkpoints

_BATCH: Final = 500
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Loaded:
    checkpoint: Checkpoint
    vector: Vector


async def embedded(count: int) -> list[Loaded]:
    """Made-up checkpoints with their vectors; the slow part, so done once for every layout."""
    model = MiniLM()
    made = checkpoints(count)
    loaded: list[Loaded] = []
    for start in range(0, count, _BATCH):
        batch = made[start : start + _BATCH]
        vectors = await model.embed([f"{each.summary}\n{each.description}" for each in batch], "document")
        loaded += [Loaded(each, vector) for each, vector in zip(batch, vectors, strict=True)]
        print(f"  embedded {len(loaded)} of {count}", file=sys.stderr, flush=True)
    await model.close()
    return loaded


async def fill(folder: Path, loaded: Sequence[Loaded], projects: Sequence[str]) -> None:
    """Spread evenly over the projects, a minute apart, the last one the newest."""
    store = SqliteStore(folder)
    entries = [entry(each, projects[i % len(projects)], i) for i, each in enumerate(loaded)]
    for start in range(0, len(entries), _BATCH):
        await store.put(entries[start : start + _BATCH])
    await store.close()


def entry(loaded: Loaded, path: str, minute: int) -> Entry:
    project = project_at(path)
    made = loaded.checkpoint
    at = _FIRST + timedelta(minutes=minute)
    record = Record(
        id=new_id("cp", project.key, at),
        kind=KIND,
        project=project,
        title=made.summary,
        text=made.description,
        fields={
            "description": made.description,
            "content": "",
            "project_path": path,
            "context": {},
            "state": {},
        },
        tags=made.tags,
        created_at=at,
        updated_at=at,
    )
    return Entry(record, Embedding(space(MODEL, DIMENSION), loaded.vector))


def project_paths(count: int) -> list[str]:
    return [f"/srv/bench/project-{number}" for number in range(count)]


def median_sync_ms(folder: Path, times: int = 50) -> float:
    """What this disk asks for one durable write: the floor under every save."""
    took: list[float] = []
    with (folder / "sync-probe").open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000

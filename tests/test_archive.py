"""What every feature that keeps records can rely on: scrubbed whole, embedded in the end, counted once."""

import asyncio
import sqlite3
import struct
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contextd.domain.callers import Caller
from contextd.domain.errors import EmbedderUnavailable, Fault
from contextd.domain.ports import Scrubbed
from contextd.domain.records import SHARED, Fusion, Json, Purpose, Record, Vector
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.plugins import load_extensions
from contextd.services.archive import Archive
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house

pytestmark = pytest.mark.anyio

HERE = Caller(session="tests")
TOKEN = "ghp_" + "a8Kd93LmQx72PzRt5VbN1cYw" + "Ef46Gh0JuS2i"


class Model:
    """An embedder that can be taken away, and can come back with another dimension."""

    model = "changeable"

    def __init__(self, dimension: int = 8) -> None:
        self.dimension = dimension
        self.away = False

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        if self.away:
            raise EmbedderUnavailable("it is away")
        return [Vector(struct.pack(f"<{self.dimension}f", 1.0, *[0.0] * (self.dimension - 1)))] * len(texts)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def close(self) -> None:
        pass


@asynccontextmanager
async def a_house(folder: Path, model: Model) -> AsyncIterator[House]:
    extensions = load_extensions()
    extensions.embedders["minilm"] = lambda settings: model
    settings = Settings(data_dir=folder, rate_limit=RateLimit(on=False))
    async with open_house(build(settings, extensions)) as opened:
        yield opened


async def call(pipeline: CallPipeline, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return (await pipeline.call(tool, arguments, HERE)).data


def models_in(folder: Path) -> set[str | None]:
    """The names of all vectors that records with words have."""
    found: set[str | None] = set()
    for file in folder.rglob("*.db"):
        with sqlite3.connect(file) as connection:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone():
                found |= {
                    row[0] for row in connection.execute("SELECT model FROM records WHERE title <> ''")
                }
        connection.close()
    return found


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*.db*"))


async def until_all_are(folder: Path, model: str) -> None:
    async with asyncio.timeout(20):
        while models_in(folder) != {model}:  # noqa: ASYNC110 - the file is all that tells
            await asyncio.sleep(0.02)


# --- vectors come in the end ----------------------------------------------------------

WRITES: Mapping[str, dict[str, Any]] = {
    "checkpoint_save": {"summary": "Login works", "project_path": "/srv/shop"},
    "memory_store": {
        "title": "Migrations wait for the worker",
        "content": "Stop the worker before a migration, or it waits for a lock.",
        "project_path": "/srv/shop",
    },
    "remediation_save": {
        "error_message": "connection refused",
        "error_type": "ConnectionError",
        "solution": "Start the database first",
    },
    "skill_create": {
        "name": "release",
        "description": "How a release is made here",
        "content": "# Release\n\nTag, build, publish.",
        "version": "1.0.0",
        "author": "ana",
        "category": "deployment",
    },
}


@pytest.mark.parametrize("tool", WRITES)
async def test_what_was_kept_without_the_model_is_embedded_when_it_is_back(
    tool: str, tmp_path: Path
) -> None:
    model = Model()
    async with a_house(tmp_path, model) as house:
        pipeline = pipeline_of(house)
        await call(pipeline, "checkpoint_save", summary="before", project_path="/srv/shop")
        await until_all_are(tmp_path, "changeable:8")
        model.away = True
        await call(pipeline, tool, **WRITES[tool])
        assert None in models_in(tmp_path)
        model.away = False
        await call(pipeline, "checkpoint_search", query="anything at all")
        await until_all_are(tmp_path, "changeable:8")


async def test_a_model_that_changed_its_dimension_never_meets_its_old_vectors(tmp_path: Path) -> None:
    async with a_house(tmp_path, Model(8)) as house:
        await call(pipeline_of(house), "checkpoint_save", summary="Login works", project_path="/srv/shop")
        assert models_in(tmp_path) == {"changeable:8"}
    async with a_house(tmp_path, Model(16)) as house:
        await until_all_are(tmp_path, "changeable:16")
        found = await call(pipeline_of(house), "checkpoint_search", query="unrelated")
    assert [hit["distance"] for hit in found["results"]] == [pytest.approx(0, abs=1e-2)]


# --- secrets --------------------------------------------------------------------------


async def test_a_secret_is_the_same_placeholder_in_every_process(tmp_path: Path) -> None:
    answers = []
    for _ in range(2):
        async with a_house(tmp_path, Model()) as house:
            pipeline = pipeline_of(house)
            answers.append(
                await call(
                    pipeline,
                    "remediation_save",
                    error_message="push declined: bad credentials",
                    error_type="AuthError",
                    solution=f"git remote set-url origin https://{TOKEN}@example.org/shop.git",
                )
            )
    assert answers[0]["id"] == answers[1]["id"]
    key = tmp_path / "placeholders.key"
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)


async def test_a_damaged_key_is_told_and_no_secret_gets_through(tmp_path: Path) -> None:
    (tmp_path / "placeholders.key").write_bytes(b"short")
    async with a_house(tmp_path, Model()) as house:
        with pytest.raises(Fault):
            await call(
                pipeline_of(house), "checkpoint_save", summary=f"token {TOKEN}", project_path="/srv/shop"
            )
    assert TOKEN.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("before", range(90, 130, 8))
async def test_no_half_of_a_secret_is_kept_where_a_text_is_cut(before: int, tmp_path: Path) -> None:
    message = "x" * before + " " + TOKEN
    trace = "y" * (4_000 - before % 40) + " " + TOKEN + " " + "z" * 6_000
    async with a_house(tmp_path, Model()) as house:
        await call(pipeline_of(house), "troubleshoot", error_message=message, stack_trace=trace)
    assert TOKEN[:12].encode() not in bytes_of(tmp_path)


# --- turns ----------------------------------------------------------------------------


class Watched:
    """A scrubber that notes where it works."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def scrub(self, text: str, *, keep_lines: bool = False) -> Scrubbed:
        self.threads.append(threading.current_thread())
        return Scrubbed(text, {})

    def scrub_json(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        self.threads.append(threading.current_thread())
        return value, {}


async def test_long_texts_are_scrubbed_where_they_hold_nobody_up(tmp_path: Path) -> None:
    async with a_house(tmp_path, Model()) as house:
        watched = Watched()
        archive = Archive(house.store, house.embeddings, watched, house.telemetry, house.clock)
        now = archive.now()
        nested: dict[str, Json] = {"steps": ["word " * 1_000, {"then": "word " * 1_000}]}
        record = Record("x-shared-1", "note", SHARED, "", "", nested, created_at=now, updated_at=now)
        await archive.scrubbed(record)
        await archive.search(HERE, "word " * 2_000, ("note",), SHARED, (), 5, Fusion())
    assert len(watched.threads) == 2
    assert threading.main_thread() not in watched.threads


# --- one outcome ----------------------------------------------------------------------


async def test_of_many_calls_with_one_outcome_one_counts(tmp_path: Path) -> None:
    error = "Error: listen EADDRINUSE: address already in use :::3000"
    async with a_house(tmp_path, Model()) as house:
        pipeline = pipeline_of(house)
        opened = await call(pipeline, "troubleshoot", error_message=error)
        again = {"error_message": error, "session_id": opened["session_id"], "outcome": "fixed"}
        answers = await asyncio.gather(
            *(pipeline.call("troubleshoot", again, HERE) for _ in range(5)), return_exceptions=True
        )
        faults = [answer for answer in answers if isinstance(answer, Fault)]
        assert {fault.category for fault in faults} == {"conflict"}
        assert len(faults) == 4
        used = await call(pipeline, "list_patterns", min_success_rate=0.01)
        assert {pattern["usage_count"] for pattern in used["patterns"]} == {1}


async def test_a_diagnosis_is_not_in_the_way_of_what_is_searched_for(tmp_path: Path) -> None:
    async with a_house(tmp_path, Model()) as house:
        await call(pipeline_of(house), "troubleshoot", error_message="the walrus connection was refused")
    with sqlite3.connect(tmp_path / "shared.db") as connection:
        found = connection.execute("SELECT count(*) FROM words WHERE words MATCH 'walrus'").fetchone()
    connection.close()
    assert found == (0,)

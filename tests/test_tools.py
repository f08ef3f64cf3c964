"""The tools in process: the same pipeline as every door, on a real store and the shipped model."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contextd.domain.callers import Caller
from contextd.domain.errors import Draining, Fault, Forbidden, NotFound, StoreUnavailable
from contextd.edge.call_pipeline import CallPipeline
from contextd.services.health import Health
from contextd.wiring import House

pytestmark = pytest.mark.anyio
HERE = Caller(session="tests")


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    at: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    elapsed: float = 0.0

    def now(self) -> datetime:
        return self.at + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed


async def call(pipeline: CallPipeline, name: str, /, **arguments: Any) -> dict[str, Any]:
    answer = await pipeline.call(name, arguments, HERE)
    assert answer.tokens_used > 0
    return answer.data


async def test_a_checkpoint_goes_all_the_way_and_comes_back(pipeline: CallPipeline) -> None:
    saved = await call(
        pipeline,
        "checkpoint_save",
        summary="The cache is warm",
        description="Redis, then an in-process layer. " * 12,
        project_path="/srv/cache",
        context={"ttl": 60, "why": "latency", "nested": {"a": [1]}},
        tags=["perf"],
        state={"open": ["eviction"]},
        content="long notes",
    )
    found = await call(
        pipeline, "checkpoint_search", query="warm cache", project_path="/srv/cache", tags=["perf"]
    )
    assert [hit["id"] for hit in found["results"]] == [saved["id"]]
    short = await call(
        pipeline, "checkpoint_search", query="warm cache", detail="preview", sources=["checkpoints"]
    )
    assert len(short["results"][0]["description"]) == 200
    assert short["results"][0]["context"] == {}
    listed = await call(pipeline, "checkpoint_list", project_path="/srv/cache", sort_by="updated_at")
    assert listed["total"] == 1
    for level in ("summary", "context", "full"):
        restored = await call(pipeline, "checkpoint_restore", id=saved["id"], level=level)
        assert restored["level"] == level
    assert restored["state"] == {"open": ["eviction"]}


async def test_files_of_a_repository_are_not_asked_for_checkpoints_alone(pipeline: CallPipeline) -> None:
    await call(pipeline, "checkpoint_save", content="Only a body\nhere", project_path="/srv/files")
    assert (await call(pipeline, "checkpoint_search", query="body", sources=["files"]))["results"] == []
    assert (
        len((await call(pipeline, "checkpoint_search", query="body", sources=["checkpoints"]))["results"])
        == 1
    )


async def test_collections_come_and_go(pipeline: CallPipeline) -> None:
    assert (await call(pipeline, "collection_create", project_path="/srv/c"))["created"] is True
    assert (await call(pipeline, "collection_list"))["total"] == 1
    assert "0 records" in (await call(pipeline, "collection_delete", project_path="/srv/c"))["message"]
    with pytest.raises(NotFound):
        await call(pipeline, "collection_delete", project_path="/srv/c")
    assert (await call(pipeline, "collection_list"))["total"] == 0


@pytest.mark.parametrize(("seconds", "uptime"), [(5, "5s"), (65, "1m5s"), (3_725, "1h2m5s")])
async def test_status_says_how_long_and_how_well(
    house: House, pipeline: CallPipeline, seconds: float, uptime: str
) -> None:
    clock = Clock()
    house.services[Health] = Health(house.store, house.embeddings, clock, "1.2.3", lambda: 8, house.sandbox)
    clock.elapsed = seconds
    status = await call(pipeline, "status")
    assert status["uptime"] == uptime
    assert status["status"] == "healthy"
    assert status["version"] == "1.2.3"
    assert status["metrics"]["tools_available"] == 8


async def test_without_its_store_it_is_unhealthy_and_without_its_model_degraded(
    house: House, pipeline: CallPipeline
) -> None:
    class Broken:
        async def check(self) -> None:
            raise StoreUnavailable("the disk is gone")

    clock = Clock()
    health = Health(Broken(), house.embeddings, clock, "1", lambda: 0, house.sandbox)  # type: ignore[arg-type]  # it asks for a check alone
    house.services[Health] = health
    told = await call(pipeline, "status")
    assert told["status"] == told["services"]["store"]["status"] == "unhealthy"
    assert told["services"]["store"]["error"] == "the disk is gone"
    house.embeddings.down = "connection refused"
    degraded = await Health(house.store, house.embeddings, clock, "1", lambda: 0, house.sandbox).report()
    assert degraded.state == "degraded"
    assert "searching by keyword" in str([part.error for part in degraded.parts])


async def test_a_store_that_recovers_is_seen_within_a_second(house: House) -> None:
    class Flaky:
        checks = 0

        async def check(self) -> None:
            self.checks += 1
            if self.checks == 1:
                raise StoreUnavailable("not yet")

    clock, store = Clock(), Flaky()
    health = Health(store, house.embeddings, clock, "1", lambda: 0, house.sandbox)  # type: ignore[arg-type]  # as above
    assert (await health.report()).state == "unhealthy"
    assert (await health.report()).state == "unhealthy"
    clock.elapsed += 1.0
    assert (await health.report()).state == "healthy"
    assert store.checks == 2


async def test_a_drained_pipeline_takes_no_new_calls(pipeline: CallPipeline) -> None:
    assert await pipeline.drain(0.1) == 0
    with pytest.raises(Draining):
        await call(pipeline, "status")


async def test_a_caller_of_one_project_is_held_to_it(pipeline: CallPipeline) -> None:
    from contextd.domain.callers import Principal
    from contextd.services.projects import project_at

    saved = await call(pipeline, "checkpoint_save", summary="x", project_path="/srv/one")
    outsider = Caller(Principal("ci", frozenset({project_at("/srv/two").key})))
    with pytest.raises(Forbidden):
        await pipeline.call("checkpoint_list", {"project_path": "/srv/one"}, outsider)
    with pytest.raises(NotFound):
        await pipeline.call("checkpoint_restore", {"id": saved["id"]}, outsider)
    assert (await pipeline.call("checkpoint_list", {}, outsider)).data["total"] == 0


async def test_every_fault_of_a_tool_is_one_of_the_catalogue(pipeline: CallPipeline) -> None:
    for name, arguments in {"checkpoint_restore": {"id": "x"}, "checkpoint_list": {"limit": 0}}.items():
        with pytest.raises(Fault):
            await pipeline.call(name, arguments, HERE)

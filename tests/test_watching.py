"""What works in the background while a project is in use: following its files, and reading them closer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contextd.domain.callers import Caller
from contextd.domain.code_store import Tree
from contextd.domain.errors import NotIndexed
from contextd.domain.records import Project
from contextd.edge.call_pipeline import CallPipeline
from contextd.services.used_trees import UsedTrees
from contextd.services.watching import Watching
from contextd.wiring import House

pytestmark = pytest.mark.anyio

CART = "package shop\n\nfunc Total() int { return 1 }\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.go").write_text(CART)
    (root / "price.go").write_text(
        "package shop\n\n// Discounted takes a share off.\nfunc Discounted() {}\n"
    )
    return root


async def call(pipeline: CallPipeline, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return (await pipeline.call(tool, arguments, Caller())).data


async def staleness(pipeline: CallPipeline, root: Path, wanted: bool) -> dict[str, Any]:
    """Asks until the index is as stale as wanted; the wait is bounded."""
    async with asyncio.timeout(20):
        while True:
            status = await call(pipeline, "get_status", path=str(root))
            if status["staleness"]["is_stale"] == wanted:
                return status
            await asyncio.sleep(0.05)


async def test_an_indexed_project_follows_its_files_by_itself(pipeline: CallPipeline, shop: Path) -> None:
    await call(pipeline, "index_codebase", path=str(shop))
    (shop / "cart.go").unlink()
    (shop / "order.go").write_text("package shop\n\nfunc Place() {}\n\nfunc Cancel() {}\n")
    status = await staleness(pipeline, shop, wanted=False)
    assert status["statistics"]["total_files"] == 2
    assert status["statistics"]["total_symbols"] == 3
    (shop / "order.go").write_text("package shop\n\nfunc Place() {}\n")
    await staleness(pipeline, shop, wanted=False)
    assert (await call(pipeline, "get_status", path=str(shop)))["statistics"]["total_symbols"] == 2


async def test_a_dropped_index_does_not_come_back(pipeline: CallPipeline, house: House, shop: Path) -> None:
    await call(pipeline, "index_codebase", path=str(shop))
    (project,) = await house.code.store.projects()
    (tree,) = await house.code.store.trees(project)
    await call(pipeline, "collection_delete", project_path=str(shop))
    with pytest.raises(NotIndexed):
        await house.code.index.follow(tree, project)
    assert not (await call(pipeline, "get_status", path=str(shop)))["indexed"]


async def test_chunks_are_read_closer_and_searches_ranked_anew(
    pipeline: CallPipeline, house: House, shop: Path
) -> None:
    await call(pipeline, "index_codebase", path=str(shop))
    ask = {"path": str(shop), "query": "take a share off the price"}
    quick = await call(pipeline, "search_code", **ask)
    assert (await call(pipeline, "search_code", **ask))["statistics"]["cache_hit"]
    (project,) = await house.code.store.projects()
    assert await house.code.closer.read(project) == quick["statistics"]["total_results"] >= 2
    status = await call(pipeline, "get_status", path=str(shop))
    assert status["statistics"]["chunks_read_closer"] == status["statistics"]["total_chunks"]
    close = await call(pipeline, "search_code", **ask)
    assert not close["statistics"]["cache_hit"]
    assert close["results"][0]["symbol"]["name"] == "Discounted"
    assert [hit["relevance_score"] for hit in close["results"]] != [
        hit["relevance_score"] for hit in quick["results"]
    ]


@dataclass
class Clock:
    elapsed: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.elapsed


class Watched:
    """Says when a folder is watched, and when it is let go."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def changes(self, folder: str) -> AsyncIterator[None]:
        self.begun.set()
        try:
            await asyncio.Event().wait()
            yield
        finally:
            self.ended.set()


async def test_what_is_no_longer_in_use_is_no_longer_watched(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextd.services.watching._LOOK_AGAIN_S", 0.01)
    clock, watched = Clock(), Watched()
    used = UsedTrees(clock, idle_s=60)
    tree = Tree(1, "/srv/shop", "code", 1, {})
    watching = asyncio.create_task(Watching(house.code.index, watched, used, clock).run())
    try:
        used.touch(Project("0123", "/srv/shop"), tree)
        async with asyncio.timeout(5):
            await watched.begun.wait()
            assert not watched.ended.is_set()
            clock.elapsed = 61
            await watched.ended.wait()
    finally:
        watching.cancel()

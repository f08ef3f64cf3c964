"""Saving and searching checkpoints over MCP, as one agent does it, in a store that is already full."""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from figures import Latency, ms
from loading import Loaded, embedded, fill, median_sync_ms, project_paths
from processes import Server, contextd, data_folder
from prose import Checkpoint, checkpoints, questions
from report import Check, Section, Table
from sizes import Sizes
from wire import Client, fetch

_SAVE_MS: Final = 15
_SEARCH_MS: Final = 10
_WARM_UP: Final = 5


@dataclass(frozen=True, slots=True)
class Timed:
    """One kind of call as the client saw it, and the daemon's own means of its parts."""

    name: str
    latency: Latency
    tool_ms: float
    embed_ms: float
    store_ms: float

    def row(self) -> tuple[str, ...]:
        whole = self.latency
        # A search goes by words while its query is embedded: the store's time holds both.
        before_store = 0.0 if self.name.startswith("search") else self.embed_ms
        parts = (self.embed_ms, self.store_ms, self.tool_ms - before_store - self.store_ms)
        wire = whole.mean - self.tool_ms
        return (
            self.name,
            *(f"{value:.2f}" for value in (whole.p50, whole.p95, whole.p99, whole.mean, *parts, wire)),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    timed: tuple[Timed, ...]
    sync_ms: float


async def measure(sizes: Sizes) -> Section:
    loaded = await embedded(sizes.checkpoints)
    layouts = [
        await _layout("one project", loaded, project_paths(1), sizes),
        await _layout("five projects", loaded, project_paths(5), sizes),
    ]
    columns = ("p50", "p95", "p99", "mean", "embedding", "store", "rest of the tool", "wire and client")
    return Section(
        "Checkpoints",
        f"{sizes.checkpoints} checkpoints with vectors of the shipped model; {sizes.calls} calls of each"
        " kind from one client, one after another. Milliseconds. The parts are means of the daemon's own"
        " histograms; a search goes by words while its query is embedded, so that its store's time holds"
        " the embedding. A durable write (fdatasync of 4 KiB) on this disk takes"
        f" {ms(layouts[0].sync_ms)} ms at the median.",
        tuple(
            Table((f"{layout.name}, ms", *columns), tuple(each.row() for each in layout.timed))
            for layout in layouts
        ),
        tuple(check for layout in layouts for check in _checks(layout, sizes)),
    )


async def _layout(name: str, loaded: Sequence[Loaded], projects: list[str], sizes: Sizes) -> Layout:
    with data_folder() as folder:
        sync_ms = median_sync_ms(folder)
        await fill(folder, loaded, projects)
        with contextd(folder) as daemon:
            client = await Client.connect(daemon.url)
            timed = await _calls(daemon, client, projects, sizes)
            await client.close()
    return Layout(name, timed, sync_ms)


async def _calls(daemon: Server, client: Client, projects: list[str], sizes: Sizes) -> tuple[Timed, ...]:
    made = checkpoints(sizes.calls + _WARM_UP, seed=3)
    saves = [_save(each, projects[number % len(projects)]) for number, each in enumerate(made)]
    asked = [{"query": text} for text in islice(questions(), sizes.calls + _WARM_UP)]
    within = [
        {"query": text, "project_path": projects[0]} for text in islice(questions(seed=4), sizes.calls)
    ]
    for arguments in saves[:_WARM_UP]:
        await client.call("checkpoint_save", **arguments)
    for arguments in asked[:_WARM_UP]:
        await client.call("checkpoint_search", **arguments)

    async def timed(name: str, tool: str, many: list[dict[str, Any]]) -> Timed:
        return await _timed(name, daemon, tool, lambda each: client.call(tool, **each), many)

    everywhere = "all projects" if len(projects) > 1 else "no project named"
    return (
        await timed("save", "checkpoint_save", saves[_WARM_UP:]),
        await timed(f"search, {everywhere}, new query", "checkpoint_search", asked[_WARM_UP:]),
        await timed(f"search, {everywhere}, same query again", "checkpoint_search", asked[_WARM_UP:]),
        await timed("search, one project, new query", "checkpoint_search", within),
        await timed("search, one project, same query again", "checkpoint_search", within),
    )


async def _timed(
    name: str,
    daemon: Server,
    tool: str,
    call: Callable[[dict[str, Any]], Awaitable[object]],
    many: list[dict[str, Any]],
) -> Timed:
    before = await _sums(daemon, tool)
    took: list[float] = []
    for arguments in many:
        started = time.perf_counter()
        await call(arguments)
        took.append(time.perf_counter() - started)
    after = await _sums(daemon, tool)
    tool_ms, embed_ms, store_ms = (
        (late - early) / len(many) * 1000 for early, late in zip(before, after, strict=True)
    )
    return Timed(name, Latency.of(took), tool_ms, embed_ms, store_ms)


async def _sums(daemon: Server, tool: str) -> tuple[float, float, float]:
    """Seconds so far in the tool, in embedding and in the store, from the daemon's metrics."""
    page = await fetch(daemon.url, "/metrics")

    def total(name: str, label: str = "") -> float:
        lines = re.findall(rf"^contextd_{name}_sum(\{{.*\}})? (\S+)$", page, re.MULTILINE)
        return sum(float(value) for labels, value in lines if label in labels)

    return (
        total("tool_call_duration_seconds", f'tool="{tool}"'),
        total("embedding_duration_seconds"),
        total("store_operation_duration_seconds"),
    )


def _save(made: Checkpoint, path: str) -> dict[str, Any]:
    return {
        "summary": made.summary,
        "description": made.description,
        "tags": list(made.tags),
        "project_path": path,
    }


def _checks(layout: Layout, sizes: Sizes) -> list[Check]:
    save, new, again, *_ = layout.timed
    where = f"at {sizes.checkpoints} checkpoints in {layout.name}, p50"
    return [
        _check(f"`checkpoint_save` {where}", save, _SAVE_MS),
        _check(f"`checkpoint_search` {where}, new query", new, _SEARCH_MS),
        _check(f"`checkpoint_search` {where}, same query again", again, _SEARCH_MS),
    ]


def _check(what: str, timed: Timed, most: float) -> Check:
    p50 = timed.latency.p50
    return Check(what, f"under {most} ms", f"{ms(p50)} ms", p50 < most)

"""Many sessions at once for a while: nothing may fail, and nothing may grow that should not."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from figures import Latency, ms
from loading import embedded, fill, project_paths
from processes import Server, contextd, data_folder
from prose import Checkpoint, checkpoints, questions
from report import Check, Section, Table
from sizes import Sizes
from wire import CallFailed, Client

_PROJECTS: Final = 5
_LOADED: Final = 500
_MIX: Final = {
    "checkpoint_save": 30,
    "checkpoint_search": 35,
    "checkpoint_list": 15,
    "checkpoint_restore": 10,
    "status": 10,
}
_POOL: Final = 20
"""Half of the searches repeat one of so many queries."""


@dataclass
class Tally:
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    counting: bool = False

    def finished(self, tool: str, seconds: float) -> None:
        if self.counting:
            self.took[tool].append(seconds)


@dataclass(frozen=True, slots=True)
class Footprint:
    memory_mb: float
    open_files: int

    @classmethod
    def of(cls, server: Server) -> "Footprint":
        return cls(server.memory_mb(), server.open_files())


class Agent:
    """One session that calls without a pause."""

    def __init__(self, client: Client, number: int, tally: Tally) -> None:
        self._client = client
        self._chance = random.Random(number)
        self._path = project_paths(_PROJECTS)[number % _PROJECTS]
        self._drafts: list[Checkpoint] = checkpoints(50, seed=1000 + number)
        self._new = questions(seed=1000 + number)
        self._known = list(islice(questions(seed=5), _POOL))
        self._ids: list[str] = []
        self._tally = tally

    async def work(self, until: float) -> None:
        while time.monotonic() < until:
            (tool,) = self._chance.choices(list(_MIX), list(_MIX.values()))
            if tool == "checkpoint_restore" and not self._ids:
                tool = "checkpoint_list"
            started = time.perf_counter()
            try:
                answer = await self._client.call(tool, **self._arguments(tool))
            except (CallFailed, OSError, asyncio.IncompleteReadError) as error:
                self._tally.errors[f"{tool}: {error}"[:200]] += 1
                return
            self._tally.finished(tool, time.perf_counter() - started)
            if tool == "checkpoint_save":
                self._ids.append(answer["id"])

    def _arguments(self, tool: str) -> dict[str, Any]:
        match tool:
            case "checkpoint_save":
                made = self._chance.choice(self._drafts)
                return {
                    "summary": made.summary,
                    "description": made.description,
                    "tags": list(made.tags),
                    "project_path": self._path,
                }
            case "checkpoint_search":
                repeat = self._chance.random() < 0.5
                query = self._chance.choice(self._known) if repeat else next(self._new)
                return {"query": query, "project_path": self._path}
            case "checkpoint_list":
                return {"project_path": self._path}
            case "checkpoint_restore":
                return {"id": self._chance.choice(self._ids)}
            case _:
                return {}


async def measure(sizes: Sizes) -> Section:
    tally = Tally()
    with data_folder() as folder:
        await fill(folder, await embedded(_LOADED), project_paths(_PROJECTS))
        with contextd(folder, CONTEXTD_RATE_LIMIT="off") as daemon:
            warm, end = await _work(daemon, tally, sizes)
    return _section(tally, warm, end, sizes)


async def _work(daemon: Server, tally: Tally, sizes: Sizes) -> tuple[Footprint, Footprint]:
    clients = [await Client.connect(daemon.url) for _ in range(sizes.sessions)]
    until = time.monotonic() + sizes.seconds
    agents = [Agent(client, number, tally) for number, client in enumerate(clients)]
    working = asyncio.gather(*(agent.work(until) for agent in agents))
    await asyncio.sleep(sizes.warm_up_s)
    warm = Footprint.of(daemon)
    tally.counting = True
    await working
    end = Footprint.of(daemon)
    for client in clients:
        await client.close()
    return warm, end


def _section(tally: Tally, warm: Footprint, end: Footprint, sizes: Sizes) -> Section:
    every = [seconds for took in tally.took.values() for seconds in took]
    whole = Latency.of(every)
    errors = sum(tally.errors.values())
    counted_s = sizes.seconds - sizes.warm_up_s
    rows = [
        (tool, str(each.count), ms(each.p50), ms(each.p95), ms(each.p99))
        for tool, each in ((tool, Latency.of(tally.took[tool])) for tool in _MIX if tally.took[tool])
    ]
    return Section(
        "Many sessions",
        f"{sizes.sessions} sessions, each calling without a pause for {sizes.seconds} s: 30 % saves, 35 %"
        f" searches (half of them new), 15 % lists, 10 % restores, 10 % status, over {_PROJECTS} projects"
        f" that hold {_LOADED} checkpoints at first. The client runs on the same cores. Counted after a"
        f" warm-up of {sizes.warm_up_s} s.",
        (
            Table(
                ("tool", "calls", "p50 ms", "p95 ms", "p99 ms"),
                (*rows, ("all", str(whole.count), ms(whole.p50), ms(whole.p95), ms(whole.p99))),
            ),
            Table(
                ("", f"after {sizes.warm_up_s} s", f"after {sizes.seconds} s"),
                (
                    ("RSS, MB", f"{warm.memory_mb:.0f}", f"{end.memory_mb:.0f}"),
                    ("open files", str(warm.open_files), str(end.open_files)),
                ),
            ),
            Table(
                ("calls a second", "errors"),
                (
                    (f"{whole.count / counted_s:.0f}", str(errors)),
                    *((text, str(n)) for text, n in tally.errors.items()),
                ),
            ),
        ),
        (
            Check(
                f"errors in {sizes.sessions} sessions over {sizes.seconds} s",
                "none",
                str(errors),
                errors == 0,
            ),
        ),
    )

"""What the road of a call adds to the tool at its end, and each part of the road, in-process."""

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from contextd.domain.answers import Answer, as_json
from contextd.domain.callers import Caller
from contextd.domain.ports import Scrubbed
from contextd.domain.records import Json
from contextd.edge.call_pipeline import pipeline_of
from contextd.services.answering import Account, Answering, Draft
from contextd.settings import load_settings
from contextd.wiring import House, build
from echo_plugin import Nobody, Said, echo
from processes import UNLIMITED, data_folder, environment
from prose import checkpoints
from report import Section, Table
from sizes import Sizes

_TURN: Final = 100
"""Calls before the next way has its turn: short, so that a noisy moment falls on all of them."""

Call = Callable[[], Awaitable[object]]


class Unscrubbed:
    def scrub(self, text: str, *, keep_lines: bool = False) -> Scrubbed:
        return Scrubbed(text, {})

    def scrub_json(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        return value, {}


class Uncounted(Answering):
    """No budget, no branch, no count: the answer as the tool made it."""

    def __init__(self) -> None:
        """Nothing is needed."""

    async def answer(self, draft: Draft, caller: Caller, account: Account | None) -> Answer:
        return Answer(draft.data, as_json(draft.data), 0)


class Road:
    """Pipelines that differ in one part, over the same tool and the same answer."""

    def __init__(self, house: House, text: str) -> None:
        self._house = house
        self._text = text
        self._calls = 0
        self.ways: dict[str, Call] = {
            "direct": self._direct,
            "whole": self._through(house),
            "unlimited": self._through(replace(house, allowance=None)),
            "unscrubbed": self._through(replace(house, scrubber=Unscrubbed())),
            "uncounted": self._through(replace(house, answering=Uncounted())),
            "unaudited": self._through(replace(house, settings=replace(house.settings, audit=False))),
        }
        self.micros: dict[str, list[float]] = {name: [] for name in self.ways}

    async def turn(self) -> None:
        for name, call in self.ways.items():
            started = time.thread_time()
            for _ in range(_TURN):
                await call()
            self.micros[name].append((time.thread_time() - started) / _TURN * 1e6)
            await self._house.analytics.flush()

    def median(self, name: str) -> float:
        return statistics.median(self.micros[name])

    def share_of(self, without: str) -> float:
        """What one part adds: the median over the rounds of the difference that it makes."""
        pairs = zip(self.micros["whole"], self.micros[without], strict=True)
        return statistics.median(whole - less for whole, less in pairs)

    def _fresh(self) -> str:
        """Never the same twice: what is remembered from the last call must not help."""
        self._calls += 1
        return f"{self._text} {self._calls}"

    async def _direct(self) -> object:
        return await echo.run(Nobody(), Said(text=self._fresh()), Caller(session="bench"))

    def _through(self, house: House) -> Call:
        pipeline = pipeline_of(house)

        async def call() -> object:
            return await pipeline.call("echo", {"text": self._fresh()}, Caller(session="bench"))

        return call


async def measure(sizes: Sizes, call_us: float | None) -> Section:
    """`call_us` is the CPU of a whole call over HTTP, to say what share of it this is."""
    with data_folder() as folder:
        house = build(load_settings(environment(folder, CONTEXTD_PLUGINS="echo_plugin", **UNLIMITED)))
        (made,) = checkpoints(1)
        texts = {"hello": "hello", "2 KB of prose": (made.description * 8)[:2048]}
        roads = {name: Road(house, text) for name, text in texts.items()}
        for road in roads.values():
            await road.turn()
            road.micros = {name: [] for name in road.ways}
        for _ in range(sizes.turns):
            for road in roads.values():
                await road.turn()
        await house.analytics.close()
        await house.audit.close()
        await house.embeddings.close()
        await house.store.close()
    return _section(roads, sizes, call_us)


def _section(roads: dict[str, Road], sizes: Sizes, call_us: float | None) -> Section:
    def row(what: str, figure: Callable[[Road], float]) -> tuple[str, ...]:
        figures = [figure(road) for road in roads.values()]
        small = figures[0]
        share = "" if call_us is None else f"{small / call_us:.1%}"
        return (what, *(f"{each:.1f}" for each in figures), share)

    return Section(
        "The road of a call, in-process",
        f"Microseconds of CPU for a call of an echo tool: medians of {sizes.turns} turns of {_TURN} calls."
        " A part is the difference between the whole pipeline and one without that part."
        " The share is of the CPU of a `status` call over HTTP, for the short answer.",
        (
            Table(
                ("µs a call", *(f"answer: {name}" for name in roads), "share of a call"),
                (
                    row("the tool's function alone", lambda road: road.median("direct")),
                    row("through the pipeline", lambda road: road.median("whole")),
                    row("the pipeline's own", lambda road: road.share_of("direct")),
                    row("of it the rate limiter", lambda road: road.share_of("unlimited")),
                    row("of it scrubbing", lambda road: road.share_of("unscrubbed")),
                    row("of it the budget, with counting", lambda road: road.share_of("uncounted")),
                    row("of it the audit, up to its thread", lambda road: road.share_of("unaudited")),
                ),
            ),
        ),
    )

"""What it costs to hold an answer to its budget, and to charge it to a branch, in-process."""

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from contextd.domain.answers import Answer, as_json
from contextd.domain.callers import Caller
from contextd.domain.ports import TokenCounter
from contextd.edge.call_pipeline import pipeline_of
from contextd.services.answering import Account, Answering, Draft
from contextd.settings import load_settings
from contextd.wiring import House, build
from processes import UNLIMITED, data_folder, environment
from prose import checkpoints
from report import Check, Section, Table
from sizes import Sizes

_TURN: Final = 12
"""Calls before the next way has its turn: short, so that a noisy moment falls on all of them."""
_TOKENS: Final = 2_000
_TARGET_MS: Final = 1.0

Call = Callable[[], Awaitable[object]]


class Unbudgeted(Answering):
    """As it was before there were budgets: the answer is written and counted."""

    def __init__(self, tokens: TokenCounter) -> None:
        self._counter = tokens

    async def answer(self, draft: Draft, caller: Caller, account: Account | None) -> Answer:
        text = as_json(draft.data)
        return Answer(draft.data, text, self._counter.count(text))


class Ways:
    """The same echo of the same text, its answer accounted for in different ways."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._calls = 0
        self._branch = ""
        self._left = 0
        plain = pipeline_of(replace(house, answering=Unbudgeted(house.tokens)))
        self._pipeline = pipeline_of(house)
        fits, over = _text(house.tokens, _TOKENS - 100), _text(house.tokens, 3 * _TOKENS)

        def through(pipeline: Any, text: str) -> Call:
            return lambda: pipeline.call("echo", {"text": self._fresh(text)}, Caller(session="bench"))

        async def in_a_branch() -> object:
            arguments = {"text": self._fresh(fits), "branch_id": self._branch}
            return await self._pipeline.call("echo", arguments, Caller(session="bench"))

        self.ways: dict[str, Call] = {
            "counted alone": through(plain, fits),
            "held to a budget": through(self._pipeline, fits),
            "charged to a branch": in_a_branch,
            "cut to a third, the rest held": through(self._pipeline, over),
        }
        self.millis: dict[str, list[float]] = {name: [] for name in self.ways}

    async def turn(self) -> None:
        await self._open()
        for name, call in self.ways.items():
            for _ in range(_TURN):
                started = time.perf_counter()
                await call()
                self.millis[name].append((time.perf_counter() - started) * 1000)
        await self._pipeline.call(
            "return", {"branch_id": self._branch, "message": "done"}, Caller(session="bench")
        )
        await self._house.analytics.flush()

    async def _open(self) -> None:
        """Each turn has a branch of its own: a budget of one holds sixteen such answers."""
        ask = {"description": "bench", "prompt": "bench", "budget": 32_768}
        answer = await self._pipeline.call("branch", ask, Caller(session="bench"))
        self._branch = answer.data["branch_id"]

    def _fresh(self, text: str) -> str:
        """Never the same twice: what is remembered from the last call must not help."""
        self._calls += 1
        return f"{self._calls}\n{text}"

    def median(self, name: str) -> float:
        return statistics.median(self.millis[name])

    def added(self, name: str) -> float:
        return self.median(name) - self.median("counted alone")


def _text(tokens: TokenCounter, wanted: int) -> str:
    lines: list[str] = []
    for made in checkpoints(1_000):
        lines.append(made.description)
        if tokens.count("\n".join(lines)) >= wanted:
            return "\n".join(lines)
    raise AssertionError("too little prose")


async def measure(sizes: Sizes) -> Section:
    with data_folder() as folder:
        house = build(load_settings(environment(folder, CONTEXTD_PLUGINS="echo_plugin", **UNLIMITED)))
        ways = Ways(house)
        await ways.turn()
        ways.millis = {name: [] for name in ways.ways}
        for _ in range(sizes.turns):
            await ways.turn()
        await house.analytics.close()
        await house.embeddings.close()
        await house.store.close()
    return _section(ways, sizes)


def _section(ways: Ways, sizes: Sizes) -> Section:
    checks = [
        Check(
            f"what accounting adds to a call of {_TOKENS:,} tokens, {name}",
            f"under {_TARGET_MS:g} ms",
            f"{ways.added(name):.2f} ms",
            ways.added(name) < _TARGET_MS,
        )
        for name in ("held to a budget", "charged to a branch")
    ]
    rows = tuple((name, f"{ways.median(name):.2f}", f"{ways.added(name):+.2f}") for name in ways.ways)
    return Section(
        "Budgets",
        f"Wall time of an echo of {_TOKENS:,} tokens through the pipeline, in-process, in turns:"
        f" medians of {sizes.turns * _TURN} calls each. A branch's charge, and what a cut left out, are"
        " durable before the answer leaves.",
        (Table(("the answer is", "ms a call", "more than counted alone"), rows),),
        tuple(checks),
    )

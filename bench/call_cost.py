"""What one tool call over HTTP costs the server: contextd beside the bare SDK, and with telemetry on."""

import asyncio
import statistics
from dataclasses import dataclass, field
from typing import Any, Final

from figures import Ratio
from otlp_sink import otlp_sink
from processes import Server, bare_sdk, contextd, data_folder
from report import Check, Section, Table
from sizes import Sizes
from wire import SESSIONLESS, SESSIONS, Client

_MOST: Final = 1.3
_WARM_UP: Final = 50
_EXPORT_S: Final = 6
"""Spans are sent every five seconds: the last ones belong to the calls that made them."""

_HELLO: Final = {"text": "hello"}


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    server: Server
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lane:
    """A contender, and what each round cost in milliseconds of CPU a call."""

    contender: Contender
    costs: list[float] = field(default_factory=list)

    async def round(self, version: str, requests: int) -> None:
        """On a connection of its own: servers close one that idles through the others' rounds."""
        server = self.contender.server
        client = await Client.connect(server.url, version)
        request = client.request(self.contender.tool, self.contender.arguments)
        for _ in range(_WARM_UP):
            await client.send(request)
        before = server.cpu_seconds()
        for _ in range(requests):
            await client.send(request)
        self.costs.append((server.cpu_seconds() - before) / requests * 1000)
        await client.close()


@dataclass(frozen=True, slots=True)
class CallCost:
    section: Section
    call_us: float
    """CPU of a `status` call on the older wire, for others to be shares of."""


async def measure(sizes: Sizes) -> CallCost:
    with (
        data_folder() as one,
        data_folder() as two,
        otlp_sink() as sink,
        bare_sdk() as bare,
        contextd(one, CONTEXTD_PLUGINS="echo_plugin") as ours,
        contextd(two, CONTEXTD_PLUGINS="echo_plugin", OTEL_EXPORTER_OTLP_ENDPOINT=sink.url) as observed,
    ):
        contenders = [
            Contender("bare SDK: echo", bare, "echo", _HELLO),
            Contender("contextd: status", ours, "status", {}),
            Contender("contextd: echo, as a plugin", ours, "echo", _HELLO),
            Contender("contextd, exporting telemetry: status", observed, "status", {}),
        ]
        older = await _race(contenders, SESSIONS, sizes)
        newer = await _race(contenders, SESSIONLESS, sizes)
        quiet, exporting = await _whole_cost(ours, sizes), await _whole_cost(observed, sizes)
    return CallCost(
        _section(older, newer, sizes, exporting / quiet, sink.posts),
        statistics.median(older[1].costs) * 1000,
    )


async def _race(contenders: list[Contender], version: str, sizes: Sizes) -> list[Lane]:
    lanes = [Lane(contender) for contender in contenders]
    for number in range(sizes.rounds):
        first = number % len(lanes)
        # Nobody always follows the same one: what a lane leaves behind would count against the next.
        for lane in lanes[first:] + lanes[:first]:
            await lane.round(version, sizes.requests)
    return lanes


async def _whole_cost(server: Server, sizes: Sizes) -> float:
    """CPU of many calls and of all that they leave behind, which rounds may miss or share."""
    lane = Lane(Contender("", server, "status", {}))
    await asyncio.sleep(_EXPORT_S)
    before = server.cpu_seconds()
    for _ in range(3):
        await lane.round(SESSIONS, sizes.requests)
    await asyncio.sleep(_EXPORT_S)
    return server.cpu_seconds() - before


def _section(older: list[Lane], newer: list[Lane], sizes: Sizes, telemetry: float, posts: int) -> Section:
    return Section(
        "Cost of a call",
        f"CPU of the server's process (user and system, all threads) for one `tools/call` over HTTP from"
        f" one keep-alive client, {sizes.rounds} rounds of {sizes.requests} calls, the servers taking"
        " turns. Ratios are to the bare SDK's echo in the same round: median and range. The rate limiter"
        " is on, with a limit that is never reached.",
        (_table(SESSIONS, older), _table(SESSIONLESS, newer), _telemetry_table(telemetry, posts)),
        (_check(SESSIONS, older), _check(SESSIONLESS, newer)),
    )


def _table(version: str, lanes: list[Lane]) -> Table:
    rows = tuple(
        (
            lane.contender.name,
            f"{statistics.median(lane.costs):.3f}",
            str(Ratio.of(lane.costs, lanes[0].costs)),
        )
        for lane in lanes
    )
    return Table((f"MCP {version}", "CPU ms a call", "ratio"), rows)


def _telemetry_table(ratio: float, posts: int) -> Table:
    shown = f"{ratio:.2f}"
    what = f"with export, over calls and their export, to without ({posts} exports were received)"
    return Table(("telemetry", "ratio"), ((what, shown),))


def _check(version: str, lanes: list[Lane]) -> Check:
    ratio = Ratio.of(lanes[1].costs, lanes[0].costs)
    return Check(
        f"CPU of `status` over HTTP to an echo on the bare SDK, MCP {version}",
        f"at most {_MOST} times",
        str(ratio),
        ratio.median <= _MOST,
    )

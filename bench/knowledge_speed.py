"""Finding remediations and diagnosing errors over MCP, beside a store that is already full."""

import itertools
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from contextd.domain.callers import Caller
from contextd.services.remediations import Draft, Remediations
from contextd.settings import Settings
from contextd.wiring import build, open_house
from figures import Latency, ms
from processes import contextd, data_folder
from report import Check, Section, Table
from sizes import Sizes
from wire import Client

_REMEDIATION_MS: Final = 15
_TROUBLESHOOT_MS: Final = 50
_WARM_UP: Final = 5

_WHAT: Final = (
    "connection refused|no such table|permission denied|cannot import name|undefined reference to|"
    "nil pointer dereference in|timeout while waiting for|unexpected token in|out of memory in|"
    "certificate expired for|duplicate key in|version conflict for"
).split("|")
_WHERE: Final = (
    "billing cart login search invoice report upload audit ledger coupon tax quote export import metrics"
    " webhook session queue index cache proxy gateway mailer resizer scheduler"
).split()
_PART: Final = "client server worker handler store loader parser table service module".split()


def errors(count: int, seed: int = 1) -> list[str]:
    """Made up from a seed: each names another place, so that no two have one fingerprint."""
    chance = random.Random(seed)
    places = [f"{a}_{b}_{c}" for a, b, c in itertools.product(_WHERE, _WHERE, _PART)]
    chance.shuffle(places)
    return [f"error: {chance.choice(_WHAT)} {place}" for place in itertools.islice(_again(places), count)]


def _again(places: list[str]) -> Iterator[str]:
    for turn in itertools.count():
        yield from (f"{place}_{'abcdefgh'[turn]}" if turn else place for place in places)


async def measure(sizes: Sizes) -> Section:
    with data_folder() as folder:
        await _fill(folder, sizes.checkpoints)
        with contextd(folder) as daemon:
            client = await Client.connect(daemon.url)
            asked = errors(sizes.calls + _WARM_UP, seed=2)
            found = await _timed(client, "remediation_search", asked)
            diagnosed = await _timed(client, "troubleshoot", asked)
            await client.close()
    rows = [
        (name, *(f"{value:.2f}" for value in (each.p50, each.p95, each.p99)))
        for name, each in (("remediation_search", found), ("troubleshoot, no LLM", diagnosed))
    ]
    where = f"at {sizes.checkpoints} remediations, p50"
    return Section(
        "Knowledge",
        f"{sizes.checkpoints} remediations with vectors of the shipped model; {sizes.calls} calls of each"
        " kind from one client, one after another, each with an error that was not asked for before.",
        (Table(("ms", "p50", "p95", "p99"), tuple(rows)),),
        (
            _check(f"`remediation_search` {where}", found, _REMEDIATION_MS),
            _check(f"`troubleshoot` without an LLM {where}", diagnosed, _TROUBLESHOOT_MS),
        ),
    )


async def _fill(folder: Path, count: int) -> None:
    async with open_house(build(Settings(data_dir=folder))) as house:
        remediations = house.services[Remediations]
        assert isinstance(remediations, Remediations)
        for number, message in enumerate(errors(count), start=1):
            draft = Draft(message, "Error", f"Restart what {message.split()[-1]} needs, then try again.")
            await remediations.save(draft, Caller())
            if number % 1000 == 0:
                print(f"  saved {number} of {count}", file=sys.stderr, flush=True)


async def _timed(client: Client, tool: str, messages: list[str]) -> Latency:
    took: list[float] = []
    for message in messages:
        arguments: dict[str, Any] = {"error_message": message}
        started = time.perf_counter()
        await client.call(tool, **arguments)
        took.append(time.perf_counter() - started)
    return Latency.of(took[_WARM_UP:])


def _check(what: str, latency: Latency, most: float) -> Check:
    return Check(what, f"under {most} ms", f"{ms(latency.p50)} ms", latency.p50 < most)

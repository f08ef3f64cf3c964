"""One command in one cell: fed, listened to, ended in time, and nothing of it left."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from contextd.adapters.sandbox.cell import Cell
from contextd.adapters.sandbox.descriptors import readable, write_all
from contextd.adapters.sandbox.script import script
from contextd.domain.sandboxing import SIGNALLED, TIMED_OUT, Finished, Job, Level, Limits, Sink, Stream

_PIECE: Final = 65_536
_DRAIN_S: Final = 2.0


@dataclass
class _Listener:
    """Passes on what a stream says, up to a limit; then reads on, so that nobody waits for a reader."""

    stream: Stream
    descriptor: int
    limit: int
    sink: Sink
    dropped: int = 0

    async def listen(self) -> None:
        left = self.limit
        while True:
            await readable(self.descriptor)
            piece = os.read(self.descriptor, _PIECE)
            if not piece:
                return
            if left:
                self.sink(self.stream, piece[:left])
            self.dropped += max(0, len(piece) - left)
            left = max(0, left - len(piece))


async def perform(
    cell: Cell, job: Job, limits: Limits, environment: Mapping[str, str], level: Level, sink: Sink
) -> Finished:
    """The cell has ended when this returns or raises."""
    started = time.monotonic()
    most = limits.output_mb * 2**20
    listeners = [
        _Listener("stdout", cell.stdout, most, sink),
        _Listener("stderr", cell.stderr, most, sink),
    ]
    allowed = replace(limits, processes=limits.processes + cell.others)
    text = script(job, allowed, environment, cell.ends)
    feeding = [
        write_all(end, content) for end, content in zip(cell.hand_over(), (text, job.stdin), strict=True)
    ]
    listening = [asyncio.ensure_future(each.listen()) for each in listeners]
    try:
        timed_out = await _wait(cell, job.timeout_s, listening)
        await cell.empty()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await asyncio.gather(*listening)
    finally:
        for task in feeding + listening:
            task.cancel()
        cell.kill()
        await asyncio.gather(*feeding, *listening, return_exceptions=True)
        await cell.end()
    return Finished(
        exit_code=TIMED_OUT if timed_out else _exit_code(cell.process.wait()),
        duration_ms=(time.monotonic() - started) * 1_000,
        level=level,
        timed_out=timed_out,
        dropped_bytes=sum(each.dropped for each in listeners),
        refused_hosts=cell.refused(),
    )


async def _wait(cell: Cell, timeout_s: float, listening: Sequence[asyncio.Future[None]]) -> bool:
    """Whether its time was over. A listener that fails, because its sink did, ends the wait as well."""
    exited = asyncio.ensure_future(readable(cell.exited))
    deadline = time.monotonic() + timeout_s
    pending = {exited, *listening}
    try:
        while not exited.done():
            left = max(0.0, deadline - time.monotonic())
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return True
            for task in done:
                task.result()
    finally:
        exited.cancel()
    return False


def _exit_code(code: int) -> int:
    return SIGNALLED - code if code < 0 else code

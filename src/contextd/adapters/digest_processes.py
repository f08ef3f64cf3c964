"""Many texts into digests, by processes of their own.

The daemon keeps answering meanwhile, all cores work, and a parser that breaks down on a hostile file takes
nothing else with it.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Final

from contextd.adapters.code_static import CodeStatic
from contextd.adapters.digester import Digester
from contextd.domain.code import Digest, Source, Trouble
from contextd.languages import Languages

_MOST_PROCESSES: Final = 4
_BROKE_DOWN: Final = Trouble(1, "the parser broke down on this file")


class DigestProcesses:
    """A pool that is made anew when a process in it dies; the text that did it is told apart."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor = _pool(_cores())

    async def digest(self, sources: Sequence[Source]) -> list[Digest | Trouble]:
        pool = self._pool
        try:
            return await self._ask(pool, sources)
        except BrokenProcessPool:
            self._replace(pool)
        if len(sources) == 1:
            return await self._alone(sources)
        return [found for source in sources for found in await self.digest([source])]

    async def _alone(self, sources: Sequence[Source]) -> list[Digest | Trouble]:
        """A single text on whose watch a process died, perhaps of another's: once more, by itself."""
        pool = _pool(1)
        try:
            return await self._ask(pool, sources)
        except BrokenProcessPool:
            return [_BROKE_DOWN]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, pool: ProcessPoolExecutor, sources: Sequence[Source]) -> list[Digest | Trouble]:
        return await asyncio.wrap_future(_submitted(pool, list(sources)))

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        if self._pool is broken:
            broken.shutdown(wait=False, cancel_futures=True)
            self._pool = _pool(_cores())

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin)


def _submitted(pool: ProcessPoolExecutor, sources: list[Source]) -> Future[list[Digest | Trouble]]:
    """A process that this starts takes no Ctrl-C: that is for its parent, which then ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_digest_here, sources)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cores() -> int:
    return max(1, min(_MOST_PROCESSES, os.cpu_count() or 1))


def _begin() -> None:
    """In a worker: end with its parent, also when that was killed and could not say goodbye."""
    threading.Thread(target=_end_with_parent, name="contextd-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


_digester: Digester | None = None
"""Of this worker process."""


def _digest_here(sources: list[Source]) -> list[Digest | Trouble]:
    global _digester  # noqa: PLW0603 - a worker process has one, made with its first work
    if _digester is None:
        _digester = Digester(Languages(), CodeStatic())
    return [_digester.digest(source) for source in sources]

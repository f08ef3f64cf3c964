"""Looks after one plugin's process: starts it when it is called, lets it rest when it fails."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from contextd.adapters.circuit_breaker import CircuitBreaker
from contextd.adapters.tool_processes.process import ToolProcess
from contextd.domain.errors import ToolProcessDown, ToolProcessFailed, ToolProcessMisspoke
from contextd.domain.tool_processes import Executed

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Calls under way in one process; further ones wait for their turn."""
_FAILURES: Final = 5
_COOLDOWN_S: Final = 10.0
"""After so many failures in a row it is tried once in so long."""


@dataclass(frozen=True, slots=True)
class Pace:
    first_rest_s: float = 0.1
    """After a failure; twice as long after each further one."""
    longest_rest_s: float = 30.0
    patience_s: float = 2.0
    """A call waits so long for a rest to end; if it would be longer, it is refused."""
    idle_s: float = 600.0
    handshake_s: float = 10.0
    look_every_s: float = 10.0
    health_s: float = 5.0
    """A health check may take so long."""
    misses: int = 3
    """Health checks in a row that it may leave unanswered."""


class Supervisor:
    def __init__(self, name: str, start: Callable[[], Awaitable[ToolProcess]], pace: Pace) -> None:
        self._name = name
        self._start = start
        self._pace = pace
        self._starting = asyncio.Lock()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._breaker = CircuitBreaker(_FAILURES, _COOLDOWN_S)
        self._failures = 0
        self._rests_until = 0.0
        self._under_way = 0
        self._used_at = 0.0
        self._opening: asyncio.Task[ToolProcess] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._closed = False
        self.process: ToolProcess | None = None

    async def execute(self, tool: str, arguments: bytes, timeout_s: float) -> Executed:
        """Raises what a ToolHost does."""
        async with self._turns:
            self._under_way += 1
            try:
                process = await self._ready()
                executed = await process.execute(tool, arguments, timeout_s)
            finally:
                self._under_way -= 1
                self._used_at = self._now()
        self._failures = 0
        self._breaker.succeeded()
        return executed

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        async with self._starting:
            if self._watch is not None:
                self._watch.cancel()
                await asyncio.wait([self._watch])
            if self.process is not None:
                await self.process.end()
                self.process = None

    async def _ready(self) -> ToolProcess:
        """A start goes on when the one who waits for it gives up: the next one finds it done."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_taken_note_of)
        return await asyncio.shield(self._opening)

    async def _open(self) -> ToolProcess:
        async with self._starting:
            if self._closed:
                raise ToolProcessDown(f"the plugin {self._name} is ended with contextd")
            if self.process is not None and self.process.has_ended:
                await self._buried(self.process)
            if self.process is None:
                await self._rested()
                try:
                    self.process = await self._start()
                except (ToolProcessDown, ToolProcessFailed, ToolProcessMisspoke):
                    self._failed()
                    raise
                self._watch = asyncio.create_task(self._look_after(self.process))
            return self.process

    async def _rested(self) -> None:
        left = self._rests_until - self._now()
        wait = left if left > self._pace.patience_s else 0.0 if self._breaker.admit() else _COOLDOWN_S
        if wait:
            raise ToolProcessDown(
                f"the plugin {self._name} keeps failing and is left alone for a while",
                "try again later; the daemon's log has what it printed",
                {"retry_after_ms": round(wait * 1_000)},
            )
        if left > 0:
            await asyncio.sleep(left)

    def _failed(self) -> None:
        rest = min(self._pace.first_rest_s * 2.0 ** min(self._failures, 20), self._pace.longest_rest_s)
        self._failures += 1
        self._rests_until = self._now() + rest
        self._breaker.failed()

    async def _look_after(self, process: ToolProcess) -> None:
        """Until it has ended: by itself, because nobody calls it, or because it does not answer."""
        missed = 0
        while not await process.ended_within(self._pace.look_every_s):
            if not self._under_way and self._now() - self._used_at >= self._pace.idle_s:
                async with self._starting:
                    if not self._under_way and self.process is process:
                        await process.end()
                        self.process = None
                        return
            missed = 0 if await process.is_healthy(self._pace.health_s) else missed + 1
            if missed >= self._pace.misses and not process.has_ended:
                logger.warning("the plugin %s does not answer any more and is ended", self._name)
                await process.end()
        async with self._starting:
            if self.process is process:
                await self._buried(process)

    async def _buried(self, process: ToolProcess) -> None:
        logger.warning("%s; it printed last: %s", process.down().problem, process.printed.last)
        self._failed()
        await process.end()
        self.process = None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _taken_note_of(opening: asyncio.Task[ToolProcess]) -> None:
    """So that a failure that nobody waits for any more is not complained about."""
    if not opening.cancelled():
        opening.exception()

"""How the daemon is: what works, what is degraded, and why."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from contextd.domain.errors import Fault
from contextd.domain.ports import Clock, Store
from contextd.domain.sandboxing import Sandbox
from contextd.services.embedding import Embeddings

State = Literal["healthy", "degraded", "unhealthy"]
_FRESH_FOR_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """`error` says what is wrong; None means healthy."""

    name: str
    error: str | None = None
    level: str | None = None
    """How it works, where there is more than one way; `unknown` until it was tried."""


@dataclass(frozen=True, slots=True)
class Report:
    state: State
    version: str
    uptime_s: float
    parts: tuple[Part, ...]
    tools: int
    model: str
    at: datetime


class Health:
    def __init__(
        self,
        store: Store,
        embeddings: Embeddings,
        clock: Clock,
        version: str,
        count_tools: Callable[[], int],
        sandbox: Sandbox,
    ) -> None:
        self._store = store
        self._embeddings = embeddings
        self._clock = clock
        self._version = version
        self._count_tools = count_tools
        self._started = clock.monotonic()
        self._store_error: str | None = None
        self._checked_at: float | None = None
        self._sandbox = sandbox
        self._trying: asyncio.Task[Part] | None = None

    async def report(self) -> Report:
        """Without its store contextd is unhealthy; without its model it is degraded and goes on."""
        store_error = await self._check_store()
        model_error = self._embeddings.down
        state: State = "unhealthy" if store_error else "degraded" if model_error else "healthy"
        return Report(
            state=state,
            version=self._version,
            uptime_s=self._clock.monotonic() - self._started,
            parts=(
                Part("checkpoint", store_error),
                Part("store", store_error),
                Part(
                    "embedding",
                    model_error and f"{model_error}; searching by keyword",
                    level="catching up" if self._embeddings.catching_up else None,
                ),
                self._sandbox_part(),
            ),
            tools=self._count_tools(),
            model=self._embeddings.model(),
            at=self._clock.now().replace(microsecond=0),
        )

    async def close(self) -> None:
        """Stop trying."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    def _sandbox_part(self) -> Part:
        """What was found the last time; trying goes on beside, so that nobody waits for it."""
        if self._trying is None:
            self._trying = asyncio.create_task(self._try_sandbox())
        if not self._trying.done():
            return Part("sandbox", level="unknown")
        found = self._trying.result()
        if found.error:
            self._trying = asyncio.create_task(self._try_sandbox())
        return found

    async def _try_sandbox(self) -> Part:
        try:
            return Part("sandbox", level=await self._sandbox.level())
        except Fault as fault:
            return Part("sandbox", fault.problem)

    async def _check_store(self) -> str | None:
        """Ask the store at most once a second, however often the status is asked for."""
        now = self._clock.monotonic()
        if self._checked_at is None or now - self._checked_at >= _FRESH_FOR_S:
            self._checked_at = now
            try:
                await self._store.check()
            except Fault as fault:
                self._store_error = fault.problem
            else:
                self._store_error = None
        return self._store_error

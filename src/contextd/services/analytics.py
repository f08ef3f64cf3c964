"""Counting what happened. Events are gathered and written together, off the road of a call."""

import asyncio
import logging
from typing import Final

from contextd.domain.errors import StoreUnavailable
from contextd.domain.ports import Event, EventLog

logger = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_MOST_WAITING: Final = 10_000


class Analytics:
    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._waiting: list[Event] = []
        self._lost = 0

    def record(self, event: Event) -> None:
        """Never waits and never fails a call; if the log is away for long, the newest are dropped."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(event)
        else:
            self._lost += 1

    async def flush(self) -> None:
        """Write what is waiting, so that a reader sees every call that has ended."""
        events, self._waiting = self._waiting, []
        if not events:
            return
        try:
            await self._log.append(events)
        except StoreUnavailable as fault:
            self._waiting = events + self._waiting
            logger.warning("analytics wait: %s", fault.problem)
        if self._lost:
            logger.warning("%d analytics events were dropped", self._lost)
            self._lost = 0

    async def keep_flushing(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.flush()

    async def close(self) -> None:
        await self.flush()
        await self._log.close()

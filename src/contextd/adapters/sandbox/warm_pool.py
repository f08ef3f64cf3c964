"""Cells that are started before they are needed: the next command of a project need not wait for one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from contextd.adapters.sandbox.cell import Cell
from contextd.adapters.sandbox.layout import Layout
from contextd.domain.errors import Fault

MOST: Final = 4
IDLE_S: Final = 60.0

_Start = Callable[[Layout], Awaitable[Cell]]


@dataclass
class _Place:
    starting: asyncio.Task[Cell]
    expiry: asyncio.TimerHandle


class WarmPool:
    """One cell for each of the layouts used last. Each is used once, by one command."""

    def __init__(self, start: _Start, *, most: int = MOST, idle_s: float = IDLE_S) -> None:
        self._start = start
        self._most = most
        self._idle_s = idle_s
        self._places: dict[Layout, _Place] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._places)

    async def take(self, layout: Layout) -> Cell:
        """The one that waits, if it still does, or else a new one. Raises SandboxUnavailable."""
        place = self._places.pop(layout, None)
        if place is not None:
            place.expiry.cancel()
            try:
                cell = await asyncio.shield(place.starting)
            except Fault:
                return await self._start(layout)
            except asyncio.CancelledError:
                self._put_away(place)
                raise
            if cell.waits:
                return cell
            await cell.end()
        return await self._start(layout)

    def refill(self, layout: Layout) -> None:
        """Start one for the next command; of too many, the one that has waited longest goes."""
        if self._closed or layout in self._places:
            return
        while len(self._places) >= self._most:
            self._expire(next(iter(self._places)))
        loop = asyncio.get_running_loop()
        starting = asyncio.ensure_future(self._start(layout))
        self._places[layout] = _Place(starting, loop.call_later(self._idle_s, self._expire, layout))

    async def close(self) -> None:
        self._closed = True
        for layout in list(self._places):
            self._expire(layout)
        await asyncio.gather(*self._endings)

    def _expire(self, layout: Layout) -> None:
        self._put_away(self._places.pop(layout))

    def _put_away(self, place: _Place) -> None:
        place.expiry.cancel()
        ending = asyncio.ensure_future(self._end(place.starting))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    @staticmethod
    async def _end(starting: asyncio.Task[Cell]) -> None:
        """One that did not start is no matter here: the next command will say so."""
        with suppress(Fault):
            await (await starting).end()

"""Whose turn it is, where one works at a time and some must not wait for many."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """One at a time, in order; those that are urgent before those that are not."""

    def __init__(self) -> None:
        self._taken = False
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self, *, urgent: bool) -> AsyncIterator[None]:
        if self._taken:
            await self._wait(self._urgent if urgent else self._others)
        self._taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, queue: "deque[asyncio.Future[None]]") -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                # It was called as it was leaving: the turn is the next one's.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        for queue in (self._urgent, self._others):
            while queue:
                called = queue.popleft()
                if not called.done():
                    called.set_result(None)
                    return
        self._taken = False

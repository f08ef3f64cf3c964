"""Standard input as lines that can be ended from inside."""

import asyncio
import os
import threading
from typing import Final, Self

_MOST_WAITING: Final = 64


class StdinLines:
    """Reads in a thread that nobody waits for: a read that waits for the client cannot be cancelled,
    and would keep a process that was told to end.

    What else runs here finds standard input empty, so that no child process eats a message.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(_MOST_WAITING)
        descriptor = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        threading.Thread(target=self._read, args=(descriptor,), name="contextd-stdin", daemon=True).start()

    def end(self) -> None:
        """No more lines, whatever the client still sends."""
        while not self._lines.empty():
            self._lines.get_nowait()
        self._lines.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not self._pass_on(line):
                    return
        self._pass_on(None)

    def _pass_on(self, line: str | None) -> bool:
        """Waits while many are waiting. False when the loop is gone, and with it the reader."""
        putting = self._lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except RuntimeError:
            putting.close()
            return False
        return True

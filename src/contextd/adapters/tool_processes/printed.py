"""What a tool process prints: its first line is the handshake, the last ones are kept for the log."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from contextd.domain.errors import ToolProcessDown
from contextd.domain.sandboxing import Stream

_LONGEST_LINE: Final = 1_024
_KEPT: Final = 4_096
_BURST: Final = 1 << 20
_PER_SECOND: Final = 1 << 16


class Printed:
    """`take` raises, and so ends the process, when it floods: reading on would cost the daemon its time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.greeting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._first = b""
        self._kept = b""
        self._clock = clock
        self._room = float(_BURST)
        self._counted_at = clock()

    def take(self, stream: Stream, piece: bytes) -> None:
        if stream == "stdout" and not self.greeting.done():
            self._first = (self._first + piece)[: _LONGEST_LINE + 1]
            line, ended, _ = self._first.partition(b"\n")
            if ended or len(line) > _LONGEST_LINE:
                self.greeting.set_result(line)
        self._kept = (self._kept + piece)[-_KEPT:]
        self._count(len(piece))

    @property
    def last(self) -> str:
        return self._kept.decode(errors="replace").strip()

    def _count(self, size: int) -> None:
        now = self._clock()
        self._room = min(float(_BURST), self._room + (now - self._counted_at) * _PER_SECOND) - size
        self._counted_at = now
        if self._room < 0:
            raise ToolProcessDown("it was ended because it printed without end")

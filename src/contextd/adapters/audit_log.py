"""The audit log as the house has it: calls hand their entries over, and a thread writes them in order."""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from contextd.adapters.audit_folder import AuditFolder
from contextd.adapters.audit_line import Scribe, note
from contextd.domain.auditing import AuditEntry
from contextd.domain.errors import AuditUnavailable, StoreUnavailable
from contextd.domain.ports import Clock, Scrubber, Telemetry

logger = logging.getLogger(__name__)

_GATHER_S: Final = 0.25
"""How long lines that nobody waits for are gathered: one write and one seal for all of them."""
_MOST_WAITING: Final = 20_000
_LEAST_FREE: Final = 2**20

Settle = Callable[[AuditUnavailable | None], None]
Waiting = tuple[AuditEntry | None, Settle | None]


class FileAuditLog:
    """JSON lines in `audit/` of the data folder, shared by all processes of it."""

    def __init__(self, data_dir: Path, scrubber: Scrubber, telemetry: Telemetry, clock: Clock) -> None:
        self._folder = AuditFolder(data_dir / "audit")
        self._scrubber = scrubber
        self._telemetry = telemetry
        self._clock = clock
        self._scribe: Scribe | None = None
        self._waiting: deque[Waiting] = deque()
        self._some = threading.Event()
        self._at_once = threading.Event()
        self._writer: threading.Thread | None = None
        self._closing = False
        self._is_well = False
        self._lost = 0

    async def append(self, entry: AuditEntry, *, durable: bool) -> None:
        if durable:
            await self._settled(entry)
        elif len(self._waiting) < _MOST_WAITING:
            self._hand_over((entry, None))
        else:
            self._lose(1)

    async def ready(self) -> None:
        if self._free_bytes() < _LEAST_FREE:
            raise AuditUnavailable("the disk of the audit log is full")
        if not self._is_well:
            await self._settled(None)

    def _free_bytes(self) -> int:
        """A folder that is not there, or no longer, is made by the next write."""
        try:
            disk = os.statvfs(self._folder.path)
        except OSError:
            self._is_well = False
            return _LEAST_FREE
        return disk.f_bavail * disk.f_frsize

    async def close(self) -> None:
        """What was handed over is written."""
        if self._writer is None:
            return
        self._closing = True
        self._some.set()
        self._at_once.set()
        await asyncio.to_thread(self._writer.join)
        self._writer, self._closing = None, False

    async def _settled(self, entry: AuditEntry | None) -> None:
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[None] = loop.create_future()

        def settle(fault: AuditUnavailable | None) -> None:
            if not settled.done():
                settled.set_result(None) if fault is None else settled.set_exception(fault)

        self._hand_over((entry, lambda fault: _on(loop, settle, fault)))
        self._at_once.set()
        await settled

    def _hand_over(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_on, name="audit", daemon=True)
            self._writer.start()
        if not self._some.is_set():
            self._some.set()

    # --- in the writer's thread -------------------------------------------------------

    def _write_on(self) -> None:
        while self._waiting or not self._closing:
            self._some.wait()
            if not self._closing:
                self._at_once.wait(_GATHER_S)
            self._some.clear()
            self._at_once.clear()
            taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if taken:
                self._write(taken)
            if self._closing:
                self._some.set()

    def _write(self, taken: Sequence[Waiting]) -> None:
        settles = [settle for _, settle in taken if settle is not None]
        entries = [entry for entry, _ in taken if entry is not None]
        unwritten = len(entries)

        def on_disk() -> None:
            nonlocal unwritten
            unwritten = 0
            _tell(settles, None)

        try:
            self._append(entries, on_disk)
        except (OSError, StoreUnavailable) as error:
            self._fail(error, settles, unwritten)
        except Exception as error:
            # The thread's catch-all: one entry that cannot be written must not end the log.
            logger.exception("the audit log failed")
            self._fail(error, settles, unwritten)
        else:
            self._is_well = True

    def _append(self, entries: Sequence[AuditEntry], on_disk: Callable[[], None]) -> None:
        """What could not be written before is told of first."""
        if self._scribe is None:
            self._scribe = Scribe(self._folder.key(), self._scrubber)
        now, lost = self._clock.now(), self._lost
        contents = [self._scribe.content(entry) for entry in entries]
        self._folder.append([note(now, {"lost": lost}), *contents] if lost else contents, now, on_disk)
        self._lost -= lost

    def _fail(self, error: Exception, settles: Sequence[Settle], unwritten: int) -> None:
        why = error.strerror if isinstance(error, OSError) else None
        if self._is_well or not self._lost:
            logger.error("the audit log cannot be written (%s)", why or type(error).__name__)
        self._is_well = False
        self._lose(unwritten)
        _tell(settles, AuditUnavailable(f"the audit log cannot be written ({why or 'see the log'})"))

    def _lose(self, entries: int) -> None:
        self._lost += entries
        self._telemetry.count("contextd_audit_lost_total", entries)


def _tell(settles: Sequence[Settle], fault: AuditUnavailable | None) -> None:
    for settle in settles:
        settle(fault)


def _on(loop: asyncio.AbstractEventLoop, settle: Settle, fault: AuditUnavailable | None) -> None:
    """A loop that was closed meanwhile has nobody left who waits."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle, fault)

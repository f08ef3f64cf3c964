"""One thread writes. Writes that arrive while a commit is under way share the next one.

A commit waits for the disk, so sharing it is what lets many sessions save at once; and with a
single writer a process never waits for its own lock.
"""

import asyncio
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from contextd.adapters.sqlite.schema import REMEDY, connect
from contextd.domain.errors import StoreUnavailable

T = TypeVar("T")
_MOST_OPEN: Final = 16
_MOST_TOGETHER: Final = 256


@dataclass(frozen=True, slots=True)
class _Job:
    path: Path
    work: Callable[[sqlite3.Connection], Any]
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop

    def settle(self, result: Any, error: BaseException | None) -> None:
        def deliver() -> None:
            if self.future.done():
                return
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            # The loop closed while the write was under way: nobody waits, and the write stands.
            return


class Writer:
    def __init__(self, migrations: tuple[str, ...]) -> None:
        self._migrations = migrations
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._connections: OrderedDict[Path, sqlite3.Connection] = OrderedDict()

    async def run(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` inside a transaction on the writer's thread; return when it is durable.

        A caller that is cancelled while it waits does not undo the write.
        """
        if self._closed:
            raise StoreUnavailable("the store is closed", "start contextd again")
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="contextd-writer", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(path, work, future, loop))
        return await future

    async def close(self) -> None:
        """Finish what is queued, then close the files."""
        self._closed = True
        if self._thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None

    def _serve(self) -> None:
        running = True
        while running:
            batch: list[_Job] = []
            for job in self._waiting():
                if job is None:
                    running = False
                else:
                    batch.append(job)
            by_file = sorted(batch, key=lambda job: str(job.path))
            for path, jobs in groupby(by_file, key=lambda job: job.path):
                self._commit(path, list(jobs))
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _waiting(self) -> Iterator[_Job | None]:
        yield self._jobs.get()
        for _ in range(_MOST_TOGETHER):
            try:
                yield self._jobs.get_nowait()
            except Empty:
                return

    def _commit(self, path: Path, jobs: list[_Job]) -> None:
        try:
            connection = self._open(path)
            connection.execute("BEGIN IMMEDIATE")
            try:
                outcomes = [_attempt(connection, job) for job in jobs]
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError, StoreUnavailable) as error:
            self._forget(path)
            down = error if isinstance(error, StoreUnavailable) else _unavailable(path, error)
            for job in jobs:
                job.settle(None, down)
        else:
            for job, (result, failure) in zip(jobs, outcomes, strict=True):
                job.settle(result, failure)

    def _open(self, path: Path) -> sqlite3.Connection:
        if path not in self._connections:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._connections[path] = connect(path, self._migrations)
            if len(self._connections) > _MOST_OPEN:
                _, oldest = self._connections.popitem(last=False)
                oldest.close()
        self._connections.move_to_end(path)
        return self._connections[path]

    def _forget(self, path: Path) -> None:
        connection = self._connections.pop(path, None)
        if connection is not None:
            connection.close()


def _attempt(connection: sqlite3.Connection, job: _Job) -> tuple[Any, BaseException | None]:
    """One job of a shared transaction: if it fails, the others stand."""
    connection.execute("SAVEPOINT job")
    try:
        result = job.work(connection)
    except Exception as error:  # noqa: BLE001 - delivered to the caller that sent the work
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        failure = _unavailable(job.path, error) if isinstance(error, sqlite3.Error) else error
        return None, failure
    connection.execute("RELEASE job")
    return result, None


def _unavailable(path: Path, error: sqlite3.Error | OSError) -> StoreUnavailable:
    reason = error.strerror if isinstance(error, OSError) else error
    return StoreUnavailable(f"the store file {path.name} refused a write ({reason})", REMEDY)

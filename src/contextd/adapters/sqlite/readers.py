"""A few threads read, each read on a connection of its own for as long as it lasts."""

import asyncio
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from contextd.adapters.sqlite.schema import REMEDY, connect
from contextd.domain.errors import StoreUnavailable

T = TypeVar("T")
_THREADS: Final = 4
_MOST_IDLE: Final = 16


class Readers:
    def __init__(self, migrations: tuple[str, ...], mapped_bytes: int = 0) -> None:
        """`mapped_bytes` of a file are read where the system has them, instead of being copied."""
        self._migrations = migrations
        self._mapped_bytes = mapped_bytes
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="contextd-reader")
        self._idle: OrderedDict[int, tuple[Path, sqlite3.Connection]] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable("the store is closed", "start contextd again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextmanager
    def connection(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Borrow a connection; inside, every statement sees one and the same moment."""
        connection = self._borrow(path)
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.close()
            raise StoreUnavailable(
                f"the store file {path.name} does not answer ({error})", REMEDY
            ) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(path, connection)

    def _borrow(self, path: Path) -> sqlite3.Connection:
        with self._lock:
            for key, (idle_path, connection) in reversed(self._idle.items()):
                if idle_path == path:
                    del self._idle[key]
                    return connection
        connection = connect(path, self._migrations)
        connection.execute(f"PRAGMA mmap_size = {self._mapped_bytes}")
        return connection

    def _give_back(self, path: Path, connection: sqlite3.Connection) -> None:
        surplus = None
        with self._lock:
            self._idle[id(connection)] = (path, connection)
            if len(self._idle) > _MOST_IDLE:
                _, (_, surplus) = self._idle.popitem(last=False)
        if surplus is not None:
            surplus.close()

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        with self._lock:
            for _, connection in self._idle.values():
                connection.close()
            self._idle.clear()

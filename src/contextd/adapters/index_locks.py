"""One run at a time for each project, in this process and in others. A run that dies leaves no lock."""

import asyncio
import fcntl
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from contextd.domain.errors import IndexingInProgress, StoreUnavailable

_LOOK_AGAIN_S: Final = 0.05
_GLANCES: Final = 2
_GLANCE_S: Final = 0.002
"""Who merely asks whether a lock is held has it for a moment: so one look is not enough."""
_BACKGROUND: Final = b"background"


class FileIndexLocks:
    """A lock file a project. Background work says so in it: others wait for that, and do not fail."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "code"

    @asynccontextmanager
    async def hold(self, key: str, *, background: bool, patience_s: float) -> AsyncIterator[None]:
        """Raises IndexingInProgress when a run that somebody asked for holds it, or patience ends."""
        handle = self._open(key)
        try:
            await self._take(handle, patience_s)
            os.ftruncate(handle, 0)
            os.pwrite(handle, _BACKGROUND if background else b"asked for", 0)
            yield
        finally:
            os.close(handle)

    async def _take(self, handle: int, patience_s: float) -> None:
        deadline = asyncio.get_running_loop().time() + patience_s
        for glance in itertools.count(1):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_patient = os.pread(handle, 32, 0) == _BACKGROUND
                is_late = asyncio.get_running_loop().time() > deadline
                if glance >= _GLANCES and (is_late or not is_patient):
                    raise IndexingInProgress from None
                await asyncio.sleep(_LOOK_AGAIN_S if is_patient else _GLANCE_S)
            else:
                return

    def is_held(self, key: str) -> bool:
        """Whether a run is under way."""
        if not (self._folder / f"{key}.lock").exists():
            return False
        handle = self._open(key)
        try:
            # Shared, so that two who ask at once do not take each other for a run.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def _open(self, key: str) -> int:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self._folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(f"the index's lock file cannot be made ({error.strerror})") from error

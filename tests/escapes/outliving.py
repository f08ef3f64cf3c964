"""Whether something that a command started is still there when it should not be."""

import fcntl
import os
import time
from collections.abc import Callable
from typing import Final

from escapes.ground import Ground

HOLDING: Final = "holding"
"""A file in the project that says that the process which is to outlive its call has the lock."""
_LOCK: Final = "lock"
HOLDER: Final = f"""\
flock @project@/{_LOCK} -c ': > @project@/{HOLDING}; exec sleep 5'"""
"""A process that holds a lock as long as it lives. It ends by itself, so that none is left behind."""
_GONE_S: Final = 2.0


def until(there: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def outlives(ground: Ground) -> bool:
    """Whether the lock is still held; then waits for its holder's end."""
    if not (ground.project / HOLDING).exists():
        return False
    descriptor = os.open(ground.project / _LOCK, os.O_RDWR)
    try:
        alive = not until(lambda: _taken(descriptor), _GONE_S)
        return alive and until(lambda: _taken(descriptor), 20)
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""The unix socket: the owner's alone, and one daemon's at a time."""

import fcntl
import os
from pathlib import Path
from typing import Final

from contextd.domain.errors import Misconfigured

_LONGEST: Final = 103
"""Bytes of a socket's path, on the system that allows the fewest."""


class HeldSocket:
    """A path that this process alone may listen on. A daemon that died leaves its file and no lock."""

    def __init__(self, path: Path) -> None:
        """Raises Misconfigured when another daemon has it, or it would not be safe there."""
        self.path = path
        if problem := problem_with(path):
            raise Misconfigured(problem, "set CONTEXTD_GRPC to unix: and a shorter path, or to off")
        _make_private(path.parent)
        self._lock = _locked(path)
        if path.is_socket():
            path.unlink()
        elif path.exists():
            self.release()
            raise Misconfigured(f"{path} is there and is no socket", "remove it, or set CONTEXTD_GRPC")

    def guard(self) -> None:
        """Once it is listened on."""
        self.path.chmod(0o600)

    def release(self) -> None:
        if self.path.is_socket():
            self.path.unlink(missing_ok=True)
        os.close(self._lock)


def problem_with(path: Path) -> str | None:
    if len(os.fsencode(path)) > _LONGEST:
        return f"the socket's path is longer than {_LONGEST} bytes"
    return None


def holder(path: Path) -> str | None:
    """The process that listens there, if one does."""
    try:
        lock = os.open(_lock_of(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(lock)
    finally:
        os.close(lock)
    return None


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
    except OSError as error:
        raise Misconfigured(
            f"the folder {folder} of the socket cannot be made ({error.strerror})", "set CONTEXTD_GRPC"
        ) from error
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise Misconfigured(
            f"the folder {folder} of the socket is open to others",
            "use one of your own with mode 0700: who reaches the socket is taken for you",
        )


def _locked(path: Path) -> int:
    lock = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = _holder(lock)
        os.close(lock)
        raise Misconfigured(
            f"another contextd (process {other}) listens on {path}",
            "stop that one, or set CONTEXTD_GRPC to another place or to off",
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _holder(lock: int) -> str:
    return os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"

"""Opening a path beneath a folder: links are followed while they stay inside, and never out of it.

The kernel's own way is openat2 with RESOLVE_BENEATH. Where it is missing, the path is walked name by name,
each opened without following links, from a folder that is held open: no swap of a name can lead outside.
"""

import ctypes
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_OPENAT2: Final = 437
"""The same on every architecture that Linux runs on."""
_NO_MAGICLINKS: Final = 0x02
_BENEATH: Final = 0x08
_TRIES: Final = 200
_MOST_LINKS: Final = 40
_PATH_ONLY: Final = getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class Opened:
    fd: int
    path: str
    """Relative to the folder, with no link in it."""


Opener = Callable[[int, str, int], Opened]
"""From the folder's descriptor, a relative path and flags. Raises OSError: EXDEV for what leads outside."""


@contextmanager
def opened(opener: Opener, folder: int, path: str, flags: int) -> Iterator[Opened]:
    found = opener(folder, path, flags | os.O_CLOEXEC)
    try:
        yield found
    finally:
        os.close(found.fd)


def by_kernel_or_walk(folder: int, path: str, flags: int) -> Opened:
    """By the kernel, unless it does not know how or a filter around the daemon forbids the call."""
    return (by_kernel if _kernel_can() else by_walk)(folder, path, flags)


def by_kernel(folder: int, path: str, flags: int) -> Opened:
    for _ in range(_TRIES):
        try:
            fd = _openat2(folder, path, flags)
        except BlockingIOError:
            # Something was renamed while the path was followed, and the kernel could not be sure.
            continue
        try:
            return Opened(fd, _real_path(folder, fd))
        except OSError:
            os.close(fd)
            raise
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(folder: int, path: str, flags: int) -> int:
    how = _How(flags, 0, _BENEATH | _NO_MAGICLINKS)
    number, size = ctypes.c_long(_OPENAT2), ctypes.c_size_t(ctypes.sizeof(how))
    name = ctypes.c_char_p(os.fsencode(path))
    fd: int = _libc().syscall(number, ctypes.c_int(folder), name, ctypes.byref(how), size)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


@cache
def _kernel_can() -> bool:
    if not Path("/proc/self/fd").exists():
        return False
    root = os.open("/", _PATH_ONLY | os.O_CLOEXEC)
    try:
        os.close(_openat2(root, ".", _PATH_ONLY | os.O_CLOEXEC))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _real_path(folder: int, fd: int) -> str:
    """As the kernel knows it. A file that has gone meanwhile has none."""
    root, path = (str(Path(f"/proc/self/fd/{each}").readlink()) for each in (folder, fd))
    if os.fstat(fd).st_nlink == 0:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if path != root and not path.startswith(root.rstrip("/") + "/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return os.path.relpath(path, root)


def by_walk(folder: int, path: str, flags: int) -> Opened:
    walk = _Walk(folder, path)
    try:
        return walk.opened(flags)
    finally:
        walk.close()


class _Walk:
    def __init__(self, folder: int, path: str) -> None:
        self._held = [os.dup(folder)]
        self._names: list[str] = []
        self._pending = deque(path.split("/"))
        self._links = 0

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)

    def opened(self, flags: int) -> Opened:
        while self._pending:
            name = self._pending.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                self._step_back()
            elif (target := self._link(name)) is not None:
                self._follow(target)
            elif any(each not in ("", ".") for each in self._pending):
                self._held.append(self._open(name, _PATH_ONLY | os.O_DIRECTORY))
                self._names.append(name)
            else:
                return Opened(self._open(name, flags), "/".join((*self._names, name)))
        return Opened(self._open(".", flags), "/".join(self._names) or ".")

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._held[-1])

    def _link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self._held[-1])
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise

    def _follow(self, target: str) -> None:
        self._links += 1
        if target.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._pending.extendleft(reversed(target.split("/")))

    def _step_back(self) -> None:
        """To the folder that was come from, which is held: not to where its parent is by now."""
        if not self._names:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(self._held.pop())
        self._names.pop()

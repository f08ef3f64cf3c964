"""A file that gets its name when it is whole and on the disk."""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from contextd.domain.errors import FileChanged

_UNNAMED: Final = getattr(os, "O_TMPFILE", 0)
_NOT_HERE: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""What a system says that knows no unnamed files."""
_NAMED: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class WholeFile:
    """Written to the side, in the folder where it is to be. On leaving, only what has its name stays.

    It has no name at all until the last moment where the system can do that: then not even a kill leaves
    something behind.
    """

    def __init__(
        self, folder: int, data: bytes, old: os.stat_result | None, *, unnamed: bool = True
    ) -> None:
        """`old` is what it replaces, whose owner and permissions it takes."""
        self._folder = folder
        self._data = data
        self._old = old
        self._side = f".contextd-{secrets.token_hex(8)}.tmp"
        self._can_be_unnamed = unnamed and bool(_UNNAMED)

    def __enter__(self) -> Self:
        self._fd = self._open()
        try:
            self._fill()
            self._dress()
            os.fsync(self._fd)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def take_the_place_of(self, name: str, unchanged: Callable[[], bool]) -> None:
        """Raises FileChanged if something else is there by now. Durable when it returns."""
        if self._old is None:
            # A link, unlike a rename, never takes the place of what came there meanwhile.
            self._link(name)
        else:
            if self._can_be_unnamed:
                self._link(self._side)
            if not unchanged():
                raise FileChanged
            os.rename(self._side, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def _open(self) -> int:
        if self._can_be_unnamed:
            try:
                return os.open(".", _UNNAMED | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=self._folder)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                self._can_be_unnamed = False
        return os.open(self._side, _NAMED, 0o666, dir_fd=self._folder)

    def _fill(self) -> None:
        left = memoryview(self._data)
        while left:
            left = left[os.write(self._fd, left) :]

    def _dress(self) -> None:
        """Not set-user-id: a write takes that away."""
        like = os.fstat(self._folder) if self._old is None else self._old
        if os.geteuid() == 0:
            os.fchown(self._fd, like.st_uid, like.st_gid)
        elif self._old is not None:
            with suppress(PermissionError):
                os.fchown(self._fd, -1, like.st_gid)
        if self._old is not None:
            os.fchmod(self._fd, stat.S_IMODE(self._old.st_mode) & 0o777)

    def _link(self, name: str) -> None:
        here = f"/proc/self/fd/{self._fd}" if self._can_be_unnamed else self._side
        os.link(here, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=True)

    def _leave(self) -> None:
        os.close(self._fd)
        with suppress(FileNotFoundError):
            os.unlink(self._side, dir_fd=self._folder)

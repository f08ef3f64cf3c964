"""The ProjectFiles port on this machine's disk."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from contextd.adapters.beneath import Opener, by_kernel_or_walk, opened
from contextd.adapters.whole_file import WholeFile
from contextd.domain.errors import (
    BadPath,
    Fault,
    FileChanged,
    Forbidden,
    HardLinked,
    NotFound,
    OutsideProject,
    TooLarge,
    Unavailable,
)
from contextd.domain.project_files import ProjectFile, Stamp

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
"""Without waiting for a writer, should it be a pipe."""
_CHUNK: Final = 1 << 20


class LocalProjectFiles:
    def __init__(
        self, *, hard_links: bool = False, opener: Opener = by_kernel_or_walk, unnamed: bool = True
    ) -> None:
        """`hard_links` lets files through that have other names too, wherever those lie. `unnamed` False
        does without files that have no name until they are whole, as some file systems must."""
        self._hard_links = hard_links
        self._opener = opener
        self._unnamed = unnamed

    def look(self, folder: str, path: str, most: int) -> ProjectFile:
        with _explained(), _held(folder) as root:
            try:
                with opened(self._opener, root, path, _READ) as found:
                    about = os.fstat(found.fd)
                    self._require_plain(about)
                    return ProjectFile(found.path, _bytes_of(found.fd, about, most), _stamp(about))
            except FileNotFoundError:
                return ProjectFile(self._future_path(root, path), None)

    def put(self, folder: str, file: ProjectFile, data: bytes) -> None:
        *folders, name = file.path.split("/")
        with _explained(), _held(folder) as root, _made(root, folders) as parent:
            old = _status(parent, name)
            if old is not None:
                self._require_plain(old)
                _require_writable(parent, name, old)
            if _stamp(old) != file.stamp:
                raise FileChanged
            with WholeFile(parent, data, old, unnamed=self._unnamed) as whole:
                whole.take_the_place_of(name, lambda: _stamp(_status(parent, name)) == file.stamp)

    def _require_plain(self, about: os.stat_result) -> None:
        if stat.S_ISDIR(about.st_mode):
            raise BadPath("path", "path is a folder", "name a file in it")
        if not stat.S_ISREG(about.st_mode):
            raise BadPath("path", "path is not a plain file", "pipes, sockets and devices are not opened")
        if about.st_nlink > 1 and not self._hard_links:
            raise HardLinked

    def _future_path(self, root: int, path: str) -> str:
        """Where a file that is not there would be, by the nearest folder that is."""
        parts = path.split("/")
        for count in range(len(parts) - 1, -1, -1):
            try:
                with opened(self._opener, root, "/".join(parts[:count]) or ".", _ANY_FOLDER) as found:
                    if _status(found.fd, parts[count]) is not None:
                        raise BadPath(
                            "path",
                            "path is a link that leads nowhere",
                            "name the file that it should lead to",
                        )
                    return os.path.normpath("/".join((found.path, *parts[count:])))
            except FileNotFoundError:
                continue
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


@contextmanager
def _held(folder: str) -> Iterator[int]:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound("the project's folder", folder, "give the absolute path of a folder") from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _made(root: int, names: list[str]) -> Iterator[int]:
    """The folder of these names, none of which may be a link. What is made for nothing goes again."""
    held, made = [os.dup(root)], []
    try:
        for name in names:
            if _status(held[-1], name) is None:
                _make(held[-1], name)
                made.append((held[-1], name))
            held.append(os.open(name, _FOLDER, dir_fd=held[-1]))
        yield held[-1]
    except BaseException:
        for parent, name in reversed(made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)
        raise
    finally:
        for fd in held:
            os.close(fd)


def _make(parent: int, name: str) -> None:
    """Of the owner of the folder around it, when contextd may do anything."""
    os.mkdir(name, dir_fd=parent)
    if os.geteuid() == 0:
        around = os.fstat(parent)
        os.chown(name, around.st_uid, around.st_gid, dir_fd=parent, follow_symlinks=False)
    os.fsync(parent)


def _status(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _stamp(about: os.stat_result | None) -> Stamp | None:
    if about is None:
        return None
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _require_writable(parent: int, name: str, old: os.stat_result) -> None:
    """A rename asks the folder alone; a file that says read-only means it, to root too."""
    if not old.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=parent, effective_ids=True):
        raise Forbidden("the file is read-only", "have its permissions changed first")


def _bytes_of(fd: int, about: os.stat_result, most: int) -> bytes:
    """Of a file that may grow while it is read."""
    parts: list[bytes] = []
    left = most + 1
    while about.st_size <= most and left > 0 and (chunk := os.read(fd, min(left, _CHUNK))):
        parts.append(chunk)
        left -= len(chunk)
    if about.st_size > most or left <= 0:
        raise TooLarge(
            "path", f"the file has more than {most} bytes", "work on parts of it by a command: sed -n, grep"
        )
    return b"".join(parts)


@contextmanager
def _explained() -> Iterator[None]:
    """What the system refused, as a fault. Its own text would name paths."""
    try:
        yield
    except OSError as error:
        raise _fault(error.errno) from None


def _fault(code: int | None) -> Fault:  # noqa: PLR0911 - one return a reason
    match code:
        case errno.EXDEV:
            return OutsideProject("the path leads out of the project")
        case errno.ELOOP:
            return BadPath("path", "path goes through links that do not end", "name the file itself")
        case errno.ENOTDIR:
            return BadPath("path", "path goes through something that is no folder", "check each part of it")
        case errno.ENAMETOOLONG:
            return BadPath("path", "path has a name that is too long", "use shorter names")
        case errno.ENXIO:
            return BadPath("path", "path is not a plain file", "pipes, sockets and devices are not opened")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Forbidden("the system does not let contextd do that", "have the permissions changed")
        case errno.ENOENT | errno.EEXIST | errno.EBUSY | errno.ESTALE:
            return FileChanged()
        case errno.ENOSPC | errno.EDQUOT:
            return Unavailable("the disk is full", "make room, then try again")
        case _:
            return Unavailable("the file system failed", "try again; if it stays so, check the disk")

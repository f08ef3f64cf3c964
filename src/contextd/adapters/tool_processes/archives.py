"""Archives from strangers: compared with their checksum, then unpacked entry by entry."""

import gzip
import hashlib
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Final, cast

from contextd.adapters.tool_processes.arrival import LARGEST, MOST_ENTRIES, Arrival, special
from contextd.domain.errors import NotInstallable

LARGEST_ARCHIVE: Final = 64 << 20
_HEADERS: Final = MOST_ENTRIES * 4_096
"""What a tar of the most entries may hold besides their content."""
_DAMAGED: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)
"""What the readers raise for archives that are broken, encrypted or made by an enemy."""


def check_sum(archive: Path, sha256: str) -> None:
    """Raises NotInstallable. Before this nothing of the archive is looked at."""
    if archive.stat().st_size > LARGEST_ARCHIVE:
        raise NotInstallable(f"the archive is larger than {LARGEST_ARCHIVE >> 20} MB")
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        raise NotInstallable(
            "the archive is not the one whose checksum was given",
            "do not use it before you know why; compare --sha256 with what its author published",
        )


def unpack(archive: Path, arrival: Arrival) -> None:
    """A .tar.gz or .zip, known by its content; a plain tar as git makes it. Raises NotInstallable."""
    try:
        with archive.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start == b"PK\x03\x04":
                _unzip(file, arrival)
            elif start[:2] == b"\x1f\x8b":
                with gzip.open(file) as inner:
                    _untar(_Bounded(inner), arrival)
            else:
                _untar(_Bounded(file), arrival)
    except NotInstallable:
        raise
    except _DAMAGED as error:
        raise NotInstallable(
            "the archive cannot be unpacked", "give a .tar.gz or a .zip without a password"
        ) from error


class _Bounded:
    """A stream that ends a bomb: no more is read of it than a plugin may have."""

    def __init__(self, stream: "IO[bytes] | gzip.GzipFile") -> None:
        self._stream = stream
        self._left = LARGEST + _HEADERS

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise NotInstallable(f"the archive holds more than {LARGEST >> 20} MB")
        return self._stream.read(size)


def _untar(stream: _Bounded, arrival: Arrival) -> None:
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as tar:
        for entry in tar:
            if entry.isdir():
                arrival.folder(entry.name)
            elif entry.issym():
                arrival.link(entry.name, entry.linkname)
            elif entry.isreg() and (content := tar.extractfile(entry)) is not None:
                arrival.file(entry.name, content, executable=bool(entry.mode & stat.S_IXUSR))
            else:
                raise special()


def _unzip(file: IO[bytes], arrival: Arrival) -> None:
    with zipfile.ZipFile(file) as archive:
        if len(archive.infolist()) > MOST_ENTRIES:
            raise NotInstallable(f"the plugin has more than {MOST_ENTRIES} files")
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if entry.is_dir():
                arrival.folder(entry.filename)
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
                raise special()
            with archive.open(entry) as content:
                if stat.S_ISLNK(mode):
                    arrival.link(entry.filename, content.read(4_096).decode())
                else:
                    arrival.file(entry.filename, content, executable=bool(mode & stat.S_IXUSR))

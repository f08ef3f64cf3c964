"""Where in the code a memory holds: a file as it was, by its git blob id, and perhaps a symbol in it."""

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Final, Literal

from contextd.domain.errors import BadPath, Invalid
from contextd.domain.ports import Clock
from contextd.domain.records import Json

State = Literal["fresh", "changed", "missing", "unknown"]
"""`missing` is gone, or can no longer be read; `unknown` when the whole project cannot be seen."""

MAX_FILE_BYTES: Final = 10 * 2**20
_REMEMBERED: Final = 4096
_SETTLED_S: Final = 2.0
"""A file younger than this may change again without its time and size telling, so it is not remembered."""

_Print = tuple[int, int, int, int, int]
"""What changes when a file does: device, inode, size, and both times."""


@dataclass(frozen=True, slots=True)
class Anchor:
    file: str
    """Relative to the project."""
    symbol: str = ""
    blob: str = ""

    def as_json(self) -> dict[str, Json]:
        return {"file": self.file, "symbol": self.symbol, "blob": self.blob}


class AnchorFiles:
    """Reads the files of anchors. It blocks on the disk: call it in a thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._blobs: OrderedDict[Path, tuple[_Print, str]] = OrderedDict()
        self._lock = Lock()

    def recorded(self, project_path: str, wanted: Sequence[Anchor]) -> tuple[Anchor, ...]:
        """The anchors with their files as they are now. Raises BadPath, Invalid."""
        return tuple(
            self._recorded(project_path, anchor, f"anchors[{number}]")
            for number, anchor in enumerate(wanted)
        )

    def states(self, anchors: Sequence[Anchor], *project_paths: str) -> tuple[State, ...]:
        """How each file stands against its anchor, in the first of the folders that can be seen."""
        if not anchors:
            return ()
        roots = (_real(Path(path)) for path in project_paths)
        root = next(filter(_can_be_seen, roots), None)
        if root is None:
            return tuple("unknown" for _ in anchors)
        return tuple(self._state(root, anchor) for anchor in anchors)

    def __len__(self) -> int:
        """How many files are remembered."""
        return len(self._blobs)

    def _recorded(self, project_path: str, anchor: Anchor, name: str) -> Anchor:
        root = _real(Path(project_path))
        file = _relative(Path(anchor.file), (Path(project_path), root))
        if file is None or not _is_beneath(root, file):
            raise BadPath(
                "anchors",
                f"{name}.file is not inside the project",
                "give a path relative to project_path, or absolute inside it, without '..'",
            )
        try:
            blob = self._blob(root, file)
        except OSError:
            raise BadPath(
                "anchors",
                f"{name}.file is not a file that can be read",
                "name a file that is there now, or leave this anchor out",
            ) from None
        if blob is None:
            raise Invalid(
                "anchors",
                f"{name}.file is too large",
                f"anchor a regular file of at most {MAX_FILE_BYTES // 2**20} MiB",
            )
        return replace(anchor, file=str(file), blob=blob)

    def _state(self, root: Path, anchor: Anchor) -> State:
        try:
            blob = self._blob(root, Path(anchor.file))
        except OSError:
            return "missing"
        return "fresh" if blob == anchor.blob else "changed"

    def _blob(self, root: Path, file: Path) -> str | None:
        """Of the file as it is now; None for one that is too large. Raises OSError."""
        path = root / file
        seen = _print(path.stat())
        with self._lock:
            known = self._blobs.get(path)
        if known is not None and known[0] == seen:
            return known[1]
        # Only what is not remembered is resolved: a link that was turned elsewhere is another file,
        # with another inode, and so comes here.
        if not _is_beneath(root, file):
            raise FileNotFoundError(path)
        read = _read(_real(path))
        if read is None:
            return None
        print, blob = read
        self._remember(path, print, blob)
        return blob

    def _remember(self, path: Path, print: _Print, blob: str) -> None:
        if self._clock.now().timestamp() - max(print[3:]) / 1e9 < _SETTLED_S:
            return
        with self._lock:
            self._blobs[path] = (print, blob)
            if len(self._blobs) > _REMEMBERED:
                self._blobs.popitem(last=False)


def blob_id(data: bytes) -> str:
    """What `git hash-object` says of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _relative(file: Path, roots: Sequence[Path]) -> Path | None:
    """The file from the project's root; None when it is absolute and elsewhere, or climbs."""
    if ".." in file.parts:
        return None
    if not file.is_absolute():
        return file
    return next((file.relative_to(root) for root in roots if file.is_relative_to(root)), None)


def _is_beneath(root: Path, file: Path) -> bool:
    real = _real(root / file)
    return real != root and real.is_relative_to(root)


def _can_be_seen(folder: Path) -> bool:
    try:
        return stat.S_ISDIR(folder.stat().st_mode)
    except OSError:
        return False


def _real(path: Path) -> Path:
    """With every link followed. Unlike `Path.resolve`, a loop of links raises nothing."""
    return Path(os.path.realpath(path))


def _read(path: Path) -> tuple[_Print, str] | None:
    """A regular file's print and blob id. It never waits for a pipe, and follows no link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        about = os.fstat(opened.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise FileNotFoundError(path)
        if about.st_size > MAX_FILE_BYTES:
            return None
        data = opened.read(MAX_FILE_BYTES + 1)
    return (_print(about), blob_id(data)) if len(data) <= MAX_FILE_BYTES else None


def _print(about: os.stat_result) -> _Print:
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)

"""The folder of the audit log: its files in order, their last line, and who writes next."""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from contextd.adapters.audit_line import Tip, chained, note, read_line
from contextd.adapters.audit_seal import BrokenSeal, begin_seal, has_seal, read_seal, write_seal
from contextd.adapters.secret_key import kept_key
from contextd.domain.records import Json

LARGEST_FILE: Final = 64 * 2**20
_NAME: Final = re.compile(r"(\d{4}-\d\d-\d\d)-(\d{3,6})\.jsonl")
_LOOK_BACK: Final = 65_536


@dataclass(frozen=True, slots=True, order=True)
class LogFile:
    """One day's file, or a further one of that day."""

    day: str
    part: int
    path: Path

    @classmethod
    def at(cls, path: Path) -> "LogFile | None":
        found = _NAME.fullmatch(path.name)
        return cls(found[1], int(found[2]), path) if found else None

    @classmethod
    def named(cls, folder: Path, day: str, part: int) -> "LogFile":
        return cls(day, part, folder / f"{day}-{part:03d}.jsonl")

    @property
    def size(self) -> int:
        return self.path.stat().st_size


@dataclass(frozen=True, slots=True)
class Part:
    """What of a file was there at one moment: whole lines to `end`, and perhaps a torn one behind."""

    file: LogFile
    end: int
    torn: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where this process wrote last. While the folder still looks like this, nobody has written since."""

    file: LogFile | None
    end: int
    tip: Tip


def audit_files(folder: Path) -> list[LogFile]:
    """Oldest first."""
    return sorted(file for path in folder.iterdir() if (file := LogFile.at(path)) is not None)


class AuditFolder:
    """Appends lines, one process at a time. Raises OSError, and StoreUnavailable for its key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key_file = path.with_name("audit.key")
        self._left: Place | None = None

    @property
    def has_key(self) -> bool:
        return self._key_file.exists()

    def key(self) -> bytes:
        """Made on the first call, after a seal that says so."""
        if not self._key_file.exists():
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._alone(fcntl.LOCK_EX):
                if not (self._key_file.exists() or has_seal(self.path) or audit_files(self.path)):
                    begin_seal(self.path)
                return kept_key(self._key_file)
        return kept_key(self._key_file)

    def append(
        self, contents: Sequence[str], now: datetime, on_disk: Callable[[], None] = lambda: None
    ) -> None:
        """Chain these to the last line. `on_disk` is told when they are there, before they are sealed.

        With none to write, it proves that some could be.
        """
        key = self.key()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._alone(fcntl.LOCK_EX):
            place, notes = self._here(now, key)
            self._left = None
            left = self._written(place, [*notes, *contents], now)
            on_disk()
            write_seal(self.path, left.tip, key)
            self._left = left

    def snapshot(self) -> list[Part]:
        """What is there, at a moment when nobody writes. What is there stays: it can be read later."""
        try:
            with self._alone(fcntl.LOCK_SH):
                return [part_of(file) for file in audit_files(self.path)]
        except PermissionError:
            # A copy that is another's to write: nobody does.
            return [part_of(file) for file in audit_files(self.path)]

    def _here(self, now: datetime, key: bytes) -> tuple[Place, list[str]]:
        files = audit_files(self.path)
        newest = files[-1] if files else None
        left = self._left
        if left is not None and newest == left.file and newest is not None and newest.size == left.end:
            return left, []
        return self._found(files, now, key)

    def _found(self, files: list[LogFile], now: datetime, key: bytes) -> tuple[Place, list[str]]:
        """The last line, as another process or an earlier one left it, and what is to be noted of it."""
        amiss: dict[str, Json] = {}
        if torn := _mend(files[-1]) if files else 0:
            amiss["torn_bytes"] = torn
        last = _last(files)
        tip = last or Tip()
        try:
            sealed = read_seal(self.path, key)
        except BrokenSeal:
            sealed = None
            amiss["fault"] = "the seal was changed"
        else:
            if sealed is None:
                amiss["fault"] = "the seal is missing"
        if sealed is not None and tip.seq > sealed.seq:
            amiss["unsealed"] = tip.seq - sealed.seq
        elif sealed is not None and tip != sealed:
            # Numbers go on from the seal: the gap stays to be seen.
            amiss["fault"] = f"lines are gone: the seal is of line {sealed.seq}"
            tip = Tip(sealed.seq, tip.hash)
        place = Place(files[-1], files[-1].size, tip) if files else Place(None, 0, tip)
        return place, [note(now, amiss)] if amiss else []

    def _written(self, place: Place, contents: Sequence[str], now: datetime) -> Place:
        if not contents:
            return place
        lines: list[bytes] = []
        tip = place.tip
        for content in contents:
            line, tip = chained(content, tip)
            lines.append(line)
        file = self._file_for(place, now.astimezone(UTC).date())
        is_new = file != place.file
        start = 0 if is_new else place.end
        data = b"".join(lines)
        _append(file.path, data, start)
        if is_new:
            _sync_folder(self.path)
        return Place(file, start + len(data), tip)

    def _file_for(self, place: Place, today: date) -> LogFile:
        """A day's own; one that is full has a successor. Never an earlier one, whatever the clock says."""
        day, last = today.isoformat(), place.file
        if last is None or day > last.day:
            return LogFile.named(self.path, day, 0)
        if place.end >= LARGEST_FILE:
            return LogFile.named(self.path, last.day, last.part + 1)
        return last

    @contextmanager
    def _alone(self, how: int) -> Iterator[None]:
        lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, how)
            yield
        finally:
            os.close(lock)


def _append(path: Path, data: bytes, start: int) -> None:
    """All of it, or the file as it was: a disk that is full leaves no half of a line."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fdatasync(handle)
        except OSError:
            os.ftruncate(handle, start)
            raise
    finally:
        os.close(handle)


def part_of(file: LogFile) -> Part:
    size = file.size
    with file.path.open("rb") as opened:
        at = size
        while at > 0:
            start = max(0, at - _LOOK_BACK)
            opened.seek(start)
            found = opened.read(at - start).rfind(b"\n")
            if found >= 0:
                return Part(file, start + found + 1, size - start - found - 1)
            at = start
    return Part(file, 0, size)


def _mend(file: LogFile) -> int:
    """Take away a last line that a crash has torn. Returns how long it was."""
    part = part_of(file)
    if part.torn:
        os.truncate(file.path, part.end)
    return part.torn


def _last(files: Sequence[LogFile]) -> Tip | None:
    for file in reversed(files):
        if file.size:
            line = read_line(_last_line(file))
            return line.tip if line else None
    return None


def _last_line(file: LogFile) -> bytes:
    """Without its line feed, which is there."""
    size, back = file.size, _LOOK_BACK
    with file.path.open("rb") as opened:
        while True:
            opened.seek(max(0, size - back))
            lines = opened.read(back).removesuffix(b"\n").rsplit(b"\n", 1)
            if len(lines) > 1 or back >= size:
                return lines[-1]
            back *= 2


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

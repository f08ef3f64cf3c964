"""Reads an audit log for people and other programs. It trusts the lines: `audit_proof` does not."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contextd.adapters.audit_folder import LogFile, audit_files
from contextd.adapters.audit_line import fields_of

Fields = dict[str, Any]
Wanted = Callable[[Fields], bool]


class AuditReader:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_to: dict[Path, int] = {}

    def last(self, count: int, wanted: Wanted) -> list[Fields]:
        """Oldest first. What is written after this is what `more` gives."""
        found: list[Fields] = []
        for file in reversed(self._files()):
            matching = (fields for fields in self._from(file, 0) if wanted(fields))
            found = [*deque(matching, count - len(found)), *found]
            if len(found) >= count:
                break
        for file in self._files():
            self._read_to.setdefault(file.path, file.size)
        return found

    def more(self, wanted: Wanted) -> Iterator[Fields]:
        """What came since the last look."""
        for file in self._files():
            at = self._read_to.get(file.path, 0)
            if file.size > at:
                yield from (fields for fields in self._from(file, at) if wanted(fields))

    def every(self, wanted: Wanted) -> Iterator[tuple[bytes, Fields]]:
        """Each line as it stands, too: so that a copy of it can be proven."""
        for file in self._files():
            yield from ((raw, fields) for raw, fields in self._lines(file, 0) if wanted(fields))

    def _files(self) -> list[LogFile]:
        return audit_files(self._folder) if self._folder.is_dir() else []

    def _from(self, file: LogFile, at: int) -> Iterator[Fields]:
        return (fields for _, fields in self._lines(file, at))

    def _lines(self, file: LogFile, at: int) -> Iterator[tuple[bytes, Fields]]:
        """Whole lines only: one that is being written has its turn later."""
        with file.path.open("rb") as opened:
            opened.seek(at)
            for raw in opened:
                if not raw.endswith(b"\n"):
                    return
                at += len(raw)
                self._read_to[file.path] = at
                if (fields := fields_of(raw)) is not None:
                    yield raw, fields

"""Proves that an audit log is whole, or finds the first line where it is not."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.adapters.audit_folder import AuditFolder, LogFile, Part, part_of
from contextd.adapters.audit_line import Line, Tip, fields_of, read_line
from contextd.adapters.audit_seal import BrokenSeal, read_seal

_MENDED: Final = b'"mended":{'


@dataclass(frozen=True, slots=True)
class Breach:
    """The first line that is not as it was written. `line` 0 is of the log as a whole."""

    path: Path
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Verdict:
    lines: int
    files: int
    breach: Breach | None = None
    notes: tuple[str, ...] = ()
    """What is no sign of tampering, and worth knowing."""


class _Broken(Exception):
    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(what)
        self.breach = Breach(path, line, what)


def prove_log(path: Path) -> Verdict:
    """The whole log in this folder, its seal included; its key lies beside the folder."""
    folder = AuditFolder(path)
    if not folder.path.is_dir():
        if folder.has_key:
            return Verdict(0, 0, Breach(folder.path, 0, "is gone: its key is still there"))
        return Verdict(0, 0, notes=("nothing has been written yet",))
    parts = folder.snapshot()
    inquiry = _Inquiry(folder, parts)
    try:
        inquiry.run()
    except _Broken as broken:
        return Verdict(inquiry.lines, len(parts), broken.breach, tuple(inquiry.notes))
    return Verdict(inquiry.lines, len(parts), None, tuple(inquiry.notes))


def prove_file(path: Path) -> Verdict:
    """One file by itself: what came before it and what was cut off its end is not seen."""
    part = part_of(LogFile("", 0, path))
    lines = 0
    tip: Tip | None = None
    try:
        for number, raw in _lines(part):
            tip = _followed(path, number, raw, tip)
            lines = number
    except _Broken as broken:
        return Verdict(lines, 1, broken.breach)
    notes = ["one file by itself: what came before it, and whether its end is cut off, is not proven"]
    if part.torn:
        notes.append(_torn(path))
    return Verdict(lines, 1, notes=tuple(notes))


class _Inquiry:
    def __init__(self, folder: AuditFolder, parts: list[Part]) -> None:
        self._folder = folder
        self._parts = parts
        self._tip = Tip()
        self.lines = 0
        self.notes: list[str] = []

    def run(self) -> None:
        sealed = self._seal()
        self._strangers()
        for part in self._parts:
            self._part(part, sealed, is_last=part is self._parts[-1])
        end = self._parts[-1] if self._parts else None
        behind = (self._tip.seq - sealed.seq) if sealed else 0
        if behind > 0:
            self.notes.append(f"the last {_are(behind)} not sealed: a process ended before it could")
        if sealed and behind < 0:
            path, line = (end.file.path, _count(end) + 1) if end else (self._folder.path, 0)
            raise _Broken(path, line, f"{_are(-behind)} cut off: the seal is of line {sealed.seq}")
        if end and end.torn:
            self.notes.append(_torn(end.file.path))

    def _seal(self) -> Tip | None:
        key = self._folder.key() if self._folder.has_key else None
        try:
            sealed = read_seal(self._folder.path, key)
        except BrokenSeal:
            raise _Broken(self._folder.path / "seal.json", 1, "was changed") from None
        if key is None and (self._parts or (sealed or Tip()).seq):
            raise _Broken(self._folder.path, 0, "cannot be proven: its key is not beside it")
        if sealed is None and key is not None:
            raise _Broken(self._folder.path, 0, "has no seal: it was taken away")
        return sealed

    def _strangers(self) -> None:
        known = {part.file.path for part in self._parts}
        for path in sorted(self._folder.path.glob("*.jsonl")):
            if path not in known and LogFile.at(path) is None:
                raise _Broken(path, 1, "is no file of this log")

    def _part(self, part: Part, sealed: Tip | None, *, is_last: bool) -> None:
        path, number = part.file.path, 0
        for number, raw in _lines(part):
            self._tip = _followed(path, number, raw, self._tip)
            self.lines += 1
            if sealed and self._tip.seq == sealed.seq and self._tip != sealed:
                raise _Broken(path, number, "is not the line that was sealed: the log was written anew")
            self._noted(path, number, raw)
        if part.torn and (not is_last or (sealed and self._tip.seq < sealed.seq)):
            raise _Broken(path, number + 1, "is cut short")

    def _noted(self, path: Path, number: int, raw: bytes) -> None:
        if _MENDED not in raw:
            return
        mended = (fields_of(raw) or {}).get("mended") or {}
        where = f"{path.name}:{number}"
        if fault := mended.get("fault"):
            raise _Broken(path, number, f"was written after damage: {fault}")
        if torn := mended.get("torn_bytes"):
            self.notes.append(f"{where} follows a torn line of {torn} bytes, as a crash leaves it")
        if unsealed := mended.get("unsealed"):
            self.notes.append(f"{where} follows {unsealed} lines that a process left unsealed")
        if lost := mended.get("lost"):
            self.notes.append(f"{where} follows {lost} calls that could not be written")


def _followed(path: Path, number: int, raw: bytes, tip: Tip | None) -> Tip:
    """The line's own tip. Raises _Broken unless it is whole and comes next."""
    line = read_line(raw)
    if line is None:
        raise _Broken(path, number, "is not a line of the log, or no longer")
    if not line.whole:
        raise _Broken(path, number, f"was changed: its hash is not that of its text (seq {line.seq})")
    if tip is not None and (what := _misplaced(line, tip)):
        raise _Broken(path, number, what)
    return line.tip


def _misplaced(line: Line, tip: Tip) -> str | None:
    missing = line.seq - tip.seq - 1
    if missing > 0:
        return f"{_are(missing)} missing before it: seq {line.seq} follows {tip.seq}"
    if missing < 0:
        return f"is not in its place: seq {line.seq} follows {tip.seq}"
    if line.prev != tip.hash:
        return f"does not follow from the one before, which was replaced (seq {line.seq})"
    return None


def _lines(part: Part) -> Iterator[tuple[int, bytes]]:
    """Numbered from 1, without their line feeds."""
    left = part.end
    with part.file.path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            left -= len(raw)
            if left < 0:
                return
            yield number, raw.removesuffix(b"\n")


def _torn(path: Path) -> str:
    return f"{path.name} ends in a torn line, as a crash leaves it; the next call mends it"


def _are(lines: int) -> str:
    return "1 line is" if lines == 1 else f"{lines} lines are"


def _count(part: Part) -> int:
    return sum(1 for _ in _lines(part))

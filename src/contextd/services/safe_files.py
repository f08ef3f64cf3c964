"""Files of a project, read for an agent: beneath the project's folder, as text, without secrets."""

import asyncio
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from contextd.domain.callers import Caller
from contextd.domain.encodings import FileText, decoded
from contextd.domain.errors import BadPath, Forbidden, NotFound, OutOfRange, OutsideProject
from contextd.domain.limits import READ_BYTES, SHOWN_CHARS
from contextd.domain.line_diffs import lines_with_ends
from contextd.domain.ports import Scrubber
from contextd.domain.project_files import ProjectFile, ProjectFiles
from contextd.domain.sandboxing import Policies
from contextd.services.grounds import check_grounds, is_within
from contextd.services.line_patterns import line_pattern
from contextd.services.projects import permitted
from contextd.services.redacted_text import RedactedText, redacted
from contextd.services.shown_secrets import ShownSecrets, Viewer

_MADE_UP: Final = ("/proc", "/sys")
"""What the kernel makes up: its files tell of the daemon itself."""
_AROUND: Final = 2
"""Lines that are shown before and after one that matches."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path within a project that the caller may use."""

    folder: str
    path: str


@dataclass(frozen=True, slots=True)
class TextFile:
    file: ProjectFile
    own: FileText
    shown: RedactedText

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.file.data or b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Excerpt:
    path: str
    start_line: int = 1
    end_line: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines of a file. With a pattern, those that match, behind their numbers, and some around them."""

    content: str
    total_lines: int
    start_line: int
    end_line: int
    sha256: str
    secrets: int
    encoding: str
    is_guessed: bool
    crlf: bool
    matches: int | None
    is_cut: bool
    """Whether more of what was asked for comes after `end_line`."""


class SafeFiles:
    def __init__(
        self,
        files: ProjectFiles,
        scrubber: Scrubber,
        shown: ShownSecrets,
        policies: Policies,
        private: Sequence[str] = (),
    ) -> None:
        """`private` is contextd's own: what it keeps there is for no tool."""
        self._files = files
        self._scrubber = scrubber
        self._shown = shown
        self._policies = policies
        self._private = tuple(map(os.path.realpath, private))

    async def read(self, project_path: str, excerpt: Excerpt, caller: Caller) -> Shown:
        """Raises NotFound, Forbidden, NotText, TooLarge, BadPath, OutOfRange, BadFormat."""
        place = self.place(project_path, excerpt.path, caller)
        return await asyncio.to_thread(self._read, place, excerpt, caller)

    def place(self, project_path: str, path: str, caller: Caller) -> Place:
        """Raises Forbidden, OutsideProject, BadPath."""
        caller.tally.project = permitted(caller, project_path)
        folder = os.path.realpath(project_path)
        check_grounds(folder, named=self._policies.names(folder), own=self._private)
        for root in (project_path, folder):
            if path.startswith("/") and is_within(path, root):
                path = os.path.relpath(path, root)
        if path.startswith("/"):
            raise OutsideProject("path is not in the project")
        parts = PurePosixPath(path).parts
        if not parts:
            raise BadPath("path", "path is the project's folder", "name a file in it")
        return Place(folder, "/".join(parts))

    def open(self, place: Place, most: int) -> ProjectFile:
        """What is there, or nothing. Blocks."""
        file = self._files.look(place.folder, place.path, most)
        whole = f"{place.folder}/{file.path}"
        if any(is_within(whole, each) for each in (*self._private, *_MADE_UP)):
            raise Forbidden("the file is contextd's own or the system's", "leave it alone")
        return file

    def text(self, file: ProjectFile) -> TextFile:
        """Blocks. Raises NotText."""
        own = decoded(file.data or b"")
        return TextFile(file, own, redacted(self._scrubber, own.text))

    def _read(self, place: Place, excerpt: Excerpt, caller: Caller) -> Shown:
        file = self.open(place, READ_BYTES)
        if file.data is None:
            raise NotFound("file", place.path, "check the path; it is relative to project_path")
        text = self.text(file)
        lines = lines_with_ends(text.shown.text)
        part = _excerpt(lines, excerpt, _last(excerpt, len(lines)))
        return Shown(
            content=self._shown_to(caller, place.folder, text, part.content),
            total_lines=len(lines),
            start_line=excerpt.start_line,
            end_line=part.end_line,
            sha256=text.sha256,
            secrets=caller.tally.secrets.total(),
            encoding=text.own.shape.name,
            is_guessed=text.own.shape.is_guessed,
            crlf=text.own.shape.crlf,
            matches=part.matches,
            is_cut=part.is_cut,
        )

    def _shown_to(self, caller: Caller, folder: str, text: TextFile, content: str) -> str:
        """A part may hold what looks like a secret and did not in the whole: it goes too."""
        again = redacted(self._scrubber, content)
        viewer = Viewer(caller.key, f"{folder}/{text.file.path}")
        seen = text.shown.shown_in(again.text)
        for mark, secret in again.secrets.items():
            if mark != secret:
                seen[mark] = secret if text.shown.secrets.get(mark, secret) == secret else ""
        self._shown.shown(viewer, seen)
        caller.tally.secrets.update(text.shown.counted_in(again.text))
        return again.text


def _last(excerpt: Excerpt, total: int) -> int:
    if excerpt.end_line is not None and excerpt.end_line < excerpt.start_line:
        raise OutOfRange("end_line", "end_line is before start_line", "give a later end_line")
    if excerpt.start_line > max(total, 1):
        raise OutOfRange(
            "start_line", "start_line is after the last line", f"give a line from 1 to {max(total, 1)}"
        )
    return total if excerpt.end_line is None else min(excerpt.end_line, total)


@dataclass(frozen=True, slots=True)
class _Part:
    content: str
    end_line: int
    is_cut: bool
    matches: int | None = None


def _excerpt(lines: Sequence[str], excerpt: Excerpt, last: int) -> _Part:
    """The text without secrets is searched: a pattern must not tell what stands behind a placeholder."""
    first = excerpt.start_line
    if excerpt.pattern is None:
        return _bounded(((at, lines[at - 1]) for at in range(first, last + 1)), last)
    matches = line_pattern(excerpt.pattern)
    numbers = [at for at in range(first, last + 1) if matches(lines[at - 1])]
    return replace(_bounded(_with_neighbours(lines, numbers), last), matches=len(numbers))


def _bounded(numbered: Iterable[tuple[int, str]], last: int) -> _Part:
    """As many whole lines as are shown at once, or the beginning of one that is longer."""
    shown: list[str] = []
    room, end = SHOWN_CHARS, 0
    for at, line in numbered:
        room -= len(line)
        if room < 0 and shown:
            return _Part("".join(shown), end, is_cut=True)
        shown.append(line[:SHOWN_CHARS])
        end = at
    return _Part("".join(shown), last, is_cut=False)


def _with_neighbours(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """As grep shows them: `12: ` before a match, `11- ` before a neighbour, `--` between groups."""
    matching = set(numbers)
    shown = sorted(
        {at for number in numbers for at in range(number - _AROUND, number + _AROUND + 1)}
        & set(range(1, len(lines) + 1))
    )
    before = shown[0] if shown else 0
    for at in shown:
        if at > before + 1:
            yield before, "--\n"
        yield at, f"{at}{':' if at in matching else '-'} {lines[at - 1].removesuffix(chr(10))}\n"
        before = at

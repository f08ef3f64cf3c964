"""Unified diffs: made of two texts, and applied to one, exactly."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Final, Literal

from contextd.domain.errors import BadFormat, NoMatch

_AROUND: Final = 3
_MOST_COMPARED: Final = 4_000
"""Lines that are compared one with another; more of them are shown as replaced."""
_HEAD: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_END: Final = "\\ No newline at end of file"
_FILE_HEADS: Final = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode")


def lines_with_ends(text: str) -> list[str]:
    """Only line feeds end a line; joined they are the text again."""
    *lines, last = text.split("\n")
    return [*(line + "\n" for line in lines), *([last] if last else [])]


def line_diff(old: str, new: str, path: str, most: int) -> str:
    """Of the two texts; nothing when they are the same. Cut after `most` characters, which it then says."""
    if old == new:
        return ""
    before, after = lines_with_ends(old), lines_with_ends(new)
    heads = "/dev/null" if not old else f"a/{path}", "/dev/null" if not new else f"b/{path}"
    lines: list[str] = [f"--- {heads[0]}\n", f"+++ {heads[1]}\n"]
    for group in _Compared(before, after).get_grouped_opcodes(_AROUND):
        lines.extend(_hunk(group, before, after))
    sizes = accumulate(map(len, lines))
    fitting = sum(1 for size in sizes if size <= most)
    cut = [f"[… {len(lines) - fitting} more lines …]\n"] if fitting < len(lines) else []
    return "".join([*lines[:fitting], *cut])


_Kind = Literal["replace", "delete", "insert", "equal"]
_Change = tuple[_Kind, int, int, int, int]


class _Compared(difflib.SequenceMatcher[str]):
    """Lines that are alike at both ends are not compared one with another, and neither are very many."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__()
        self._before = before
        self._after = after

    def get_opcodes(self) -> list[_Change]:
        before, after = self._before, self._after
        head = _alike(before, after)
        tail = _alike(before[head:][::-1], after[head:][::-1])
        a, b = len(before) - tail, len(after) - tail
        within: list[_Change] = [("replace", head, a, head, b)]
        if max(a, b) - head <= _MOST_COMPARED:
            found = difflib.SequenceMatcher(None, before[head:a], after[head:b]).get_opcodes()
            within = [(kind, i + head, j + head, k + head, m + head) for kind, i, j, k, m in found]
        return [("equal", 0, head, 0, head), *within, ("equal", a, len(before), b, len(after))]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], before: Sequence[str], after: Sequence[str]
) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
    for kind, a, b, c, d in group:
        if kind == "equal":
            yield from _marked(" ", before[a:b])
        else:
            yield from _marked("-", before[a:b])
            yield from _marked("+", after[c:d])


def _range(start: int, end: int) -> str:
    """A range of nothing names the line before it."""
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{_NO_END}\n"


# --- applying -------------------------------------------------------------------------


@dataclass(slots=True)
class _Hunk:
    line: int
    """Where the old lines begin, counted from 0."""
    old: list[str]
    new: list[str]


def patched(text: str, patch: str) -> str:
    """The text with the patch applied. Raises BadFormat and NoMatch.

    Each hunk's lines must be there, exactly: at its line number, or else in one place alone after the hunk
    before it.
    """
    lines = lines_with_ends(text)
    result: list[str] = []
    at = moved = 0
    for number, hunk in enumerate(_hunks(patch), start=1):
        place = _place(lines, hunk, hunk.line + moved, at)
        if place is None:
            raise NoMatch("patch", f"hunk {number} of the patch does not fit the file")
        moved = place - hunk.line
        result += lines[at:place]
        result += hunk.new
        at = place + len(hunk.old)
    return "".join([*result, *lines[at:]])


def _place(lines: Sequence[str], hunk: _Hunk, wanted: int, least: int) -> int | None:
    def fits(at: int) -> bool:
        return lines[at : at + len(hunk.old)] == hunk.old

    if least <= wanted <= len(lines) and fits(wanted):
        return wanted
    places = [at for at in range(least, len(lines) - len(hunk.old) + 1) if fits(at)] if hunk.old else []
    return places[0] if len(places) == 1 else None


def _hunks(patch: str) -> list[_Hunk]:
    lines = patch.removesuffix("\n").split("\n")
    hunks: list[_Hunk] = []
    at = files = 0
    while at < len(lines):
        line = lines[at]
        if head := _HEAD.match(line):
            hunk, at = _read_hunk(lines, at + 1, head)
            hunks.append(hunk)
            continue
        files += line.startswith("+++ ")
        if (line and not line.startswith(_FILE_HEADS)) or files > 1:
            raise _bad("the patch is not a unified diff of one file")
        at += 1
    if not hunks:
        raise _bad("the patch has no hunk")
    return hunks


def _read_hunk(lines: Sequence[str], at: int, head: re.Match[str]) -> tuple[_Hunk, int]:
    line, old_left, _, new_left = (int(each) if each is not None else 1 for each in head.groups())
    hunk = _Hunk(line - 1 if old_left else line, [], [])
    while old_left > 0 or new_left > 0:
        if at >= len(lines):
            raise _bad("a hunk has fewer lines than its head says")
        # Editors and models take the blank off a context line that is empty.
        mark, body = (lines[at] or " ")[0], lines[at][1:] + "\n"
        if mark not in " -+":
            raise _bad("a hunk has fewer lines than its head says")
        old_left -= mark in " -"
        new_left -= mark in " +"
        at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            body, at = body[:-1], at + 1
        hunk.old += [body] if mark in " -" else []
        hunk.new += [body] if mark in " +" else []
    if old_left or new_left:
        raise _bad("a hunk has more lines of a kind than its head says")
    return hunk, at


def _bad(problem: str) -> BadFormat:
    return BadFormat(
        "patch", problem, "give '@@ -line,count +line,count @@' and lines that begin with ' ', '-' or '+'"
    )

"""What `.gitignore` and `.contextdignore` files say of a path, as git says it.

Each line becomes a regular expression, by the rules of git's own matcher: bytes are matched, not
characters; a pattern speaks of the path itself, never of what is beneath it, since a folder that is
ignored is not entered. pathspec holds the expressions and picks the last that matches. Its reading
of the lines is not used: that one is made for the paths of files, so that it takes `*` before `!*/`
for an ignored folder, and it raises on lines that git passes over.
"""

import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathspec import PathSpec
    from pathspec.pattern import RegexPattern

GIT_IGNORE: Final = ".gitignore"
OWN_IGNORE: Final = ".contextdignore"
MAX_IGNORE_FILE_BYTES: Final = 2**17
FOLDER: Final = "\0"
"""Ends the path of a folder in place of a slash, which `folder/*` would match with nothing after it."""

_MAX_LINE_LENGTH: Final = 1_000
"""A longer line is passed over, like one that is malformed."""

_MAX_GROUP_LENGTH: Final = 10_000
_ANY: Final = r"[^/\x00]"

Reader = Callable[[str], bytes | None]
"""The content of a file, by its name in some folder; None when there is none that can be used."""


@dataclass(frozen=True, slots=True)
class _Level:
    lines: "PathSpec[RegexPattern]"
    base: int
    """How much of a path is the folder that the lines are relative to."""
    outer: "_Level | None"

    def verdict(self, path: str) -> bool | None:
        level: _Level | None = self
        while level is not None:
            verdict = level.lines.check_file(path[level.base :]).include
            if verdict is not None:
                return verdict
            level = level.outer
        return None


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder: its own, and those of the folders above it.

    Paths are spelled (see `spelled`), relative to the work tree's top, and a folder's ends in FOLDER.
    """

    git: _Level | None = None
    own: _Level | None = None

    def ignore(self, path: str) -> bool:
        """By the nearest file with a line that matches. Any `.contextdignore` has its say first."""
        verdict = self.own.verdict(path) if self.own else None
        if verdict is None and self.git:
            verdict = self.git.verdict(path)
        return verdict is True

    def within(self, folder: str, read: Reader) -> "IgnoreRules":
        """With the ignore files of a folder added, the outermost folder first."""
        base = len(folder)
        return IgnoreRules(
            _inner(read(GIT_IGNORE), base, self.git), _inner(read(OWN_IGNORE), base, self.own)
        )


def spelled(path: str) -> str:
    """A path as it is matched: one character for each byte, for so git counts them."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def rules_above(root: Path, read: Callable[[Path, str], bytes | None]) -> tuple[str, IgnoreRules]:
    """The root's path in its git work tree, and the rules that hold there before its own files are read.

    They come from the repository's `info/exclude` and from the folders between the top and the root.
    """
    for top in (root, *root.parents):
        git_folder = _git_folder(top, read)
        if git_folder is not None:
            break
    else:
        return "", IgnoreRules()
    rules = IgnoreRules(_inner(read(git_folder, "info/exclude"), 0, None))
    path, folder = "", top
    for name in root.relative_to(top).parts:
        rules = rules.within(path, partial(read, folder))
        path, folder = f"{path}{spelled(name)}/", folder / name
    return path, rules


def _git_folder(top: Path, read: Callable[[Path, str], bytes | None]) -> Path | None:
    """What all work trees of a repository share; None when the folder is not the top of one."""
    if read(top / ".git", "HEAD") is not None:
        return top / ".git"
    pointer = read(top, ".git") or b""
    if not pointer.startswith(b"gitdir:"):
        return None
    own = top / _written_path(pointer.removeprefix(b"gitdir:"))
    return own / _written_path(read(own, "commondir") or b".")


def _written_path(data: bytes) -> str:
    return os.fsdecode(data.partition(b"\0")[0].strip())


def _inner(data: bytes | None, base: int, outer: _Level | None) -> _Level | None:
    """Levels for the lines of one file: the last lines, which decide first, are innermost."""
    if not data:
        return outer
    import re2
    from pathspec import PathSpec
    from pathspec.pattern import RegexPattern

    for lines in _in_groups(data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")):
        patterns = [RegexPattern(re2.compile(expression), ignored) for expression, ignored in lines]
        outer = _Level(PathSpec(patterns, backend="re2"), base, outer)
    return outer


def _in_groups(lines: Sequence[str]) -> Iterator[list[tuple[str, bool]]]:
    """The lines' expressions, in groups that fit into the memory that one automaton is given."""
    group: list[tuple[str, bool]] = []
    length = 0
    for line in lines:
        read = _read_line(line.removesuffix("\r"))
        if read is None:
            continue
        if length + len(read[0]) > _MAX_GROUP_LENGTH and group:
            yield group
            group, length = [], 0
        group.append(read)
        length += len(read[0])
    if group:
        yield group


def _read_line(line: str) -> tuple[str, bool] | None:
    """The line's expression, and whether it ignores; None for one that can match nothing."""
    pattern = _without_trailing_spaces(line.partition("\0")[0])
    if pattern.startswith("#") or len(pattern) > _MAX_LINE_LENGTH:
        return None
    ignored = not pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    end = rf"\x00{'' if pattern.endswith('/') else '?'}$"
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    body = _expression(pattern.removeprefix("/"), anchored)
    return (f"(?s){'^' if anchored else '(?:^|/)'}{body}{end}", ignored) if body else None


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 and kept != line else kept


def _expression(pattern: str, anchored: bool) -> str | None:
    """None when the pattern is malformed, and so matches nothing."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        read = _EXPRESSIONS.get(pattern[at], _literal)(pattern, at, anchored)
        if read is None:
            return None
        part, at = read
        parts.append(part)
    return "".join(parts)


def _literal(pattern: str, at: int, anchored: bool) -> tuple[str, int]:
    return _byte(ord(pattern[at])), at + 1


def _escaped(pattern: str, at: int, anchored: bool) -> tuple[str, int] | None:
    return (_byte(ord(pattern[at + 1])), at + 2) if at + 1 < len(pattern) else None


def _one(pattern: str, at: int, anchored: bool) -> tuple[str, int]:
    return _ANY, at + 1


def _stars(pattern: str, at: int, anchored: bool) -> tuple[str, int]:
    """Two or more that are a whole component stand for any number of components."""
    after = at
    while pattern.startswith("*", after):
        after += 1
    whole = (at == 0 or pattern[at - 1] == "/") and (after == len(pattern) or pattern[after] == "/")
    if not anchored or not whole or after - at == 1:
        return _ANY + "*", after
    return (".*", after) if after == len(pattern) else ("(?:.*/)?", after + 1)


_MEMBER: Final = re.compile(r"\[:(?P<kind>[^\]]*):\]|\\?(?P<low>.)(?:-(?!\])\\?(?P<high>.))?", re.DOTALL)


def _bracket(pattern: str, at: int, anchored: bool) -> tuple[str, int] | None:
    negated = pattern[at + 1 : at + 2] in ("!", "^")
    start = at = at + 1 + negated
    members: set[int] = set()
    while at == start or not pattern.startswith("]", at):
        member = _MEMBER.match(pattern, at)
        if member is None:
            return None
        found = _members(**member.groupdict())
        if found is None:
            return None
        members.update(found)
        at = member.end()
    members = members | {0, ord("/")} if negated else members - {ord("/")}
    if not members:
        return None
    return f"[{'^' if negated else ''}{''.join(map(_byte, sorted(members)))}]", at + 1


def _members(kind: str | None, low: str, high: str | None) -> Iterable[int] | None:
    if kind is not None:
        return _KINDS.get(kind)
    # The first is one of them even when the range runs backwards.
    return (ord(low), *range(ord(low), ord(high or low) + 1))


def _byte(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{code:02x}"


_EXPRESSIONS: Final[dict[str, Callable[[str, int, bool], tuple[str, int] | None]]] = {
    "\\": _escaped,
    "?": _one,
    "*": _stars,
    "[": _bracket,
}

_KINDS: Final = {
    "alnum": (string.ascii_letters + string.digits).encode(),
    "alpha": string.ascii_letters.encode(),
    "blank": b" \t",
    "cntrl": bytes((*range(32), 127)),
    "digit": string.digits.encode(),
    "graph": bytes(range(33, 127)),
    "lower": string.ascii_lowercase.encode(),
    "print": bytes(range(32, 127)),
    "punct": string.punctuation.encode(),
    "space": b" \t\r\n",
    "upper": string.ascii_uppercase.encode(),
    "xdigit": string.hexdigits.encode(),
}

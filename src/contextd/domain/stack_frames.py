"""Stack traces of many languages, read as frames."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

_LONGEST_LINE: Final = 500
_MOST_FRAMES: Final = 200


@dataclass(frozen=True, slots=True)
class Frame:
    function: str
    file: str
    """Its last two parts at most: what stands above differs from machine to machine."""
    line: int | None


@dataclass(frozen=True, slots=True)
class Shape:
    """How a language writes a frame: groups `function`, `file` and `line`, each of them optional."""

    ecosystem: str
    pattern: re.Pattern[str]


def _shape(ecosystem: str, pattern: str) -> Shape:
    return Shape(ecosystem, re.compile(pattern))


SHAPES: Final = (
    _shape(
        "python",
        r'\s*File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,9})(?:, in (?P<function>.{1,200}))?$',
    ),
    _shape(
        "java",
        r"\s*at (?:[\w.@-]{1,80}/)?(?P<function>[\w.$<>/]{1,300})"
        r"\((?P<file>[\w.$-]{1,200}\.(?:java|kt|scala|groovy|clj)|Native Method|Unknown Source)"
        r"(?::(?P<line>\d{1,9}))?\)",
    ),
    _shape(
        "javascript",
        r"\s*at (?:async )?(?:new )?(?P<function>[^()]{1,200}?) \((?P<file>[^()]{1,400}?)"
        r"(?::(?P<line>\d{1,9}):\d{1,9})?\)\s*$",
    ),
    _shape(
        "csharp",
        r"\s*at (?P<function>[\w.`<>\[\],+|]{1,300})\([^()]{0,300}\)"
        r"(?: in (?P<file>.{1,400}):line (?P<line>\d{1,9}))?\s*$",
    ),
    _shape("javascript", r"\s*at (?:async )?(?P<file>[^\s()]{1,400}):(?P<line>\d{1,9}):\d{1,9}\s*$"),
    _shape(
        "javascript",
        r"\s*(?P<function>[^@\s]{0,200})@(?P<file>(?:https?|file|webpack[\w-]{0,20}):[^\s]{1,400}?)"
        r":(?P<line>\d{1,9}):\d{1,9}$",
    ),
    _shape(
        "c",
        r"(?:#\d{1,4} +)?(?:0x[0-9a-fA-F]{1,16} in )?(?P<function>[\w:~<>*&]{1,200}) \([^()]{0,300}\)"
        r" (?:at (?P<file>[^\s:]{1,400}):(?P<line>\d{1,9})|from \S{1,400})$",
    ),
    _shape(
        "c",
        r"\s*#\d{1,4} +0x[0-9a-fA-F]{1,16} in (?P<function>\S.{0,200}?)"
        r" (?P<file>/?[^\s()]{1,400}?):(?P<line>\d{1,9})(?::\d{1,9})?$",
    ),
    _shape(
        "c",
        r"\s*#\d{1,4} +0x[0-9a-fA-F]{1,16} in (?P<function>\S.{0,200}?)"
        r" \((?P<file>/[^\s()]{1,400}?)\+0x[0-9a-fA-F]{1,16}\)",
    ),
    _shape(
        "php",
        r"\s*#\d{1,4} (?P<file>[^()\n]{1,400}\.\w{1,5})\((?P<line>\d{1,9})\):"
        r" (?P<function>[\w\\>:-]{1,200})\(",
    ),
    _shape(
        "dart",
        r"\s*#\d{1,4} +(?P<function>[\w.<> ]{1,200}?) \((?P<file>(?:package|dart|file):[^\s()]{1,400}?)"
        r":(?P<line>\d{1,9})(?::\d{1,9})?\)",
    ),
    _shape(
        "ruby",
        r"\s*(?:from )?(?P<file>[^\s:]{1,400}):(?P<line>\d{1,9}):in [`'](?P<function>[^`']{1,200})'",
    ),
)
"""One line a frame. The first that fits is taken."""

_GO_PLACE: Final = re.compile(
    r"\s+(?P<file>\S{1,400}\.(?:go|s)):(?P<line>\d{1,9})(?: \+0x[0-9a-f]{1,16})?\s*$"
)
_RUST_NUMBERED: Final = re.compile(r"\s*\d{1,4}: +(?:0x[0-9a-f]{1,16} - )?(?P<function>\S.{0,300})$")
_RUST_PLACE: Final = re.compile(r"\s+at (?P<file>\S{1,400}?):(?P<line>\d{1,9})(?::\d{1,9})?\s*$")
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")

_OF_THE_RUNTIME: Final = re.compile(
    r"runtime\.|testing\.|reflect\.|sync\.|http\.\(\*(?:Server|conn)"
    r"|java\.|javax\.|jdk\.|sun\.|kotlin\.|kotlinx\.|org\.springframework\.|org\.apache\.(?:catalina|coyote|tomcat)"
    r"|System\.|Microsoft\."
    r"|std::|core::|alloc::|rust_begin_unwind|__rust|<?\w+ as core::"
    r"|__libc_|_start\b|__cxa|__asan|raise$|abort$|clone$|start_thread$"
    r"|Module\.|Layer\.|node:|process\.processTicks|processTicksAndRejections|executeUserEntryPoint|Promise\b"
    r"|_bootstrap|_call_with_frames_removed|run_module|_run_code"
)
"""Functions that stand in every trace of their language, so that sharing one says nothing."""

_RUNTIME_FILES: Final = re.compile(r"node:|internal/|<frozen|rustc/|<anonymous>")
_ENTRY_POINTS: Final = frozenset({"main", "main.main", "<module>", "<main>", "{main}", "Program.Main"})


def parse_frames(text: str) -> tuple[Frame, ...]:
    """In the order of the text, 200 at most."""
    return tuple(frame for _, frame in _read(text))


def language_of(text: str) -> str | None:
    """The ecosystem whose frames stand here, judged by the first of them."""
    return next((ecosystem for ecosystem, _ in _read(text)), None)


def is_frame(line: str) -> bool:
    return _one_line(line[:_LONGEST_LINE]) is not None or _GO_PLACE.match(line[:_LONGEST_LINE]) is not None


def frames_overlap(a: Sequence[Frame], b: Sequence[Frame]) -> float:
    """How much of two traces is the same code: 0 nothing, 1 all. Line numbers move and do not count."""
    left, right = _telling(a), _telling(b)
    if not left or not right:
        return 0.0
    return 2 * len(left & right) / (len(left) + len(right))


def _telling(frames: Sequence[Frame]) -> frozenset[tuple[str, str]]:
    own = {
        (frame.function, frame.file)
        for frame in frames
        if not _OF_THE_RUNTIME.match(frame.function) and not _RUNTIME_FILES.match(frame.file)
    }
    inner = {each for each in own if each[0] not in _ENTRY_POINTS}
    return frozenset(inner or own)


def _read(text: str) -> Iterator[tuple[str, Frame]]:
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    return islice(_frames_of(lines), _MOST_FRAMES)


def _frames_of(lines: Sequence[str]) -> Iterator[tuple[str, Frame]]:
    taken = False
    for line, following in pairwise([*lines, ""]):
        paired = None if taken else _two_lines(line, following)
        frame = paired or (None if taken else _one_line(line))
        taken = paired is not None
        if frame is not None:
            yield frame


def _one_line(line: str) -> tuple[str, Frame] | None:
    if not any(mark in line for mark in _MARKS):
        return None
    for shape in SHAPES:
        if found := shape.pattern.match(line):
            return shape.ecosystem, _frame(found.groupdict())
    return None


_MARKS: Final = ("at ", "#", 'File "', ":in ", "@", " from ")
"""One of these is in every frame of one line."""


def _two_lines(line: str, following: str) -> tuple[str, Frame] | None:
    for ecosystem, place, name in _PAIRED:
        if found := place.match(following):
            function = name(line)
            return (ecosystem, _frame({**found.groupdict(), "function": function})) if function else None
    return None


def _go_function(line: str) -> str:
    """`created by net/http.(*Server).Serve in goroutine 1` is `http.(*Server).Serve`."""
    name = line.strip().removeprefix("created by ").partition(" in goroutine ")[0]
    if name.endswith(")"):
        opened = name.rfind("(")
        name = name if name.startswith("(*", opened) else name[:opened]
    return "" if " " in name else name


def _rust_function(line: str) -> str:
    found = _RUST_NUMBERED.match(line)
    return found["function"] if found else ""


_PAIRED: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...]] = (
    ("go", _GO_PLACE, _go_function),
    ("rust", _RUST_PLACE, _rust_function),
)
"""Languages that write the function on one line and its place on the next."""


def _frame(groups: dict[str, str | None]) -> Frame:
    line = groups.get("line")
    return Frame(
        _short_function(groups.get("function") or ""),
        _short_file(groups.get("file") or ""),
        int(line) if line else None,
    )


def _short_function(name: str) -> str:
    bare = _RUST_HASH.sub("", name.strip())
    if "::" in bare or bare.endswith("()"):
        bare = bare.partition("(")[0]
    return bare.rpartition("/")[2] if "/" in bare and not bare.startswith("<") else bare


def _short_file(path: str) -> str:
    if path.startswith("node:"):
        return path
    parts = [part for part in path.partition("?")[0].replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(parts[-2:])

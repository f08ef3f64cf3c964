"""Which line of an error says what happened."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from contextd.domain.error_types import Telling, names_error, read_line
from contextd.domain.log_heads import LogLine, read_lines
from contextd.domain.stack_frames import is_frame

_LONGEST_LINE: Final = 1_000
_MOST_LINES: Final = 1_000
_MOST_JSON: Final = 20_000
_LABEL: Final = re.compile(
    r"^(?:[Ee]rror|ERROR|[Ff]atal|FATAL): "
    r"(?=\{|panic: |thread '|http: panic |terminate |[^\s:]{1,400}:\d{1,9}:in )",
    re.MULTILINE,
)
"""Before a whole shape it says nothing; before a line it tells which one matters."""


def telling(text: str) -> Telling | None:
    """What happened, by the most telling line. None for a text without any."""
    lines = read_lines(text)
    plain = _LABEL.sub("", "\n".join(line.text for line in lines))
    return _by_shape(plain) or _by_json(plain) or _by_line(lines)


# --- whole shapes ---------------------------------------------------------------------

_SHAPES: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^thread '[^'\n]{0,200}'(?: \(\d{1,20}\))? (?P<type>panic)ked at [^\n]{1,400}:\d+:\d+:\n"
        r"(?P<line>[^\n]+)",
        r"^thread '[^'\n]{0,200}' (?P<type>panic)ked at '(?P<line>[^\n]{1,1000})', [^\n']{1,400}:\d+:\d+",
        r"http: (?P<type>panic) serving \S{1,200}: (?P<line>[^\n]+)",
        r"^(?P<type>panic): (?P<line>[^\n]+)",
        r"^terminate called after throwing an instance of '(?:\w{1,80}::){0,10}(?P<type>\w{1,80})"
        r"[^'\n]{0,200}'(?:\n\s{0,20}what\(\):[ \t]{0,20}(?P<line>[^\n]*))?",
        r"^[^\s:]{1,400}:\d+:in [`'][^`'\n]{1,200}': (?P<line>[^\n]{0,900}?) \((?:\w{1,80}::){0,8}"
        r"(?P<type>[A-Z]\w{1,80})\)$",
        r"^\* What went wrong:\n(?P<line>[^\n]+)",
    )
)
"""Errors that are told in a fixed form: of Rust, Go, C++, Ruby and Gradle."""


def _by_shape(text: str) -> Telling | None:
    for shape in _SHAPES:
        if found := shape.search(text):
            groups = found.groupdict()
            return Telling((groups["line"] or "").strip(), groups.get("type"))
    return None


_JSON_KEYS: Final = (
    "type", "name", "code", "error", "error_description", "title", "message", "msg", "detail", "reason"
)  # fmt: skip


def _by_json(text: str) -> Telling | None:
    """A body such as `{"error": {"code": …, "message": …}}`: its telling values, in words."""
    stripped = text.strip()
    if not stripped.startswith("{") or len(stripped) > _MOST_JSON:
        return None
    try:
        body = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    said = list(dict.fromkeys(_said(body, 3)))
    return Telling(": ".join(said), None) if said else None


def _said(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth:
        for key in _JSON_KEYS:
            yield from _said(value.get(key), depth - 1)
    elif isinstance(value, str) and value.strip():
        yield " ".join(value.split())


# --- one line of many -----------------------------------------------------------------

_LABELLED: Final = re.compile(
    r"(?:^|[^\w-])(?:error|fatal|failure|emerg|crit(?:ical)?|severe)\b"
    r"(?:[:!\])]|\[[A-Z]|\s[A-Z]{1,8}-?\d{3,6}\b)",
    re.IGNORECASE,
)
_TROUBLED: Final = re.compile(
    r"\b(?:fail\w{0,4}|cannot|can't|could ?n[o']t|unable|denied|refused|rejected|not found|no such|missing"
    r"|invalid|unknown|undefined|unexpected|unresolved|time[sd]? ?out|exceeded|conflict|fault|abort\w{0,3}"
    r"|killed|out of memory|already|too many|not allowed|forbidden|unauthori[sz]ed|unsupported|expired"
    r"|mismatch\w{0,2}|corrupt\w{0,2}|deadlock|double free|overflow|exhausted|does ?n[o']t|did ?n[o']t"
    r"|expect\(received|is not|are not|errors?|ERR|exception|violat\w{1,4}|unbound|unreachable)\b",
    re.IGNORECASE,
)
_WRAPPING: Final = re.compile(
    r"\s*(?:make(?:\[\d+\])?: \*\*\* .*Error \d|collect2: error"
    r"|(?:error: )?(?:could not compile|aborting due to|Command failed|failed to push some refs)"
    r"|(?:npm (?:ERR!|error)|gyp ERR!|yarn) ?"
    r"(?:code|syscall|path|errno|dest|cwd|command|type|A complete log|$)"
    r"|(?:\w+ )?exit (?:status|code):? \d+\.?\s*$|(?:error: |ERROR: )?subprocess-exited-with-error"
    r"|FAILURE: Build failed|BUILD FAILED|(?:\[ERROR\] )?COMPILATION ERROR|compilation terminated"
    r"|(?:ERROR: )?failed to solve: process|Aborted \(core dumped\)|Caused by:\s*$"
    r"|(?:Expected|Received|DETAIL|HINT|LINE \d+|CONTEXT|STATEMENT|hint|note|help|remote|info|warning"
    r"|To|See|Please)\b:? )"
)
"""Lines that stand around an error, or say no more than that there was one."""

_NOISE: Final = re.compile(
    r"\s*(?:$|Traceback \(most|Stack trace:|Require stack:|stack backtrace:|goroutine \d+ \["
    r"|During handling of|The above exception|\[Previous line|● |\.\.\. \d+ more|\d+ \||\||-->|= note"
    r"|[-=~^*_#. <>|]{3,}\s*$|\^|[@=]{8,}|[\]})]+[,;]?\s*$|throw err)"
)
_SAYS_NOTHING: Final = 2
_HEADING: Final = re.compile(r":\s*$")
_FINAL_IN_PYTHON: Final = re.compile(r"[A-Za-z_][\w.]{0,200}(?::|\s*$)")


def _by_line(read: Sequence[LogLine]) -> Telling | None:
    read = [LogLine(line.text[:_LONGEST_LINE].rstrip(), line.loud) for line in read[:_MOST_LINES]]
    lines = [line.text for line in read]
    place = _last_of_traceback(lines)
    if place is not None:
        return read_line(lines[place])
    place = max(range(len(lines)), key=lambda index: (*_rank(read[index]), -index), default=None)
    if place is None or not lines[place].strip():
        return None
    return read_line(_with_body(lines, place))


def _rank(line: LogLine) -> tuple[bool, int]:
    """What the log calls an error goes before what only looks like one, if it says anything."""
    weight = _weight(line.text)
    return line.loud and weight > _SAYS_NOTHING, weight


def _weight(line: str) -> int:
    if _NOISE.match(line):
        return 0
    if is_frame(line):
        return 1
    if _WRAPPING.match(line):
        return 2
    if names_error(line):
        return 6
    if _LABELLED.search(line):
        return 5
    return 4 if _TROUBLED.search(line) else 3


def _with_body(lines: Sequence[str], place: int) -> str:
    """A heading says what happened together with the line below it."""
    line = lines[place]
    if not _HEADING.search(line) or names_error(line):
        return line
    return f"{line} {next((each.strip() for each in lines[place + 1 :] if each.strip()), '')}"


def _last_of_traceback(lines: Sequence[str]) -> int | None:
    """Python puts the exception after its frames, and the one that mattered last."""
    framed = [
        index for index, line in enumerate(lines) if line.lstrip().startswith('File "') and is_frame(line)
    ]
    if not framed:
        return None
    for index in range(framed[-1] + 1, len(lines)):
        if _FINAL_IN_PYTHON.match(lines[index]) and not _NOISE.match(lines[index]):
            return index
    return None

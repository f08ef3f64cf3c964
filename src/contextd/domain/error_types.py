"""The kind of error that a line names, and the line without it and without its labels."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Telling:
    line: str
    """As written, without labels and without the type."""
    error_type: str | None
    """`NullPointerException`, `ENOENT`, `TS2345`, `panic`: without the package that it comes from."""


def read_line(line: str) -> Telling:
    return _without_type(_without_labels(line))


def names_error(line: str) -> bool:
    """Whether an exception stands in this line; a warning does not count."""
    found = _EXCEPTION.search(line)
    return found is not None and not found["type"].endswith("Warning")


# --- types ----------------------------------------------------------------------------

_EXCEPTION: Final = re.compile(
    r"(?<![\w.$\\/])(?:[\w$]{1,80}(?:::|[./\\])){0,12}"
    r"(?P<type>(?!Err)[A-Za-z_]\w{0,80}?"
    r"(?:Error|Exception|Warning|Fault|Failure|Violation|Interrupt|Timeout|Exit|Iteration))"
    r"(?=\s{0,3}[:(\[{]|\s*$|[,.)]\s|\)$)"
)
_QUALIFIED: Final = re.compile(
    r"(?:[A-Z]\w{0,80}::){1,8}(?P<ruby>[A-Z]\w{0,80})(?=:|\s*\(|\s*$)"
    r"|(?:[a-z_]\w{0,80}\.){1,8}(?P<python>[A-Z]\w{0,80})(?=:\s|\s*$)"
)
"""A type without a telling ending, at the beginning of a line: `ActiveRecord::RecordNotFound`."""

_CODE: Final = re.compile(
    r"\b(?P<code>ERR_[A-Z_]{2,60}|(?:TS|CS|LNK|NU|MSB|NETSDK)\d{3,5}|ORA-\d{5}"
    r"|SIG(?:SEGV|ABRT|BUS|FPE|ILL|KILL)"
    r"|E(?:NOENT|ACCES|PERM|EXIST|MFILE|PIPE|NOSPC|ISDIR|NOTEMPTY|NOTFOUND|AI_AGAIN|PROTO|INTEGRITY|RESOLVE"
    r"|ADDRINUSE|CONN(?:REFUSED|RESET|ABORTED)|TIMEDOUT|SOCKETTIMEDOUT|HOSTUNREACH|LIFECYCLE|40[134])"
    r"|CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|CreateContainerConfigError)\b"
    r"|error\[(?P<rust>E\d{4})\]"
    r"|AddressSanitizer: (?P<sanitizer>[\w-]{1,60})"
    r"|An error occurred \((?P<aws>\w{1,60})\)"
    r"|Error from server \((?P<kubernetes>\w{1,60})\)"
    r"|rpc error: code = (?P<grpc>\w{1,40})"
)
"""What names the kind of error where there is no exception."""


def _without_type(line: str) -> Telling:
    """Cuts `Type: what happened` in two; a type amid a sentence stays there."""
    found = _EXCEPTION.search(line) or _QUALIFIED.match(line)
    if found is None:
        code = _CODE.search(line)
        return Telling(line.strip(), next(filter(None, code.groups())) if code else None)
    name = next(filter(None, found.groups()))
    rest = line[found.end() :].strip()
    if rest.startswith(":") or not rest:
        return Telling(rest.removeprefix(":").strip(), name)
    if rest.startswith("(") and found.start() == 0:
        return Telling(rest.rstrip(": ").removeprefix("(").removesuffix(")"), name)
    return Telling(line.strip(), name)


# --- labels ---------------------------------------------------------------------------

_LEVEL: Final = r"(?:ERROR|FATAL|WARN(?:ING)?|CRITICAL|SEVERE|INFO|DEBUG)"
_LOG: Final = re.compile(
    r"\s*[\[(]?\d[\d\s:.,/TZ+_-]{7,40}[\])]?\s{1,4}(?:UTC |GMT )?(?:\[[^\]\n]{1,60}\]\s{1,4})?"
    rf"(?:{_LEVEL}\b[\s:|-]{{0,6}}(?:\[[^\]\n]{{1,60}}\]\s{{0,4}})?(?:[\w.$-]{{1,80}}(?: -|:)\s{{1,4}})?)?"
)
_DATABASE: Final = re.compile(r".{0,400}?(?<!\w)(?:FATAL|ERROR):\s{1,4}")
_SHELL: Final = re.compile(
    r"(?:(?:\S{0,200}/)?(?:ba|z|da|k|a)?sh|\S{1,200}\.(?:ba|z|k)?sh): "
    r"(?:line \d{1,6}: |\d{1,6}: )?(?=\S+: )"
)
_PLACE: Final = re.compile(
    r"\s{0,20}[^\s:()]{1,400}(?:(?::\d{1,9}){1,2}(?::| -)|\(\d{1,9}(?:,\d{1,9}){0,3}\):)\s{1,4}"
    r"(?=(?:fatal )?error\b)"
)
"""Where a compiler stands: `main.c:8:5: `, `app.ts(3,14): `, `app.ts:14:9 - `."""

_PREFIXES: Final = ((_LOG, ""), (_DATABASE, ""), (_SHELL, "sh: "), (_PLACE, ""))
"""What may stand before a message, and what is put instead: every shell and every script is a shell."""

_LABEL: Final = re.compile(
    r"(?:\s+|npm (?:ERR!|error)\s*|##\[\w{1,10}\]|E\s{3,}|E: |docker: |psql: |nginx: |\(error\) |PHP\s+"
    r"|Uncaught |Unhandled [Ee]xception[.:] |Caused by: |Exception in thread \S{1,200} |remote: "
    r"|\[?(?:[Ff]atal [Ee]rror|FATAL ERROR|[Ee]rror|ERROR|err|ERR|[Ff]atal|FATAL|[Ww]arning|WARNING"
    r"|WARN|Notice|CRITICAL|SEVERE)\]?(?::\s{0,4}|\]\s{0,4}|\s{2,4}|!\s))"
)
_LOGFMT: Final = re.compile(r"\b(?:msg|message|err|error|reason)=\"(?P<said>(?:[^\"\\]|\\.){1,400})\"")
_QUOTED_SQL: Final = re.compile(r"\s\((?:SQL|Connection): .{0,1000}\)\s*$")
_ZSH: Final = re.compile(r"(?:zsh: )?command not found: (?P<command>\S{1,200})")


def _without_labels(line: str) -> str:
    if found := _ZSH.fullmatch(line.strip()):
        return f"sh: {found['command']}: command not found"
    if said := [found["said"] for found in _LOGFMT.finditer(line)]:
        return ": ".join(dict.fromkeys(said))
    line = _QUOTED_SQL.sub("", line)
    for prefix, instead in _PREFIXES:
        line = instead + line[found.end() :] if (found := prefix.match(line)) else line
    while (found := _LABEL.match(line)) and found.end() < len(line):
        line = line[found.end() :]
    return line

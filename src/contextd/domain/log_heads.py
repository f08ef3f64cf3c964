"""What logs, containers and build servers put before a line: without it, an error is the same in each.

Every repetition here is bounded, and everything is read from the beginning of the line.
"""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    """As the program wrote it."""
    loud: bool
    """Whether the log called it an error."""


def without_heads(text: str) -> str:
    return "\n".join(line.text for line in read_lines(text))


def read_lines(text: str) -> list[LogLine]:
    """A line without a level belongs to the one above it, and is as loud."""
    lines: list[LogLine] = []
    loud = False
    for written in _ANSI.sub("", text).lstrip().splitlines():
        bare, level = _without_heads(written)
        loud = loud if level is None else not level.startswith("quiet")
        lines.append(LogLine(bare, loud))
    return lines


def _without_heads(line: str) -> tuple[str, str | None]:
    """The rest of the line, and the name of the group that read its level."""
    level = None
    for _ in range(_MOST_HEADS):
        found = _HEAD.match(line)
        if found is None:
            break
        if found.lastgroup != "app":
            level = found.lastgroup or level
        line = line[found.end() :]
    return line, level


_MOST_HEADS: Final = 8
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")

# --- the parts of a head; spaces do not count in these patterns -----------------------

_CLOCK: Final = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE: Final = r"(?:[ ]?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY: Final = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?[ ])?"
_TIME: Final = rf"""(?:
      \d{{4}}[-/.]\d\d[-/.]\d\d [T_ ] \d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)? {_ZONE}
    | \d{{1,2}}[-/.](?:\d\d|{_MONTH})[-/.]\d{{2,4}} [T: ] {_CLOCK} {_ZONE}
    | {_DAY} {_MONTH}[ ]{{1,2}}\d{{1,2}}[ ](?:\d{{4}}[ ])? {_CLOCK} {_ZONE} (?:[ ]\d{{4}}\b)?
    | {_DAY} \d{{1,2}}[ ]{_MONTH}[ ]\d{{4}}[ ]{_CLOCK} {_ZONE}
    | \d\d-\d\d[ ]{_CLOCK} | \d{{6}}[ ]{{1,2}}{_CLOCK} | {_CLOCK} {_ZONE}
    | \d{{10}}\.\d{{1,9}} | \d{{13}}
)"""


def _either(name: str, loud: str, quiet: str) -> str:
    """A level: the name of the group that matches tells which."""
    return rf"(?:(?P<{name}>{loud})|(?P<quiet_{name}>{quiet}))"


_LOUD: Final = r"(?:ERROR|FATAL|CRITICAL|SEVERE|CRIT|EMERG)"
_QUIET: Final = r"(?:WARN(?:ING)?|NOTICE|INFO|DEBUG|TRACE)"
_LEVEL: Final = rf"(?:{_LOUD}|{_QUIET})"
_ANY_CASE: Final = (
    r"(?i:error|err|fatal|critical|severe|crit|alert|emerg|panic|E|F)",
    r"(?i:warn(?:ing)?|notice|info|debug|trace|W|I|D)",
)
_THREAD: Final = (
    r"\[(?:main|[\w.$-]{0,40}(?:[Tt]hread|[Ww]orker|[Pp]ool|exec)[\w.$-]{0,40}|[a-z][\w.]{0,40}-\d{1,5})\]"
)
_LOGGER: Final = r"""(?:
      (?:\w{1,40}\.){1,8}\w{1,60}[ ]--?[ ]{1,4}
    | [A-Z]\w{0,40}[a-z][A-Z]\w{0,40}[ ]--?[ ]{1,4}
    | [a-z_]\w{0,40}(?:(?:\.|::)[a-z_]\w{0,40}){1,8}:[ ]{1,4}
    | (?:com|org|io|net|dev)(?:\.\w{1,40}){1,8}(?<!Error)(?<!Exception)(?<!Failure)(?<!Fault):[ ]{1,4}
    | [\w.<>]{1,80}:[\w<>]{1,80}:\d{1,6}[ ]-[ ]
    | [\w./-]{1,120}\.\w{1,4}:\d{1,6}(?:\t|:?[ ]-[ ]|\][ ])
    | \d{1,7}[ ]---[ ](?:\[[^\]\n]{0,60}\][ ]{1,4}){1,3}[\w.$\[\]/@-]{1,80}[ ]{1,40}:[ ]
    | --[ ][\w.-]{0,40}:[ ]
)"""
"""A logger goes where it cannot be taken for the beginning of what happened: `timeout - giving up` and
`ENOSPC: no space left` are messages."""
_DAEMON: Final = r"(?:kernel|systemd|sshd|sudo|cron|CRON|dockerd|containerd|kubelet)"
_BAR: Final = r"\|(?:[ ]|$)"

# --- heads ----------------------------------------------------------------------------

_CONTAINER: Final = rf"""
      [A-Za-z][\w.-]{{0,80}}?[-_.]\d{{1,4}}[ ]{{1,60}}{_BAR}
    | [a-z][\w.-]{{0,80}}[ ]{{2,60}}{_BAR}
    | [\w.-]{{1,80}}\.\d{{1,4}}\.[a-z\d]{{12,25}}@[\w.-]{{1,80}}[ ]{{1,60}}{_BAR}
    | \d{{1,4}}\|[\w.-]{{1,60}}[ ]{{1,40}}{_BAR}
    | \[pod/[\w.-]{{1,120}}/[\w.-]{{1,80}}\](?:[ ]|$)
    | (?P<app>[a-z][a-z\d-]{{0,60}})-[a-z\d]{{8,10}}-[a-z\d]{{5}}[ ](?P=app)[ ]
"""
"""docker compose and foreman, docker swarm, pm2, kubectl logs --prefix, stern."""

_BUILD: Final = rf"""
      \ufeff
    | [^\t\n]{{1,80}}\t[^\t\n]{{1,80}}\t(?=\ufeff?\d{{4}}-\d\d-\d\dT)
    | \#\#\[{_either("hash", "error", "warning|debug|section|command|group")}\](?=[ ]?\S)[ ]?
    | ::{_either("colons", "error", "warning|notice|debug|group")}(?:[ ][^\n:]{{1,300}})?::
    | \#\d{{1,4}}[ ](?:\d{{1,6}}\.\d{{1,6}}[ ]|(?=ERROR))
    | section_(?:start|end):\d{{1,12}}:[\w.-]{{1,80}}(?:\[[^\]\n]{{0,80}}\])?
    | \[[^\]\n]{{1,80}}\][ ]{{1,20}}{_BAR}
    | (?:@?[\w./-]{{1,80}}:|[\w.-]{{1,60}}/[\w.-]{{1,60}}[ ])
      (?:build|test|lint|dev|start|check|compile|typecheck):[ ]
"""
"""gh run view, workflow commands, BuildKit, GitLab, act, turbo and pnpm."""

_BOXED: Final = rf"""
      [A-Z],[ ]\[{_TIME}[ ]\#\d{{1,9}}\][ ]{{1,4}}(?={_LEVEL})
    | \[{_TIME}:[ ]{_either("celery", _LOUD, _QUIET)}/[\w-]{{1,60}}\][ ]
    | \[{_TIME}[ ]{_either("crate", _LOUD, _QUIET)}[ ]{{1,4}}[\w:]{{1,80}}\][ ]
    | {_either("glog", "[EF]", "[IWD]")}\d{{4}}[ ]{_CLOCK}[ ]{{1,8}}\d{{1,9}}[ ]
      [\w./-]{{1,80}}:\d{{1,6}}\][ ]
"""
"""Time and level in one box: Ruby, Celery, Rust's env_logger, glog."""

_TIMED: Final = rf"""
    (?:<\d{{1,3}}>(?:1[ ])?)?
    (?:\[{_TIME}\]|\({_TIME}\)|{_TIME}|\[[ ]{{0,8}}\d{{1,8}}\.\d{{3,9}}\])[,:]?(?:\s{{1,4}}|$)
    (?:[-|][ ])?
    (?: [\w.-]{{1,80}}[ ][\w./()-]{{1,60}}\[\d{{1,9}}\]:[ ]
      | [\w.-]{{1,80}}[ ](?={_DAEMON}:[ ])
      | (?:app|heroku)\[[\w.-]{{1,40}}\]:[ ]
      | [\w.-]{{1,80}}[ ][\w./-]{{1,60}}[ ](?:\d{{1,9}}|-)[ ][\w-]{{1,32}}[ ]-[ ]
      | std(?:out|err)[ ][FP][ ]
      | \d\d[OE][+ ]?[ ]?(?=\S)
      | (?:\d{{1,6}}[ ]{{1,6}}){{2}}{_either("logcat", "[EF]", "[VDIW]")}[ ][\w.$-]{{1,60}}[ ]{{0,20}}:[ ]
      | {_either("letter", "[EF]", "[VDIW]")}[ ]{{1,4}}(?=\S)
      | [\w.$/-]{{1,80}}[ ]{{1,20}}[-|][ ]{{1,4}}(?={_LEVEL}\b)
      | \[[^\]\n]{{1,60}}\][ ]{{1,4}}(?=\[?{_LEVEL}\b)
    )?
"""
"""A time, and what may follow: the rest of a syslog line, Heroku, CRI, GitLab, logcat, a logger."""

_PROCESS: Final = rf"""
      {_DAEMON}(?:\[\d{{1,9}}\])?:[ ]
    | \[(?:pid[ ])?\d{{1,9}}(?::tid[ ]\d{{1,20}})?\][ ]{{1,4}}(?=\S)
    | {_THREAD}[ ]{{1,4}}(?=\S)
    | (?:time|ts|timestamp|t|caller|logger)=(?:"[^"\n]{{0,120}}"|[^\s"]{{1,120}})[ ](?=\S)
"""

_LEVELLED: Final = rf"""
    (?: {_either("level", _LOUD, _QUIET)}
        (?: :\w[\w.]{{0,60}}:(?=\S) | :?\s{{1,4}}(?=\[?{_TIME}) | [ ]{{0,8}}[-|][ ]{{1,4}}(?=\S)
          | \s{{1,8}}(?!\d{{3,5}}[ ]\()(?=[^\s:=]) )
      | [\[(<]{_either("boxed", *_ANY_CASE)}[ ]{{0,6}}[\])>]:?\s{{0,8}}(?=\S)
      | {_either("tabbed", "error|fatal", "warn|info|debug")}\t{{1,4}}
      | (?P<single>[EF])[ ](?=\S)
      | (?:level|lvl|severity)="?{_either("pair", *_ANY_CASE)}"?[ ](?=\S)
    )
    (?:{_THREAD}[ ]{{1,4}})?
    (?:\d{{1,9}}\#\d{{1,9}}:[ ](?:\*\d{{1,12}}[ ])?)?
    {_LOGGER}?
"""
"""A level, and the thread and the logger that follow it. MySQL's `ERROR 1064 (42000)` is none."""

_HEAD: Final = re.compile("|".join((_CONTAINER, _BUILD, _BOXED, _TIMED, _PROCESS, _LEVELLED)), re.VERBOSE)

"""What a command may destroy, and why we think so."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from contextd.domain.command_risk import code, files, git, rows, shells, sql, system, wrappers
from contextd.domain.command_risk.disguises import oddities, undisguised
from contextd.domain.command_risk.printed import passed_on
from contextd.domain.command_risk.reader import Reader
from contextd.domain.command_risk.syntax import (
    Call,
    Command,
    Danger,
    Finding,
    Note,
    Pipeline,
    Rule,
    Runs,
    Script,
    TooTangled,
    Word,
    Wraps,
    program_name,
)
from contextd.domain.command_risk.word_reader import Budget

_LONGEST: Final = 20_000
_DEEPEST: Final = 12
_MOST_REASONS: Final = 8
_REMEMBERED_STAGES: Final = 7
_NO_STAGES: Final[tuple[str, ...]] = ()
_VERSION: Final = re.compile(r"(?<=[a-z])-?[0-9.]+$")
_HOOK: Final = re.compile(
    r"(?:PROMPT_COMMAND|GIT_SSH_COMMAND|(?:GIT_)?(?:PAGER|EDITOR)|GIT_SEQUENCE_EDITOR|VISUAL)="
)
"""Variables whose value another program runs."""
_REMOVAL_FLAGS: Final = re.compile(r"-[a-z]*(?:rf|fr)[a-z]*", re.IGNORECASE)
_GLOB_NAME: Final = re.compile(r"[?\[\]\w-]{2,40}|\*\w{1,40}|\w{1,40}\*")
_SPELLED_BY_GLOB: Final = (
    "rm",
    "dd",
    "shred",
    "chmod",
    "chown",
    "mkfs",
    "sh",
    "bash",
    "reboot",
    "shutdown",
)


@dataclass(frozen=True, slots=True)
class Risk:
    destructive: bool
    reasons: tuple[str, ...]
    """Short sentences for a person. Of a command that is not destructive they are notes."""


def assess(command: str) -> Risk:
    """Judge a shell command, or SQL, by what it would run. Never raises, and never runs anything."""
    if len(command) > _LONGEST:
        return Risk(True, ("is longer than what can be judged",))
    dangers: dict[str, None] = dict.fromkeys(oddities(command))
    notes: dict[str, None] = {}
    for text in dict.fromkeys((command, undisguised(command))):
        try:
            for finding in _Inquiry(text).findings():
                (dangers if isinstance(finding, Danger) else notes)[finding.reason] = None
        except TooTangled:
            dangers["is nested or expanded beyond what can be judged"] = None
    reasons = tuple(dangers or notes)[:_MOST_REASONS]
    return Risk(bool(dangers), reasons)


class _Inquiry:
    """Follows one text through everything that it would run."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._budget = Budget(len(text))
        self._variables: dict[str, str] = {}
        """What any script on the way has set: `eval` and exported variables see it."""

    def findings(self) -> Iterator[Danger | Note]:
        if sql.looks_like_sql(self._text):
            yield from sql.sql_dangers(self._text)
        yield from sql.typed_in_mongo(self._text)
        yield from self._run(Runs(self._text), 0)

    def _run(self, runs: Runs, depth: int) -> Iterator[Danger | Note]:
        if depth > _DEEPEST:
            raise TooTangled
        variables = {**self._variables, **runs.variables}
        self._budget.spend(len(variables))
        reader = Reader(runs.script, variables, self._budget, depth)
        script = reader.script()
        self._variables |= {name: value for name, value in variables.items() if name.isidentifier()}
        yield from self._walk(script, depth, runs.stdin)
        if any(_calls_itself(pipeline, reader.functions) for pipeline in script):
            yield Danger("starts copies of itself without end")

    def _walk(self, script: Script, depth: int, stdin: str | None = None) -> Iterator[Danger | Note]:
        for pipeline in script:
            fed, fed_by = stdin, _NO_STAGES
            for command in pipeline:
                for inner in _substituted(command):
                    yield from self._walk(inner, depth)
                yield from _plain(files.redirection(command))
                for word in command.assigned:
                    if hook := _HOOK.match(word.text):
                        yield from self._run(Runs(word.text[hook.end() :]), depth + 1)
                read = command.stdin if command.stdin is not None else fed
                many = command.repeats and any(word.open for word in command.words[1:])
                yield from self._judge(Wraps(tuple(command.words), many), read, fed_by, depth)
                fed = passed_on(command, fed)
                fed_by = (*fed_by[-_REMEMBERED_STAGES:], command.program)

    def _judge(
        self, words: Wraps, stdin: str | None, fed_by: tuple[str, ...], depth: int
    ) -> Iterator[Danger | Note]:
        waiting = [words]
        while waiting:
            wraps = waiting.pop()
            self._budget.spend(len(wraps.words))
            if not wraps.words:
                continue
            call = Call(
                _named(wraps.words[0]),
                wraps.words[1:],
                stdin if wraps.keeps_stdin else None,
                fed_by if wraps.keeps_stdin else (),
                wraps.many,
            )
            for finding in _findings(call, wraps.words[0]):
                match finding:
                    case Runs():
                        yield from self._run(finding, depth + 1)
                    case Wraps():
                        waiting.append(
                            Wraps(finding.words, finding.many or wraps.many, finding.keeps_stdin)
                        )
                    case _:
                        yield finding


def _findings(call: Call, spelled: Word) -> Iterator[Finding]:
    rules = [table[call.program] for table in _tables() if call.program in table]
    if call.program.startswith("mkfs"):
        rules.append(files.always("erases a disk or a partition"))
    for rule in rules:
        yield from rule(call)
    if not rules and spelled.open and any(_REMOVAL_FLAGS.fullmatch(text) for text in call.texts):
        yield Danger("hides its program in a variable, with the options of a recursive removal")


@cache
def _tables() -> tuple[Mapping[str, Rule], ...]:
    return (
        wrappers.RULES,
        shells.RULES,
        files.RULES,
        {"git": git.git},
        sql.RULES,
        code.RULES,
        rows.rules(),
        system.RULES,
    )


def program_in(word: str) -> str | None:
    """The program that a word names, where the rules know one."""
    name = _named(Word(word))
    return name if name.startswith("mkfs") or any(name in table for table in _tables()) else None


def _named(word: Word) -> str:
    """The program behind a word: `python3.11` is python, `/bin/r?` is rm."""
    name = program_name(word.text)
    if word.glob and _GLOB_NAME.fullmatch(name):
        return next((each for each in _SPELLED_BY_GLOB if fnmatch.fnmatchcase(each, name)), name)
    if any(name in table for table in _tables()):
        return name
    return _VERSION.sub("", name)


def _plain(found: Iterable[Finding]) -> Iterator[Danger | Note]:
    return (finding for finding in found if isinstance(finding, Danger | Note))


def _substituted(command: Command) -> Iterator[Script]:
    for word in (*command.words, *command.assigned, *(redirect.target for redirect in command.redirects)):
        yield from word.scripts


def _calls_itself(pipeline: Pipeline, functions: set[str]) -> bool:
    """The fork bomb: a function that pipes itself into itself."""
    names = [command.words[0].text for command in pipeline if command.words]
    return len(names) > 1 and names[0] in functions and names[1] == names[0]

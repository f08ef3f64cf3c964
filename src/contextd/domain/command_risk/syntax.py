"""What a shell command consists of, and what a rule may say about it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Word:
    """One argument as the program would see it, as far as that is known without running anything."""

    text: str
    glob: bool = False
    """The shell may make several words of it: it has a `*`, `?` or `[`, or an unquoted `$(…)`."""
    open: bool = False
    """A part of it is known only when it runs; an unknown variable stands as `$NAME`."""
    scripts: tuple["Script", ...] = ()
    """What `$(…)`, backticks and `<(…)` within it run."""


@dataclass(frozen=True, slots=True)
class Redirect:
    sign: str
    target: Word


@dataclass(slots=True)
class Command:
    """One simple command while it is read and after."""

    words: list[Word] = field(default_factory=list)
    assigned: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    stdin: str | None = None
    """The text of a here-document or here-string."""
    repeats: bool = False
    """It stands in the body of a loop."""
    grouped: bool = False
    """Its redirections are those of the parenthesis before it."""

    @property
    def program(self) -> str:
        return program_name(self.words[0].text) if self.words else ""


Pipeline: TypeAlias = list[Command]
Script: TypeAlias = list[Pipeline]


@dataclass(frozen=True, slots=True)
class Call:
    """A command as a rule sees it: wrappers gone, its program named."""

    program: str
    args: tuple[Word, ...]
    stdin: str | None = None
    """What it reads, where that is known."""
    fed_by: tuple[str, ...] = ()
    """The programs before it in the pipeline."""
    many: bool = False
    """It runs once for each of many things: below `find -exec` or `xargs`."""

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.args]


@dataclass(frozen=True, slots=True)
class Danger:
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Worth a word to a person, and no more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Runs:
    """The call runs this text as a script of the shell."""

    script: str
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class Wraps:
    """The call runs these words as a command."""

    words: tuple[Word, ...]
    many: bool = False
    keeps_stdin: bool = True


Finding: TypeAlias = Danger | Note | Runs | Wraps
Rule: TypeAlias = Callable[[Call], Iterator[Finding]]


class TooTangled(Exception):
    """There is more nesting or expansion than a person would write."""


_ENDINGS: Final = (".exe", ".cmd", ".bat")


def program_name(text: str) -> str:
    """`/bin/RM` is rm: some file systems do not care for case."""
    name = text.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name

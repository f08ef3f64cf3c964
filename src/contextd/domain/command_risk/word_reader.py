"""Reads the words of a shell script: quotes, variables, substitutions.

One pass, each character read once: a hostile script costs what its length says.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import MutableMapping
from typing import Final

from contextd.domain.command_risk.printed import printed, unescaped
from contextd.domain.command_risk.syntax import Script, TooTangled, Word
from contextd.domain.command_risk.word_builder import WordBuilder

_DEEPEST: Final = 16
_PLAIN: Final = re.compile(r"[\w./:=@%+,~^!?*\[\]{}#-]+")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_PARAMETER: Final = re.compile(r"([!#]?)([A-Za-z_]\w*|[0-9@*?$!#-])(?:\[[^\]]*\])?(.*)", re.DOTALL)
_SLICE: Final = re.compile(r":\s*(\d{1,4})(?::\s*(\d{1,4}))?")
_STOPS: Final = frozenset(" \t\r\n;&|()<>")
_GIVEN: Final = {"HOME": "~", "SHELL": "sh", "BASH": "bash"}


class Budget:
    """Characters that may still be looked at, so that expansion stays linear in the command's length."""

    def __init__(self, length: int) -> None:
        self._left = 16 * length + 20_000

    def spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise TooTangled


class WordReader(ABC):
    """Knows words; `script` is given by the reader of commands, since either holds the other."""

    def __init__(
        self, text: str, variables: MutableMapping[str, str], budget: Budget, depth: int = 0
    ) -> None:
        budget.spend(len(text))
        self._text = text
        self._at = 0
        self._variables = variables
        self._budget = budget
        self._depth = depth
        self._check_depth()

    @abstractmethod
    def script(self, until: str = "") -> Script: ...

    def words(self) -> list[Word]:
        """The next word, if there is one; several when a variable's value or braces make it so."""
        builder = WordBuilder(self._variables.get("IFS"))
        while self._at < len(self._text) and self._text[self._at] not in _STOPS:
            self._piece(builder)
        return builder.words()

    def expanded(self) -> WordBuilder:
        """All of the text as if it stood in double quotes."""
        builder = WordBuilder()
        self._double_quoted(builder, "")
        return builder

    def _piece(self, builder: WordBuilder) -> None:
        text, here = self._text, self._text[self._at]
        if match := _PLAIN.match(text, self._at):
            builder.bare(match[0])
            self._at = match.end()
            if text.startswith("(", self._at) and builder.is_array_start:
                self._array(builder)
        elif here == "\\":
            if not text.startswith("\\\n", self._at):
                builder.quoted(text[self._at + 1 : self._at + 2])
            self._at += 2
        elif here == "'":
            self._at += 1
            builder.quoted(self._up_to("'"))
        elif here == '"':
            self._at += 1
            self._double_quoted(builder, '"')
        elif here in "$`":
            self._expansion(builder, quoted=False)
        else:
            builder.bare(here)
            self._at += 1

    def _double_quoted(self, builder: WordBuilder, end: str) -> None:
        text = self._text
        builder.quoted("")
        while self._at < len(text):
            here = text[self._at]
            if here == end:
                self._at += 1
                return
            if here in "$`":
                self._expansion(builder, quoted=True)
            elif here == "\\" and text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                builder.quoted(text[self._at + 1].replace("\n", ""))
                self._at += 2
            elif end == "}" and here in "'\"":
                self._at += 1
                builder.quoted(self._up_to(here))
            else:
                builder.quoted(here)
                self._at += 1

    def _up_to(self, end: str) -> str:
        start = self._at
        close = self._text.find(end, start)
        close = len(self._text) if close < 0 else close
        self._at = close + 1
        return self._text[start:close]

    def _up_to_unescaped(self, end: str) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] != end:
            self._at += 2 if self._text[self._at] == "\\" else 1
        inner = self._text[start : self._at]
        self._at += 1
        return inner

    def _array(self, builder: WordBuilder) -> None:
        self._at += 1
        words = [word for pipeline in self.nested() for command in pipeline for word in command.words]
        builder.quoted(" ".join(word.text for word in words))

    def nested(self) -> Script:
        """Up to the closing parenthesis; the opening one is behind us."""
        self._depth += 1
        self._check_depth()
        script = self.script(until=")")
        self._depth -= 1
        return script

    def _check_depth(self) -> None:
        if self._depth > _DEEPEST:
            raise TooTangled

    # --- expansions -------------------------------------------------------------------

    def _expansion(self, builder: WordBuilder, quoted: bool) -> None:
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        if text[at] == "`":
            self._at += 1
            self._substitution(builder, quoted, self._backquoted())
        elif following == "(":
            self._at += 2
            self._substitution(builder, quoted, self.nested())
        elif following == "{":
            self._at += 2
            self._parameter(builder, quoted)
        elif following == "'" and not quoted:
            self._at += 2
            builder.quoted(unescaped(self._up_to_unescaped("'")))
        elif following == '"' and not quoted:
            self._at += 1
        elif match := _NAME.match(text, at + 1):
            self._at = match.end()
            self._variable(builder, match[0], quoted)
        elif following and following in "0123456789@*#?$!-":
            self._at += 2
            self._variable(builder, following, quoted)
        else:
            self._at += 1
            builder.quoted("$")

    def _substitution(self, builder: WordBuilder, quoted: bool, script: Script) -> None:
        builder.runs(script)
        output = printed(script[0]) if len(script) == 1 else None
        if output is None:
            builder.unknown("$(…)", several=not quoted)
        else:
            self._budget.spend(len(output))
            builder.value(output.rstrip("\n"), quoted)

    def _backquoted(self) -> Script:
        inner = re.sub(r"\\([`$\\])", r"\1", self._up_to_unescaped("`"))
        return type(self)(inner, self._variables, self._budget, self._depth + 1).script()

    def _parameter(self, builder: WordBuilder, quoted: bool) -> None:
        """`${X}`, `${X:-default}`, `${X:0:2}`, `${!X}`; any other form has a value that is not known."""
        inside = WordBuilder()
        self._depth += 1
        self._check_depth()
        self._double_quoted(inside, "}")
        self._depth -= 1
        content = inside.text
        for word in inside.words():
            for script in word.scripts:
                builder.runs(script)
        match = _PARAMETER.fullmatch(content)
        if not match or match[1] == "#":
            builder.unknown("${…}")
            return
        name = self._variables.get(match[2], "") if match[1] else match[2]
        self._variable(builder, name, quoted and "[@]" not in content, match[3])

    def _variable(self, builder: WordBuilder, name: str, quoted: bool, operation: str = "") -> None:
        value = self._variables.get(name, _GIVEN.get(name))
        quoted = quoted and name != "@"
        if name == "IFS" and not quoted:
            builder.split()
        elif value is None and operation.startswith((":-", ":=", "-", "=")):
            builder.value(operation.lstrip(":")[1:], quoted)
        elif value is not None and operation[:1] in ("", ":", "-", "=", "?"):
            self._budget.spend(len(value))
            builder.value(_sliced(value, operation), quoted)
        else:
            builder.unknown("" if name in "@*" else f"${name}")


def _sliced(value: str, operation: str) -> str:
    match = _SLICE.fullmatch(operation)
    if not match:
        return value
    start = int(match[1])
    return value[start : start + int(match[2])] if match[2] else value[start:]

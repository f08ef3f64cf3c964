"""Reads a shell script into commands, as far as it can be known without running it.

What the grammar of a shell says of loops and functions is read loosely: every body counts as run.
"""

import re
from collections.abc import Callable, MutableMapping
from typing import Final

from contextd.domain.command_risk.syntax import Command, Pipeline, Redirect, Script, Word
from contextd.domain.command_risk.word_reader import Budget, WordReader

_LONGEST_VALUE: Final = 4_096
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
_REDIRECT: Final = re.compile(r"\d*(<<<|<<-?|<>|<&|>>|>&|>\||>|<)|&>>?")
_FUNCTION: Final = re.compile(r"\([ \t]*\)")
_OPENERS: Final = frozenset("if then else elif while until do ! { coproc".split())
_DECLARERS: Final = frozenset("export declare typeset local readonly".split())


class _Draft:
    """What is read so far: finished pipelines, the one in hand, and its last command."""

    def __init__(self, finish: Callable[[Command], None]) -> None:
        self.script: Script = []
        self.pipeline: Pipeline = []
        self.command = Command()
        self.parentheses = 0
        self._finish = finish

    def end_command(self) -> None:
        if self.command.words or self.command.redirects or self.command.assigned:
            self._finish(self.command)
            self.pipeline.append(self.command)
        self.command = Command()

    def end_pipeline(self) -> None:
        self.end_command()
        if self.pipeline:
            self.script.append(self.pipeline)
        self.pipeline = []

    def drop_choices(self) -> None:
        """`start|reboot)` in a case is no pipeline; what its words substitute runs all the same."""
        self.end_command()
        scripts = [script for command in self.pipeline for word in command.words for script in word.scripts]
        self.script.extend(pipeline for script in scripts for pipeline in script)
        self.pipeline = []


class Reader(WordReader):
    def __init__(
        self, text: str, variables: MutableMapping[str, str], budget: Budget, depth: int = 0
    ) -> None:
        super().__init__(text, variables, budget, depth)
        self.functions: set[str] = set()
        self._documents: list[tuple[Command, Word, bool]] = []
        self._loops = 0
        self._cases = False

    def script(self, until: str = "") -> Script:
        """Everything up to the end, or to the parenthesis that closes a substitution."""
        draft = _Draft(self._remember)
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == ")" and until and not draft.parentheses:
                self._at += 1
                break
            self._step(here, draft)
        draft.end_pipeline()
        self._read_documents()
        return draft.script

    def _step(self, here: str, draft: _Draft) -> None:
        text = self._text
        if here in " \t\r":
            self._at += 1
        elif text.startswith("\\\n", self._at):
            self._at += 2
        elif here == "#":
            self._at = self._line_end()
        elif here in "()":
            self._parenthesis(here, draft)
        elif text.startswith(("<(", ">("), self._at):
            self._at += 2
            self._add(draft.command, [Word("/dev/fd/63", open=True, scripts=(self.nested(),))])
        elif match := _REDIRECT.match(text, self._at):
            self._redirect(draft.command, match)
        elif here in "&;|\n":
            self._operator(here, draft)
        else:
            self._add(draft.command, self.words())

    def _parenthesis(self, here: str, draft: _Draft) -> None:
        defines = _FUNCTION.match(self._text, self._at) if len(draft.command.words) == 1 else None
        if defines:
            self.functions.add(draft.command.words[0].text)
            draft.command = Command()
            self._at = defines.end()
            return
        self._at += 1
        if here == ")" and not draft.parentheses and self._cases:
            draft.drop_choices()
            return
        draft.parentheses = max(0, draft.parentheses + (1 if here == "(" else -1))
        draft.end_pipeline()
        draft.command.grouped = here == ")"

    def _operator(self, here: str, draft: _Draft) -> None:
        pair = self._text[self._at : self._at + 2]
        self._at += 2 if pair in ("&&", "||", "|&", ";;") else 1
        if here == "|" and pair != "||":
            draft.end_command()
        else:
            draft.end_pipeline()
        if here == "\n":
            self._read_documents()

    # --- commands ---------------------------------------------------------------------

    def _add(self, command: Command, words: list[Word]) -> None:
        for word in words:
            if command.words:
                self._add_further(command, word)
            elif match := _ASSIGNMENT.match(word.text):
                command.assigned.append(word)
                self._assign(match, word)
            elif word.open or word.text not in _OPENERS:
                self._loops -= word.text == "done"
                command.repeats = self._loops > 0
                command.words.append(word)
            else:
                self._loops += word.text == "do"

    def _add_further(self, command: Command, word: Word) -> None:
        if command.words[0].text == "function" and word.text == "{":
            self.functions.add(command.words[-1].text)
            command.words.clear()
        else:
            command.words.append(word)

    def _remember(self, command: Command) -> None:
        """What the commands after this one may refer to."""
        texts = [word.text for word in command.words]
        match texts:
            case [declarer, *_] if declarer in _DECLARERS:
                for word in command.words[1:]:
                    if match := _ASSIGNMENT.match(word.text):
                        self._assign(match, word)
            case ["for", name, "in", only] if not (command.words[3].open or command.words[3].glob):
                self._variables[name] = only
            case ["for" | "read" | "unset", *names]:
                for name in names:
                    self._variables.pop(name, None)
            case ["case", *_]:
                self._cases = True
            case ["set", "--", *values]:
                self._variables.update({"@": " ".join(values), "*": " ".join(values)})
                self._variables.update({str(index): text for index, text in enumerate(values[:9], 1)})

    def _assign(self, match: re.Match[str], word: Word) -> None:
        name, value = match[1], word.text[match.end() :]
        if word.open or len(value) > _LONGEST_VALUE:
            self._variables.pop(name, None)
        elif match[0].endswith("+="):
            self._variables[name] = (self._variables.get(name, "") + value)[-_LONGEST_VALUE:]
        else:
            self._variables[name] = value

    # --- redirections -----------------------------------------------------------------

    def _redirect(self, command: Command, match: re.Match[str]) -> None:
        self._at = match.end()
        sign = match[0].lstrip("0123456789")
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        start = self._at
        target, *rest = self.words() or [Word("")]
        if sign == "<<<":
            command.stdin = target.text
        elif sign.startswith("<<"):
            literal = any(mark in self._text[start : self._at] for mark in "'\"\\")
            self._documents.append((command, target, literal))
        command.redirects.append(Redirect(sign, target))
        self._add(command, rest)

    def _read_documents(self) -> None:
        """The bodies of here-documents start on the line after the command."""
        waiting, self._documents = self._documents, []
        for command, delimiter, literal in waiting:
            command.stdin = self._document(delimiter.text)
            if not literal:
                inner = Reader(command.stdin, self._variables, self._budget, self._depth + 1).expanded()
                command.stdin = inner.text
                command.redirects.extend(Redirect("<<", word) for word in inner.words())

    def _document(self, delimiter: str) -> str:
        lines: list[str] = []
        while self._at < len(self._text):
            end = self._line_end()
            line = self._text[self._at : end]
            self._at = end + 1
            if line.strip() == delimiter:
                break
            lines.append(line)
        return "\n".join(lines)

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

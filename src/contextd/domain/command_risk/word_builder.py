"""Collects one word, remembering which of its characters were quoted."""

from itertools import pairwise
from typing import Final

from contextd.domain.command_risk.syntax import Script, Word

_MOST_BRACED: Final = 10_000
_BLANKS: Final = " \t\n"


class WordBuilder:
    """What is read may turn out to be several words: a variable's value is split, braces multiply."""

    def __init__(self, separators: str | None = None) -> None:
        self._separators = _BLANKS if separators is None else separators
        self._characters: list[str] = []
        self._bare: list[bool] = []
        self._started = False
        self._open = False
        self._several = False
        self._scripts: list[Script] = []
        self._done: list[Word] = []

    @property
    def text(self) -> str:
        return "".join(self._characters)

    @property
    def is_array_start(self) -> bool:
        return self._characters[-1:] == ["="] and self._bare[-1]

    def bare(self, text: str) -> None:
        self._add(text, True)

    def quoted(self, text: str) -> None:
        self._add(text, False)

    def value(self, text: str, quoted: bool) -> None:
        """A known value of a variable or a substitution."""
        if quoted:
            self.quoted(text)
            return
        part: list[str] = []
        for character in text:
            if character in self._separators:
                self._add("".join(part), True)
                part.clear()
                self.split()
            else:
                part.append(character)
        if part:
            self._add("".join(part), True)

    def unknown(self, shown: str = "", several: bool = False) -> None:
        """A value that is known only when it runs; an unquoted one may become several words."""
        self._open = True
        self._several = self._several or several
        self._add(shown, False)

    def runs(self, script: Script) -> None:
        self._scripts.append(script)

    def split(self) -> None:
        if self._characters or self._started:
            self._finish()

    def words(self) -> list[Word]:
        self.split()
        return self._done

    def _add(self, text: str, bare: bool) -> None:
        self._started = self._started or not bare or bool(text)
        self._characters.extend(text)
        self._bare.extend([bare] * len(text))

    def _finish(self) -> None:
        spelled = list(zip(self._characters, self._bare, strict=True))
        for characters in _braces_expanded(spelled):
            text = "".join(character for character, _ in characters)
            glob = self._several or any(bare and each in "*?[" for each, bare in characters)
            self._done.append(Word(text, glob, self._open, tuple(self._scripts)))
        self._characters, self._bare, self._scripts = [], [], []
        self._started = self._open = self._several = False


_Spelled = list[tuple[str, bool]]


def _braces_expanded(characters: _Spelled) -> list[_Spelled]:
    """`{rm,-rf}` is two words. Past a size that nobody writes, braces stay as they are."""
    done: list[_Spelled] = []
    waiting = [characters]
    spent = 0
    while waiting:
        spelled = waiting.pop()
        group = _first_group(spelled) if spent < _MOST_BRACED else None
        if group is None:
            done.append(spelled)
        else:
            waiting.extend(reversed(group))
            spent += sum(map(len, group))
    return done


def _first_group(spelled: _Spelled) -> list[_Spelled] | None:
    start = -1
    commas: list[int] = []
    for at, (character, bare) in enumerate(spelled):
        if not bare or character not in "{,}":
            continue
        if character == "{":
            start, commas = at, []
        elif character == "," and start >= 0:
            commas.append(at)
        elif character == "}" and commas:
            return _alternatives(spelled, [start, *commas, at])
    return None


def _alternatives(spelled: _Spelled, edges: list[int]) -> list[_Spelled] | None:
    before, after = spelled[: edges[0]], spelled[edges[-1] + 1 :]
    if len(edges) * (len(before) + len(after)) > _MOST_BRACED:
        return None
    return [before + spelled[left + 1 : right] + after for left, right in pairwise(edges)]

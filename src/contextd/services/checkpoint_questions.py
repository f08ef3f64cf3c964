"""A checkpoint tests itself: questions are made of its facts, and a resume is scored by those it answers.

The test is mechanical. It tells that words survived, not that a reader would understand them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

from contextd.domain.records import Json
from contextd.domain.words import query_words
from contextd.services.checkpoint_facts import KINDS, Fact, Kind
from contextd.services.noted_blocks import blocks

MOST_QUESTIONS: Final = 60
_MOST_FILES: Final = 25
_LEAST_WEIGHT: Final = 0.35
"""A fact that is lighter was said once, long ago, or only looked at something: nobody asks for it."""
_ENOUGH: Final = 0.8
"""Of a statement's telling words, in one paragraph: the resume may say it in other small words."""
_MOST_WORDS: Final = 2_000
"""Of a paragraph: more than level context could hold."""
_SHORT: Final = 100
_BLANK: Final = "____"
_LEAST_WORDS: Final = 3

_TELLING: Final = re.compile(
    r"`[^`]{2,60}`|\b\w+(?:[._/-]\w+)+|\b[A-Z]\w*[A-Z]\w*|(?<=[a-z,] )[A-Z]\w+|\b\d[\w.]*\w"
)
_WORD: Final = re.compile(r"\w{3,}")
_PROMPT_ALONE: Final = re.compile(r"\W*____\W*\Z")


@dataclass(frozen=True, slots=True)
class Question:
    kind: Kind
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How much of what a checkpoint knows its resume would answer."""

    questions: int
    unanswered: tuple[Question, ...] = ()

    @property
    def share(self) -> float | None:
        """None without a question: never an invented figure."""
        return round(1 - len(self.unanswered) / self.questions, 2) if self.questions else None

    def as_json(self) -> dict[str, Json]:
        missing: dict[str, Json] = {**Counter(question.kind for question in self.unanswered)}
        return {"fidelity": self.share, "questions": self.questions, "unanswered": missing}


def asked(facts: Sequence[Fact], most: int = MOST_QUESTIONS) -> list[Fact]:
    """The facts that are asked for, of facts that come weightiest first.

    The kinds take turns, so that none crowds out another.
    """
    by_kind = [
        [fact for fact in facts if fact.kind == kind and fact.weight >= _LEAST_WEIGHT][: _most(kind)]
        for kind in KINDS
    ]
    turns = chain.from_iterable(zip_longest(*by_kind))
    return [fact for fact in turns if fact is not None][:most]


def _most(kind: Kind) -> int:
    """Beyond some, files are a list of the project."""
    return _MOST_FILES if kind == "file" else MOST_QUESTIONS


def question(fact: Fact) -> Question:
    """The line or sentence that the fact was drawn from, with a blank in it."""
    if fact.kind == "command":
        shown = _blanked(fact.said, fact.text)
        if _PROMPT_ALONE.match(shown):
            shown = f"Which {fact.text.split()[0]} command was run?"
    elif fact.kind == "file":
        shown = _blanked(fact.said, fact.text)
        if len(_WORD.findall(shown.replace(_BLANK, ""))) < _LEAST_WORDS:
            shown = f"Which file of {fact.text.rpartition('/')[0] or 'the project'} was worked on?"
    else:
        shown = _cloze(fact.text)
    return Question(fact.kind, shown, fact.text)


def scored(questions: Sequence[Question], texts: Iterable[str]) -> Fidelity:
    """How many of the questions the texts answer, taken together."""
    known = Answers(texts)
    return Fidelity(
        len(questions), tuple(each for each in questions if not known.has(each.kind, each.answer))
    )


class Answers:
    """Texts that may answer questions."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._plain = ""
        self._paragraphs: list[set[str]] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        # A command may go on behind a backslash, and is then told without it.
        self._plain += "\n" + " ".join(text.replace("\\\n", " ").split())
        self._paragraphs += [set(query_words(block.text, most=_MOST_WORDS)) for block in blocks(text)]

    def has(self, kind: Kind, answer: str) -> bool:
        """A command and a file letter by letter; a statement by most of its words in one paragraph.

        An error by all of them: two lines of a log often differ in one word.
        """
        if kind in ("command", "file"):
            return self._has_whole(" ".join(answer.split()))
        words = set(query_words(answer, most=400))
        if not words:
            return " ".join(answer.split()) in self._plain
        enough = len(words) * (1.0 if kind == "error" else _ENOUGH)
        return any(len(words & each) >= enough for each in self._paragraphs)

    def _has_whole(self, answer: str) -> bool:
        """`make test` is not answered by `make test-auth`, nor `b.py` by `ab.py`.

        One that was too long for a fact is answered by as much as the fact says.
        """
        is_cut = answer.endswith("…")
        answer = answer.removesuffix("…")
        start = self._plain.find(answer)
        while start >= 0:
            end = start + len(answer)
            before, after = self._plain[start - 1 : start], self._plain[end : end + 2]
            if not _continues(before) and (is_cut or not _goes_on(after)):
                return True
            start = self._plain.find(answer, start + 1)
        return False


def _continues(char: str) -> bool:
    return char.isalnum() or char in ("_", "-") if char else False


def _goes_on(after: str) -> bool:
    """`app.py` is not answered by `app.py.bak`; a full stop after it is no matter."""
    return _continues(after[:1]) or (len(after) == 2 and after[0] == "." and after[1].isalnum())


def _blanked(said: str, answer: str) -> str:
    start = said.find(answer)
    if start < 0:
        return _window(said, len(said) // 2)
    return _window(said[:start] + _BLANK + said[start + len(answer) :], start)


def _cloze(text: str) -> str:
    """With its most particular part blanked: a name, a number, else its longest word."""
    first = text.find(" ") + 1
    found = _TELLING.search(text, first)
    if found is None:
        words = list(_WORD.finditer(text, first))
        found = max(words, key=lambda word: len(word.group())) if words else None
    if found is None:
        return _window(text, 0)
    return _window(text[: found.start()] + _BLANK + text[found.end() :], found.start())


def _window(text: str, around: int) -> str:
    """At most _SHORT characters, with this place in them."""
    if len(text) <= _SHORT:
        return text
    start = max(0, min(around - _SHORT // 2, len(text) - _SHORT + 2))
    shown = text[start : start + _SHORT - 2].strip()
    return f"{'…' if start else ''}{shown}{'…' if start + _SHORT - 2 < len(text) else ''}"

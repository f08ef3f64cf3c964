"""Sentences that a later session needs: what was decided, what is still to do, which errors were solved.

In English; decisions and steps in German too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from contextd.services.noted_blocks import Block

Saying = Literal["decision", "next_step", "error"]

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+(?=[A-ZÄÖÜ`\"'(\[*_])"
    r"|(?<=[.!?;])\s+(?=(?i:next|todo|open|decision|decided|offen|noch offen|entschieden|entscheidung"
    r"|n(?:ä|ae)chster? schritte?|als n(?:ä|ae)chstes)\b[^.:;]{0,20}:)"
)
_LONGEST_SENTENCE: Final = 1_000
_LEAST_WORDS: Final = 3
"""Of a sentence without a label; behind one, a word is enough."""
_NOTHING: Final = re.compile(
    r"\W*(?:none|nothing|no|n/?a|yes|true|false|tbd|nichts|keine?|ja|nein)?\W*\Z", re.I
)
_MARKED: Final = 2.0
"""What stands behind `Decision:` or under such a heading; a telling verb is worth 1.3, a hint 0.6."""
_TOLD: Final = 1.3
_HINTED: Final = 0.6

_DECISION_LABEL: Final = re.compile(
    r"\W{0,4}(?:decisions?|decided|adr(?:[- ]?\d+)?|resolution|conclusion|choice|chosen|agreed|rule"
    r"|constraint|entschieden|entscheidung(?:en)?|beschlossen|beschluss|festgelegt)\b[^:.]{0,40}:[\s*_]{0,4}(?=\S)",
    re.IGNORECASE,
)
_STEP_LABEL: Final = re.compile(
    r"\W{0,4}(?:next(?: steps?| up| session)?|to-?do|to do|open(?: questions?| ends?| issues?| points?)?"
    r"|remaining|(?:still |left )to do|still open|blocked(?: by| on)?|fixme|follow[- ]?ups?|pending"
    r"|outstanding|unresolved|n(?:ä|ae)chste[rs]? schritte?|als n(?:ä|ae)chstes|noch zu tun"
    r"|(?:noch )?offen(?:e (?:punkte|fragen|enden))?)"
    r"(?:\s*\([^)]{0,30}\))?\s*[:\u2013\u2014][\s*_]{0,4}(?=\S)",
    re.IGNORECASE,
)
_LABELS: Final[tuple[tuple[Saying, re.Pattern[str]], ...]] = (
    ("next_step", _STEP_LABEL),
    ("decision", _DECISION_LABEL),
)
_HEADINGS: Final[tuple[tuple[Saying, re.Pattern[str]], ...]] = (
    (
        "decision",
        re.compile(
            r"\b(?:decisions?|decided|adrs?|rationale|constraints?|agreed|entscheidung(?:en)?|entschieden"
            r"|beschl(?:ossen|uss|üsse))\b"
        ),
    ),
    (
        "next_step",
        re.compile(
            r"\b(?:next|to-?dos?|to do|open (?:questions?|ends?|issues?|points?)|remaining|follow[- ]?ups?"
            r"|blocked|blockers?|outstanding|pending|unresolved|n(?:ä|ae)chste[rs]? schritte?"
            r"|als n(?:ä|ae)chstes|offen|offene (?:punkte|fragen|enden)|noch zu tun)\b"
        ),
    ),
)

_DECIDES: Final = re.compile(
    r"\b(?:decided|chose|chosen|opted|settled on|agreed|went with|going with"
    r"|switch(?:ed|ing) (?:to|from|over)|instead of|rather than|in favou?r of|reject(?:ed|ing)"
    r"|ruled out|dropped|ditched|abandoned"
    r"|standardi[sz]ed on|(?:we|i'll|i will|we'll|we will) (?:use|keep|stay with|stick (?:with|to))"
    r"|sticking (?:with|to)|stays? (?:as|where|with)|replaced .{1,60}? (?:with|by)"
    r"|must (?:not|never|stay|remain)|mustn't"
    r"|entschieden|beschlossen|wir (?:nehmen|verwenden|behalten|bleiben bei)|(?:an)?statt (?=\w)"
    r"|stattdessen|anstelle|verworfen|d(?:arf|(?:ü|ue)rfen) nicht)\b",
    re.IGNORECASE,
)
_HINTS: Final = re.compile(
    r"\b(?:because|kept|must|on purpose|deliberately|by design|weil|absichtlich)\b"
    r"|(?:\A|[,;:] |\b(?:so|and|please|but|we) )(?:do not|don't|never|avoid|keep)\b",
    re.IGNORECASE,
)
_REQUIRES: Final = re.compile(
    r"\b(?:please|must|(?:have|has|needs?) to|wants?|should|only|never|not?|nobody|nothing|don't)\b",
    re.IGNORECASE,
)
"""How a person puts what the work must do, where a decision would be told."""
_STEPS: Final = re.compile(
    r"\b(?:still (?:needs?|have to|has to|missing|open|to do|fails?|failing|broken)|remains? to|left to do"
    r"|not (?:done |finished |implemented |written |tested )?yet\b|yet to|blocked (?:by|on)|todo"
    r"|next (?:step|session|up|i|we|comes?)|needs? to be|after that we"
    r"|(?:remember|(?:do not|don't) forget) to"
    r"|(?:we|i|you|someone|somebody) (?:should|need to|have to) (?:also |still |then |probably |really )?"
    r"(?:ask|tell|check|test|try|add|write|fix|do|talk|measure|update|document|clean|move|rename|remove"
    r"|deploy|ship|release|review|verify|finish|revisit|investigate|follow|file|create|send|ping|notify"
    r"|migrate|refactor|split|bump|upgrade|merge|rebase|schedule|discuss|decide|find out|figure out)"
    r"|als n(?:ä|ae)chstes|noch (?:offen|zu tun|nicht (?:fertig|getestet|erledigt))|fehl(?:t|en) noch"
    r"|m(?:uss|(?:ü|ue)ssen) (?:wir )?noch|nicht vergessen)\b"
    r"|\A\W{0,3}(?:tomorrow|next week|morgen|n(?:ä|ae)chste woche)\b(?!'s| is| was)"
    r"|\b(?:tomorrow|next week|morgen)\W{0,3}\Z",
    re.IGNORECASE,
)
_WRONG: Final = re.compile(
    r"\b(?:errors?|exceptions?|traceback|fail(?:s|ed|ing|ure)|crash(?:es|ed)?|bug|broke|regression|wrong"
    r"|\w+(?:Error|Exception))\b",
    re.IGNORECASE,
)
_SOLVED: Final = re.compile(
    r"\b(?:fix(?:ed|es)|caused by|the cause (?:is|was)|root cause|turned out|was due to|solved|resolved"
    r"|came from|comes from|the reason (?:is|was)|because)\b",
    re.IGNORECASE,
)
_NARRATION: Final = re.compile(
    r"\W*(?:ok(?:ay)?[,. ]+|good[,. ]+|now[, ]+|first[, ]+|then[, ]+|so[, ]+)?"
    r"(?:let me|let's (?:see|look|check|try|run|read)|i(?:'ll| will| am going to|'m going to)? "
    r"(?:look|check|see|run|read|start|open|search|try)|looking|checking|running|reading|trying)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Statement:
    kind: Saying
    text: str
    strength: float
    cue: int = 0
    """Where in the text it decides."""


def sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


def statements(block: Block) -> Iterator[Statement]:
    """Of prose; in code and in what a tool printed nobody says anything."""
    if block.form != "prose" or block.is_done:
        return
    under = "next_step" if block.is_done is False else _under(block.heading)
    # What stands under such a heading is one item, however many sentences it has.
    for sentence in [block.text] if under else sentences(block.text):
        if len(sentence) <= _LONGEST_SENTENCE:
            said = _statement(sentence.strip(), under)
            if said is None and block.is_asked and _REQUIRES.search(sentence):
                said = Statement("decision", sentence.strip(), 1.0)
            if said and _says_something(said, sentence):
                yield said


def _says_something(said: Statement, sentence: str) -> bool:
    if said.strength == _MARKED and said.text != sentence.strip():
        return not _NOTHING.match(said.text)
    return len(_WORD.findall(said.text)) >= _LEAST_WORDS


def _under(heading: str) -> Saying | None:
    return next((kind for kind, words in _HEADINGS if words.search(heading)), None) if heading else None


def _statement(sentence: str, under: Saying | None) -> Statement | None:
    for kind, words in _LABELS:
        if label := words.match(sentence):
            return Statement(kind, sentence[label.end() :], _MARKED)
    if under:
        return Statement(under, sentence, _MARKED)
    if sentence.endswith("?"):
        return None
    if found := _DECIDES.search(sentence):
        return Statement("decision", sentence, _TOLD, found.start())
    if _NARRATION.match(sentence):
        return None
    return _hinted(sentence)


def _hinted(sentence: str) -> Statement | None:
    if (wrong := _WRONG.search(sentence)) and _SOLVED.search(sentence):
        return Statement("error", sentence, 1.0, wrong.start())
    if step := _STEPS.search(sentence):
        return Statement("next_step", sentence, 1.0, step.start())
    if hint := _HINTS.search(sentence):
        return Statement("decision", sentence, _HINTED, hint.start())
    return None

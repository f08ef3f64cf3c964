"""What a checkpoint knows, as short facts: decisions, commands, next steps, errors, files.

No language model is asked. A fact is weightier the oftener and the later it is mentioned.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Final, Literal

from contextd.domain.records import Json
from contextd.services.named_commands import commands, commands_of_value
from contextd.services.named_files import files
from contextd.services.noted_blocks import PROMPT, Block, blocks, has_turns
from contextd.services.shown_errors import shown_errors
from contextd.services.statements import statements

Kind = Literal["decision", "command", "file", "next_step", "error"]
KINDS: Final[tuple[Kind, ...]] = ("decision", "command", "next_step", "error", "file")
Source = Literal["description", "content", "context", "state"]

MAX_TEXT: Final = 200
_MOST: Final = 120
"""Of each kind: more than any resume could hold."""
_EARLY: Final[Mapping[Kind, float]] = {
    "decision": 0.6,
    "command": 0.5,
    "file": 0.4,
    "next_step": 0.1,
    "error": 0.4,
}
"""Worth of what was last said at the beginning; 1 at the end: a decision holds, a step is done."""
_FEW_FILES: Final = 40
_LISTED: Final = 0.3
"""Worth of a file that one place alone names, where there are more such files: it is a log or a listing."""
_PRINTED: Final = 1.0
_PRINTED_ON_THE_WAY: Final = 0.5
"""An error in a transcript: those of its first half are not worth asking for."""
_SHORT_VALUE: Final = 300
_DECISION_KEY: Final = re.compile(r"decision|decided|rationale|constraint|adr\b", re.IGNORECASE)
_STEP_KEY: Final = re.compile(
    r"next|to_?do|open|remaining|blocked|blocker|pending|follow_?up", re.IGNORECASE
)
_WORD: Final = re.compile(r"\w+")
_CHANGED: Final = re.compile(r"\+\+\+ b/|(?:edited|wrote|created|updated)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    kind: Kind
    text: str
    """On one line, of at most MAX_TEXT characters."""
    said: str
    """The line or sentence that it was drawn from, shortened like the text."""
    source: Source
    line: int
    """Where it was mentioned last, from 1; in `context` and `state` always 1."""
    mentions: int
    weight: float


@dataclass(frozen=True, slots=True)
class _Mention:
    kind: Kind
    text: str
    said: str
    strength: float
    source: Source
    line: int
    late: float
    """0 at the beginning of its source, 1 at the end; what stands outside of `content` is of the end."""


def facts(
    description: str = "",
    content: str = "",
    context: Mapping[str, Json] | None = None,
    state: Mapping[str, Json] | None = None,
    root: str = "",
) -> tuple[Fact, ...]:
    """The weightiest of each kind, weightiest first. Time is linear in what is given.

    `root` is the project's folder: its files are named from there.
    """
    known = _Known()
    for mention in _of_text(description, "description", root):
        known.add(mention)
    for mention in _of_values(context or {}, "context", root):
        known.add(mention)
    for mention in _of_values(state or {}, "state", root):
        known.add(mention)
    for mention in _of_text(content, "content", root):
        known.add(mention)
    for mention in _of_output(content):
        known.add(mention)
    return known.facts()


class _Known:
    """Mentions of the same thing, put together."""

    def __init__(self) -> None:
        self._mentions: dict[tuple[Kind, str], list[_Mention]] = {}

    def add(self, mention: _Mention) -> None:
        key = _key(mention)
        if key:
            self._mentions.setdefault((mention.kind, key), []).append(mention)

    def facts(self) -> tuple[Fact, ...]:
        self._join_bare_names()
        made: dict[Kind, list[Fact]] = {kind: [] for kind in KINDS}
        for mentions in self._mentions.values():
            fact = _fact(mentions)
            made[fact.kind].append(fact)
        made["file"] = self._without_listings(made["file"])
        return tuple(fact for kind in KINDS for fact in nlargest(_MOST, made[kind], key=_by_weight))

    def _without_listings(self, files: list[Fact]) -> list[Fact]:
        """With files that only one place names worth little, if they are many."""
        listed = {fact.text for fact in files if self._is_listed(self._mentions["file", fact.text])}
        if len(listed) <= _FEW_FILES:
            return files
        return [
            replace(fact, weight=fact.weight * _LISTED) if fact.text in listed else fact for fact in files
        ]

    def _is_listed(self, mentions: Sequence[_Mention]) -> bool:
        first = mentions[0]
        return first.source == "content" and all(
            each.strength <= 1 and (each.source, each.line) == (first.source, first.line)
            for each in mentions
        )

    def _join_bare_names(self) -> None:
        """`auth.py` is `src/auth.py` where only one path ends so."""
        paths: dict[str, list[str]] = {}
        for kind, key in self._mentions:
            if kind == "file" and "/" in key:
                paths.setdefault(key.rpartition("/")[2], []).append(key)
        for name, among in paths.items():
            if len(among) == 1 and ("file", name) in self._mentions:
                self._mentions["file", among[0]] += self._mentions.pop(("file", name))


def _fact(mentions: Sequence[_Mention]) -> Fact:
    first, last = mentions[0], max(mentions, key=lambda mention: mention.late)
    told = max(mentions, key=lambda mention: (mention.strength, mention.late))
    as_strong = sum(mention.strength >= told.strength / 2 for mention in mentions)
    early = _EARLY[first.kind]
    weight = told.strength * (1 + math.log2(as_strong)) * (early + (1 - early) * last.late)
    return Fact(first.kind, first.text, told.said, last.source, last.line, len(mentions), weight)


def _by_weight(fact: Fact) -> tuple[float, int]:
    """Of facts that weigh about the same, the one that was said first."""
    return round(fact.weight, 1), -fact.line


def _key(mention: _Mention) -> str:
    """By what two mentions are the same."""
    if mention.kind in ("command", "file"):
        return mention.text
    return " ".join(_WORD.findall(mention.text.lower()))


def _of_text(text: str, source: Source, root: str) -> Iterator[_Mention]:
    lines = text.count("\n") + 1
    for block in blocks(text):
        late = block.line / lines if source == "content" else 1.0
        yield from _of_block(block, source, late, root)


def _of_output(content: str) -> Iterator[_Mention]:
    """The errors that a tool printed. Of a log all count alike, of a transcript the later ones."""
    is_transcript = has_turns(content)
    strength = _PRINTED_ON_THE_WAY if is_transcript else _PRINTED
    lines = content.count("\n") + 1
    for error in shown_errors(content, newest=is_transcript):
        late = error.line / lines if is_transcript else 1.0
        yield _Mention("error", error.text, error.text, strength, "content", error.line, late)


def _of_block(block: Block, source: Source, late: float, root: str) -> Iterator[_Mention]:
    for named in commands(block):
        yield _Mention(
            "command", one_line(named.text), one_line(named.said), named.strength, source, block.line, late
        )
    for file, start in files(block.text, root, is_shown=block.form == "shown"):
        strength = _worked_on(block)
        yield _Mention("file", file, one_line(block.text, start), strength, source, block.line, late)
    for said in statements(block):
        text = one_line(said.text, said.cue)
        yield _Mention(said.kind, text, text, said.strength, source, block.line, late)


def _worked_on(block: Block) -> float:
    """A file that was changed says more than one that was spoken of, and a tool's output names many."""
    if _CHANGED.match(block.text):
        return 1.5
    return 1.0 if block.form != "shown" or PROMPT.match(block.text) else 0.4


def _of_values(values: Mapping[str, Json], source: Source, root: str) -> Iterator[_Mention]:
    for key, value in leaves(values):
        if "\n" in value or len(value) > _SHORT_VALUE:
            yield from _of_text(value, source, root)
            continue
        mention = _under_key(key, value, source)
        if mention:
            yield mention
        found = list(commands_of_value(key, value))
        for named in found:
            yield _Mention(
                "command", one_line(named.text), one_line(named.said), named.strength, source, 1, 1.0
            )
        for other in _of_block(Block(value, "prose", 1), source, 1.0, root):
            # A value under a key that says what it is says it once.
            if (other.kind != "command" or not found) and (
                other.kind in ("command", "file") or not mention
            ):
                yield other


def _under_key(key: str, value: str, source: Source) -> _Mention | None:
    kind: Kind | None = (
        "decision" if _DECISION_KEY.search(key) else "next_step" if _STEP_KEY.search(key) else None
    )
    if kind is None or len(_WORD.findall(value)) < 2:
        return None
    text = one_line(value)
    return _Mention(kind, text, text, 2.0, source, 1, 1.0)


def leaves(values: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Every text with the key that it stands under. A stack rather than a call: depth costs nothing."""
    waiting: list[tuple[str, Json]] = [*values.items()][::-1]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            waiting += reversed([(f"{key}.{name}" if key else name, each) for name, each in value.items()])
        elif isinstance(value, list):
            waiting += reversed([(key, each) for each in value])


def one_line(text: str, cue: int = 0) -> str:
    """At most MAX_TEXT characters, cut between words, with the cue in them."""
    if len(text) > 4 * MAX_TEXT + cue:
        text = text[: 4 * MAX_TEXT + cue]
    start = text.rfind(" ", 0, max(0, cue - MAX_TEXT // 3)) + 1 if cue > MAX_TEXT // 2 else 0
    line = " ".join(text[start:].split())
    head = "…" if start else ""
    if len(head + line) <= MAX_TEXT:
        return head + line
    room = line[: MAX_TEXT - len(head) - 1]
    return f"{head}{room[: room.rfind(' ')] if ' ' in room[MAX_TEXT // 2 :] else room}…"

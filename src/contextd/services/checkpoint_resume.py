"""A checkpoint as an answer: a line, what to go on with, or all of it, each within its tokens.

At level `context` the description and the context are not all: what only the content and the state hold
is added as essentials, because notes keep decisions and lose commands.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from contextd.domain.ports import TokenCounter
from contextd.domain.records import Json, Record
from contextd.services.checkpoint_facts import Fact, Kind, facts, leaves
from contextd.services.checkpoint_levels import CONTEXT_TOKENS, SUMMARY_TOKENS, Level
from contextd.services.checkpoint_questions import Answers, Fidelity, Question, asked, question, scored
from contextd.services.shortening import Shortener

_ENVELOPE: Final = 60
"""What the pipeline may write beside an answer; at level summary it is the count alone."""
_COUNT: Final = 20
_LEAST: Final = 400
"""Within less there is nothing to share out: the pipeline cuts such an answer like any other."""
_SUMMARY: Final = 110
_PATH: Final = 50
_TAGS: Final = 150
_DESCRIPTION: Final = 1_000
_CONTEXT: Final = 600
_MOST_UNANSWERED: Final = 5
_UNANSWERED: Final = 150

SECTIONS: Final[Mapping[Kind, str]] = {
    "decision": "decisions",
    "command": "commands",
    "next_step": "next_steps",
    "file": "files",
    "error": "errors",
}

_WIDEST_SCORE: Final[Mapping[str, Json]] = {"fidelity": 0.99, "questions": 99}
_FRAME: Final[Mapping[str, Json]] = {
    "description": "",
    "context": {},
    "essentials": {},
    "shortened": ["description", "context"],
}


@dataclass(frozen=True, slots=True)
class Resume:
    """The answer of level context, field by field, and how the checkpoint's own test of it went."""

    answer: Mapping[str, Json]
    fidelity: Fidelity


class Resumption:
    """One checkpoint, to be resumed. Its record must be as it was kept: then no secret is in it."""

    def __init__(self, record: Record, tokens: TokenCounter) -> None:
        self._record = record
        self._shortener = Shortener(tokens)
        self._cost = self._shortener.cost
        fields = record.fields
        self._description = cast(str, fields.get("description") or "")
        self._context = cast(dict[str, Json], fields.get("context") or {})
        self._asked = self._asked_for()

    def context(self, limit: int = CONTEXT_TOKENS, *, with_essentials: bool = True) -> Resume:
        """At most so many tokens. What it cannot answer is told, and gets room to be told.

        Without essentials it is what a checkpoint answers that only repeats what was written for it.
        """
        limit = max(limit, _LEAST) - _ENVELOPE
        questions = [question(fact) for fact in self._asked]
        composed = self._composed(limit, with_essentials)
        fidelity = scored(questions, _strings(composed))
        if fidelity.unanswered:
            composed = self._composed(limit - _UNANSWERED, with_essentials)
            fidelity = scored(questions, _strings(composed))
        composed |= {"fidelity": fidelity.share, "questions": fidelity.questions}
        if fidelity.unanswered:
            composed["unanswered"] = [*self._told(fidelity.unanswered)]
        return Resume(composed, fidelity)

    def _composed(self, limit: int, with_essentials: bool) -> dict[str, Json]:
        """Without its score. Description and context first; the essentials take what they leave."""
        head = {**_head(self._record, "context", self._shortener), "tags": self._fitting_tags()}
        room = limit - self._cost({**head, **_WIDEST_SCORE, **_FRAME})
        wanted = self._cost(self._description), self._cost(self._context)
        whole = Answers([*_strings(head), self._description, *_strings(self._context)])
        needed = self._cost(self._essentials(whole, limit)) if with_essentials else 0
        while True:
            shares = _shares(room, wanted, needed)
            answer = head | self._filled(shares, head, room if with_essentials else 0)
            over = self._cost({**answer, **_WIDEST_SCORE}) - limit
            if over <= 0 or room <= 0:
                return answer
            room -= over

    def _filled(self, shares: tuple[int, int], head: dict[str, Json], room: int) -> dict[str, Json]:
        description = self._shortener.middle(self._description, shares[0])
        context = self._shortener.values(self._context, shares[1])
        answer: dict[str, Json] = {"description": description, "context": context}
        said = Answers([*_strings(head), description, *_strings(context)])
        if essentials := self._essentials(said, room - self._cost(description) - self._cost(context)):
            answer["essentials"] = essentials
        shortened: list[Json] = []
        if description != self._description:
            shortened.append("description")
        if context != self._context:
            shortened.append("context")
        return answer | ({"shortened": shortened} if shortened else {})

    def _essentials(self, known: Answers, room: int) -> dict[str, Json]:
        """What is asked for and not said yet, the kinds in turn, until the room is used up."""
        taken: dict[Kind, list[Json]] = {}
        for fact in self._asked:
            cost = self._cost(fact.text) + (1 if fact.kind in taken else 5)
            if cost <= room and not known.has(fact.kind, fact.text):
                room -= cost
                taken.setdefault(fact.kind, []).append(fact.text)
                known.add(fact.text)
        return {SECTIONS[kind]: taken[kind] for kind in SECTIONS if kind in taken}

    def _told(self, unanswered: Sequence[Question]) -> Iterator[str]:
        """The first few, as far as their room goes."""
        room = _UNANSWERED - 10
        for each in unanswered[:_MOST_UNANSWERED]:
            text = told(each)
            room -= self._cost(text) + 1
            if room < 0:
                return
            yield text

    def _asked_for(self) -> list[Fact]:
        fields = self._record.fields
        return asked(
            facts(
                description=self._description,
                content=cast(str, fields.get("content") or ""),
                context=self._context,
                state=cast(dict[str, Json], fields.get("state") or {}),
                root=cast(str, fields.get("project_path") or ""),
            )
        )

    def _fitting_tags(self) -> list[Json]:
        tags: list[Json] = [*self._record.tags]
        while tags and self._cost(tags) > _TAGS:
            tags.pop()
        return tags


def headline(record: Record, score: Mapping[str, Json], tokens: TokenCounter) -> dict[str, Json]:
    """Level summary: at most SUMMARY_TOKENS."""
    shortener = Shortener(tokens)
    answer = _head(record, "summary", shortener) | dict(score)
    over = shortener.cost(answer) - (SUMMARY_TOKENS - _COUNT)
    if over > 0:
        title = record.title
        room = min(_SUMMARY, shortener.cost(title)) - over
        answer["summary"] = shortener.head(title, max(room, 4))
    return answer


def told(unanswered: Question) -> str:
    return f"{unanswered.kind}: {unanswered.question}"


def _head(record: Record, level: Level, shortener: Shortener) -> dict[str, Json]:
    path = cast(str, record.fields.get("project_path", record.project.path))
    return {
        "id": record.id,
        "level": level,
        "summary": shortener.head(record.title, _SUMMARY),
        "project_path": shortener.tail(path, _PATH),
        "created_at": record.created_at.isoformat(),
    }


def _shares(room: int, wanted: tuple[int, int], essentials: int) -> tuple[int, int]:
    """Tokens for the description and for the context: their share, and what nobody else needs."""
    description, context = min(wanted[0], _DESCRIPTION), min(wanted[1], _CONTEXT)
    spare = max(0, room - description - context - essentials)
    more = min(spare, wanted[0] - description)
    description, spare = description + more, spare - more
    context += min(spare, wanted[1] - context)
    over = max(0, description + context - room)
    return max(0, description - over), max(0, context - max(0, over - description))


def _strings(value: Json) -> Iterator[str]:
    """Every text of an answer."""
    return (text for _, text in leaves({"": value}))

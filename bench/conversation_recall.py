"""How many of the turns that answer a question memory_search finds, on conversations in the LoCoMo format.

python bench/conversation_recall.py PATH [--only N] [--published DIR]

PATH is a JSON list of conversations: `conversation` has `session_1`, `session_1_date_time`, …, each
session a list of turns with `dia_id`, `speaker` and `text`; `qa` is a list of questions with `question`,
`evidence` (the turns' ids) and `category`. Each conversation becomes a project of its own and each turn a
memory: the turn as its title, the turn between its neighbours, with the date, as its content.

recall is the share of a question's evidence turns among the first so many found, any whether one of them is
there, sessions the share of the sessions that hold its evidence among the first so many different ones.
With --published, a folder with `model.safetensors` and `vocab.txt` of all-MiniLM-L6-v2, that model and ours
are compared: each alone, by cosine.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contextd.domain.callers import Caller
from contextd.domain.limits import MAX_MEMORY_CONTENT_LENGTH, MAX_SUMMARY_LENGTH
from contextd.domain.records import Purpose, Vector
from contextd.services.archive import Archive
from contextd.services.memories import FUSION
from contextd.services.memory_records import KIND, Draft, Memory
from contextd.services.projects import project_at
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from processes import data_folder
from published_minilm import PublishedMiniLM
from ranking_scores import Score, difference
from report import Table

_DEPTHS: Final = (5, 10)
_FOUND: Final = 60
_CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single-hop", 5: "adversarial"}
_SESSION: Final = re.compile(r"session_(\d+)")
_TURN: Final = re.compile(r"D:?(\d+):(\d+)")
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CALLER: Final = Caller(session="bench")

_OURS: Final = "text model alone"
_PUBLISHED: Final = "all-MiniLM-L6-v2 as published, alone"

Search = Callable[[str, str], Awaitable[list[str]]]
"""From a question and a project's path to turns, best first."""
Reader = Callable[[str, Purpose], Awaitable[Vector]]


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    said: str
    date: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Conversation:
    path: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(slots=True)
class Tally:
    """For each depth, the shares of evidence that were found, question by question."""

    turns: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in _DEPTHS})
    sessions: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in _DEPTHS})

    def add(self, found: Sequence[str], evidence: frozenset[str]) -> None:
        whole = frozenset(map(_session_of, evidence))
        sessions = list(dict.fromkeys(map(_session_of, found)))
        for depth in _DEPTHS:
            self.turns[depth].append(len(evidence & set(found[:depth])) / len(evidence))
            self.sessions[depth].append(len(whole & set(sessions[:depth])) / len(whole))

    def row(self) -> tuple[str, ...]:
        recall = [fmean(shares) for shares in self.turns.values()]
        any_found = [fmean(share > 0 for share in shares) for shares in self.turns.values()]
        sessions = [fmean(shares) for shares in self.sessions.values()]
        questions = len(self.turns[_DEPTHS[0]])
        return (str(questions), *(f"{value:.3f}" for value in (*recall, *any_found, *sessions)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall of evidence turns, in the LoCoMo format.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", type=int, help="the first so many conversations")
    parser.add_argument("--published", type=Path, help="weights of all-MiniLM-L6-v2, to compare with")
    chosen = parser.parse_args()
    conversations = _conversations(json.loads(chosen.path.read_text(encoding="utf-8")))[: chosen.only]
    tallies = asyncio.run(_measure(conversations, chosen.published))
    for name, of_category in tallies.items():
        print(f"## {name}\n\n{_table(of_category).markdown()}")
    if chosen.published:
        own, other = (Score(tallies[name]["all"].turns[max(_DEPTHS)]) for name in (_OURS, _PUBLISHED))
        print(f"recall@{max(_DEPTHS)}, the lead of ours alone, 95 %: {difference(own, other)}")


async def _measure(
    conversations: Sequence[Conversation], published: Path | None
) -> dict[str, dict[str, Tally]]:
    with data_folder() as folder:
        settings = Settings(data_dir=folder, rate_limit=RateLimit(on=False))
        async with open_house(build(settings)) as house:
            archive = Archive(house.store, house.embeddings, house.scrubber, house.telemetry, house.clock)
            for conversation in conversations:
                await _index(archive, conversation)
            searches = {"memory_search": _memory_search(house), "fusion of ranks alone": _fusion(archive)}
            if published:
                searches |= {
                    _OURS: await _by_vector(conversations, _ours(house)),
                    _PUBLISHED: await _by_vector(conversations, _theirs(PublishedMiniLM(published))),
                }
            return {name: await _tallied(search, conversations) for name, search in searches.items()}


async def _index(archive: Archive, conversation: Conversation) -> None:
    for number in range(len(conversation.turns)):
        await archive.keep(_memory(conversation, number).record())
    print(f"kept {len(conversation.turns)} turns of {conversation.path}", file=sys.stderr, flush=True)


def _memory(conversation: Conversation, number: int) -> Memory:
    turn = conversation.turns[number]
    around = conversation.turns[max(0, number - 1) : number + 2]
    content = "\n".join([turn.date, *(each.said for each in around if each.date == turn.date)])
    draft = Draft(
        conversation.path,
        turn.said[:MAX_SUMMARY_LENGTH],
        content[:MAX_MEMORY_CONTENT_LENGTH],
        tags=(turn.id,),
    )
    return draft.memory(project_at(conversation.path), _FIRST + timedelta(minutes=number))


def _memory_search(house: House) -> Search:
    async def search(question: str, path: str) -> list[str]:
        found = await house.memories.search(question, path, _CALLER, limit=_FOUND)
        return [each.memory.tags[0] for each in found]

    return search


def _fusion(archive: Archive) -> Search:
    async def search(question: str, path: str) -> list[str]:
        hits = await archive.search(_CALLER, question, (KIND,), path, (), _FOUND, FUSION)
        return [hit.record.tags[0] for hit in hits]

    return search


def _ours(house: House) -> Reader:
    async def read(text: str, purpose: Purpose) -> Vector:
        of = house.embeddings
        embedding = await (of.query(text, _CALLER.tally) if purpose == "query" else of.document(text))
        assert embedding is not None
        return embedding.vector

    return read


def _theirs(model: PublishedMiniLM) -> Reader:
    async def read(text: str, _: Purpose) -> Vector:
        return Vector(model.vector(text).astype("<f4").tobytes())

    return read


async def _by_vector(conversations: Sequence[Conversation], read: Reader) -> Search:
    """All turns, by their cosine."""
    known: dict[str, tuple[list[str], NDArray[np.float32]]] = {}
    for conversation in conversations:
        texts = [
            _memory(conversation, number).record().passage for number in range(len(conversation.turns))
        ]
        vectors = b"".join([await read(text, "document") for text in texts])
        rows = np.frombuffer(vectors, "<f4").reshape(len(texts), -1)
        known[conversation.path] = [turn.id for turn in conversation.turns], rows
        print(f"read {len(texts)} turns of {conversation.path}", file=sys.stderr, flush=True)

    async def search(question: str, path: str) -> list[str]:
        ids, rows = known[path]
        nearest = np.argsort(-(rows @ np.frombuffer(await read(question, "query"), "<f4")), kind="stable")
        return [ids[at] for at in nearest[:_FOUND]]

    return search


async def _tallied(search: Search, conversations: Sequence[Conversation]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for conversation in conversations:
        for question in conversation.questions:
            found = await search(question.text, conversation.path)
            for name in (question.category, "all"):
                tallies.setdefault(name, Tally()).add(found, question.evidence)
    return tallies


def _table(tallies: Mapping[str, Tally]) -> Table:
    columns: tuple[str, ...] = ("category", "questions")
    columns += tuple(f"{what}@{depth}" for what in ("recall", "any", "sessions") for depth in _DEPTHS)
    return Table(columns, tuple((name, *tallies[name].row()) for name in sorted(tallies)))


# --- the format -----------------------------------------------------------------------


def _conversations(data: Any) -> list[Conversation]:
    samples = data if isinstance(data, list) else [data]
    return [_conversation(sample, number) for number, sample in enumerate(samples)]


def _conversation(sample: Mapping[str, Any], number: int) -> Conversation:
    turns = tuple(_turns(sample["conversation"]))
    known = {turn.id for turn in turns}
    questions = [_question(asked, known) for asked in sample["qa"]]
    return Conversation(
        path=f"/bench/conversation-{number}",
        turns=turns,
        questions=tuple(question for question in questions if question.evidence),
    )


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    sessions = [int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key))]
    for session in sorted(sessions):
        date = str(conversation.get(f"session_{session}_date_time", f"session {session}"))
        for turn in conversation[f"session_{session}"]:
            picture = turn.get("blip_caption")
            said = f"{turn['speaker']}: {turn['text']}" + (f" (shows {picture})" if picture else "")
            yield Turn(_turn_id(turn["dia_id"]), said, date)


def _question(asked: Mapping[str, Any], known: set[str]) -> Question:
    """Evidence is written by hand: several ids in one string, leading zeros, ids that do not exist."""
    written = " ".join(map(str, asked.get("evidence") or ()))
    evidence = {f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(written)}
    category = int(asked["category"])
    name = f"{category} {_CATEGORIES.get(category, 'other')}"
    return Question(str(asked["question"]), frozenset(evidence & known), name)


def _session_of(turn: str) -> str:
    return turn.split(":", 1)[0]


def _turn_id(written: str) -> str:
    found = _TURN.search(written)
    return f"D{int(found[1])}:{int(found[2])}" if found else written


if __name__ == "__main__":
    main()

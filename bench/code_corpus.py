"""Repositories indexed for the quality benches, with everything that a ranking can look at."""

import random
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from code_questions import Question, prepare, shortened
from contextd.domain.callers import Caller
from contextd.domain.code_query import CodeQuery, read_query
from contextd.domain.code_store import Candidates, ChunkRow, CodeFilter, Probe
from contextd.domain.records import Project
from contextd.domain.source_text import lines_of
from contextd.services.code_index import Choice
from contextd.services.code_search import DEPTH, with_names
from contextd.services.indexed_trees import Indexed, indexed_at
from contextd.settings import Settings
from contextd.wiring import House, build, open_house

Preparation = Callable[[Path, Path], list[Question]]
"""Copies a repository from one folder into another. Returns what is asked about it."""

_BATCH: Final = 64
_ALL: Final = 1_000_000
FUNCTIONS: Final = CodeFilter(kinds=("function", "method"))


@dataclass(frozen=True)
class Asked:
    """A question with what the index found for it."""

    repository: str
    question: Question
    query: CodeQuery
    found: Candidates
    closer: dict[int, float]

    def is_answer(self, chunk: int) -> bool:
        row = self.found.rows[chunk]
        return any(place.has(row) for place in self.question.answers)


@dataclass(frozen=True)
class Repository:
    name: str
    house: House
    indexed: Indexed
    questions: list[Question]

    async def asked(self, question: Question, filter: CodeFilter = FUNCTIONS) -> Asked:
        query = read_query(question.text)
        room = self.house.code
        probe = Probe(
            words=query.words,
            required=query.required,
            whole=query.whole,
            vector=room.reader.query(query.text),
            names=query.names,
            filter=filter,
            depth=DEPTH,
        )
        found = await room.store.candidates(self.indexed.project, self.indexed.trees, probe)
        found = with_names(found, probe.vector, room.reader)
        vector = await self.house.embeddings.query(question.text, Caller().tally)
        assert vector is not None
        closer = await room.store.closer(
            self.indexed.project, list(found.rows), vector.model, vector.vector
        )
        return Asked(self.name, question, query, found, dict(closer))


async def chunks_of(repository: Repository, filter: CodeFilter) -> list[tuple[ChunkRow, str]]:
    """All that a filter leaves, with their text."""
    room, indexed = repository.house.code, repository.indexed
    probe = Probe((), (), "", room.reader.query("the whole code"), (), filter, _ALL)
    rows = (await room.store.candidates(indexed.project, indexed.trees, probe)).rows.values()
    texts = await room.store.texts(indexed.project, {row.blob for row in rows})
    lines = {blob: lines_of(text) for blob, text in texts.items()}
    return [(row, "\n".join(lines[row.blob][row.start_line - 1 : row.end_line])) for row in rows]


@asynccontextmanager
async def repositories(
    folder: Path, *, tests: bool, close: bool = True, prepare: Preparation = prepare
) -> AsyncIterator[list[Repository]]:
    """Every repository in a folder, copied by `prepare`, indexed and read closer."""
    sources = sorted(folder.iterdir())  # noqa: ASYNC240 - nobody else waits here
    with tempfile.TemporaryDirectory(prefix="contextd-bench-") as scratch:
        settings = Settings(data_dir=Path(scratch, "data"))
        async with open_house(build(settings)) as house:
            found = []
            for source in sources:
                copy = Path(scratch, "repositories", source.name)
                questions = prepare(source, copy)
                report = await house.code.index.index(str(copy), Choice(include_tests=tests), Caller())
                if close:
                    await _read_closer(house, report.project)
                indexed = await indexed_at(house.code.store, str(copy), Caller())
                found.append(Repository(source.name, house, indexed, questions))
                print(f"  {source.name}: {len(questions)} questions", file=sys.stderr, flush=True)
            yield found


async def _read_closer(house: House, project: Project) -> None:
    """All chunks, without the rests that the daemon takes in between."""
    store, model = house.code.store, await house.embeddings.space()
    while unread := await store.unread(project, model, _BATCH):
        embeddings = await house.embeddings.documents([text for _, text in unread])
        pairs = zip(unread, embeddings, strict=True)
        await store.attach(project, model, [(chunk, each.vector) for (chunk, _), each in pairs])


def shorter(questions: Sequence[Question], seed: int = 1) -> list[Question]:
    chance = random.Random(seed)
    return [shortened(question, chance) for question in questions]

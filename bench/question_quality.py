"""How well search_code answers developers' questions: the set in `questions/`, written by hand.

python bench/question_quality.py PATH                    measure
python bench/question_quality.py PATH --published DIR    beside all-MiniLM-L6-v2 as published
python bench/question_quality.py PATH --check            only see that every answer is in the index

PATH is a folder with the repositories that `questions/` names, each at its commit, in a folder of the same
name. They are indexed whole, as they are, with tests and documents, and searched one at a time.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from code_corpus import Asked, Repository, repositories
from code_questions import Place
from contextd.domain.code_store import CodeFilter, Probe
from contextd.domain.source_text import lines_of
from developer_questions import KINDS, prepare_whole
from published_minilm import PublishedMiniLM
from question_places import placed
from ranking_scores import SYSTEMS, Score, difference, print_systems, score_of
from report import Table

_ALL: Final = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure search_code on developers' questions.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    asyncio.run(_check(chosen.path) if chosen.check else _measure(chosen.path, chosen.published))


async def _measure(folder: Path, published: Path | None) -> None:
    async with repositories(folder, tests=True, prepare=prepare_whole) as found:
        asked = [
            await each.asked(question, CodeFilter()) for each in found for question in await placed(each)
        ]
        systems = dict(SYSTEMS)
        if published is not None:
            orders = await _by_published(found, asked, PublishedMiniLM(published))
            systems["all-MiniLM-L6-v2 as published, of the candidates"] = lambda one: orders[id(one)]
    print("\n### Developers' questions, among everything\n")
    print_systems(asked, systems)
    scores = {name: score_of(asked, order) for name, order in systems.items()}
    print("\n### By kind of question, MRR@10\n")
    _print_kinds(asked, scores)
    print("\n### The code model's lead\n")
    own = scores["code model alone"]
    rows = [
        (name, f"{own.mrr - score.mrr:+.3f}", difference(own, score))
        for name, score in scores.items()
        if score is not own
    ]
    print(Table(("over", "MRR@10", "95 %"), tuple(rows)).markdown())


async def _by_published(
    found: Sequence[Repository], asked: Sequence[Asked], model: PublishedMiniLM
) -> dict[int, list[int]]:
    """The candidates of each question, as that model orders them."""
    known = {}
    for repository in found:
        own = [one for one in asked if one.repository == repository.name]
        rows = {chunk: row for one in own for chunk, row in one.found.rows.items()}
        texts = await repository.house.code.store.texts(
            repository.indexed.project, {row.blob for row in rows.values()}
        )
        vectors = {
            chunk: model.vector("\n".join(lines_of(texts[row.blob])[row.start_line - 1 : row.end_line]))
            for chunk, row in rows.items()
        }
        print(f"  {repository.name}: {len(vectors)} candidates read", file=sys.stderr, flush=True)
        for one in own:
            query = model.vector(one.question.text)
            cosines = {chunk: float(vectors[chunk] @ query) for chunk in one.found.rows}
            known[id(one)] = sorted(cosines, key=lambda chunk: -cosines[chunk])
    return known


def _print_kinds(asked: Sequence[Asked], scores: dict[str, Score]) -> None:
    places = {kind: [at for at, one in enumerate(asked) if one.question.kind == kind] for kind in KINDS}
    rows = [
        (name, *(f"{Score([score.ranks[at] for at in some]).mrr:.3f}" for some in places.values()))
        for name, score in scores.items()
    ]
    print(Table(("", *(f"{kind} ({len(some)})" for kind, some in places.items())), tuple(rows)).markdown())


async def _check(folder: Path) -> None:
    """Every answer must be something that a search can return."""
    lost = 0
    async with repositories(folder, tests=True, close=False, prepare=prepare_whole) as found:
        for repository in found:
            for question in await placed(repository):
                for place in question.answers:
                    if not await _is_indexed(repository, place):
                        lost += 1
                        print(f"{repository.name}: {place}: {question.text}")
    if lost:
        sys.exit(f"{lost} answers are not in the index")


async def _is_indexed(repository: Repository, place: Place) -> bool:
    reader = repository.house.code.reader
    probe = Probe(
        words=(),
        required=(),
        whole="",
        vector=reader.query(place.name or place.file),
        names=(),
        filter=CodeFilter(file_pattern=place.file),
        depth=_ALL,
    )
    indexed = repository.indexed
    found = await repository.house.code.store.candidates(indexed.project, indexed.trees, probe)
    return any(place.has(row) for row in found.rows.values())


if __name__ == "__main__":
    main()

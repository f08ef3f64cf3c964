"""What models are judged by: pools of documents, and queries whose answers are among them.

PYTHONPATH=src:bench python training/judged.py REPOSITORIES JUDGED [--pairs BANNED]

REPOSITORIES is a folder with one repository in each folder. Its chunks are those of contextd's own index.
Three sets are made of each: `sentences`, doc sentences among functions without comments; `words`, a few
words of each; `questions`, those of `bench/questions/` among everything. With --pairs, the pairs that
`extract.py --held-out` made give a set for each kind of text, and
with --other-languages one of doc sentences in languages that nothing is chosen on.
"""

import argparse
import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from code_corpus import FUNCTIONS, Repository, chunks_of, repositories, shorter
from code_questions import Question
from contextd.domain.code_store import ChunkRow, CodeFilter
from developer_questions import FOLDER, prepare_whole
from held_out import is_other_language
from pair import Pair, read
from pools import Pool, write_pools
from question_places import placed

_OF_KIND: Final = 400
"""Pairs of one kind and repository."""
_KINDS: Final = ("heading", "prose", "commit", "error", "type", "change", "remark", "alike")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the sets that models are judged by.")
    parser.add_argument("repositories", type=Path)
    parser.add_argument("judged", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--other-languages", action="store_true")
    chosen = parser.parse_args()
    pools = asyncio.run(_of_repositories(chosen.repositories))
    if chosen.pairs:
        names = {folder.name for folder in chosen.repositories.iterdir()}
        pools += list(_of_pairs(chosen.pairs, names, others=chosen.other_languages))
    write_pools(chosen.judged, pools)
    for pool in pools:
        print(f"{pool.set} {pool.name}: {len(pool.queries)} among {len(pool.documents)}")


async def _of_repositories(folder: Path) -> list[Pool]:
    pools = []
    async with repositories(folder, tests=False, close=False) as found:
        for repository in found:
            documents, rows = await _chunks(repository, FUNCTIONS)
            pools.append(_pool("sentences", repository, repository.questions, documents, rows))
            pools.append(_pool("words", repository, shorter(repository.questions), documents, rows))
    if _are_all_asked(folder):
        async with repositories(folder, tests=True, close=False, prepare=prepare_whole) as found:
            for repository in found:
                documents, rows = await _chunks(repository, CodeFilter())
                questions = await placed(repository)
                pools.append(_pool("questions", repository, questions, documents, rows))
    return pools


def _are_all_asked(folder: Path) -> bool:
    return {file.stem for file in FOLDER.rglob("*.toml")} >= {source.name for source in folder.iterdir()}


async def _chunks(repository: Repository, filter: CodeFilter) -> tuple[list[str], list[ChunkRow]]:
    found = await chunks_of(repository, filter)
    return [text for _, text in found], [row for row, _ in found]


def _pool(
    set: str,
    repository: Repository,
    asked: Sequence[Question],
    documents: list[str],
    rows: Sequence[ChunkRow],
) -> Pool:
    answers = [
        [at for at, row in enumerate(rows) if any(place.has(row) for place in question.answers)]
        for question in asked
    ]
    kept = [at for at, places in enumerate(answers) if places]
    return Pool(
        set,
        repository.name,
        documents,
        [asked[at].text for at in kept],
        [answers[at] for at in kept],
        [asked[at].kind for at in kept],
    )


def _of_pairs(folder: Path, names: set[str], *, others: bool) -> Iterator[Pool]:
    """Each kind by itself, one pool for all repositories: to tell repositories apart is a part of it."""
    chance = random.Random(1)
    held: dict[str, list[Pair]] = {}
    for file in sorted(folder.glob("*.jsonl.gz")):
        repository = file.name.removesuffix(".jsonl.gz")
        of_kind: dict[str, list[Pair]] = {}
        other = is_other_language(repository)
        if not others if other else repository.rpartition("+")[2] not in names:
            continue
        for pair in read(file):
            kind: str = "other languages" if other and pair.kind == "doc" else pair.kind
            if (kind in _KINDS and not other) or kind == "other languages":
                of_kind.setdefault(kind, []).append(pair)
        for kind, pairs in of_kind.items():
            held.setdefault(kind, []).extend(chance.sample(pairs, min(_OF_KIND, len(pairs))))
    for kind, pairs in sorted(held.items()):
        documents = list(dict.fromkeys(pair.document for pair in pairs))
        place = {document: at for at, document in enumerate(documents)}
        asked: dict[str, list[int]] = {}
        for pair in pairs:
            asked.setdefault(pair.query, []).append(place[pair.document])
        yield Pool(kind, "", documents, list(asked), list(asked.values()), [kind] * len(asked))


if __name__ == "__main__":
    main()

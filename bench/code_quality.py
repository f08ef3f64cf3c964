"""How well search_code finds functions by a sentence about them, and symbols by their names.

python bench/code_quality.py PATH

PATH is a folder with one repository in each folder, of Go and Python, which the weights were not fitted on.
Each repository is searched alone. The first tables search functions and methods, tests left out; another
one everything that is indexed, tests and documents too.
"""

import argparse
import asyncio
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from code_corpus import FUNCTIONS, Asked, Repository, repositories, shorter
from code_questions import Question
from contextd.domain.callers import Caller
from contextd.domain.code_store import ChunkRow, CodeFilter
from contextd.services.code_ranking import SIGNALS, CodeRanking, Mode, Signal
from contextd.services.code_search import RERANKED, Ask
from report import Table

_BEST: Final = 10
_NAMES: Final = 150
_RESAMPLED: Final = 1_000

Order = Callable[[Asked], list[int]]


@dataclass(frozen=True, slots=True)
class Score:
    """Of one system on one set: reciprocal ranks of the answers within the best ten."""

    ranks: list[float]

    @property
    def mrr(self) -> float:
        return statistics.fmean(self.ranks)

    @property
    def hits(self) -> float:
        return statistics.fmean(rank > 0 for rank in self.ranks)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure search_code's ranking.")
    parser.add_argument("path", type=Path)
    asyncio.run(_measure(parser.parse_args().path))


async def _measure(folder: Path) -> None:
    async with repositories(folder, tests=False) as found:
        print("\n### Functions by a sentence\n")
        asked = await _all(found, lambda each: each.questions, FUNCTIONS)
        _print_systems(asked)
        print("\n### Functions by a few words\n")
        _print_systems(await _all(found, lambda each: shorter(each.questions), FUNCTIONS))
        print("\n### What each signal is worth\n")
        _print_ablation(asked)
    async with repositories(folder, tests=True) as found:
        print("\n### Among everything, tests and documents too\n")
        _print_systems(await _all(found, lambda each: each.questions, CodeFilter()))
        print("\n### Symbols by their names\n")
        await _print_names(found)


async def _all(
    found: Sequence[Repository], questions: Callable[[Repository], list[Question]], filter: CodeFilter
) -> list[Asked]:
    return [await each.asked(question, filter) for each in found for question in questions(each)]


def _print_systems(asked: Sequence[Asked]) -> None:
    whole = CodeRanking()
    systems: dict[str, Order] = {
        "BM25, identifiers split": lambda one: [chunk for chunk, _ in one.found.by_words],
        "code model alone": lambda one: [chunk for chunk, _ in one.found.by_vector],
        "text model alone, of the candidates": lambda one: sorted(one.closer, key=lambda c: -one.closer[c]),
        "search_code, keyword": lambda one: _ranked(whole, one, "keyword"),
        "search_code, vector": lambda one: _ranked(whole, one, "vector"),
        "search_code, hybrid": lambda one: _ranked(whole, one, "hybrid"),
        "search_code, hybrid, read closer": lambda one: _closer(whole, one),
    }
    scores = {name: _score(asked, order) for name, order in systems.items()}
    best = scores["search_code, hybrid, read closer"]
    rows = [
        (name, f"{score.mrr:.3f}", f"{score.hits:.3f}", _difference(best, score))
        for name, score in scores.items()
    ]
    columns = (f"{len(asked)} questions", "MRR@10", "in the first 10", "the last row's lead, 95 %")
    print(Table(columns, tuple(rows)).markdown())


def _print_ablation(asked: Sequence[Asked]) -> None:
    quick, close = _both(asked, CodeRanking())
    rows = [("all signals", f"{quick.mrr:.3f}", "", f"{close.mrr:.3f}", "")]
    for left_out in SIGNALS:
        kept: tuple[Signal, ...] = tuple(signal for signal in SIGNALS if signal != left_out)
        one, other = _both(asked, CodeRanking(signals=kept))
        rows.append(
            (
                f"without {left_out}",
                f"{one.mrr:.3f}",
                f"{one.mrr - quick.mrr:+.3f}",
                f"{other.mrr:.3f}",
                f"{other.mrr - close.mrr:+.3f}",
            )
        )
    print(Table(("MRR@10", "hybrid", "", "hybrid, read closer", ""), tuple(rows)).markdown())


def _both(asked: Sequence[Asked], ranking: CodeRanking) -> tuple[Score, Score]:
    return (
        _score(asked, lambda one: _ranked(ranking, one, "hybrid")),
        _score(asked, lambda one: _closer(ranking, one)),
    )


async def _print_names(found: Sequence[Repository]) -> None:
    """Through the whole search: the first hit must be a definition of that name."""
    chance = random.Random(7)
    rows = []
    modes: tuple[Mode, ...] = ("hybrid", "keyword")
    for mode in modes:
        right = total = 0
        for repository in found:
            some = chance.sample(repository.questions, min(_NAMES, len(repository.questions)))
            for question in some:
                ask = Ask(repository.indexed.root, question.name, 1, mode)
                hits = (await repository.house.code.search.search(ask, Caller())).hits
                right += bool(hits and hits[0].row.symbol and hits[0].row.symbol.name == question.name)
                total += 1
        rows.append((f"search_code, {mode}", str(total), f"{right / total:.3f}"))
    print(Table(("", "names", "definition first"), tuple(rows)).markdown())


def _ranked(ranking: CodeRanking, asked: Asked, mode: Mode) -> list[int]:
    found = asked.found
    if mode == "keyword":
        found = replace(found, by_vector=(), rows=_only(asked, [*found.by_words], found.by_name))
    elif mode == "vector":
        found = replace(found, by_words=(), by_name=(), rows=_only(asked, [*found.by_vector], ()))
    return [each.row.id for each in ranking.rank(asked.query, mode, found, {})]


def _only(asked: Asked, ranked: Sequence[tuple[int, float]], named: Sequence[int]) -> dict[int, ChunkRow]:
    return {chunk: asked.found.rows[chunk] for chunk in dict.fromkeys([*(c for c, _ in ranked), *named])}


def _closer(ranking: CodeRanking, asked: Asked) -> list[int]:
    """As the search does it: the best again, with what the text model says of them."""
    order = _ranked(ranking, asked, "hybrid")
    best = order[:RERANKED]
    narrowed = replace(asked.found, rows={chunk: asked.found.rows[chunk] for chunk in best})
    again = ranking.rank(asked.query, "hybrid", narrowed, {chunk: asked.closer[chunk] for chunk in best})
    return [*(each.row.id for each in again), *order[RERANKED:]]


def _score(asked: Sequence[Asked], order: Order) -> Score:
    return Score([_reciprocal(one, order(one)[:_BEST]) for one in asked])


def _reciprocal(asked: Asked, order: Sequence[int]) -> float:
    return next((1 / rank for rank, chunk in enumerate(order, start=1) if asked.is_answer(chunk)), 0.0)


def _difference(best: Score, other: Score) -> str:
    """Of the means, by resampling the questions."""
    if best is other:
        return ""
    pairs = [a - b for a, b in zip(best.ranks, other.ranks, strict=True)]
    chance = random.Random(1)
    means = sorted(statistics.fmean(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLED))
    return f"{means[int(_RESAMPLED * 0.025)]:+.3f} to {means[int(_RESAMPLED * 0.975)]:+.3f}"


if __name__ == "__main__":
    main()

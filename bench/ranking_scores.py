"""Orders of the same candidates, and how well each of them does."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from code_corpus import Asked
from contextd.domain.code_store import ChunkRow
from contextd.services.code_ranking import CodeRanking, Mode
from contextd.services.code_search import RERANKED
from report import Table

_BEST: Final = 10
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


def print_systems(asked: Sequence[Asked], systems: Mapping[str, Order]) -> None:
    scores = {name: score_of(asked, order) for name, order in systems.items()}
    best = scores[WHOLE]
    rows = [
        (name, f"{score.mrr:.3f}", f"{score.hits:.3f}", difference(best, score))
        for name, score in scores.items()
    ]
    columns = (f"{len(asked)} questions", "MRR@10", "in the first 10", "the whole search's lead, 95 %")
    print(Table(columns, tuple(rows)).markdown())


def ranked(ranking: CodeRanking, asked: Asked, mode: Mode) -> list[int]:
    found = asked.found
    if mode == "keyword":
        found = replace(found, by_vector=(), rows=_only(asked, [*found.by_words], found.by_name))
    elif mode == "vector":
        found = replace(found, by_words=(), by_name=(), rows=_only(asked, [*found.by_vector], ()))
    return [each.row.id for each in ranking.rank(asked.query, mode, found, {})]


def _only(asked: Asked, ranked: Sequence[tuple[int, float]], named: Sequence[int]) -> dict[int, ChunkRow]:
    return {chunk: asked.found.rows[chunk] for chunk in dict.fromkeys([*(c for c, _ in ranked), *named])}


def read_closer(ranking: CodeRanking, asked: Asked) -> list[int]:
    """As the search does it: the best again, with what the text model says of them, unless it is a name."""
    order = ranked(ranking, asked, "hybrid")
    if asked.query.kind == "identifier":
        return order
    best = order[:RERANKED]
    narrowed = replace(asked.found, rows={chunk: asked.found.rows[chunk] for chunk in best})
    again = ranking.rank(asked.query, "hybrid", narrowed, {chunk: asked.closer[chunk] for chunk in best})
    return [*(each.row.id for each in again), *order[RERANKED:]]


def score_of(asked: Sequence[Asked], order: Order) -> Score:
    return Score([_reciprocal(one, order(one)[:_BEST]) for one in asked])


def _reciprocal(asked: Asked, order: Sequence[int]) -> float:
    return next((1 / rank for rank, chunk in enumerate(order, start=1) if asked.is_answer(chunk)), 0.0)


def difference(best: Score, other: Score) -> str:
    """Of the means, by resampling the questions."""
    if best is other:
        return ""
    pairs = [a - b for a, b in zip(best.ranks, other.ranks, strict=True)]
    chance = random.Random(1)
    means = sorted(statistics.fmean(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLED))
    return f"{means[int(_RESAMPLED * 0.025)]:+.3f} to {means[int(_RESAMPLED * 0.975)]:+.3f}"


_FITTED: Final = CodeRanking()
WHOLE: Final = "search_code, hybrid, read closer"
SYSTEMS: Final[Mapping[str, Order]] = {
    "BM25, identifiers split": lambda one: [chunk for chunk, _ in one.found.by_words],
    "code model alone": lambda one: [chunk for chunk, _ in one.found.by_vector],
    "text model alone, of the candidates": lambda one: sorted(one.closer, key=lambda c: -one.closer[c]),
    "search_code, keyword": lambda one: ranked(_FITTED, one, "keyword"),
    "search_code, vector": lambda one: ranked(_FITTED, one, "vector"),
    "search_code, hybrid": lambda one: ranked(_FITTED, one, "hybrid"),
    WHOLE: lambda one: read_closer(_FITTED, one),
}

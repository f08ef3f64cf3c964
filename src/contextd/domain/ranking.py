"""Fusion of ranked lists, and scores that mean the same everywhere."""

from collections.abc import Sequence
from typing import TypeVar

from contextd.domain.records import Fusion

K = TypeVar("K")


def fuse(keyword: Sequence[K], vector: Sequence[K], fusion: Fusion) -> list[tuple[K, float]]:
    """Reciprocal rank fusion of two lists, best first, as scores in 0..1.

    1 is first place in every list that took part; a list that is empty takes no part, so a
    search by keyword alone still reaches 1.
    """
    lists = [(keyword, fusion.keyword_weight), (vector, fusion.vector_weight)]
    taking_part = [(ranked, weight) for ranked, weight in lists if ranked and weight > 0]
    best = sum(weight / (fusion.k + 1) for _, weight in taking_part)
    scores: dict[K, float] = {}
    for ranked, weight in taking_part:
        for rank, key in enumerate(ranked, start=1):
            scores[key] = scores.get(key, 0.0) + weight / (fusion.k + rank)
    ordered = sorted(scores.items(), key=lambda item: -item[1])
    return [(key, score / best) for key, score in ordered]

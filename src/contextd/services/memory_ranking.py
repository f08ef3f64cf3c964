"""The order of found memories: how well they answer, less for doubt and for stale anchors."""

import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from contextd.domain.records import Hit
from contextd.services.memory_quality import Gist, contradicts, wanted_words
from contextd.services.memory_records import Memory

_VECTOR_SHARE: Final = 0.6
_TITLE_COUNTS: Final = 2
"""A word of the title counts as so many of the text."""
_SATURATION: Final = 1.2
_LENGTH_MATTERS: Final = 0.5
_READ: Final = 2_000
"""Characters of a text that are compared with the query; the store has seen the rest."""

_HUMP: Final = re.compile("[A-Za-z](?=[A-Z][a-z])")
_SEPARATORS: Final = {ord(mark): " " for mark in string.punctuation + "\n\t\r"}

_DOUBT_COSTS: Final = 0.25
_STALE_COSTS: Final = 0.15


@dataclass(frozen=True, slots=True)
class Found:
    memory: Memory
    score: float
    confidence: float
    stale: tuple[str, ...] = ()
    """Files of the anchors that no longer hold."""
    contradicts: tuple[str, ...] = ()


def relevance(query: str, hits: Sequence[Hit]) -> list[float]:
    """How well each hit answers, 0..1: by its words and, a little more, by its vector.

    The store's fusion of ranks chooses the candidates; among them, how much better one is than the
    next tells more than that it is.
    """
    by_words = _by_words(query, hits)
    if all(hit.distance is None for hit in hits):
        return by_words
    return [
        (1 - _VECTOR_SHARE) * words + _VECTOR_SHARE * _cosine(hit)
        for words, hit in zip(by_words, hits, strict=True)
    ]


def demoted(relevance: float, confidence: float, *, stale: bool) -> float:
    return relevance * (1 - _DOUBT_COSTS * (1 - confidence)) * (1 - _STALE_COSTS * stale)


def arranged(found: Sequence[Found], limit: int) -> list[Found]:
    """The best, each with those that contradict it beside it, the newer first. All are labelled."""
    ranked = sorted(found, key=lambda each: -each.score)
    gists = {each.memory.id: Gist(each.memory) for each in ranked}
    arranged: dict[str, Found] = {}
    for best in ranked:
        if len(arranged) >= limit:
            break
        if best.memory.id in arranged:
            continue
        against = [
            other
            for other in ranked
            if other is not best
            and other.memory.id not in arranged
            and contradicts(gists[best.memory.id], gists[other.memory.id])
        ]
        arranged |= _newest_first(best, against)
    newest = sorted(arranged.values(), key=_updated, reverse=True)
    return [
        replace(each, contradicts=_against(each, newest, gists)) for each in list(arranged.values())[:limit]
    ]


def _against(one: Found, others: Sequence[Found], gists: Mapping[str, Gist]) -> tuple[str, ...]:
    """The ids of those that contradict it, in whichever group they stand."""
    gist = gists[one.memory.id]
    ids = (other.memory.id for other in others if other.memory.id != one.memory.id)
    return tuple(id for id in ids if contradicts(gist, gists[id]))


def _newest_first(best: Found, against: Sequence[Found]) -> dict[str, Found]:
    """One group, with its scores handed out again, so that they still fall."""
    group = [best, *against]
    scores = sorted((each.score for each in group), reverse=True)
    newest = sorted(group, key=_updated, reverse=True)
    return {each.memory.id: replace(each, score=score) for each, score in zip(newest, scores, strict=True)}


def _updated(found: Found) -> datetime:
    return found.memory.updated_at


def _cosine(hit: Hit) -> float:
    return 0.0 if hit.distance is None else max(0.0, 1.0 - hit.distance)


def _by_words(query: str, hits: Sequence[Hit]) -> list[float]:
    """BM25 among the hits, as a share of what a text full of the query's words would reach."""
    wanted = {word: f" {word}" if word.isascii() else word for word in wanted_words(query)}
    texts = [_counts(hit, wanted) for hit in hits]
    rarity = {word: _rarity(sum(word in counts for counts, _ in texts), len(texts)) for word in wanted}
    whole = sum(rarity.values()) * (_SATURATION + 1)
    usual = sum(length for _, length in texts) / len(texts) if texts else 1.0
    return [_bm25(counts, length / usual, rarity) / whole if whole else 0.0 for counts, length in texts]


def _counts(hit: Hit, wanted: Mapping[str, str]) -> tuple[Mapping[str, int], int]:
    """How often each word begins a word of the record, and how long that is.

    The wanted ones are stems, so what begins with them is mostly they; and to count is quicker than to
    take every text apart.
    """
    title, text = _spaced(hit.record.title), _spaced(hit.record.text[:_READ])
    counts = {
        word: times
        for word, sought in wanted.items()
        if (times := title.count(sought) * _TITLE_COUNTS + text.count(sought))
    }
    return counts, title.count(" ") * _TITLE_COUNTS + text.count(" ")


def _spaced(text: str) -> str:
    """In small letters, with a space before each word and each part of an identifier."""
    apart = _HUMP.sub(lambda end: f"{end[0]} ", text)
    return " " + apart.translate(_SEPARATORS).lower()


def _rarity(having: int, of: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


def _bm25(counts: Mapping[str, int], length: float, rarity: Mapping[str, float]) -> float:
    damping = _SATURATION * (1 - _LENGTH_MATTERS + _LENGTH_MATTERS * length)
    return sum(
        rarity[word] * times * (_SATURATION + 1) / (times + damping) for word, times in counts.items()
    )

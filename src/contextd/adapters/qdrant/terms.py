"""BM25 as a sparse vector: this side weighs the words, the server adds how rare each one is."""

from collections import Counter
from hashlib import blake2b
from typing import Final

from contextd.domain.records import Record
from contextd.domain.words import index_words, query_words

Weights = dict[int, float]
"""Hashed word to weight. Two words may share a hash; that costs a little precision, never an error."""

_SATURATION: Final = 1.2
_LENGTH_EFFECT: Final = 0.75
_TYPICAL_LENGTH: Final = 256
"""A fixed stand-in for the average length, which no single writer knows."""

_TITLE, _TEXT, _TAGS = 4, 1, 2
"""A word of the title says more."""


def document_weights(record: Record) -> Weights:
    counts: Counter[str] = Counter()
    for text, weight in ((record.title, _TITLE), (record.text, _TEXT), (" ".join(record.tags), _TAGS)):
        for word in index_words(text).split():
            counts[word] += weight
    stretch = 1 - _LENGTH_EFFECT + _LENGTH_EFFECT * counts.total() / _TYPICAL_LENGTH
    weights: Weights = {}
    for word, count in counts.items():
        term = _term(word)
        saturated = count * (_SATURATION + 1) / (count + _SATURATION * stretch)
        weights[term] = weights.get(term, 0.0) + saturated
    return weights


def query_weights(text: str) -> Weights:
    return {_term(word): 1.0 for word in query_words(text)}


def _term(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest(), "big")

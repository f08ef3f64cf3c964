"""Tools found by what one wants to do: by meaning, and by words alone while the model is away."""

import asyncio
import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Final

from contextd.domain.callers import Tally
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.records import Embedding
from contextd.domain.words import query_words, split_words, stem
from contextd.services.embedding import Embeddings

_MEANING_SHARE: Final = 0.7
_DANGER: Final = 0.1
"""Off the score of a tool that destroys: it should be meant, not just near."""
_SATURATION: Final = 1.2
_LENGTH_MATTERS: Final = 0.75


@dataclass(frozen=True, slots=True)
class FindableTool:
    """`text` is what it is found by; the rest is told of it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    text: str
    destructive: bool = False


@dataclass(frozen=True, slots=True)
class _Meaning:
    space: str
    unit: Sequence[float]


class ToolFinding:
    """Reads each tool's text once, when somebody first looks for one: most sessions never do."""

    def __init__(self, tools: Callable[[], Sequence[FindableTool]], embeddings: Embeddings) -> None:
        self._tools = tools
        self._embeddings = embeddings
        self._words: dict[str, Counter[str]] = {}
        self._meanings: dict[str, _Meaning] = {}
        self._reading = asyncio.Lock()

    async def find(self, query: str, limit: int, tally: Tally) -> list[FindableTool]:
        """Best first. Something is always found: of a few dozen tools, one is the nearest."""
        tools = list(self._tools())
        texts = [tool.text for tool in tools]
        scores = self._by_words(query, texts)
        cosines = await self._by_meaning(query, texts, tally)
        if cosines:
            scores = [
                _MEANING_SHARE * cosine + (1 - _MEANING_SHARE) * words
                for cosine, words in zip(cosines, scores, strict=True)
            ]
        scores = [score - _DANGER * tool.destructive for tool, score in zip(tools, scores, strict=True)]
        scored = zip(tools, scores, strict=True)
        ranked = sorted(scored, key=lambda each: (not _is_named(each[0], query), -each[1]))
        return [tool for tool, _ in ranked[:limit]]

    async def _by_meaning(self, query: str, texts: Sequence[str], tally: Tally) -> list[float]:
        """Cosines, or none when the model is away."""
        wanted = await self._embeddings.query(query, tally)
        if wanted is None:
            return []
        async with self._reading:
            unread = [text for text in texts if text not in self._meanings]
            try:
                embedded = await self._embeddings.documents(unread) if unread else []
            except EmbedderUnavailable:
                return []
            self._meanings |= zip(unread, map(_meaning, embedded), strict=True)
        known = [self._meanings[text] for text in texts]
        meant = _meaning(wanted)
        if any(each.space != meant.space for each in known):
            # An endpoint that has changed its model: what was read before means nothing to the new one.
            self._meanings.clear()
            return []
        return [sum(map(mul, each.unit, meant.unit)) for each in known]

    def _by_words(self, query: str, texts: Sequence[str]) -> list[float]:
        """BM25, as a share of what a text full of the query's words would reach."""
        counted = [self._counted(text) for text in texts]
        usual = sum(counts.total() for counts in counted) / max(1, len(counted))
        rarity = {word: _rarity(word, counted) for word in {stem(word) for word in query_words(query)}}
        whole = sum(rarity.values()) * (_SATURATION + 1)
        return [_bm25(counts, usual, rarity) / whole if whole else 0.0 for counts in counted]

    def _counted(self, text: str) -> Counter[str]:
        if text not in self._words:
            self._words[text] = Counter(stem(word) for word in split_words(text))
        return self._words[text]


def _is_named(tool: FindableTool, query: str) -> bool:
    """Some names are words like any other, and stand for the tool only where nothing else is said."""
    return tool.name == query.strip() or ("_" in tool.name and tool.name in query)


def _rarity(word: str, texts: Sequence[Counter[str]]) -> float:
    having = sum(word in counts for counts in texts)
    return math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))


def _bm25(counts: Counter[str], usual: float, rarity: Mapping[str, float]) -> float:
    damping = _SATURATION * (1 - _LENGTH_MATTERS + _LENGTH_MATTERS * counts.total() / usual)
    return sum(
        weight * counts[word] * (_SATURATION + 1) / (counts[word] + damping)
        for word, weight in rarity.items()
    )


def _meaning(embedding: Embedding) -> _Meaning:
    vector = array("f", embedding.vector)
    length = math.sqrt(sum(map(mul, vector, vector))) or 1.0
    return _Meaning(embedding.model, array("f", (each / length for each in vector)))

"""Candidates into an order: each signal is a number, and fitted weights make a relevance of them.

The weights are data, `code_weights.json`, made by `bench/fit_code_ranking.py`; docs/code-search.md explains
each signal and has the table of what each is worth.
"""

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, get_args

from contextd.domain.code_query import CodeQuery, QueryKind
from contextd.domain.code_store import GENERATED, TEST, Candidates, ChunkRow
from contextd.domain.words import split_words, stem

Mode = Literal["hybrid", "vector", "keyword"]
Signal = Literal[
    "words",
    "words_rank",
    "vector",
    "vector_rank",
    "vector_lead",
    "closer",
    "closer_rank",
    "closer_lead",
    "definition",
    "name_words",
    "name_covered",
    "name_meaning",
    "path",
    "container",
    "exported",
    "length",
    "function",
    "type",
    "test",
    "generated",
    "document",
    "nameless",
    "part",
    "typical",
    "spread",
]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
Weighed = Literal[QueryKind, "mention"]
"""Kinds of query that have weights of their own. A name that nothing defines is a `mention`: what is looked
for is where it stands, in the type that has such a field, say."""

_K: Final = 20
"""How quickly a rank loses its worth: the first place is 1, the twenty-first a half."""
_LONGEST: Final = 6
"""Chunks of two to the power of this many lines, and longer ones, are the longest there are."""
_FUNCTIONS: Final = frozenset({"function", "method"})
TYPES: Final = ("struct", "class", "interface", "type", "enum", "trait")
_SPREAD: Final = 0.92
"""What each further hit in one file keeps of its relevance."""
_FREE: Final = 2
"""Hits in one file that keep all of it."""


@dataclass(frozen=True, slots=True)
class Ranked:
    row: ChunkRow
    relevance: float


@cache
def shipped_weights() -> Mapping[str, Mapping[str, float]]:
    file = Path(__file__).with_name("code_weights.json")
    weights: Mapping[str, Mapping[str, float]] = json.loads(file.read_text(encoding="utf-8"))["weights"]
    return weights


class CodeRanking:
    """`signals` are those that count: leaving one out shows what it is worth."""

    def __init__(
        self,
        weights: Mapping[str, Mapping[str, float]] | None = None,
        signals: Sequence[Signal] = SIGNALS,
    ) -> None:
        self._weights = weights
        self._signals = frozenset(signals)

    def rank(
        self, query: CodeQuery, mode: Mode, found: Candidates, closer: Mapping[int, float]
    ) -> list[Ranked]:
        """Best first. `closer` has the text model's cosines, or nothing."""
        weights = (self._weights or shipped_weights())[_weights_for(query, mode, found, bool(closer))]
        bias = weights["bias"]
        scored = []
        for chunk, signals in signals_of(query, found, closer):
            total = bias + sum(
                weights.get(name, 0.0) * value for name, value in signals.items() if name in self._signals
            )
            scored.append(Ranked(found.rows[chunk], _probability(total)))
        scored.sort(key=lambda each: (-each.relevance, each.row.path, each.row.start_line))
        return self._spread(scored) if "spread" in self._signals else scored

    def _spread(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """One file does not take every place."""
        seen: dict[str, int] = {}
        spread = []
        for each in ranked:
            before = seen.get(each.row.path, 0)
            seen[each.row.path] = before + 1
            worth = _SPREAD ** max(0, before + 1 - _FREE)
            spread.append(Ranked(each.row, each.relevance * worth))
        spread.sort(key=lambda each: (-each.relevance, each.row.path, each.row.start_line))
        return spread


def _weights_for(query: CodeQuery, mode: Mode, found: Candidates, is_close: bool) -> str:
    """Which row of the table: by what was asked, how, and whether the text model took part."""
    kind: Weighed = query.kind
    # By meaning alone no definitions are looked up.
    if kind == "identifier" and mode != "vector" and not found.by_name:
        kind = "mention"
    return f"{kind}/{mode}{'/closer' if is_close and mode == 'hybrid' else ''}"


@dataclass(frozen=True, slots=True)
class _Leads:
    """How far a cosine is above those of the other candidates: what is high differs from query to query."""

    mean: float
    spread: float

    @classmethod
    def of(cls, cosines: Mapping[int, float]) -> "_Leads":
        if not cosines:
            return cls(0.0, 1.0)
        return cls(statistics.fmean(cosines.values()), statistics.pstdev(cosines.values()) or 1.0)

    def over_the_rest(self, cosine: float) -> float:
        """0 for two standard deviations below the mean, 1 for four above it."""
        return max(0.0, min(1.0, ((cosine - self.mean) / self.spread + 2) / 6))


def signals_of(
    query: CodeQuery, found: Candidates, closer: Mapping[int, float]
) -> Iterator[tuple[int, dict[str, float]]]:
    """For each candidate, each signal in 0..1."""
    by_words = {chunk: (rank, score) for rank, (chunk, score) in enumerate(found.by_words)}
    by_vector = {chunk: (rank, cosine) for rank, (chunk, cosine) in enumerate(found.by_vector)}
    best = max((score for _, score in found.by_words), default=0.0) or 1.0
    by_closer = {chunk: rank for rank, chunk in enumerate(sorted(closer, key=lambda one: -closer[one]))}
    vector_lead, closer_lead = _Leads.of(dict(found.by_vector)), _Leads.of(closer)
    named = frozenset(found.by_name)
    asked = _stems(query.text)
    for chunk, row in found.rows.items():
        signals: dict[str, float] = {}
        if chunk in by_words:
            rank, score = by_words[chunk]
            signals["words"] = max(0.0, score / best)
            signals["words_rank"] = _K / (_K + rank)
        if chunk in by_vector:
            rank, cosine = by_vector[chunk]
            signals["vector"] = max(0.0, cosine)
            signals["vector_rank"] = _K / (_K + rank)
            signals["vector_lead"] = vector_lead.over_the_rest(cosine)
        if chunk in closer:
            signals["closer"] = max(0.0, closer[chunk])
            signals["closer_rank"] = _K / (_K + by_closer[chunk])
            signals["closer_lead"] = closer_lead.over_the_rest(closer[chunk])
        signals["name_meaning"] = max(0.0, found.names_near.get(chunk, 0.0))
        signals["typical"] = max(0.0, found.typical.get(chunk, 0.0))
        _add_symbol(signals, query, row, asked, chunk in named)
        _add_places(signals, row, asked)
        if "test" in asked:
            # Tests are what is looked for.
            signals["test"] = 0.0
        yield chunk, signals


def _add_symbol(
    signals: dict[str, float], query: CodeQuery, row: ChunkRow, asked: frozenset[str], is_named: bool
) -> None:
    symbol = row.symbol
    signals["length"] = min(1.0, math.log2(1 + row.end_line - row.start_line) / _LONGEST)
    if symbol is None:
        signals["nameless"] = 1.0
        return
    signals["function"] = 1.0 if symbol.kind in _FUNCTIONS else 0.0
    signals["type"] = 1.0 if symbol.kind in TYPES else 0.0
    if is_named and symbol.name in query.names:
        signals["definition"] = 1.0
    elif is_named:
        signals["definition"] = 0.8
    if "definition" in signals and row.part > 0:
        signals["definition"] *= 0.5
    words = _stems(symbol.name)
    if words:
        both = len(words & asked)
        signals["name_words"] = both / len(words)
        signals["name_covered"] = both / max(1, len(asked))
    around = _stems(symbol.container)
    if around:
        qualified = symbol.container in query.qualifiers
        signals["container"] = 1.0 if qualified else 0.5 * len(around & asked) / len(around)
    signals["exported"] = 1.0 if symbol.exported else 0.0
    signals["part"] = 1.0 if row.part else 0.0
    signals["document"] = 1.0 if symbol.kind == "section" else 0.0


def _add_places(signals: dict[str, float], row: ChunkRow, asked: frozenset[str]) -> None:
    words = _stems("/".join(row.path.split(".", 1)[0].split("/")[-3:]))
    signals["path"] = len(words & asked) / max(1, len(asked))
    signals["test"] = 1.0 if row.marks & TEST else 0.0
    signals["generated"] = 1.0 if row.marks & GENERATED else 0.0


@lru_cache(maxsize=65_536)
def _stems(text: str) -> frozenset[str]:
    """Of names and paths, which come again with every search."""
    return frozenset(map(stem, split_words(text)))


def _probability(total: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))

"""What a model is shown in one step: pairs in blocks of one repository, and queries as people vary them.

The other documents of a batch are the wrong answers. Those of the same repository are the hard ones, and
harder still where a block holds what lies near each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contextd.domain.words import EVERYWHERE
from corpus import Corpus, Numbers, Ragged, offsets_of, spread
from pair import KINDS

Floats = NDArray[np.float32]
Vectors = NDArray[np.floating]
"""In 32 bits or in 16."""
Chance = np.random.Generator

_ASKED_FOR: Final = (
    "where is", "where do we", "where are", "how do i", "how does it", "how is", "what does",
    "what happens when", "why does", "which function", "which part", "the code that", "code to",
    "find", "is there a way to", "what is used to", "i want to", "we need to", "can i", "does it",
    "function that",
)  # fmt: skip
_SHORTENED: Final = 0.2
_THINNED: Final = 0.1
_ASKED: Final = 0.25
_THIN: Final = 0.25
"""Of a thinned query, what share of the words is gone."""
_ALTERED: Final = ("doc", "detail", "remark", "error", "type", "change", "report", "heading")
BESIDE: Final = KINDS.index("beside")


class Variations:
    """Some queries as a few telling words, some with holes, some asked as questions; the rest unchanged."""

    def __init__(self, corpus: Corpus) -> None:
        self._queries = corpus.queries
        self._row_of = np.repeat(np.arange(len(corpus)), corpus.queries.lengths)
        self._telling = _telling(corpus.words)[corpus.queries.stream]
        self._fixed = ~np.isin(corpus.kinds, [KINDS.index(kind) for kind in _ALTERED])
        self._beginnings = _beginnings(corpus.words)

    def drawn(self, chance: Chance) -> Ragged:
        queries, row_of = self._queries, self._row_of
        sort = chance.random(len(queries), np.float32)
        sort[self._fixed] = 1.0
        kept = np.ones(len(row_of), bool)
        few = np.flatnonzero(sort[row_of] < _SHORTENED)
        worth = chance.random(len(few)) + self._telling[few]
        kept[few] = _best(row_of[few], worth, chance.integers(2, 6, len(queries)))
        thin = (sort[row_of] >= _SHORTENED) & (sort[row_of] < _SHORTENED + _THINNED)
        kept[thin] = chance.random(int(thin.sum())) > _THIN
        lengths = np.bincount(row_of[kept], minlength=len(queries))
        shorter = Ragged(queries.stream[kept], offsets_of(lengths))
        asked = (sort >= _SHORTENED + _THINNED) & (sort < _SHORTENED + _THINNED + _ASKED)
        return _with_beginnings(shorter, asked, self._beginnings, chance)


def _telling(words: Sequence[str]) -> Floats:
    """1 for words that say something: what is kept of a shortened query first."""
    return np.array([0.0 if word in EVERYWHERE else 1.0 for word in words], np.float32)


def _best(row_of: Numbers, worth: NDArray[np.float64], most: Numbers) -> NDArray[np.bool_]:
    """The words of most worth in each row, `most` of them."""
    order = np.lexsort((-worth, row_of))
    rows = row_of[order]
    firsts = np.searchsorted(rows, rows)
    kept = np.zeros(len(row_of), bool)
    kept[order] = np.arange(len(rows)) - firsts < most[rows]
    return kept


def _beginnings(words: Sequence[str]) -> Ragged:
    ids = {word: id for id, word in enumerate(words)}
    rows = [[ids[word] for word in text.split() if word in ids] for text in _ASKED_FOR]
    stream = np.array([id for row in rows for id in row], np.uint32)
    return Ragged(stream, offsets_of(np.array([len(row) for row in rows])))


def _with_beginnings(texts: Ragged, which: NDArray[np.bool_], some: Ragged, chance: Chance) -> Ragged:
    picked = some.take(chance.integers(0, len(some), len(texts)))
    before = np.where(which, picked.lengths, 0)
    offsets = offsets_of(before + texts.lengths)
    stream = np.empty(offsets[-1], np.uint32)
    stream[spread(offsets[:-1], before)] = picked.stream[spread(picked.offsets[:-1], before)]
    stream[spread(offsets[:-1] + before, texts.lengths)] = texts.stream
    return Ragged(stream, offsets)


@dataclass(frozen=True)
class Shape:
    """Pairs in a batch, and how much of a document they are read to."""

    width: int
    pairs: int


@dataclass(frozen=True)
class Drawn:
    """A batch to be made: which pairs, and chance of its own, so that batches may be made side by side."""

    shape: Shape
    rows: Numbers
    chance: Chance


class Blocks:
    """Orders of the pairs: each block of one repository, each batch of one shape."""

    def __init__(self, corpus: Corpus, sizes: Numbers, shapes: Sequence[Shape], block: int) -> None:
        """`sizes` are the documents' lengths; a document longer than the last shape is cut."""
        self._block = block
        asked = np.flatnonzero(corpus.kinds != BESIDE)
        fits = np.searchsorted([shape.width for shape in shapes[:-1]], sizes[asked])
        self._groups = [
            (shape, _by_repository(corpus, asked[fits == at])) for at, shape in enumerate(shapes)
        ]
        beside = np.flatnonzero(corpus.kinds == BESIDE)
        self._beside = beside[np.argsort(corpus.repositories[beside], kind="stable")]
        self._repositories = corpus.repositories
        self._sorted = corpus.repositories[self._beside]
        if not self.batches_in_epoch():
            raise ValueError("the corpus does not fill one batch: give fewer --pairs, or more repositories")

    def batches_in_epoch(self) -> int:
        return sum(sum(map(len, groups)) // shape.pairs for shape, groups in self._groups)

    def epoch(self, chance: Chance, near: Vectors | None = None) -> Iterator[Drawn]:
        """Every pair about once. With `near`, vectors of all documents, blocks hold what lies together."""
        batches: list[Drawn] = []
        for shape, groups in self._groups:
            blocks: list[Numbers] = []
            for group in groups:
                rows = self._order(group, near, chance)
                blocks += [rows[at : at + self._block] for at in range(0, len(rows), self._block)]
            order = chance.permutation(len(blocks))
            rows = np.concatenate([blocks[at] for at in order]) if blocks else np.zeros(0, np.int64)
            batches += [
                Drawn(shape, rows[at : at + shape.pairs], each)
                for at, each in zip(
                    range(0, len(rows) - shape.pairs + 1, shape.pairs),
                    chance.spawn(len(rows) // shape.pairs),
                    strict=True,
                )
            ]
        yield from (batches[at] for at in chance.permutation(len(batches)))

    def beside(self, rows: Numbers, count: int, chance: Chance) -> Numbers:
        """Tests and examples of the same repositories, where there are some."""
        if not len(self._beside):
            return np.zeros(0, np.int64)
        wanted = self._repositories[chance.choice(rows, count)]
        first = np.searchsorted(self._sorted, wanted, "left")
        size = np.searchsorted(self._sorted, wanted, "right") - first
        inside = first + chance.integers(0, np.maximum(size, 1))
        anywhere = chance.integers(0, len(self._beside), count)
        found: Numbers = self._beside[
            np.where(size > 0, np.minimum(inside, len(self._beside) - 1), anywhere)
        ]
        return found

    def _order(self, rows: Numbers, near: Vectors | None, chance: Chance) -> Numbers:
        if near is None or len(rows) <= self._block:
            return chance.permutation(rows)
        return _halved(rows, near[rows].astype(np.float32), self._block, chance)


def _by_repository(corpus: Corpus, rows: Numbers) -> list[Numbers]:
    ordered = rows[np.argsort(corpus.repositories[rows], kind="stable")]
    borders = np.flatnonzero(np.diff(corpus.repositories[ordered])) + 1
    return [each for each in np.split(ordered, borders) if len(each)]


def _halved(rows: Numbers, vectors: Floats, least: int, chance: Chance) -> Numbers:
    """Those that lie near each other stand near each other: halves, and halves of them, by a direction
    between two of them that is drawn anew each time."""
    if len(rows) <= least:
        return rows
    one, other = chance.choice(len(rows), 2, replace=False)
    order = np.argsort(vectors @ (vectors[one] - vectors[other]))
    middle = max(least, (len(rows) // 2) // least * least)
    parts = (order[:middle], order[middle:])
    return np.concatenate([_halved(rows[part], vectors[part], least, chance) for part in parts])

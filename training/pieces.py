"""Words into word pieces, many at once, cut as the product cuts them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from contextd.adapters.wordpiece import Vocabulary, WordPiece
from corpus import Numbers, Ragged, offsets_of, spread

Cut = Callable[[str], Sequence[int]]

LONGEST_WORD: Final = 40
"""Of the static model, in characters."""


def vocabulary_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def static_cut(vocabulary: Sequence[str]) -> Cut:
    """An unknown word has no pieces."""
    known = Vocabulary(vocabulary, LONGEST_WORD)
    return lambda word: known.cut(word) or ()


def minilm_cut(vocabulary: Sequence[str]) -> Cut:
    """An unknown word leaves a mark. The marks of beginning and end are not its pieces."""
    known = WordPiece(vocabulary)
    return lambda word: known.encode(word, 1_000)[1:-1]


def marks_of(vocabulary: Sequence[str]) -> tuple[int, int]:
    """What stands before a text and what stands after it."""
    begin, end = WordPiece(vocabulary).encode("", 2)
    return begin, end


def marked(texts: Ragged, marks: tuple[int, int], most: int) -> Ragged:
    """With the marks of beginning and end, `most` pieces in all."""
    lengths = np.minimum(texts.lengths, most - 2)
    offsets = offsets_of(lengths + 2)
    stream = np.empty(offsets[-1], np.uint16)
    stream[offsets[:-1]], stream[offsets[1:] - 1] = marks
    stream[spread(offsets[:-1] + 1, lengths)] = texts.stream[spread(texts.offsets[:-1], lengths)]
    return Ragged(stream, offsets)


class Pieces:
    """Of a corpus's words."""

    def __init__(self, words: Sequence[str], cut: Cut) -> None:
        rows = [cut(word) for word in words]
        self._lengths = np.array([len(row) for row in rows], np.int64)
        self._starts = offsets_of(self._lengths)[:-1]
        self._stream: Numbers = np.array([id for row in rows for id in row], np.uint16)

    def of(self, texts: Ragged) -> Ragged:
        lengths = self._lengths[texts.stream]
        total = offsets_of(lengths)
        stream = self._stream[spread(self._starts[texts.stream], lengths)]
        return Ragged(stream, total[texts.offsets])

    def counts(self, texts: Ragged) -> Numbers:
        """Of how many pieces each text is."""
        total = offsets_of(self._lengths[texts.stream])
        counted: Numbers = np.diff(total[texts.offsets])
        return counted

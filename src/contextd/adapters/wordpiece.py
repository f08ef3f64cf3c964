"""WordPiece in plain Python: words into the ids of a vocabulary.

The `tokenizers` library does the same and is the oracle of the tests. It is not used at run time
because it brings a client of a model hub, and ten packages more, into a product that works offline.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from contextd.domain.words import split_words

_LONGEST_WORD: Final = 100
"""In characters. BERT's vocabulary was made with this bound: a longer word is unknown."""

_CACHED_WORDS: Final = 32_768
_RUNS: Final = re.compile(r"\S+")

# The blocks that BERT calls Chinese. The fifth begins 256 code points late, as in the library that
# the model was trained with: those characters are not in the vocabulary, and stay with their word.
_IDEOGRAPHS: Final = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f])"
)


class Vocabulary:
    """Greedy: a word is cut into the longest known pieces, from the left."""

    def __init__(self, pieces: Sequence[str], longest_word: int) -> None:
        """A piece's id is its place. A word of more characters than `longest_word` is unknown."""
        self._ids = {piece: id for id, piece in enumerate(pieces)}
        self._longest_piece = max(map(len, pieces))
        self._longest_word = longest_word

    def id_of(self, piece: str) -> int:
        return self._ids[piece]

    def cut(self, word: str) -> tuple[int, ...] | None:
        """None for an unknown word: one that cannot be cut whole."""
        if len(word) > self._longest_word:
            return None
        whole = self._ids.get(word)
        if whole is not None:  # as most words are
            return (whole,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            found = self._longest_at(word, start)
            if found is None:
                return None
            id, start = found
            ids.append(id)
        return tuple(ids)

    def _longest_at(self, word: str, start: int) -> tuple[int, int] | None:
        """The id of the longest piece that begins here, and where it ends."""
        prefix = "##" if start else ""
        for end in range(min(len(word), start + self._longest_piece), start, -1):
            id = self._ids.get(prefix + word[start:end])
            if id is not None:
                return id, end
        return None


class WordPiece:
    """As BERT has it: accents go, an unknown word leaves a mark, and two marks enclose the text."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = Vocabulary(vocabulary, _LONGEST_WORD)
        self._unknown, self._begin, self._end = map(self._vocabulary.id_of, ("[UNK]", "[CLS]", "[SEP]"))
        self._remembered = lru_cache(_CACHED_WORDS)(self._cut)

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids with the marks of beginning and end, `limit` at most; the text's end is what is left out."""
        return [self._begin, *islice(self._pieces(text), limit - 2), self._end]

    def count(self, text: str) -> int:
        """All pieces of the text, without the two marks."""
        return sum(1 for _ in self._pieces(text))

    def _pieces(self, text: str) -> Iterator[int]:
        # Words never cross white space, so a long text is split only as far as it is read.
        for run in _RUNS.finditer(text):
            for word in split_words(run[0]):
                # Very long words are rare and would make the cache's size unforeseeable.
                yield from self._remembered(word) if len(word) <= _LONGEST_WORD else self._cut(word)

    def _cut(self, word: str) -> tuple[int, ...]:
        parts = [word] if word.isascii() else _plain(word)
        return tuple(id for part in parts for id in self._vocabulary.cut(part) or (self._unknown,))


def _plain(word: str) -> list[str]:
    """As BERT's normaliser has it: ideographs stand alone, then accents go."""
    spaced = _IDEOGRAPHS.sub(r" \1 ", word)
    decomposed = unicodedata.normalize("NFD", spaced)
    return "".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn").split()

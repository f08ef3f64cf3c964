"""Pairs as arrays of words: what training reads, small enough to be carried to another machine.

PYTHONPATH=src:bench python training/corpus.py pairs.jsonl.gz CORPUS

CORPUS becomes a folder of arrays. Prints how many pairs of each kind and language are in it.
"""

import argparse
import json
import random
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from contextd.domain.words import split_words
from pair import KINDS, Pair, read

Numbers = NDArray[np.integer]

_WORDS_OF_QUERY: Final = 48
_WORDS_OF_DOCUMENT: Final = 224
_TAIL: Final = 12
"""Documents that end in the same words are versions of one: neither is a wrong answer for the other."""
_LEAST_COUNT: Final = 2
_MOST_OF_KIND: Final = {"change": 800, "name": 300, "commit": 600, "report": 400, "alike": 200}
"""Of one repository. Others are bounded by what `extract.py` keeps of it."""


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one stream: row `i` is from `offsets[i]` to `offsets[i + 1]`."""

    stream: Numbers
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, rows: Numbers) -> "Ragged":
        lengths = self.lengths[rows]
        return Ragged(self.stream[spread(self.offsets[rows], lengths)], offsets_of(lengths))

    def beginnings(self, lengths: Numbers) -> "Ragged":
        return Ragged(self.stream[spread(self.offsets[:-1], lengths)], offsets_of(lengths))

    def padded(
        self, rows: Numbers, width: int, skipped: Numbers | int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Each row from what is skipped of it on, zeros after its end; and its length, `width` at most."""
        starts = self.offsets[rows] + skipped
        lengths = np.minimum(self.offsets[rows + 1] - starts, width)
        table = np.zeros((len(rows), width), np.int32)
        table[np.arange(width) < lengths[:, None]] = self.stream[spread(starts, lengths)]
        return table, lengths.astype(np.int32)


@dataclass(frozen=True)
class Corpus:
    words: list[str]
    queries: Ragged
    documents: Ragged
    heads: Numbers
    """Words in each document's first line, which mostly is a signature."""
    tails: Numbers
    """By which versions of one document are known."""
    asked: Numbers
    """By which equal queries are known."""
    kinds: Numbers
    repositories: Numbers

    def __len__(self) -> int:
        return len(self.kinds)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "words.txt").write_text("\n".join(self.words), encoding="utf-8")
        for name, array in self._arrays().items():
            np.save(folder / f"{name}.npy", array)

    def _arrays(self) -> dict[str, Numbers]:
        return {
            "queries": self.queries.stream,
            "query_lengths": self.queries.lengths.astype(np.uint8),
            "documents": self.documents.stream,
            "document_lengths": self.documents.lengths.astype(np.uint8),
            "heads": self.heads,
            "tails": self.tails,
            "asked": self.asked,
            "kinds": self.kinds,
            "repositories": self.repositories,
        }

    @classmethod
    def load(cls, folder: Path) -> "Corpus":
        def array(name: str) -> Numbers:
            found: Numbers = np.load(folder / f"{name}.npy", allow_pickle=False)
            return found

        return cls(
            words=(folder / "words.txt").read_text(encoding="utf-8").split("\n"),
            queries=Ragged(array("queries"), offsets_of(array("query_lengths"))),
            documents=Ragged(array("documents"), offsets_of(array("document_lengths"))),
            heads=array("heads"),
            tails=array("tails"),
            asked=array("asked"),
            kinds=array("kinds"),
            repositories=array("repositories"),
        )


def offsets_of(lengths: Numbers) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def spread(starts: Numbers, lengths: Numbers) -> NDArray[np.int64]:
    """Places from each start on, as many as its length, one after the other."""
    before = offsets_of(lengths)
    return np.repeat(starts - before[:-1], lengths) + np.arange(before[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Make arrays of pairs.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("corpus", type=Path)
    chosen = parser.parse_args()
    corpus, about = packed(read(chosen.pairs))
    corpus.save(chosen.corpus)
    json.dump(about, sys.stdout, indent=1)


def packed(pairs: Iterable[Pair], seed: int = 1) -> tuple[Corpus, dict[str, object]]:
    kept = list(_bounded(pairs, random.Random(seed)))
    # Rows are kept as words only while they are counted: ids are given by how often a word comes.
    counts: Counter[str] = Counter()
    ids: dict[str, int] = {}
    first: list[str] = []

    def numbered(words: Sequence[str]) -> NDArray[np.int64]:
        counts.update(words)
        for word in words:
            if word not in ids:
                ids[word] = len(first)
                first.append(word)
        return np.fromiter((ids[word] for word in words), np.int64, len(words))

    queries, documents, heads, tails, asked = [], [], [], [], []
    for at, pair in enumerate(kept):
        words, query = split_words(pair.document), split_words(pair.query)
        queries.append(numbered(query[:_WORDS_OF_QUERY]))
        # What has no query is like nothing else that has none.
        asked.append(zlib.crc32(" ".join(query or [str(at)]).encode()))
        documents.append(numbered(words[:_WORDS_OF_DOCUMENT]))
        heads.append(min(len(split_words(pair.document.split("\n", 1)[0])), _WORDS_OF_DOCUMENT))
        tails.append(zlib.crc32(" ".join(words[-_TAIL:]).encode()))
    names = sorted({pair.repository for pair in kept})
    place = {name: at for at, name in enumerate(names)}
    order = sorted(range(len(first)), key=lambda at: (-counts[first[at]], first[at]))
    common = [id for id in order if counts[first[id]] >= _LEAST_COUNT]
    renamed = np.full(len(first), -1)
    renamed[common] = np.arange(len(common))
    headed = zip(documents, heads, strict=True)
    corpus = Corpus(
        words=[first[id] for id in common],
        queries=_ragged(queries, renamed),
        documents=_ragged(documents, renamed),
        heads=np.array([(renamed[ids[:head]] >= 0).sum() for ids, head in headed], np.uint8),
        tails=np.array(tails, np.uint32),
        asked=np.array(asked, np.uint32),
        kinds=np.array([KINDS.index(pair.kind) for pair in kept], np.uint8),
        repositories=np.array([place[pair.repository] for pair in kept], np.uint16),
    )
    about = {
        "pairs": len(kept),
        "repositories": len(names),
        "words": len(common),
        "kinds": Counter(pair.kind for pair in kept),
        "languages": Counter(pair.language for pair in kept),
    }
    return corpus, about


def _bounded(pairs: Iterable[Pair], chance: random.Random) -> Iterable[Pair]:
    """By repository, at most so many of each kind; `pairs` come one repository after the other."""
    held: dict[str, list[Pair]] = {}
    repository = ""
    for pair in pairs:
        if pair.repository != repository:
            yield from _chosen(held, chance)
            held, repository = {}, pair.repository
        held.setdefault(pair.kind, []).append(pair)
    yield from _chosen(held, chance)


def _chosen(held: dict[str, list[Pair]], chance: random.Random) -> Iterable[Pair]:
    for kind, pairs in held.items():
        most = _MOST_OF_KIND.get(kind, len(pairs))
        yield from pairs if len(pairs) <= most else chance.sample(pairs, most)


def _ragged(rows: Sequence[NDArray[np.int64]], renamed: NDArray[np.int64]) -> Ragged:
    lengths = np.array([len(row) for row in rows])
    stream = renamed[np.concatenate(rows)] if rows else np.zeros(0, np.int64)
    known = stream >= 0
    of_row = np.repeat(np.arange(len(rows)), lengths)
    kept = np.bincount(of_row[known], minlength=len(rows))
    return Ragged(stream[known].astype(np.uint32), offsets_of(kept))


if __name__ == "__main__":
    main()

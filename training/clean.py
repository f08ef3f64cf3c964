"""One file of pairs from many: nothing twice, and nothing that the models are measured on.

PYTHONPATH=bench python training/clean.py PAIRS BANNED OUT

PAIRS and BANNED are folders that `extract.py` made, BANNED with --held-out: copies of that code which other
repositories carry are left out too. Prints counts of what was kept.
"""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from contextd.domain.words import split_words
from pair import Pair, read, write

_WINDOW: Final = 30
"""Words at the beginning and at the end of a document: it is known again when either is the same."""
_SHORT: Final = 5
"""Questions of so few words may come from anybody: sharing one is no sign of a copy."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Merge, deduplicate and ban pairs.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("banned", type=Path)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    banned = marks_of(_all(chosen.banned))
    kept = write(chosen.out, _counted(cleaned(_all(chosen.pairs), banned), counts))
    json.dump({"pairs": kept, **dict(sorted(counts.items()))}, sys.stdout, indent=1)


def cleaned(pairs: Iterable[Pair], banned: frozenset[bytes]) -> Iterator[Pair]:
    """The first of those that are alike. A document may have several questions, but none of them twice."""
    seen: set[bytes] = set()
    for pair in pairs:
        if not banned.isdisjoint(_marks(pair)):
            continue
        mark = _digest([*split_words(pair.query), "\0", *split_words(pair.document)[:_WINDOW]])
        if mark not in seen:
            seen.add(mark)
            yield pair


def marks_of(pairs: Iterable[Pair]) -> frozenset[bytes]:
    """By which these pairs, or parts of them, are known again."""
    return frozenset(mark for pair in pairs for mark in _marks(pair))


def _marks(pair: Pair) -> set[bytes]:
    asked, words = split_words(pair.query), split_words(pair.document)
    marks = {_digest(words[:_WINDOW]), _digest(words[-_WINDOW:])}
    return marks | {_digest(asked)} if len(asked) > _SHORT else marks


def _digest(words: list[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()


def _all(folder: Path) -> Iterator[Pair]:
    for file in sorted(folder.glob("*.jsonl.gz")):
        yield from read(file)


def _counted(pairs: Iterable[Pair], counts: Counter[str]) -> Iterator[Pair]:
    for pair in pairs:
        counts[f"kind {pair.kind}"] += 1
        counts[f"language {pair.language}"] += 1
        yield pair


if __name__ == "__main__":
    main()

"""A vocabulary of word pieces for the static model, from the words of a corpus.

PYTHONPATH=src:bench python training/tokenizer.py CORPUS VOCABULARY [--pieces 32000]

VOCABULARY becomes a file with one piece a line; `##` stands before what continues a word.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer, models, trainers
from tokenizers.pre_tokenizers import WhitespaceSplit

from corpus import Corpus
from pieces import LONGEST_WORD

_PIECES: Final = 32_000
_DAMPED: Final = 0.75
_MOST: Final = 40_000
"""Counts are damped and bounded: what is common becomes a piece anyhow, and is counted sooner."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a vocabulary of word pieces.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("--pieces", type=int, default=_PIECES)
    chosen = parser.parse_args()
    pieces = trained(Corpus.load(chosen.corpus), chosen.pieces)
    chosen.vocabulary.write_text("\n".join(pieces) + "\n", encoding="utf-8")


def trained(corpus: Corpus, pieces: int) -> list[str]:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(vocab_size=pieces, special_tokens=["[UNK]"], show_progress=False)
    made.train_from_iterator(_counted(corpus), trainer)
    ids = made.get_vocab()
    return sorted(ids, key=lambda piece: ids[piece])


def _counted(corpus: Corpus) -> Iterator[str]:
    counts = np.bincount(corpus.documents.stream, minlength=len(corpus.words))
    counts += np.bincount(corpus.queries.stream, minlength=len(corpus.words))
    for word, count in zip(corpus.words, counts.tolist(), strict=True):
        if len(word) <= LONGEST_WORD:
            yield " ".join([word] * min(max(1, round(count**_DAMPED)), _MOST))


if __name__ == "__main__":
    main()

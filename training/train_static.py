"""Train the static model for code.

PYTHONPATH=src:bench python training/train_static.py CORPUS VOCABULARY PUBLISHED OUT [--epochs 8]

PUBLISHED is a folder with all-MiniLM-L6-v2's `model.safetensors` and `vocab.txt`: rows start as what it
makes of each piece. With --teacher FILE, vectors of the corpus's pairs that `train_minilm.py` wrote, the
order of each batch is learnt from them too. OUT becomes the file that contextd reads.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

import static_model
from adam import Adam, Tree, rate_at
from ahead import ahead
from arguments import add_fields
from batches import Blocks, Drawn, Floats, Shape, Variations
from corpus import Corpus, Numbers, Ragged
from export_static import export
from network import encoded, parameters_of
from objective import unit
from pieces import Pieces, marks_of, minilm_cut, static_cut, vocabulary_of
from published_minilm import tensors_of
from static_model import DIMENSION, Recipe

_WIDTHS: Final = (96, 256)
_ASKED_WIDTH: Final = 48
_AT_ONCE: Final = 1_024
_TOLD: Final = 200
_READ_WIDTH: Final = 512
Taught = tuple[Floats, Floats]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the static model.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("published", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--teacher", type=Path)
    add_fields(parser, Recipe)
    chosen = parser.parse_args()
    recipe = Recipe(**{field.name: getattr(chosen, field.name) for field in fields(Recipe)})
    vocabulary = vocabulary_of(chosen.vocabulary)
    rows = beginning(vocabulary, chosen.published)
    taught = None
    if chosen.teacher:
        with np.load(chosen.teacher) as vectors:
            taught = (vectors["queries"], vectors["documents"])
    export(train(Corpus.load(chosen.corpus), vocabulary, rows, recipe, taught), chosen.out)


def beginning(vocabulary: Sequence[str], published: Path) -> Floats:
    """The network's vector of each piece alone, turned so that the first numbers say most."""
    known = vocabulary_of(published / "vocab.txt")
    cut, (begin, end) = minilm_cut(known), marks_of(known)
    read = jax.jit(partial(encoded, half=False))
    weights = parameters_of(tensors_of(published / "model.safetensors"))
    texts = [[begin, *cut(piece.removeprefix("##"))[:14], end] for piece in vocabulary]
    ids = np.zeros((-(-len(texts) // _AT_ONCE) * _AT_ONCE, 16), np.int32)
    lengths = np.ones(len(ids), np.int32)
    for at, text in enumerate(texts):
        ids[at, : len(text)], lengths[at] = text, len(text)
    parts = [
        np.asarray(read(weights, ids[at : at + _AT_ONCE], lengths[at : at + _AT_ONCE]))
        for at in range(0, len(ids), _AT_ONCE)
    ]
    vectors = np.concatenate(parts)[: len(texts)]
    vectors -= vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(vectors.T @ vectors)
    turned: Floats = (vectors @ axes[:DIMENSION].T).astype(np.float32)
    return turned


def train(
    corpus: Corpus, vocabulary: Sequence[str], rows: Floats, recipe: Recipe, taught: Taught | None = None
) -> Tree:
    chance = np.random.default_rng(recipe.seed)
    pieces = Pieces(corpus.words, static_cut(vocabulary))
    documents = pieces.of(corpus.documents)
    heads = _head_sizes(corpus, pieces)
    pairs = min(recipe.pairs, int((corpus.queries.lengths > 0).sum()))
    blocks = Blocks(
        corpus, documents.lengths, [Shape(width, pairs) for width in _WIDTHS], min(recipe.block, pairs)
    )
    adam, steps = Adam(decay=0.0, longest=10.0), blocks.batches_in_epoch() * recipe.epochs
    parameters = static_model.start(rows)
    state = adam.start(parameters)
    variations = Variations(corpus)

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(
        parameters: Tree, state: Tree, batch: dict[str, jax.Array], key: jax.Array, rate: float
    ) -> Any:
        cost, slopes = jax.value_and_grad(static_model.loss)(parameters, batch, key, recipe)
        return *adam.step(parameters, slopes, state, jnp.asarray(rate)), cost

    def drawn() -> Iterator[tuple[Ragged, Drawn]]:
        for _ in range(recipe.epochs):
            asked = pieces.of(variations.drawn(chance))
            yield from ((asked, each) for each in blocks.epoch(chance))

    source = _Source(corpus, documents, heads, blocks, recipe, taught)
    key, costs, begun = jax.random.key(recipe.seed), [], time.monotonic()
    for at, batch in enumerate(ahead(source.batch, drawn())):
        rate = rate_at(at, steps, recipe.rate)
        parameters, state, cost = step(parameters, state, batch, jax.random.fold_in(key, at), rate)
        costs.append(cost)
        if (at + 1) % _TOLD == 0 or at + 1 == steps:
            mean = np.mean(jax.device_get(costs[-_TOLD:]))
            said = f"{at + 1} of {steps}: {mean:.4f}, {time.monotonic() - begun:.0f} s"
            print(said, file=sys.stderr, flush=True)
    return jax.tree.map(np.asarray, parameters)


def read_documents(parameters: Tree, texts: Ragged) -> Floats:
    return _read(_documents_read, parameters, texts)


def read_queries(parameters: Tree, texts: Ragged) -> Floats:
    return _read(_queries_read, parameters, texts)


@jax.jit
def _documents_read(parameters: Tree, ids: jax.Array, lengths: jax.Array) -> jax.Array:
    return unit(static_model.documents(parameters, ids, static_model.filled(ids, lengths)))


@jax.jit
def _queries_read(parameters: Tree, ids: jax.Array, lengths: jax.Array) -> jax.Array:
    return unit(static_model.queries(parameters, ids, static_model.filled(ids, lengths)))


def _read(read: Callable[..., jax.Array], parameters: Tree, texts: Ragged) -> Floats:
    parts = []
    for at in range(0, len(texts), _AT_ONCE):
        rows = np.minimum(np.arange(at, at + _AT_ONCE), len(texts) - 1)
        parts.append(np.asarray(read(parameters, *texts.padded(rows, _READ_WIDTH)))[: len(texts) - at])
    return np.concatenate(parts)


def _head_sizes(corpus: Corpus, pieces: Pieces) -> Numbers:
    words = np.minimum(corpus.heads, corpus.documents.lengths)
    return pieces.counts(corpus.documents.beginnings(words))


@dataclass(frozen=True)
class _Source:
    corpus: Corpus
    documents: Ragged
    heads: Numbers
    blocks: Blocks
    recipe: Recipe
    taught: Taught | None

    def batch(self, wanted: tuple[Ragged, Drawn]) -> dict[str, Any]:
        asked, drawn = wanted
        rows, recipe = drawn.rows, self.recipe
        sizes, heads = self.documents.lengths[rows], self.heads[rows]
        # What is nothing but a first line keeps it.
        is_headless = (drawn.chance.random(len(rows)) < recipe.headless) & (heads < sizes)
        beside = self.blocks.beside(rows, recipe.beside, drawn.chance)
        batch: dict[str, Any] = {"tails": self.corpus.tails[rows], "asked": self.corpus.asked[rows]}
        batch["queries"], batch["query_lengths"] = asked.padded(rows, _ASKED_WIDTH)
        batch["documents"], batch["document_lengths"] = self.documents.padded(
            rows, drawn.shape.width, np.where(is_headless, heads, 0)
        )
        batch["beside"], batch["beside_lengths"] = self.documents.padded(beside, _WIDTHS[-1])
        if self.taught is not None and recipe.taught:
            batch["taught_queries"], batch["taught_documents"] = (each[rows] for each in self.taught)
        return batch


if __name__ == "__main__":
    main()

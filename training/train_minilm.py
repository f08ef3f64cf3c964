"""Tune MiniLM for what developers write.

PYTHONPATH=src:bench python training/train_minilm.py CORPUS PUBLISHED OUT [--epochs 4] [--seed 1]

PUBLISHED is a folder with all-MiniLM-L6-v2's `model.safetensors` and `vocab.txt`. OUT becomes a file of
weights in 16 bits, which `export_minilm.py` makes a network of. With --vectors FILE, what the tuned network
makes of all pairs is written too. A second round goes on from there: with --begin WEIGHTS it starts from
what the first one wrote, and with --near VECTORS its batches hold documents that the first one found alike,
which are the hardest wrong answers for each other. The static model learns from the same vectors.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from adam import Adam, Tree, rate_at
from ahead import ahead
from arguments import add_fields
from batches import Blocks, Drawn, Floats, Shape, Variations, Vectors
from corpus import Corpus, Numbers, Ragged
from network import encoded, parameters_of, weights_of
from objective import Array, alike, contrast
from pieces import Pieces, marked, marks_of, minilm_cut, vocabulary_of
from published_minilm import tensors_of

_ASKED_WIDTH: Final = 32
_WIDTHS: Final = (64, 128, 192)
_MIDDLING: Final = 128
_READ_WIDTHS: Final = (16, 64, 128, 256)
_TOLD: Final = 100
_TOKENS_READ: Final = 262_144


@dataclass(frozen=True, slots=True)
class Recipe:
    epochs: float = 4.0
    rate: float = 2e-4
    pairs: int = 2_048
    """Of documents of middling length; as many more of short ones, and fewer of long ones."""
    block: int = 64
    beside: int = 128
    half: bool = True
    fused: bool = False
    seed: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune MiniLM.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("published", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--begin", type=Path)
    parser.add_argument("--near", type=Path)
    parser.add_argument("--vectors", type=Path)
    add_fields(parser, Recipe)
    chosen = parser.parse_args()
    recipe = Recipe(**{field.name: getattr(chosen, field.name) for field in fields(Recipe)})
    tuner = Tuner(Corpus.load(chosen.corpus), chosen.published)
    near = None
    if chosen.near:
        with np.load(chosen.near) as vectors:
            near = vectors["documents"]
    begin = parameters_of(read_weights(chosen.begin)) if chosen.begin else tuner.published
    network = tuner.train(begin, recipe, near)
    write_weights(chosen.out, weights_of(network))
    if chosen.vectors:
        queries, documents = tuner.vectors(network, recipe)
        np.savez(chosen.vectors, queries=queries, documents=documents)


def read_weights(file: Path) -> dict[str, Floats]:
    with np.load(file) as tensors:
        return {name: tensors[name].astype(np.float32) for name in tensors.files}


def write_weights(file: Path, weights: Mapping[str, Floats]) -> None:
    halves: dict[str, Any] = {name: each.astype(np.float16) for name, each in weights.items()}
    np.savez(file, **halves)


class Tuner:
    def __init__(self, corpus: Corpus, published: Path) -> None:
        self._corpus = corpus
        vocabulary = vocabulary_of(published / "vocab.txt")
        self._marks = marks_of(vocabulary)
        self._pieces = Pieces(corpus.words, minilm_cut(vocabulary))
        self._documents = marked(self._pieces.of(corpus.documents), self._marks, _WIDTHS[-1])
        self.published = parameters_of(tensors_of(published / "model.safetensors"))

    def train(self, begin: Tree, recipe: Recipe, near: Vectors | None = None) -> Tree:
        shapes = [Shape(width, max(recipe.block, recipe.pairs * _MIDDLING // width)) for width in _WIDTHS]
        blocks = Blocks(self._corpus, self._documents.lengths, shapes, recipe.block)
        steps = max(1, int(blocks.batches_in_epoch() * recipe.epochs))
        adam = Adam()
        parameters: Tree = {"network": begin, "sharpness": jnp.log(jnp.array(20.0))}
        parameters, state = jax.tree.map(jnp.array, parameters), adam.start(parameters)

        @partial(jax.jit, donate_argnums=(0, 1))
        def step(parameters: Tree, state: Tree, batch: dict[str, Array], rate: float) -> Any:
            cost, slopes = jax.value_and_grad(_loss)(parameters, batch, recipe)
            return *adam.step(parameters, slopes, state, jnp.asarray(rate)), cost

        def batch(wanted: tuple[Ragged, Drawn]) -> dict[str, Any]:
            return self._batch(*wanted, blocks, recipe)

        costs: list[Array] = []
        begun = time.monotonic()
        for at, made in enumerate(ahead(batch, islice(self._drawn(blocks, recipe, near), steps))):
            parameters, state, cost = step(parameters, state, made, rate_at(at, steps, recipe.rate))
            costs.append(cost)
            if (at + 1) % _TOLD == 0 or at + 1 == steps:
                mean = np.mean(jax.device_get(costs[-_TOLD:]))
                said = f"{at + 1} of {steps}: {mean:.4f}, {time.monotonic() - begun:.0f} s"
                print(said, file=sys.stderr, flush=True)
        return parameters["network"]

    def _drawn(
        self, blocks: Blocks, recipe: Recipe, near: Vectors | None
    ) -> Iterator[tuple[Ragged, Drawn]]:
        chance = np.random.default_rng(recipe.seed)
        variations = Variations(self._corpus)
        while True:
            asked = marked(self._pieces.of(variations.drawn(chance)), self._marks, _ASKED_WIDTH)
            yield from ((asked, each) for each in blocks.epoch(chance, near))

    def _batch(self, asked: Ragged, drawn: Drawn, blocks: Blocks, recipe: Recipe) -> dict[str, Any]:
        rows = drawn.rows
        beside = blocks.beside(rows, recipe.beside, drawn.chance)
        batch: dict[str, Any] = {"tails": self._corpus.tails[rows], "asked": self._corpus.asked[rows]}
        batch["queries"], batch["query_lengths"] = asked.padded(rows, _ASKED_WIDTH)
        batch["documents"], batch["document_lengths"] = self._documents.padded(rows, drawn.shape.width)
        batch["beside"], batch["beside_lengths"] = self._documents.padded(beside, drawn.shape.width)
        return batch

    def vectors(self, network: Tree, recipe: Recipe) -> tuple[Floats, Floats]:
        """Of all pairs, in 16 bits: their queries as they are, and their documents."""
        asked = marked(self._pieces.of(self._corpus.queries), self._marks, _ASKED_WIDTH)
        return (
            read_all(network, asked, half=recipe.half),
            read_all(network, self._documents, half=recipe.half),
        )


def read_all(network: Tree, texts: Ragged, *, half: bool, tokens: int = _TOKENS_READ) -> Floats:
    """Sorted by length, so that little is read in vain; so many tokens at a time."""
    found = np.zeros((len(texts), network["words"].shape[1]), np.float16)
    order = np.argsort(texts.lengths, kind="stable")
    fits = np.searchsorted(_READ_WIDTHS[:-1], texts.lengths[order])
    for at, width in enumerate(_READ_WIDTHS):
        rows, size = order[fits == at], tokens // width
        pending: list[tuple[Numbers, Array]] = []
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            ids, lengths = texts.padded(np.resize(some, size), width)
            pending.append((some, _read(network, ids, lengths, half=half)))
        for some, vectors in pending:
            found[some] = np.asarray(vectors)[: len(some)]
    return found


@partial(jax.jit, static_argnames="half")
def _read(network: Tree, ids: Array, lengths: Array, *, half: bool) -> Array:
    return encoded(network, ids, lengths, half=half).astype(jnp.float16)


def _loss(parameters: Tree, batch: dict[str, Array], recipe: Recipe) -> Array:
    def read(what: str, lengths: str) -> Array:
        if not len(batch[what]):
            return jnp.zeros((0, parameters["network"]["words"].shape[1]))
        return encoded(
            parameters["network"], batch[what], batch[lengths], half=recipe.half, fused=recipe.fused
        )

    sharpness = jnp.exp(jnp.minimum(parameters["sharpness"], jnp.log(100.0)))
    return contrast(
        read("queries", "query_lengths"),
        read("documents", "document_lengths"),
        read("beside", "beside_lengths"),
        alike(batch["tails"], batch["asked"]),
        sharpness,
    )


if __name__ == "__main__":
    main()

"""How well models find what is looked for, with intervals for what is between them.

PYTHONPATH=src:bench python training/measure.py JUDGED MODEL [MODEL ...]

JUDGED is what `judged.py` made. A model is one of these; the first is compared with each of the others.

static:TABLE:VOCABULARY, minilm:WEIGHTS:PUBLISHED    what the training scripts write
onnx:NETWORK:VOCABULARY                              what `export_minilm.py` writes
published:PUBLISHED                                  all-MiniLM-L6-v2
shipped:static, shipped:minilm                       as the product has them
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from batches import Floats
from pools import Pool, pools_of
from report import Table

_BEST: Final = 10
_RESAMPLED: Final = 1_000


class Model(Protocol):
    def documents(self, texts: Sequence[str]) -> Floats: ...

    def queries(self, texts: Sequence[str]) -> Floats: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure models.")
    parser.add_argument("judged", type=Path)
    parser.add_argument("models", nargs="+")
    chosen = parser.parse_args()
    from models import model_of

    pools = pools_of(chosen.judged)
    ranks = {name: ranks_by_set(model_of(name), pools) for name in chosen.models}
    print(table(ranks).markdown())


def ranks_by_set(model: Model, pools: Sequence[Pool]) -> dict[str, list[float]]:
    """Reciprocal ranks within the best ten; a query's best answer counts."""
    found: dict[str, list[float]] = {}
    documents, vectors = [""], np.zeros((0, 0), np.float32)
    for pool in pools:
        # Sets that differ by their queries alone follow each other.
        if pool.documents != documents:
            documents, vectors = pool.documents, model.documents(pool.documents)
        scores = model.queries(pool.queries) @ vectors.T
        for row, answers in zip(scores, pool.answers, strict=True):
            # Of equals, the answer is taken to come last.
            rank = int(np.sum(row >= row[answers].max()))
            found.setdefault(pool.set, []).append(1 / rank if rank <= _BEST else 0.0)
    return found


def table(ranks: Mapping[str, Mapping[str, Sequence[float]]]) -> Table:
    names = list(ranks)
    first = ranks[names[0]]
    rows = []
    for set, own in first.items():
        cells = [f"{set} ({len(own)})"]
        for name in names:
            mean = f"{statistics.fmean(ranks[name][set]):.3f}"
            cells.append(mean if name == names[0] else f"{mean} ({lead(own, ranks[name][set])})")
        rows.append(tuple(cells))
    return Table(("MRR@10", *names), tuple(rows))


def lead(own: Sequence[float], other: Sequence[float]) -> str:
    """Of the mean of the first, by resampling the queries: 95 %."""
    pairs = np.array(own) - np.array(other)
    chance = np.random.default_rng(1)
    means = np.sort(pairs[chance.integers(0, len(pairs), (_RESAMPLED, len(pairs)))].mean(axis=1))
    return f"{means[int(_RESAMPLED * 0.025)]:+.3f} to {means[int(_RESAMPLED * 0.975)]:+.3f}"


if __name__ == "__main__":
    main()

"""The static model as it is trained: a row for each word piece, and the weights of a sum of rows.

`adapters/code_static.py` reads what `export_static.py` writes of it, by the same formula.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from adam import Tree
from objective import Array, alike, contrast, distilled, unit

DIMENSION: Final = 256
POSITIONS: Final = 16
_SIZES: Final = (256, 128, 64)
"""The beginning of a vector is a vector too."""


@dataclass(frozen=True, slots=True)
class Recipe:
    epochs: int = 10
    rate: float = 5e-3
    pairs: int = 8_192
    block: int = 512
    beside: int = 1_024
    drop_query: float = 0.1
    drop_document: float = 0.2
    headless: float = 0.25
    """Documents that are shown without their first line."""
    taught: float = 0.0
    """Weight of the teacher."""
    seed: int = 1


def loaded(file: Path) -> Tree:
    """As `export_static.py` wrote it."""
    with np.load(file, allow_pickle=False) as arrays:
        return {
            "rows": jnp.asarray(arrays["E8"].astype(np.float32) * arrays["sc"][:, None]),
            "in_document": jnp.asarray(arrays["gd"].astype(np.float32)),
            "in_query": jnp.asarray(arrays["gq"].astype(np.float32)),
            "position": jnp.asarray(arrays["pd"]),
            "repetition": jnp.asarray(float(arrays["al"])),
        }


def start(rows: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Tree:
    return {
        "rows": jnp.asarray(rows),
        "in_document": jnp.zeros(len(rows)),
        "in_query": jnp.zeros(len(rows)),
        "position": jnp.zeros(POSITIONS),
        "repetition": jnp.array(0.5),
        "sharpness": jnp.log(jnp.array(20.0)),
    }


def documents(parameters: Tree, ids: Array, seen: Array) -> Array:
    """`seen` is 1 where a piece counts, and 0 after the end or where it was dropped."""
    places = np.minimum(np.floor(2 * np.log2(np.arange(1, ids.shape[1] + 1))), POSITIONS - 1).astype(int)
    counts = jnp.sum((ids[:, :, None] == ids[:, None, :]) & (seen > 0)[:, None, :], axis=2)
    damped = jnp.exp((parameters["repetition"] - 1) * jnp.log(jnp.maximum(counts, 1)))
    weights = jnp.exp(parameters["in_document"][ids] + parameters["position"][places]) * damped * seen
    return jnp.einsum("bl,bld->bd", weights, parameters["rows"][ids])


def queries(parameters: Tree, ids: Array, seen: Array) -> Array:
    weights = jnp.exp(parameters["in_query"][ids]) * seen
    return jnp.einsum("bl,bld->bd", weights, parameters["rows"][ids])


def loss(parameters: Tree, batch: dict[str, Array], key: Array, recipe: Recipe) -> Array:
    one, other = jax.random.split(key)
    asked = queries(
        parameters,
        batch["queries"],
        _seen(batch["queries"], batch["query_lengths"], one, recipe.drop_query),
    )
    found = documents(
        parameters,
        batch["documents"],
        _seen(batch["documents"], batch["document_lengths"], other, recipe.drop_document),
    )
    beside = documents(parameters, batch["beside"], filled(batch["beside"], batch["beside_lengths"]))
    same = alike(batch["tails"], batch["asked"])
    sharpness = jnp.exp(jnp.minimum(parameters["sharpness"], jnp.log(100.0)))
    total = sum(
        contrast(unit(asked[:, :size]), unit(found[:, :size]), unit(beside[:, :size]), same, sharpness)
        for size in _SIZES
    ) / len(_SIZES)
    if recipe.taught:
        taught = (
            batch["taught_queries"].astype(jnp.float32) @ batch["taught_documents"].astype(jnp.float32).T
        )
        total = total + recipe.taught * distilled(unit(asked), unit(found), taught)
    return jnp.asarray(total)


def filled(ids: Array, lengths: Array) -> Array:
    return (jnp.arange(ids.shape[1]) < lengths[:, None]).astype(jnp.float32)


def _seen(ids: Array, lengths: Array, key: Array, dropped: float) -> Array:
    kept = jax.random.uniform(key, ids.shape) >= dropped
    # The first piece always stays: a text without any has no direction.
    return filled(ids, lengths) * kept.at[:, 0].set(True)

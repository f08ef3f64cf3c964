"""What is made small: the cross entropy of finding each query's document among all of a batch, and each
document's query."""

from typing import Final

import jax
import jax.numpy as jnp

Array = jax.Array

_SAME: Final = 0.95
"""Cosine from which two documents are taken for versions of one."""
_NEVER: Final = -1e9


def contrast(
    queries: Array, documents: Array, beside: Array, same: Array, sharpness: Array, same_from: float = _SAME
) -> Array:
    """`same` marks pairs of one batch that are no wrong answers for each other; so does being alike."""
    scores = queries @ documents.T * sharpness
    near = jax.lax.stop_gradient(documents @ documents.T) > same_from
    own = jnp.eye(len(queries), dtype=bool)
    scores = jnp.where((same | near) & ~own, _NEVER, scores)
    wide = jnp.concatenate([scores, queries @ beside.T * sharpness], axis=1)
    right = jnp.arange(len(queries))
    return (_entropy(wide, right) + _entropy(scores.T, right)) / 2


def alike(*marks: Array) -> Array:
    """Pairs of a batch that share any of these marks."""
    found = [each[:, None] == each for each in marks]
    return jnp.any(jnp.stack(found), axis=0)


def _entropy(scores: Array, right: Array) -> Array:
    chosen = jnp.take_along_axis(scores, right[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - chosen)


def distilled(queries: Array, documents: Array, taught: Array, sharpness: float = 20.0) -> Array:
    """How far the order of a batch's documents is from what a teacher says: `taught` are its cosines."""
    own = jax.nn.log_softmax(queries @ documents.T * sharpness, axis=1)
    wanted = jax.nn.softmax(taught * sharpness, axis=1)
    return -jnp.mean(jnp.sum(wanted * own, axis=1))


def unit(vectors: Array) -> Array:
    length = jnp.sqrt(jnp.sum(jnp.square(vectors), axis=-1, keepdims=True) + 1e-12)
    return vectors / length

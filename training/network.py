"""MiniLM's encoder in JAX: what is tuned, and what teaches and begins the static model."""

from collections.abc import Mapping
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from adam import Tree
from objective import Array, unit

_TINY: Final = 1e-12
_LAYER: Final = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "narrow_norm": "output.LayerNorm",
}
HEAD_SIZE: Final = 32


def parameters_of(weights: Mapping[str, NDArray[np.float32]]) -> Tree:
    """Of tensors with the names that BERT's have. Layers are stacked."""
    count = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    layers = {
        own: {
            part: jnp.stack([weights[f"encoder.layer.{at}.{name}.{part}"] for at in range(count)])
            for part in ("weight", "bias")
        }
        for own, name in _LAYER.items()
    }
    # The only kind of text there is has one vector that is added everywhere.
    position = weights["embeddings.position_embeddings.weight"]
    return {
        "words": jnp.asarray(weights["embeddings.word_embeddings.weight"]),
        "positions": jnp.asarray(position + weights["embeddings.token_type_embeddings.weight"][0]),
        "norm": {part: jnp.asarray(weights[f"embeddings.LayerNorm.{part}"]) for part in ("weight", "bias")},
        "layers": layers,
    }


def weights_of(parameters: Tree) -> dict[str, NDArray[np.float32]]:
    """The way back, to tensors with BERT's names."""
    found = {
        "embeddings.word_embeddings.weight": parameters["words"],
        "embeddings.position_embeddings.weight": parameters["positions"],
        "embeddings.token_type_embeddings.weight": jnp.zeros_like(parameters["positions"][:2]),
    }
    for part in ("weight", "bias"):
        found[f"embeddings.LayerNorm.{part}"] = parameters["norm"][part]
        for own, name in _LAYER.items():
            for at, value in enumerate(parameters["layers"][own][part]):
                found[f"encoder.layer.{at}.{name}.{part}"] = value
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


def encoded(parameters: Tree, ids: Array, lengths: Array, *, half: bool, fused: bool = False) -> Array:
    """Vectors of length one. `ids` have the marks of beginning and end; `half` works in 16 bits, `fused`
    in one kernel for all of attention, which cuDNN has."""
    kind = jnp.bfloat16 if half else jnp.float32
    width = ids.shape[1]
    state = parameters["words"][ids] + parameters["positions"][:width]
    state = _normal(state, parameters["norm"]).astype(kind)
    layers = parameters["layers"]
    # Not a scan: what it keeps for the way back is copied, which took a fifth of a step.
    for at in range(len(layers["query"]["weight"])):
        own = {name: {part: each[at] for part, each in parts.items()} for name, parts in layers.items()}
        state = _layer(state, own, lengths, fused=fused)
    seen = jnp.arange(width) < lengths[:, None]
    total = jnp.sum(jnp.where(seen[:, :, None], state, 0).astype(jnp.float32), axis=1)
    return unit(total / jnp.maximum(lengths, 1)[:, None])


def _layer(state: Array, own: Tree, lengths: Array, *, fused: bool) -> Array:
    def heads(name: str) -> Array:
        made = _linear(state, own[name])
        return made.reshape(*made.shape[:2], -1, HEAD_SIZE)

    mixed = jax.nn.dot_product_attention(
        heads("query"),
        heads("key"),
        heads("value"),
        query_seq_lengths=lengths,
        key_value_seq_lengths=lengths,
        implementation="cudnn" if fused else "xla",
    )
    state = _normal(state + _linear(mixed.reshape(state.shape), own["mixed"]), own["mixed_norm"])
    wide = jax.nn.gelu(_linear(state, own["wide"]), approximate=False)
    return _normal(state + _linear(wide, own["narrow"]), own["narrow_norm"])


def _linear(state: Array, own: Tree) -> Array:
    return jnp.asarray(state @ own["weight"].astype(state.dtype).T + own["bias"].astype(state.dtype))


def _normal(state: Array, own: Tree) -> Array:
    wide = state.astype(jnp.float32)
    centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
    spread = jax.lax.rsqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + _TINY)
    return jnp.asarray(centred * spread * own["weight"] + own["bias"], state.dtype)

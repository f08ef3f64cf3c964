"""AdamW over any tree of arrays, and a rate that warms up and then goes down to nothing by a cosine."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Tree = Any
"""Arrays in dictionaries, as JAX calls a pytree."""


@dataclass(frozen=True, slots=True)
class Adam:
    decay: float = 0.01
    first: float = 0.9
    second: float = 0.98
    longest: float = 1.0
    """Gradients are cut to this length."""

    def start(self, parameters: Tree) -> Tree:
        mean, square = (jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))
        return {"mean": mean, "square": square, "step": jnp.zeros((), jnp.int32)}

    def step(self, parameters: Tree, slopes: Tree, state: Tree, rate: jax.Array) -> tuple[Tree, Tree]:
        length = jnp.sqrt(sum(jnp.sum(jnp.square(each)) for each in jax.tree.leaves(slopes)))
        slopes = jax.tree.map(lambda each: each * jnp.minimum(1.0, self.longest / (length + 1e-9)), slopes)
        step = state["step"] + 1
        mean = jax.tree.map(lambda m, g: self.first * m + (1 - self.first) * g, state["mean"], slopes)
        square = jax.tree.map(
            lambda s, g: self.second * s + (1 - self.second) * jnp.square(g), state["square"], slopes
        )

        def moved(value: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
            way = (m / (1 - self.first**step)) / (jnp.sqrt(s / (1 - self.second**step)) + 1e-8)
            # Biases, scales and single numbers are not pulled to zero.
            pull = self.decay * value if value.ndim > 1 else 0.0
            return jnp.asarray(value - rate * (way + pull))

        return jax.tree.map(moved, parameters, mean, square), {"mean": mean, "square": square, "step": step}


def rate_at(step: int, steps: int, highest: float, warm: float = 0.05) -> float:
    """Of the step with this number, from 0. Not a part of the compiled step: one serves all runs."""
    before = max(1, int(steps * warm))
    way = min(1.0, max(0.0, (step - before) / max(1, steps - before)))
    return highest * min((step + 1) / before, 0.5 * (1 + math.cos(math.pi * way)) + 1e-3)

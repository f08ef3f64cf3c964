"""all-MiniLM-L6-v2 as published, for comparison: its network in numpy, its weights from a folder.

The folder has `model.safetensors` and `vocab.txt`. Texts are prepared as for the model that ships:
identifiers split into words, mean pooling; at most 128 pieces, which it was trained with.
"""

import json
import math
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contextd.adapters.wordpiece import WordPiece

Floats = NDArray[np.float32]

_HEAD_SIZE: Final = 32
_PIECES: Final = 128
_TINY: Final = 1e-12


class PublishedMiniLM:
    def __init__(self, folder: Path) -> None:
        self._wordpiece = WordPiece((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
        self._weights = tensors_of(folder / "model.safetensors")
        self._layers = sum(name.endswith("attention.self.query.weight") for name in self._weights)

    def vector(self, text: str) -> Floats:
        ids = np.array(self._wordpiece.encode(text, _PIECES))
        state = self._embedded(ids)
        for layer in range(self._layers):
            state = self._layer(f"encoder.layer.{layer}", state)
        mean = state.mean(axis=0)
        vector: Floats = mean / np.linalg.norm(mean)
        return vector

    def _embedded(self, ids: NDArray[np.int64]) -> Floats:
        rows = self._weights
        total = (
            rows["embeddings.word_embeddings.weight"][ids]
            + rows["embeddings.position_embeddings.weight"][: len(ids)]
            + rows["embeddings.token_type_embeddings.weight"][0]
        )
        return self._normal("embeddings.LayerNorm", total)

    def _layer(self, name: str, state: Floats) -> Floats:
        query, key, value = (
            self._linear(f"{name}.attention.self.{part}", state).reshape(len(state), -1, _HEAD_SIZE)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("ihd,jhd->hij", query, key, optimize=True) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", shares, value, optimize=True).reshape(state.shape)
        seen = self._linear(f"{name}.attention.output.dense", seen)
        state = self._normal(f"{name}.attention.output.LayerNorm", state + seen)
        wide = _gelu(self._linear(f"{name}.intermediate.dense", state))
        return self._normal(f"{name}.output.LayerNorm", state + self._linear(f"{name}.output.dense", wide))

    def _linear(self, name: str, state: Floats) -> Floats:
        product: Floats = state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _normal(self, name: str, state: Floats) -> Floats:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _TINY)
        normal: Floats = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normal


def _gelu(x: Floats) -> Floats:
    """Through a rational approximation of erf (Abramowitz and Stegun 7.1.26), exact to 1.5e-7."""
    z = np.abs(x) / np.float32(math.sqrt(2))
    t = 1 / (1 + 0.3275911 * z)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    grown: Floats = (0.5 * x * (1 + erf)).astype(np.float32)
    return grown


def tensors_of(file: Path) -> dict[str, Floats]:
    """Of a safetensors file."""
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            found[name] = np.frombuffer(data[start + begin : start + end], "<f4").reshape(entry["shape"])
    return found

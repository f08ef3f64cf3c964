"""The tuned network as the file that contextd reads: ONNX, its weights in 8 bits.

PYTHONPATH=src:bench python training/export_minilm.py WEIGHTS OUT [--blended PUBLISHED --share 0.2]

WEIGHTS is what `train_minilm.py` wrote. Mean pooling and the vector's length of one are part of the graph.
With --blended, so much of every weight is the published model's, from which the tuning began: of what that
knew and the training pairs do not have, such as conversation, less is lost.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from batches import Floats
from network import HEAD_SIZE, parameters_of, weights_of
from published_minilm import tensors_of
from train_minilm import read_weights

_OPSET: Final = 17
_IR: Final = 8
_TINY: Final = 1e-12
_SHARE: Final = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the tuned network as ONNX.")
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--blended", type=Path)
    parser.add_argument("--share", type=float, default=_SHARE)
    chosen = parser.parse_args()
    weights: Mapping[str, Floats] = read_weights(chosen.weights)
    if chosen.blended:
        published = parameters_of(tensors_of(chosen.blended / "model.safetensors"))
        weights = blended(weights, weights_of(published), chosen.share)
    export(weights, chosen.out)


def blended(
    tuned: Mapping[str, Floats], published: Mapping[str, Floats], share: float
) -> dict[str, Floats]:
    """`share` is of the published model."""
    return {name: (1 - share) * each + share * published[name] for name, each in tuned.items()}


def export(weights: Mapping[str, Floats], file: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch, "whole.onnx")
        onnx.save(graph_of(weights), whole)
        quantize_dynamic(
            whole,
            file,
            op_types_to_quantize=["MatMul", "Gather"],
            weight_type=QuantType.QInt8,
            per_channel=True,
            extra_options={"MatMulConstBOnly": True},
        )


def graph_of(weights: Mapping[str, Floats]) -> onnx.ModelProto:
    graph = _Graph(weights)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    state = graph.embedded()
    for at in range(layers):
        state = graph.layer(f"encoder.layer.{at}", state)
    graph.pooled(state)
    made = helper.make_graph(
        graph.nodes,
        "minilm",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "pieces"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("emb", TensorProto.FLOAT, ["texts", graph.size])],
        graph.constants,
    )
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="contextd"
    )
    model.ir_version = _IR
    onnx.checker.check_model(model)
    return model


class _Graph:
    """Nodes in order. Each method adds some and returns the name of what they give."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._known: set[str] = set()
        self.size = weights["embeddings.word_embeddings.weight"].shape[1]

    def embedded(self) -> str:
        """Words and their places. Masked pieces are kept from being looked at by `_unseen`."""
        words = self._node(
            "Gather", "words", self._weight("embeddings.word_embeddings.weight"), "input_ids"
        )
        every = self._weights["embeddings.position_embeddings.weight"]
        places = every + self._weights["embeddings.token_type_embeddings.weight"][0]
        shape = self._node("Shape", "shape", "input_ids", start=1)
        zero, one = self._constant("zero", np.array([0])), self._constant("one", np.array([1]))
        near = self._node("Slice", "places", self._constant("all_places", places), zero, shape, zero, one)
        mask = self._node("Cast", "mask", "attention_mask", to=TensorProto.FLOAT)
        wide = self._node("Unsqueeze", "mask_wide", mask, self._constant("to_wide", np.array([1, 2])))
        seen = self._node("Sub", "absent", wide, self._constant("all", np.array([1], np.float32)))
        self._node("Mul", "unseen", seen, self._constant("far", np.array([1e9], np.float32)))
        return self._normal("embeddings.LayerNorm", self._node("Add", "embedded", words, near))

    def layer(self, name: str, state: str) -> str:
        query, key, value = (
            self._heads(f"{name}.attention.self.{part}", state, turn)
            for part, turn in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
        )
        scores = self._node("MatMul", f"{name}.scores", query, key)
        size = self._constant("head", np.array([HEAD_SIZE**0.5], np.float32))
        scaled = self._node("Div", f"{name}.scaled", scores, size)
        shares = self._node(
            "Softmax", f"{name}.shares", self._node("Add", f"{name}.seen", scaled, "unseen"), axis=-1
        )
        mixed = self._node("MatMul", f"{name}.mixed", shares, value)
        turned = self._node("Transpose", f"{name}.turned", mixed, perm=[0, 2, 1, 3])
        flat = self._node(
            "Reshape", f"{name}.flat", turned, self._constant("flat", np.array([0, 0, self.size]))
        )
        given = self._linear(f"{name}.attention.output.dense", flat)
        state = self._normal(
            f"{name}.attention.output.LayerNorm", self._node("Add", f"{name}.attended", given, state)
        )
        wide = self._gelu(name, self._linear(f"{name}.intermediate.dense", state))
        narrow = self._linear(f"{name}.output.dense", wide)
        return self._normal(f"{name}.output.LayerNorm", self._node("Add", f"{name}.added", narrow, state))

    def pooled(self, state: str) -> None:
        wide = self._node("Unsqueeze", "mask_tall", "mask", self._constant("to_tall", np.array([2])))
        axis = self._constant("pieces_axis", np.array([1]))
        total = self._node("ReduceSum", "total", self._node("Mul", "kept", state, wide), axis, keepdims=0)
        count = self._node("ReduceSum", "count", "mask", axis, keepdims=1)
        mean = self._node("Div", "mean", total, count)
        length = self._node("ReduceL2", "length", mean, axes=[1], keepdims=1)
        tiny = self._constant("tiny", np.array([_TINY], np.float32))
        self._node("Div", "emb", mean, self._node("Max", "at_least", length, tiny))

    def _heads(self, name: str, state: str, turn: Sequence[int]) -> str:
        shape = self._constant("heads", np.array([0, 0, self.size // HEAD_SIZE, HEAD_SIZE]))
        split = self._node("Reshape", f"{name}.split", self._linear(name, state), shape)
        return self._node("Transpose", f"{name}.heads", split, perm=list(turn))

    def _linear(self, name: str, state: str) -> str:
        weight = self._constant(f"{name}.turned", self._weights[f"{name}.weight"].T.copy())
        product = self._node("MatMul", f"{name}.product", state, weight)
        return self._node("Add", f"{name}.sum", product, self._weight(f"{name}.bias"))

    def _normal(self, name: str, state: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node(
            "LayerNormalization", f"{name}.normal", state, scale, shift, epsilon=_TINY, axis=-1
        )

    def _gelu(self, name: str, state: str) -> str:
        """As ONNX Runtime knows it again, which has one kernel for all of it."""
        root = self._constant("root", np.array([2**0.5], np.float32))
        bent = self._node("Erf", f"{name}.erf", self._node("Div", f"{name}.small", state, root))
        above = self._node("Add", f"{name}.above", bent, self._constant("all", np.array([1], np.float32)))
        twice = self._node("Mul", f"{name}.twice", state, above)
        return self._node("Mul", f"{name}.gelu", twice, self._constant("half", np.array([0.5], np.float32)))

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._known:
            self._known.add(name)
            self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _node(self, kind: str, name: str, *given: str, **how: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(given), [name], name=f"{name}/{kind}", **how))
        return name


if __name__ == "__main__":
    main()

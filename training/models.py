"""Models to be measured, by the words of a command line."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import network
import static_model
from adam import Tree
from batches import Floats
from contextd.adapters.code_static import CodeStatic
from contextd.adapters.minilm import MAX_PIECES, MiniLM
from contextd.adapters.wordpiece import WordPiece
from contextd.domain.records import Purpose
from contextd.domain.words import split_words
from corpus import Ragged, offsets_of
from measure import Model
from pieces import Cut, marked, marks_of, minilm_cut, static_cut, vocabulary_of
from published_minilm import tensors_of
from train_minilm import read_all, read_weights
from train_static import read_documents, read_queries

_PIECES: int = 512


def model_of(name: str) -> Model:
    """Raises ValueError."""
    kind, *rest = name.split(":")
    match kind, rest:
        case "shipped", ["static"]:
            return Shipped(CodeStatic())
        case "shipped", ["minilm"]:
            return Shipped(MiniLM())
        case "static", [table, vocabulary]:
            return StaticTable(static_model.loaded(Path(table)), vocabulary_of(Path(vocabulary)))
        case "minilm", [weights, published]:
            tensors = read_weights(Path(weights))
            return Network(network.parameters_of(tensors), Path(published))
        case "onnx", [network_file, vocabulary]:
            return Onnx(Path(network_file), vocabulary_of(Path(vocabulary)))
        case "published", [published]:
            tensors = tensors_of(Path(published, "model.safetensors"))
            return Network(network.parameters_of(tensors), Path(published))
    raise ValueError(f"no such model: {name}")


class Shipped:
    """As the product has it."""

    def __init__(self, embedder: CodeStatic | MiniLM) -> None:
        self._embedder = embedder

    def documents(self, texts: Sequence[str]) -> Floats:
        return self._vectors(texts, "document")

    def queries(self, texts: Sequence[str]) -> Floats:
        return self._vectors(texts, "query")

    def _vectors(self, texts: Sequence[str], purpose: Purpose) -> Floats:
        vectors = asyncio.run(self._embedder.embed(texts, purpose))
        return np.stack([np.frombuffer(vector, "<f4") for vector in vectors])


class Network:
    def __init__(self, parameters: Tree, published: Path, *, half: bool = True) -> None:
        self._parameters, self._half = parameters, half
        vocabulary = vocabulary_of(published / "vocab.txt")
        self._cut, self._marks = minilm_cut(vocabulary), marks_of(vocabulary)

    def documents(self, texts: Sequence[str]) -> Floats:
        pieces = marked(ragged(texts, self._cut), self._marks, MAX_PIECES)
        return read_all(self._parameters, pieces, half=self._half).astype(np.float32)

    queries = documents


class Onnx:
    """As it was written for the product, which runs it the same way: one text at a time."""

    def __init__(self, file: Path, vocabulary: Sequence[str]) -> None:
        import onnxruntime

        self._session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        self._wordpiece = WordPiece(vocabulary)

    def documents(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._vector(text) for text in texts])

    queries = documents

    def _vector(self, text: str) -> Floats:
        ids = np.array([self._wordpiece.encode(text, MAX_PIECES)], np.int64)
        vector: Floats = self._session.run(
            ["emb"], {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        )[0][0]
        return vector


class StaticTable:
    """In full precision, or as it was written."""

    def __init__(self, parameters: Tree, vocabulary: Sequence[str]) -> None:
        self._parameters, self._cut = parameters, static_cut(vocabulary)

    def documents(self, texts: Sequence[str]) -> Floats:
        return read_documents(self._parameters, ragged(texts, self._cut))

    def queries(self, texts: Sequence[str]) -> Floats:
        return read_queries(self._parameters, ragged(texts, self._cut))


def ragged(texts: Sequence[str], cut: Cut) -> Ragged:
    rows = [[id for word in split_words(text) for id in cut(word)][:_PIECES] for text in texts]
    stream = np.array([id for row in rows for id in row], np.uint16)
    return Ragged(stream, offsets_of(np.array([len(row) for row in rows], np.int64)))

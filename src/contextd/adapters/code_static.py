"""The static embedding model for code that ships with contextd: a table of rows, and a weighted sum.

It is quick enough to embed a repository while it is being indexed.
"""

import asyncio
import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from contextd.adapters.heap import give_back
from contextd.adapters.shipped_files import SHIPPED, checked
from contextd.adapters.turns import Turns
from contextd.adapters.wordpiece import Vocabulary
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.records import Purpose, Vector
from contextd.domain.words import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

_TABLES_SHA256: Final = "d188abf0147a6c42510d232d2abc330c220ac0767ffccbe64dfff8ac2eb5a3e1"
_VOCABULARY_SHA256: Final = "468bd0f244531a44b294b71932476dba6054f447b34d19714cad3896560706bd"

MODEL: Final = f"code-static@{_TABLES_SHA256[:12]}"
DIMENSION: Final = 256
MAX_PIECES: Final = 512
"""What the model reads of one text."""

_TABLES: Final = "code-static.npz"
_VOCABULARY: Final = "code-static.vocab.txt"

_LONGEST_WORD: Final = 40
"""In characters. The vocabulary was made with this bound: a longer word is unknown."""

_RUN: Final = re.compile(r"\w+")
_ASCII_RUN: Final = re.compile(r"\w+", re.ASCII)
"""The same for text that is ASCII, found faster."""

_LONGEST_KEPT: Final = 64
_KEPT_RUNS: Final = 32_768
_SLICE: Final = 32
"""Texts to one turn of the thread: a query that arrives amid many documents waits for this many."""


class CodeStatic:
    """Loads on first use; a load that failed is tried again at the next use.

    `embed` works in a thread of its own. `pieces`, `document` and `query` are for callers that stand
    in a thread or a process of their own already: they may be called from several at once.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or SHIPPED
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="code-static")
        self._turns = Turns()
        self._closed = False
        self._loading = Lock()
        self._runs: _Runs | None = None
        self._tables: _Tables | None = None

    @property
    def model(self) -> str:
        return MODEL

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """Of a text beyond MAX_PIECES, the beginning is embedded. One without a known word is all zeros."""
        one = self.query if purpose == "query" else self._document_of
        vectors: list[Vector] = []
        for start in range(0, len(texts), _SLICE):
            async with self._turns.turn(urgent=purpose == "query"):
                work = partial(_vectors, one, texts[start : start + _SLICE])
                vectors += await self._in_worker(work)
        return vectors

    def count_tokens(self, text: str) -> int:
        """Pieces of the whole text, those beyond MAX_PIECES too; unknown words have none."""
        return len(self.pieces(text))

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._worker.shutdown)
        self._runs = self._tables = None

    def pieces(self, text: str) -> list[int]:
        """Of the whole text. Words never cross lines: the lists of lines, joined, are the text's."""
        runs = self._runs
        if runs is None:
            runs = self._ready_runs()
        found = (_ASCII_RUN if text.isascii() else _RUN).findall(text)
        return list(chain.from_iterable(map(runs.__getitem__, found)))

    def document(self, pieces: Sequence[int]) -> "NDArray[np.float32]":
        """Of the first MAX_PIECES, of length one; of no pieces the zero vector, which is near nothing."""
        import numpy as np

        tables = self._ready_tables()
        count = min(len(pieces), MAX_PIECES)
        ids = np.fromiter(pieces, np.intp, count)
        weights = tables.document[ids] * tables.position[:count]
        weights *= tables.repetition[np.bincount(ids)[ids]]
        return tables.weighted_sum(ids, weights)

    def query(self, text: str) -> "NDArray[np.float32]":
        """As `document`, in a query's weights: place does not count, and repeats are not damped."""
        import numpy as np

        tables = self._ready_tables()
        ids = np.array(self._beginning(text), np.intp)
        return tables.weighted_sum(ids, tables.query[ids])

    def _document_of(self, text: str) -> "NDArray[np.float32]":
        return self.document(self._beginning(text))

    def _beginning(self, text: str) -> list[int]:
        """The pieces that the model reads. A long text is split only as far as that."""
        runs = self._ready_runs()
        return list(
            islice(chain.from_iterable(runs[found[0]] for found in _RUN.finditer(text)), MAX_PIECES)
        )

    async def _in_worker(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise EmbedderUnavailable("the embedding model is closed", "start contextd again")
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _ready_runs(self) -> "_Runs":
        with self._loading:
            if self._runs is None:
                data = checked(self._folder / _VOCABULARY, _VOCABULARY_SHA256, MODEL)
                self._runs = _Runs(Vocabulary(data.decode().splitlines(), _LONGEST_WORD))
            return self._runs

    def _ready_tables(self) -> "_Tables":
        tables = self._tables
        if tables is not None:
            return tables
        with self._loading:
            if self._tables is None:
                self._tables = _load_tables(self._folder / _TABLES)
                give_back()
            return self._tables


class _Runs(dict[str, tuple[int, ...]]):
    """Runs of word characters, mostly identifiers, and the pieces of their words; filled as it is read.

    No word crosses the end of a run, so a text's pieces are those of its runs, and source code
    repeats its identifiers.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __missing__(self, run: str) -> tuple[int, ...]:
        pieces = tuple(id for word in split_words(run) for id in self._vocabulary.cut(word) or ())
        # Very long runs are rare and would make the size unforeseeable.
        if len(run) <= _LONGEST_KEPT:
            if len(self) >= _KEPT_RUNS:
                self.clear()
            self[run] = pieces
        return pieces


@dataclass(frozen=True, slots=True)
class _Tables:
    """Rows stay int8: as float32 they would take four times the memory, and sums are hardly quicker."""

    rows: "NDArray[np.int8]"
    document: "NDArray[np.float32]"
    """Weight of each piece, its row's scale included."""
    query: "NDArray[np.float32]"
    """The same, for queries."""
    position: "NDArray[np.float32]"
    repetition: "NDArray[np.float32]"
    """By how often the piece is in the text."""

    def weighted_sum(
        self, ids: "NDArray[np.intp]", weights: "NDArray[np.float32]"
    ) -> "NDArray[np.float32]":
        import numpy as np

        rows = self.rows.take(ids, axis=0).astype(np.float32)
        # Not `@` nor `vecdot`: a BLAS wakes threads, which wait for cores that others are using, and adds
        # up in an order of its own on each kind of processor: the same text had two vectors.
        total: NDArray[np.float32] = np.einsum("i,ij->j", weights, rows)
        length = np.float32(math.sqrt(np.square(total, dtype=np.float64).sum()))
        return total / length if length else total


def _load_tables(file: Path) -> _Tables:
    import numpy as np

    data = checked(file, _TABLES_SHA256, MODEL)
    try:
        with np.load(BytesIO(data), allow_pickle=False) as arrays:
            scale = arrays["sc"].astype(np.float64)
            places = np.floor(2 * np.log2(np.arange(1, MAX_PIECES + 1))).astype(np.intp)
            counts = np.arange(MAX_PIECES + 1, dtype=np.float64)
            counts[0] = 1  # never asked for, and has no such power
            return _Tables(
                rows=arrays["E8"],
                document=(np.exp(arrays["gd"].astype(np.float64)) * scale).astype(np.float32),
                query=(np.exp(arrays["gq"].astype(np.float64)) * scale).astype(np.float32),
                position=np.exp(arrays["pd"])[np.minimum(places, 15)].astype(np.float32),
                repetition=(counts ** (float(arrays["al"]) - 1)).astype(np.float32),
            )
    except MemoryError as error:
        raise EmbedderUnavailable(
            "the embedding model cannot be loaded", "free some memory, then try again"
        ) from error


def _vectors(one: "Callable[[str], NDArray[np.float32]]", texts: Sequence[str]) -> list[Vector]:
    return [Vector(one(text).astype("<f4").tobytes()) for text in texts]

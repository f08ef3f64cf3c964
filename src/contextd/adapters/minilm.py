"""The embedding model that ships with contextd: a MiniLM tuned on code and developers' prose."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contextd.adapters.heap import give_back
from contextd.adapters.shipped_files import REINSTALL, SHIPPED, check
from contextd.adapters.turns import Turns
from contextd.adapters.wordpiece import WordPiece
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.records import Purpose, Vector

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

T = TypeVar("T")

_MODEL_SHA256: Final = "80af0f59048162cb191273006e3f4f9dff3e23919c18f3a863d51235ce9a6a21"
_VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

MODEL: Final = f"minilm-dev-int8@{_MODEL_SHA256[:12]}"
DIMENSION: Final = 384
MAX_PIECES: Final = 256
"""What the model reads of one text, the marks of beginning and end included."""

_NETWORK: Final = "minilm-dev-int8.onnx"
_VOCABULARY: Final = "minilm-dev.vocab.txt"


class MiniLM:
    """Loads on first use. A thread of its own does the work, so the event loop never waits for it.

    Texts go through the model one at a time: its int8 arithmetic takes one scale for a whole batch,
    so that in company, even of equal length, a text would get another vector than alone.
    """

    def __init__(self, model_path: Path | None = None, threads: int = 2) -> None:
        self._path = model_path or SHIPPED / _NETWORK
        self._threads = threads
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="minilm")
        self._turns = Turns()
        self._closed = False
        self._wordpiece: WordPiece | None = None
        self._wordpiece_lock = Lock()
        self._session: InferenceSession | None = None

    @property
    def model(self) -> str:
        return MODEL

    @property
    def dimension(self) -> int:
        return DIMENSION

    @property
    def loaded(self) -> bool:
        return self._session is not None

    async def load(self) -> None:
        """Load now rather than on first use. A load that failed is tried again at the next use."""
        await self._in_worker(self._ready_session)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """Queries and documents alike. Of a text beyond MAX_PIECES, the beginning is embedded."""
        # One turn for each text, and queries first: one that arrives amid many documents waits for one
        # of them and not for all.
        vectors = []
        for text in texts:
            async with self._turns.turn(urgent=purpose == "query"):
                vectors.append(await self._in_worker(partial(self._embed_one, text)))
        return vectors

    def count_tokens(self, text: str) -> int:
        """Pieces of the whole text, those beyond MAX_PIECES too; the two marks are not counted."""
        return self._ready_wordpiece().count(text)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._worker.shutdown)
        self._session = None

    async def _in_worker(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise EmbedderUnavailable("the embedding model is closed", "start contextd again")
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _embed_one(self, text: str) -> Vector:
        import numpy

        session = self._ready_session()
        ids = numpy.array([self._ready_wordpiece().encode(text, MAX_PIECES)], dtype=numpy.int64)
        with _failures_named("the embedding model failed on a text"):
            # Pooling over the mask and normalising are part of the graph.
            (vectors,) = session.run(["emb"], {"input_ids": ids, "attention_mask": numpy.ones_like(ids)})
        return Vector(vectors[0].astype("<f4").tobytes())

    def _ready_session(self) -> "InferenceSession":
        # Called in the worker alone, so there is no second load to race with.
        if self._session is None:
            self._ready_wordpiece()
            check(self._path, _MODEL_SHA256, MODEL)
            self._session = _open_session(self._path, self._threads)
            give_back()
        return self._session

    def _ready_wordpiece(self) -> WordPiece:
        with self._wordpiece_lock:
            if self._wordpiece is None:
                vocabulary = self._path.with_name(_VOCABULARY)
                check(vocabulary, _VOCABULARY_SHA256, MODEL)
                self._wordpiece = WordPiece(vocabulary.read_text(encoding="utf-8").splitlines())
            return self._wordpiece


def _open_session(file: Path, threads: int) -> "InferenceSession":
    onnxruntime = _quiet_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it would keep a plan and its memory for each length of text
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # an idle daemon burns nothing
    options.log_severity_level = 3
    with _failures_named("the embedding model cannot be loaded"):
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _quiet_onnxruntime() -> Any:
    """The only door to onnxruntime, which otherwise reports its use to its maker.

    It would do so over the network, and under an id that it writes to the user's cache folder, from
    the moment of import: the variable must be set before. The call is for Windows, where the
    variable is not read.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:
        raise EmbedderUnavailable("onnxruntime cannot be imported", REINSTALL) from error
    onnxruntime.disable_telemetry_events()
    return onnxruntime


@contextmanager
def _failures_named(problem: str) -> Iterator[None]:
    # Entered only after `_quiet_onnxruntime`: this import must not be the first.
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException

    try:
        yield
    except (Fail, RuntimeException, MemoryError) as error:
        raise EmbedderUnavailable(problem, "free some memory, then try again") from error

"""The vectors of one project's chunks in memory, scanned exactly; the file is the truth."""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contextd.domain.records import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK: Final = 4096
_MOST_DEAD: Final = 0.5
"""Of what is held: beyond that it is let go, and read anew."""


@dataclass(frozen=True, slots=True)
class _Mean:
    alive: "NDArray[np.int64]"
    last: int
    mean: "NDArray[np.float32]"


class CodeVectors:
    """Chunks never change, and no id is used twice: new ones have greater ids. Those that went away are
    masked by their blobs, and let go when they are many."""

    def __init__(self, recipe: str) -> None:
        self.lock = threading.Lock()
        self._recipe = recipe
        self._epoch = ""
        self._last = 0
        self._ids: list[NDArray[np.int64]] = []
        self._blobs: list[NDArray[np.int64]] = []
        self._rows: list[NDArray[np.float32]] = []
        self._mean: _Mean | None = None

    def follow(self, connection: sqlite3.Connection) -> None:
        """Take in what was written since the last time, by any process."""
        import numpy as np

        row = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
        epoch = str(row[0]) if row else ""
        if epoch != self._epoch:
            self._forget()
            self._epoch = epoch
        (most,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
        if most <= self._last:
            # A reader whose moment is older than what is held must not have that read a second time.
            return
        (alive,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
        if sum(map(len, self._ids)) * (1 - _MOST_DEAD) >= alive > 0:
            self._forget()
        found = connection.execute(
            "SELECT chunks.id, chunks.blob, chunks.vector FROM chunks JOIN blobs ON blobs.id = chunks.blob"
            " WHERE chunks.id > ? AND chunks.vector IS NOT NULL AND blobs.recipe = ? ORDER BY chunks.id",
            (self._last, self._recipe),
        )
        while block := found.fetchmany(_BLOCK):
            self._ids.append(np.array([row[0] for row in block], dtype=np.int64))
            self._blobs.append(np.array([row[1] for row in block], dtype=np.int64))
            half = np.frombuffer(b"".join(row[2] for row in block), dtype="<f2")
            self._rows.append(half.reshape(len(block), -1).astype(np.float32))
        self._last = most

    def scan(
        self,
        vector: Vector,
        alive: "NDArray[np.int64]",
        allowed: "NDArray[np.int64] | None",
        limit: int,
    ) -> list[tuple[int, float]]:
        """The nearest as (chunk, cosine), among chunks of the blobs `alive`, and of `allowed` if given."""
        import numpy as np

        if not self._ids:
            return []
        query = np.frombuffer(vector, dtype="<f4")
        ids = self._joined(self._ids)
        # Not `@`: that wakes the threads of a BLAS, which wait for cores that others are using.
        cosines = np.concatenate([np.vecdot(rows, query) for rows in self._rows])
        mask = np.isin(self._joined(self._blobs), alive)
        if allowed is not None:
            mask &= np.isin(ids, allowed)
        cosines = np.where(mask, cosines, -np.inf)
        count = min(limit, int(mask.sum()))
        if count == 0:
            return []
        nearest = np.argpartition(-cosines, count - 1)[:count]
        order = np.lexsort((ids[nearest], -cosines[nearest]))
        return [(int(ids[row]), float(cosines[row])) for row in nearest[order]]

    def typical(self, chunks: Sequence[int], alive: "NDArray[np.int64]") -> dict[int, float]:
        """The cosine of each of these chunks, ids ascending, to the mean of all of the blobs `alive`."""
        import numpy as np

        if not self._ids:
            return {}
        mean = self._mean_of(alive)
        ids, wanted = self._joined(self._ids), np.array(chunks, np.int64)
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        at = at[ids[at] == wanted]
        found: dict[int, float] = {}
        start = 0
        for rows in self._rows:
            own = at[(at >= start) & (at < start + len(rows))]
            cosines = np.vecdot(rows[own - start], mean)
            found |= zip(ids[own].tolist(), cosines.tolist(), strict=True)
            start += len(rows)
        return found

    def _mean_of(self, alive: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Of length one; remembered, as it is the same from search to search."""
        import numpy as np

        known = self._mean
        if known is not None and known.alive is alive and known.last == self._last:
            return known.mean
        mask = np.isin(self._joined(self._blobs), alive).astype(np.float64)
        total = np.zeros(self._rows[0].shape[1])
        start = 0
        for rows in self._rows:
            # In double precision, so that it does not show in which order the chunks were taken in.
            total += np.einsum("i,ij->j", mask[start : start + len(rows)], rows, dtype=np.float64)
            start += len(rows)
        length = np.sqrt(np.square(total).sum())
        mean = (total / length if length else total).astype(np.float32)
        self._mean = _Mean(alive, self._last, mean)
        return mean

    @staticmethod
    def _joined(parts: "list[NDArray[np.int64]]") -> "NDArray[np.int64]":
        import numpy as np

        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def _forget(self) -> None:
        self._last = 0
        self._mean = None
        self._ids, self._blobs, self._rows = [], [], []

"""The vectors of one drawer in memory, scanned exactly. SQLite is the truth; this follows it."""

import sqlite3
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from contextd.domain.records import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK: Final = 256
_IDLE_S: Final = 1_800.0


def to_half(vector: Vector) -> bytes:
    """float32 as float16: half the disk, and no change in rank that was ever measured."""
    import numpy as np

    return np.frombuffer(vector, dtype="<f4").astype("<f2").tobytes()


class VectorIndex:
    """Rows of one model. `follow` brings it up to the file; then `scan` and `similarity` answer."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.lock = threading.Lock()
        self._epoch: str | None = None
        self._revision = 0
        self._rows: dict[int, int] = {}
        self._seqs: list[int] = []
        self._kinds = array("h")
        """Of each row, as a code: to compare numbers of many rows is quick."""
        self._codes: dict[str, int] = {}
        self._dimension = 0
        self._blocks: list[NDArray[np.float32]] = []
        """Of `_BLOCK` rows each. One matrix would have to be copied to grow, and leave holes behind."""

    def follow(self, connection: sqlite3.Connection) -> None:
        """Take in what was written and removed since the last time, by any process."""
        marks = dict(
            connection.execute("SELECT name, value FROM meta WHERE name IN ('revision', 'epoch', 'floor')")
        )
        revision, epoch = int(marks.get("revision", 0)), marks.get("epoch")
        if epoch != self._epoch or self._revision < int(marks.get("floor", 0)):
            self._forget_all()
            self._epoch = epoch
        if revision <= self._revision:
            return
        for (seq,) in connection.execute("SELECT seq FROM removals WHERE revision > ?", (self._revision,)):
            self._remove(int(seq))
        changed = connection.execute(
            "SELECT seq, kind, CASE model WHEN ? THEN vector END FROM records WHERE revision > ?",
            (self.model, self._revision),
        )
        for seq, kind, vector in changed:
            if vector is None or not self._place(int(seq), str(kind), vector):
                self._remove(int(seq))
        self._revision = revision

    def scan(
        self, vector: Vector, kinds: Collection[str], allowed: Collection[int] | None, limit: int
    ) -> list[tuple[int, float]]:
        """The nearest `limit` as (seq, cosine), best first. `allowed` None means all of the kinds."""
        import numpy as np

        query = np.frombuffer(vector, dtype="<f4")
        count = len(self._seqs)
        if count == 0 or self._dimension != len(query):
            return []
        # Not `@`: that wakes the threads of a BLAS, which wait for cores that others are using.
        cosines = np.concatenate([np.vecdot(block, query) for block in self._blocks])[:count]
        if allowed is not None:
            mask = np.zeros(count, dtype=bool)
            mask[[self._rows[seq] for seq in allowed if seq in self._rows]] = True
            cosines = np.where(mask, cosines, -np.inf)
        elif not self._codes.keys() <= set(kinds):
            wanted = [code for kind, code in self._codes.items() if kind in kinds]
            cosines = np.where(
                np.isin(np.frombuffer(self._kinds, dtype=np.int16), wanted), cosines, -np.inf
            )
        nearest = np.argpartition(-cosines, limit - 1)[:limit] if limit < count else np.arange(count)
        ranked = sorted(((float(cosines[row]), self._seqs[row]) for row in nearest), reverse=True)
        return [(seq, cosine) for cosine, seq in ranked if cosine != -np.inf]

    def similarity(self, vector: Vector, seq: int) -> float | None:
        import numpy as np

        row = self._rows.get(seq)
        if row is None or self._dimension * 4 != len(vector):
            return None
        return float(self._at(row) @ np.frombuffer(vector, dtype="<f4"))

    def _place(self, seq: int, kind: str, half: bytes) -> bool:
        """False for a vector of another length than the others: it cannot be compared."""
        import numpy as np

        if not self._seqs:
            self._blocks.clear()
            self._dimension = len(half) // 2
        if self._dimension * 2 != len(half):
            return False
        row = self._rows.get(seq)
        if row is None:
            row = self._rows[seq] = len(self._seqs)
            self._seqs.append(seq)
            self._kinds.append(0)
            if row == len(self._blocks) * _BLOCK:
                self._blocks.append(np.zeros((_BLOCK, self._dimension), dtype=np.float32))
        self._at(row)[:] = np.frombuffer(half, dtype="<f2")
        self._kinds[row] = self._codes.setdefault(kind, len(self._codes))
        return True

    def _at(self, row: int) -> "NDArray[np.float32]":
        vector: NDArray[np.float32] = self._blocks[row // _BLOCK][row % _BLOCK]
        return vector

    def _remove(self, seq: int) -> None:
        """The last row takes the place of the removed one."""
        row = self._rows.pop(seq, None)
        if row is None:
            return
        last = len(self._seqs) - 1
        last_seq, last_kind = self._seqs.pop(), self._kinds.pop()
        if last_seq != seq:
            self._at(row)[:] = self._at(last)
            self._seqs[row], self._kinds[row], self._rows[last_seq] = last_seq, last_kind, row
        if last % _BLOCK == 0:
            self._blocks.pop()

    def _forget_all(self) -> None:
        self._revision = 0
        self._rows.clear()
        self._seqs.clear()
        del self._kinds[:]
        self._blocks.clear()


class Indexes:
    """One for each drawer and model that is searched; what nobody searches is let go."""

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._used: OrderedDict[tuple[str, str], tuple[float, VectorIndex]] = OrderedDict()

    def of(self, key: str, model: str) -> VectorIndex:
        now = time.monotonic()
        with self._lock:
            _, index = self._used.pop((key, model), (now, VectorIndex(model)))
            self._used[(key, model)] = (now, index)
            while now - next(iter(self._used.values()))[0] > self._idle_s:
                self._used.popitem(last=False)
        return index

    def __len__(self) -> int:
        return len(self._used)

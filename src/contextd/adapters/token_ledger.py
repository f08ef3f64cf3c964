"""What a language model has cost today, and the cap that no day goes beyond."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contextd.domain.errors import LanguageModelUnavailable
from contextd.domain.ports import Clock

try:
    import fcntl
except ImportError:  # Windows has no such lock: there the cap is each process's own.
    fcntl = None  # type: ignore[assignment]  # the module's absence is a value too


class TokenLedger:
    """One file for all processes of the data folder. A day is a day in UTC."""

    def __init__(self, path: Path, cap: int, clock: Clock) -> None:
        self._path = path
        self._cap = cap
        self._clock = clock

    def reserve(self, tokens: int) -> None:
        """Count these before they are spent. Raises LanguageModelUnavailable when that crosses the cap."""
        with self._alone():
            spent = self._read()
            if spent + tokens > self._cap:
                raise LanguageModelUnavailable(
                    "the daily token cap is reached",
                    "raise CONTEXTD_LLM_DAILY_TOKENS, or wait for tomorrow",
                )
            self._write(spent + tokens)

    def correct(self, reserved: int, used: int) -> None:
        """Put what was used in the place of what was reserved."""
        with self._alone():
            self._write(max(0, self._read() - reserved + used))

    @property
    def spent(self) -> int:
        return self._read()

    def _read(self) -> int:
        """A file that cannot be read counts as a day that is spent: the cap is a promise about money."""
        try:
            row = json.loads(self._path.read_text(encoding="utf-8"))
            return int(row["tokens"]) if row["date"] == self._today() else 0
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError):
            raise LanguageModelUnavailable(
                "the count of today's tokens cannot be read",
                f"mend or remove {self._path.name} in the data folder",
            ) from None

    def _write(self, tokens: int) -> None:
        try:
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".llm-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"date": self._today(), "tokens": tokens}, file)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self._path)
        except OSError:
            raise LanguageModelUnavailable(
                "the count of today's tokens cannot be written", "check the data folder"
            ) from None

    def _today(self) -> str:
        return self._clock.now().date().isoformat()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process counts at the same time."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = self._path.with_suffix(".lock").open("a")
        except OSError:
            raise LanguageModelUnavailable(
                "the count of today's tokens cannot be written", "check the data folder"
            ) from None
        with lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

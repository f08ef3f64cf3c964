"""Tokens as a context window counts them: o200k, from the splintr library."""

import threading
from functools import lru_cache
from typing import Any, Final

_SHORT: Final = 4_096
_REMEMBERED: Final = 256


class O200kCounter:
    """Loads its vocabulary on the first count, and remembers short texts: agents ask the same again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self._remembered = lru_cache(_REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        return self._remembered(text) if len(text) <= _SHORT else self._count(text)

    def _count(self, text: str) -> int:
        if self._tokenizer is None:
            self._load()
        return len(self._tokenizer.encode_ordinary(text))

    def _load(self) -> None:
        with self._lock:
            if self._tokenizer is None:
                from splintr import Tokenizer

                self._tokenizer = Tokenizer.from_pretrained("o200k_base")

"""Tokens as a context window counts them: o200k, from the splintr library."""

import threading
from typing import Any


class O200kCounter:
    """Loads its vocabulary on the first count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokenizer: Any = None

    def count(self, text: str) -> int:
        if self._tokenizer is None:
            self._load()
        return len(self._tokenizer.encode_ordinary(text))

    def _load(self) -> None:
        with self._lock:
            if self._tokenizer is None:
                from splintr import Tokenizer

                self._tokenizer = Tokenizer.from_pretrained("o200k_base")

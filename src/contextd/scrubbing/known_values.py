"""Values that are known to be secret, found wherever and in whatever form they stand."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

import ahocorasick
import re2

from contextd.scrubbing.detector import ascii_view
from contextd.scrubbing.encodings import forms_of
from contextd.scrubbing.findings import Finding
from contextd.scrubbing.values import is_unmistakable

SHORTEST: Final = 8
LONGEST: Final = 1_024
"""Longer ones are keys and certificates, which rules find; their forms would fill the memory."""
MOST_VALUES: Final = 512
MOST_CHARACTERS: Final = 64 * 1024
"""Of all values together. With their forms they are some twenty times as many."""
LIFETIME: Final = 24 * 3_600.0
"""Seconds until a value is forgotten that is not met again, unless it is kept."""
_YOUNG: Final = 16
"""So many new values wait in an index of their own: a large one is not built for each."""
_STRIDE: Final = 64
_GATE_MEMORY: Final = 64 << 20


class _Index:
    """All forms of some values. RE2 leaps to where one may begin; the automaton says which it is."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._automaton = ahocorasick.Automaton()
        self._longest = 0
        beginnings = set()
        for value, name in values.items():
            for form in forms_of(value, SHORTEST):
                self._automaton.add_word(form.text, (form, value, name))
                self._longest = max(self._longest, len(form.text))
                beginnings.add(ascii_view(form.text[:SHORTEST]))
        self._automaton.make_automaton()
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _GATE_MEMORY
        self._gate = re2.compile(b"|".join(map(re2.escape, sorted(beginnings))), options)

    def suspects(self, view: bytes) -> bool:
        return self._gate.search(view) is not None

    def find(self, text: str, view: bytes) -> Iterator[Finding]:
        at = 0
        while match := self._gate.search(view, at):
            begin, at = match.start(), match.start() + _STRIDE
            for last, (form, value, name) in self._automaton.iter(text[begin : at + self._longest]):
                start, end = form.span(text, begin + last + 1)
                yield Finding(start, end, name, True, value)


@dataclass(slots=True)
class _Entry:
    name: str
    kept: bool
    met: float


class KnownValues:
    """Thread-safe. What finds them is built when it is next needed."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._entries: dict[str, _Entry] = {}
        self._old: frozenset[str] = frozenset()
        self._large: _Index | None = None
        self._indexes: tuple[_Index, ...] | None = ()
        self.changes = 0
        """Goes up with every value that is new."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, values: Iterable[tuple[str, str]], *, kept: bool = False) -> int:
        """Take `value, name of its placeholder`; how many of them are new. `kept` ones are never forgotten
        for their age. What is too short, too long, a word or a stand-in is left out."""
        new = 0
        with self._lock:
            for value, name in values:
                if not _is_taken(value):
                    continue
                entry = self._entries.pop(value, None)
                if entry is None:
                    entry = _Entry(name, kept, 0.0)
                    new += 1
                entry.met, entry.kept = self._now(), entry.kept or kept
                self._entries[value] = entry  # at the end: the latest met
            if new:
                self._forget()
                self._indexes = None
                self.changes += 1
        return new

    def suspects(self, text: str) -> bool:
        view = ascii_view(text)
        return any(index.suspects(view) for index in self._built())

    def find(self, text: str) -> list[Finding]:
        """Every place of every form. They may overlap."""
        view = ascii_view(text)
        return [finding for index in self._built() for finding in index.find(text, view)]

    def _forget(self) -> None:
        """The oldest first, those that are to be kept last."""
        limit = self._now() - LIFETIME
        aged = [value for value, entry in self._entries.items() if not entry.kept and entry.met < limit]
        for value in aged:
            del self._entries[value]
        characters = sum(map(len, self._entries))
        order = sorted(self._entries, key=lambda value: self._entries[value].kept)
        for value in order:
            if len(self._entries) <= MOST_VALUES and characters <= MOST_CHARACTERS:
                break
            del self._entries[value]
            characters -= len(value)

    def _built(self) -> tuple[_Index, ...]:
        indexes = self._indexes
        if indexes is None:
            with self._lock:
                indexes = self._indexes = self._rebuilt()
        return indexes

    def _rebuilt(self) -> tuple[_Index, ...]:
        young = {value: entry.name for value, entry in self._entries.items() if value not in self._old}
        if len(young) > _YOUNG or not self._old.issubset(self._entries):
            names = {value: entry.name for value, entry in self._entries.items()}
            self._old, young = frozenset(names), {}
            self._large = _Index(names)
        return tuple(filter(None, (self._large, _Index(young) if young else None)))


def _is_taken(value: str) -> bool:
    return SHORTEST <= len(value) <= LONGEST and "\n" not in value and is_unmistakable(value)

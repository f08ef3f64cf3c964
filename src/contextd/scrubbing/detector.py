"""Finds secrets: keywords first, then just the patterns whose keyword is there, just around it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import ahocorasick
import re2

from contextd.scrubbing.findings import Finding, merged
from contextd.scrubbing.placeholders import MASK, masked
from contextd.scrubbing.rule import Rule

_STRIDE: Final = 512
_NEVER: Final = r"[^\x00-\x{10ffff}]"
_RETRY_WITHIN: Final = 256
_LEAST_REMNANT: Final = 8


class Detector:
    """Immutable once built, and shared by threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._patterns = tuple(compiled(rule) for rule in self._rules)
        self._anywhere = [index for index, rule in enumerate(self._rules) if rule.anywhere]
        self._reaches = tuple(rule.window for rule in self._rules)
        self._gate = _gate(self._rules)
        self._automaton = _automaton(self._rules)
        self._longest = max((len(word) for rule in self._rules for word in rule.keywords), default=0)

    def suspects(self, text: str) -> bool:
        """One cheap pass: False means that there is nothing to find."""
        view = ascii_view(text)
        if self._gate.search(view) is not None:
            return True
        return any(self._patterns[index].search(_unescaped(view)) for index in self._anywhere)

    def find(self, text: str) -> list[Finding]:
        """Secrets in order, none overlapping another. Placeholders are not looked into."""
        covered = masked(text)
        view = _unescaped(ascii_view(covered))
        found = [
            finding
            for index, windows in self._windows(view).items()
            for start, end in windows
            for finding in self._run(index, covered, view, start, min(end, len(view)))
        ]
        return merged(found)

    def _windows(self, view: bytes) -> dict[int, list[list[int]]]:
        """For each rule whose keyword is there, the stretches to look at, joined where they touch."""
        windows = {index: [[0, len(view)]] for index in self._anywhere}
        for at, indexes in self._keywords(view):
            for index in indexes:
                reach = self._reaches[index]
                known = windows.get(index)
                if known is None:
                    windows[index] = [[max(0, at - reach), at + reach]]
                elif at - reach > known[-1][1]:
                    known.append([at - reach, at + reach])
                elif at + reach > known[-1][1]:
                    known[-1][1] = at + reach
        return windows

    def _keywords(self, view: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Where keywords are and whose. The gate leaps to the next one; the automaton reads a stride."""
        lowered = view.lower().decode("ascii")
        at = 0
        while match := self._gate.search(view, at):
            start, at = match.start(), match.start() + _STRIDE
            # A slice: given bounds, the automaton copies the whole text for every stride.
            for end, indexes in self._automaton.iter(lowered[start : at + self._longest]):
                yield start + end, indexes

    def _run(self, index: int, text: str, view: bytes, start: int, end: int) -> Iterator[Finding]:
        rule, pattern = self._rules[index], self._patterns[index]
        while start < end and (match := pattern.search(view, start, end)):
            first, last = _secret_span(match, rule.group)
            whole = text[match.start() : match.end()]
            found = [
                Finding(begin, stop, rule.name, bool(rule.vendor))
                for begin, stop in _uncovered(text, first, last)
                if rule.judge(whole, text[begin:stop])
            ]
            yield from found
            # What was refused may hold the beginning of a secret; what is long is not read twice.
            again = not found and last - first <= _RETRY_WITHIN
            start = max(first if again else _resumed(view, first, last, rule), match.start() + 1)


def _resumed(view: bytes, first: int, last: int, rule: Rule) -> int:
    """Behind a secret; within it, where the next one begins that nothing parts from it."""
    if last - first > _RETRY_WITHIN:
        return last
    for word in rule.keywords:
        at = view[first + 1 : last + len(word) - 1].lower().find(word.encode())
        if at >= 0:
            last = min(last, first + 1 + at)
    return last


def ascii_view(text: str) -> bytes:
    """One byte a character, so that a match's offsets are the text's; takes lone surrogates too."""
    return text.encode("ascii", "replace")


def _unescaped(view: bytes) -> bytes:
    """Written-out line breaks, as of JSON within text, become blanks: their letter is no part of a word."""
    if b"\\" in view:
        for escape in (b"\\n", b"\\r", b"\\t"):
            view = view.replace(escape, b"\n ")
    return view


def compiled(rule: Rule) -> Any:
    """Raises ValueError."""
    try:
        return _compiled(rule.pattern)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"rule {rule.name}: the pattern is not RE2 in ASCII: {error}") from error


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern.encode("ascii"), options)


def _gate(rules: Iterable[Rule]) -> Any:
    """RE2 answers "any keyword at all?" several times faster than the automaton says which and where."""
    words = sorted({word for rule in rules for word in rule.keywords})
    return re2.compile("(?i)" + "|".join(map(re2.escape, words)) if words else _NEVER)


def _automaton(rules: Iterable[Rule]) -> Any:
    indexes: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        for word in dict.fromkeys(rule.keywords):
            indexes.setdefault(word, []).append(index)
    automaton = ahocorasick.Automaton()
    for word, users in indexes.items():
        automaton.add_word(word, tuple(users))
    automaton.make_automaton()
    return automaton


def _secret_span(match: Any, group: int) -> tuple[int, int]:
    groups = (group,) if group else range(1, len(match.groups()) + 1)
    spans: list[tuple[int, int]] = [match.span(number) for number in groups]
    whole: tuple[int, int] = match.span()
    return next((span for span in spans if span[0] >= 0), whole)


def _uncovered(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What placeholders leave of a span; a remnant too short to tell anything is left alone."""
    if MASK not in text[start:end]:
        yield start, end
        return
    for part in text[start:end].split(MASK):
        if len(part) >= _LEAST_REMNANT:
            yield start, start + len(part)
        start += len(part) + 1

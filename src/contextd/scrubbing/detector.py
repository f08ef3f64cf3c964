"""Finds secrets: keywords first, then just the patterns whose keyword is there, just around it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ahocorasick
import re2

from contextd.scrubbing.placeholders import MASK, masked
from contextd.scrubbing.rule import Rule

_STRIDE: Final = 512
_NEVER: Final = r"[^\x00-\x{10ffff}]"
_RETRY_WITHIN: Final = 256
_LEAST_REMNANT: Final = 8


@dataclass(frozen=True, slots=True)
class Finding:
    start: int
    end: int
    rule: Rule

    @property
    def rank(self) -> tuple[int, bool]:
        """The longer wins, then the more specific."""
        return self.end - self.start, bool(self.rule.vendor)


class Detector:
    """Immutable once built, and shared by threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._patterns = tuple(_compiled(rule) for rule in self._rules)
        self._gate = _gate(self._rules)
        self._automaton = _automaton(self._rules)
        self._longest = max((len(word) for rule in self._rules for word in rule.keywords), default=0)

    def suspects(self, text: str) -> bool:
        """One cheap pass: False means that there is nothing to find."""
        return self._gate.search(_ascii(text)) is not None

    def find(self, text: str) -> list[Finding]:
        """Secrets in order, none overlapping another. Placeholders are not looked into."""
        covered = masked(text)
        view = _unescaped(_ascii(covered))
        found = [
            finding
            for index, windows in self._windows(view).items()
            for start, end in windows
            for finding in self._run(index, covered, view, start, end)
        ]
        return merged(found)

    def _windows(self, view: bytes) -> dict[int, list[tuple[int, int]]]:
        """For each rule whose keyword is there, the stretches to look at, joined where they touch."""
        windows: dict[int, list[tuple[int, int]]] = {}
        for at, indexes in self._keywords(view):
            for index in indexes:
                reach = self._rules[index].window
                start, end = max(0, at - reach), min(len(view), at + reach)
                known = windows.setdefault(index, [])
                if known and start <= known[-1][1]:
                    start, before = known.pop()
                    end = max(end, before)
                known.append((start, end))
        return windows

    def _keywords(self, view: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Where keywords are and whose. The gate leaps to the next one; the automaton reads a stride."""
        lowered = view.lower().decode("ascii")
        at = 0
        while match := self._gate.search(view, at):
            at = match.start() + _STRIDE
            yield from self._automaton.iter(lowered, match.start(), min(at + self._longest, len(view)))

    def _run(self, index: int, text: str, view: bytes, start: int, end: int) -> Iterator[Finding]:
        rule, pattern = self._rules[index], self._patterns[index]
        while start < end and (match := pattern.search(view, start, end)):
            first, last = _secret_span(match, rule.group)
            whole = text[match.start() : match.end()]
            found = [
                Finding(begin, stop, rule)
                for begin, stop in _uncovered(text, first, last)
                if rule.judge(whole, text[begin:stop])
            ]
            yield from found
            # What was refused may hold the beginning of a secret; what is long is not read twice.
            again = not found and last - first <= _RETRY_WITHIN
            start = max(first if again else last, match.start() + 1)


def _ascii(text: str) -> bytes:
    """One byte a character, so that a match's offsets are the text's; takes lone surrogates too."""
    return text.encode("ascii", "replace")


def _unescaped(view: bytes) -> bytes:
    """Written-out line breaks, as of JSON within text, become blanks: their letter is no part of a word."""
    if b"\\" in view:
        for escape in (b"\\n", b"\\r", b"\\t"):
            view = view.replace(escape, b"\n ")
    return view


def _compiled(rule: Rule) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    try:
        return re2.compile(rule.pattern.encode("ascii"), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"rule {rule.name}: the pattern is not RE2 in ASCII: {error}") from error


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


def merged(found: Iterable[Finding]) -> list[Finding]:
    """Overlapping findings become one over both, named after the better."""
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and finding.start < kept[-1].end:
            other = kept.pop()
            best = max(other, finding, key=lambda each: each.rank)
            kept.append(Finding(other.start, max(other.end, finding.end), best.rule))
        elif finding.start < finding.end:
            kept.append(finding)
    return kept

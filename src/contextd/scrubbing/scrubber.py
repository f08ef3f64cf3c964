"""The scrubber: no secret leaves it, and clean text comes back as it came."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from contextd.domain.errors import Internal
from contextd.domain.ports import Scrubbed
from contextd.domain.records import Json
from contextd.scrubbing.detector import Detector, Finding, merged
from contextd.scrubbing.fields import FIELD_RULE, FieldScrubber
from contextd.scrubbing.hiding import hides, plain, revealed
from contextd.scrubbing.placeholders import placeholder
from contextd.scrubbing.rules import RULES, Rule

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_MAX_ROUNDS: Final = 16


class SecretScrubber:
    """Replaces secrets by `[REDACTED:<rule>:<6 hex>]`. Safe to share between threads.

    Scrubbing twice is scrubbing once. When anything goes wrong inside, Internal is raised and
    no text is returned.
    """

    def __init__(self, rules: Sequence[Rule] = RULES, key: Callable[[], bytes] | None = None) -> None:
        """`key` makes the digits of placeholders comparable, and is asked for when the first secret is met;
        by default they are of this object alone."""
        _refuse_duplicates(rules)
        self._key = cache(key or (lambda: os.urandom(32)))
        self._detector = Detector(rules)
        self._fields = FieldScrubber(self._scrubbed, self._suspects, self._key)

    def scrub(self, text: str, *, keep_lines: bool = False) -> Scrubbed:
        try:
            if not self._suspects(text):
                return Scrubbed(text, _NOTHING)
            findings: Counter[str] = Counter()
            return Scrubbed(self._scrubbed(text, findings, keep_lines), findings)
        except Exception as error:  # noqa: BLE001 - a plugin's rule may raise anything
            raise _failure(error) from None

    def scrub_json(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        try:
            if self._fields.is_plain(value):
                return value, _NOTHING
            findings: Counter[str] = Counter()
            return self._fields.scrubbed(value, findings), findings
        except Exception as error:  # noqa: BLE001 - a plugin's rule may raise anything
            raise _failure(error) from None

    def _suspects(self, text: str) -> bool:
        return self._detector.suspects(text) or hides(text)

    def _scrubbed(self, text: str, findings: Counter[str], keep_lines: bool = False) -> str:
        """Redacts until a look finds nothing more: a placeholder may uncover what stood beside a secret."""
        for _ in range(_MAX_ROUNDS):
            seen, found = self._look(text)
            if not found:
                return text
            findings.update(finding.rule.name for finding in found)
            text = self._redacted(seen, found, keep_lines)
        raise RuntimeError("redaction does not come to rest")

    def _look(self, text: str) -> tuple[str, list[Finding]]:
        """The findings and the text they are of: the text itself, unless a cleaned one shows more."""
        found = self._detector.find(text)
        for cleaned in revealed(text):
            more = self._detector.find(cleaned)
            if _secrets(cleaned, more) - _secrets(text, found):
                return cleaned, merged([*more, *_carried_over(text, found, cleaned, more)])
        return text, found

    def _redacted(self, text: str, found: Iterable[Finding], keep_lines: bool) -> str:
        parts: list[str] = []
        at = 0
        for finding in found:
            secret = text[finding.start : finding.end]
            parts += text[at : finding.start], placeholder(finding.rule.name, secret, self._key())
            if keep_lines:
                parts.append("\n" * secret.count("\n"))
            at = finding.end
        return "".join([*parts, text[at:]])


def _secrets(text: str, found: Iterable[Finding]) -> Counter[str]:
    return Counter(text[finding.start : finding.end] for finding in found)


def _carried_over(
    text: str, found: Iterable[Finding], cleaned: str, more: Iterable[Finding]
) -> Iterator[Finding]:
    """What only the text itself showed, as where cleaning joins a secret to its neighbour."""
    rules = {plain(text[finding.start : finding.end]): finding.rule for finding in found}
    for secret in rules.keys() - _secrets(cleaned, more).keys():
        at = cleaned.find(secret)
        while at >= 0:
            yield Finding(at, at + len(secret), rules[secret])
            at = cleaned.find(secret, at + len(secret))


def _refuse_duplicates(rules: Sequence[Rule]) -> None:
    names = Counter([FIELD_RULE, *(rule.name for rule in rules)])
    if taken := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"rule names are taken: {', '.join(taken)}")


def _failure(error: Exception) -> Internal:
    """Says what kind of thing failed and no more: an exception's own text may quote a secret."""
    fault = Internal()
    fault.add_note(f"the scrubber failed with {type(error).__name__}")
    return fault

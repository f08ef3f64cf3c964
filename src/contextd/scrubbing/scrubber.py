"""The scrubber: no secret leaves it, and clean text comes back as it came."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from contextd.domain.errors import Internal
from contextd.domain.ports import Scrubbed
from contextd.domain.records import Json
from contextd.scrubbing.fields import FIELD_RULE, FieldScrubber
from contextd.scrubbing.finder import KNOWN_RULE, Finder
from contextd.scrubbing.findings import Finding, parted
from contextd.scrubbing.redaction import Account, redacted
from contextd.scrubbing.rules import RULES, Rule
from contextd.scrubbing.streaming import ByteStream, TextStream

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_MAX_ROUNDS: Final = 16


class SecretScrubber:
    """Replaces secrets by `[REDACTED:<rule>:<6 hex>]`. Safe to share between threads.

    Scrubbing twice is scrubbing once. When anything goes wrong inside, Internal is raised and
    no text is returned.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = RULES,
        key: Callable[[], bytes] | None = None,
        *,
        remembers: bool = False,
    ) -> None:
        """`key` makes the digits of placeholders comparable, and is asked for when the first secret is met;
        by default they are of this object alone. One that `remembers` looks for what it once found in
        every form from then on."""
        _refuse_duplicates(rules)
        self._key = cache(key or (lambda: os.urandom(32)))
        self._remembers = remembers
        self._finder = Finder(rules)
        self._fields = FieldScrubber(self._field_text, self._finder.suspects, self._key)
        self._changes = 0

    def scrub(self, text: str, *, keep_lines: bool = False) -> Scrubbed:
        with _failing_closed:
            if not self._finder.suspects(text):
                return Scrubbed(text, _NOTHING)
            account = Account(keep_lines)
            clean = self._rounds(text, account, [0, len(text)])
            return Scrubbed(clean, account.findings, account.certain())

    def scrub_json(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        with _failing_closed:
            self._renew_keys()
            if self._fields.is_plain(value):
                return value, _NOTHING
            findings: Counter[str] = Counter()
            return self._fields_at_rest(value, findings), findings

    def stream(self, *, keep_lines: bool = False) -> TextStream:
        """For text that comes in pieces; what it returns, joined, is what `scrub` returns of the whole."""
        return TextStream(self, keep_lines)

    def byte_stream(self, *, keep_lines: bool = False) -> ByteStream:
        """The same for UTF-8 that comes in pieces; what is not UTF-8 becomes U+FFFD."""
        return ByteStream(self.stream(keep_lines=keep_lines))

    def learn(self, text: str, kind: str = KNOWN_RULE) -> int:
        """Look for the secrets of this file (`.env`, credentials of a tool) in every form from now on.

        `kind` names those that no rule names. How many are new.
        """
        with _failing_closed:
            return self._finder.learn(text, kind)

    def learn_environment(self, environment: Mapping[str, str]) -> int:
        """The same for variables whose name promises a secret. They are never forgotten."""
        with _failing_closed:
            return self._finder.learn_environment(environment)

    def look(self, text: str) -> list[Finding]:
        """Where one look finds secrets, in order and none over another."""
        with _failing_closed:
            return self._finder.look(text) if self._finder.suspects(text) else []

    def scrub_between(self, text: str, start: int, end: int, account: Account) -> str:
        """What becomes of `text[start:end]`, looked at with what stands before and behind it."""
        with _failing_closed:
            if not self._finder.suspects(text):
                return text[start:end]
            return self._rounds(text, account, [start, end])

    def _rounds(self, text: str, account: Account, marks: list[int]) -> str:
        """Redacts until a look finds nothing more: a placeholder may uncover what stood beside a secret."""
        for _ in range(_MAX_ROUNDS):
            found = self._finder.look(text)
            if not found:
                return text[marks[0] : marks[1]]
            if self._remembers:
                self._finder.remember(text, found)
            text, marks = redacted(text, parted(found, marks), self._key, account, marks)
        raise RuntimeError("redaction does not come to rest")

    def _field_text(self, text: str, findings: Counter[str]) -> str:
        return self._rounds(text, Account(findings=findings), [0, len(text)])

    def _fields_at_rest(self, value: Json, findings: Counter[str]) -> Json:
        """Scrubbed again when a later string made a secret known that an earlier one may hold."""
        for _ in range(_MAX_ROUNDS):
            value = self._fields.scrubbed(value, findings)
            if not self._renew_keys():
                return value
        raise RuntimeError("redaction does not come to rest")

    def _renew_keys(self) -> bool:
        """Keys that were harmless may be known secrets by now."""
        changes = self._finder.changes
        if changes == self._changes:
            return False
        self._changes = changes
        self._fields.forget_keys()
        return True


def _refuse_duplicates(rules: Sequence[Rule]) -> None:
    names = Counter([FIELD_RULE, KNOWN_RULE, *(rule.name for rule in rules)])
    if taken := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"rule names are taken: {', '.join(taken)}")


class _FailingClosed:
    """Says what kind of thing failed and no more: an exception's own text may quote a secret."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            fault = Internal()
            fault.add_note(f"the scrubber failed with {kind.__name__}")
            raise fault from None


_failing_closed: Final = _FailingClosed()

"""All that finds secrets in a text: rules and known values, in it as it is and as a reader sees it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from contextd.scrubbing.credentials import secrets_in, secrets_of
from contextd.scrubbing.detector import Detector
from contextd.scrubbing.findings import Finding, merged
from contextd.scrubbing.hiding import hides, plain, revealed
from contextd.scrubbing.known_values import KnownValues
from contextd.scrubbing.placeholders import masked
from contextd.scrubbing.rule import Rule
from contextd.scrubbing.values import looks_random
from contextd.scrubbing.views import View, encoded

KNOWN_RULE: Final = "known-value"
"""Names a known value that no rule knows."""


class Finder:
    def __init__(self, rules: Sequence[Rule]) -> None:
        self._detector = Detector(rules)
        self._known = KnownValues()

    @property
    def changes(self) -> int:
        """Another number when more values are known than before."""
        return self._known.changes

    def suspects(self, text: str) -> bool:
        """Quick; False means that there is nothing to find."""
        return self._detector.suspects(text) or hides(text) or self._knows_of(text)

    def look(self, text: str) -> list[Finding]:
        """Secrets in order, none over another."""
        found = self._found(text)
        for seen in revealed(text):
            found += _in_place(seen, self._found(seen.text))
        if self._known:
            for seen in encoded(text):
                found += _in_place(seen, self._known.find(masked(seen.text)))
        return merged(found)

    def learn(self, text: str, kind: str) -> int:
        named = {text[each.start : each.end]: each.name for each in self.look(text)}
        return self._known.add({**dict.fromkeys(secrets_in(text), kind), **named}.items())

    def learn_environment(self, environment: Mapping[str, str]) -> int:
        named = ((value, self._name_of(name, value)) for name, value in secrets_of(environment))
        return self._known.add(named, kept=True)

    def remember(self, text: str, found: Iterable[Finding]) -> None:
        """Vendors' tokens and what looks random: a mistake of a generic rule must not spread."""
        secrets = ((plain(text[each.start : each.end]), each) for each in found if each.known is None)
        self._known.add(
            [(secret, each.name) for secret, each in secrets if each.specific or looks_random(secret)]
        )

    def _found(self, text: str) -> list[Finding]:
        found = self._detector.find(text)
        return found + self._known.find(masked(text)) if self._known else found

    def _knows_of(self, text: str) -> bool:
        if not self._known:
            return False
        return self._known.suspects(text) or any(self._known.suspects(seen.text) for seen in encoded(text))

    def _name_of(self, variable: str, value: str) -> str:
        text = f"{variable}={value}\n"
        names = (each.name for each in self.look(text) if text[each.start : each.end] == value)
        return next(names, KNOWN_RULE)


def _in_place(seen: View, found: Iterable[Finding]) -> Iterator[Finding]:
    return (each.moved(*seen.span(each.start, each.end)) for each in found)

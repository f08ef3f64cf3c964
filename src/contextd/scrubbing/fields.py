"""Secrets in JSON, where a key and its value are apart and each alone may look harmless."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from contextd.domain.records import Json
from contextd.scrubbing.hiding import plain
from contextd.scrubbing.names import Family, fits, secret_family
from contextd.scrubbing.placeholders import placeholder, without_placeholders

FIELD_RULE: Final = "secret-field"
"""Names a value that its key, and no rule, gave away."""

_MAX_KNOWN_KEYS: Final = 4_096
_MAX_KNOWN_LENGTH: Final = 128

ScrubText: TypeAlias = Callable[[str, Counter[str]], str]
Suspects: TypeAlias = Callable[[str], bool]


class FieldScrubber:
    def __init__(self, scrub: ScrubText, suspects: Suspects, key: Callable[[], bytes]) -> None:
        self._scrub = scrub
        self._suspects = suspects
        self._key = key
        self._harmless: set[str] = set()
        """Keys that are clean and promise no secret: the same few are in every answer."""

    def forget_keys(self) -> None:
        """What was harmless may be a known secret by now."""
        self._harmless.clear()

    def is_plain(self, value: Json) -> bool:
        """One walk, then one look at all strings together. False says nothing yet: see `scrubbed`."""
        strings: list[str] = []
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, dict):
                if not self._has_harmless_keys(item):
                    return False
                pending.extend(item.values())
            elif isinstance(item, list):
                pending.extend(item)
            else:
                _require_scalar(item)
        return not self._suspects("\n".join(strings))

    def scrubbed(self, value: Json, findings: Counter[str]) -> Json:
        """The same object when nothing was found in it."""
        if isinstance(value, str):
            return self._text(value, findings)
        if isinstance(value, list):
            items = [self.scrubbed(item, findings) for item in value]
            return items if _differ(items, value) else value
        if isinstance(value, dict):
            return self._object(value, findings)
        _require_scalar(value)
        return value

    def _text(self, text: str, findings: Counter[str]) -> str:
        return self._scrub(text, findings) if self._suspects(text) else text

    def _object(self, entries: dict[str, Json], findings: Counter[str]) -> dict[str, Json]:
        scrubbed: dict[str, Json] = {}
        declared = self._declared_family(entries)
        for key, item in entries.items():
            new_key, family = key, declared if key == "value" else None
            if not self._is_harmless(key):
                new_key = self._text(key, findings)
                family = _family(new_key)
            new_item = self.scrubbed(item, findings)
            scrubbed[_unused(new_key, scrubbed)] = self._field(family, new_item, findings)
        same = not _differ(scrubbed, entries) and not _differ(scrubbed.values(), entries.values())
        return entries if same else scrubbed

    def _field(self, family: Family | None, item: Json, findings: Counter[str]) -> Json:
        if family and isinstance(item, str) and fits(family, plain(without_placeholders(item))):
            findings[FIELD_RULE] += 1
            return placeholder(FIELD_RULE, item, self._key())
        if family and isinstance(item, list):
            items = [self._field(family, each, findings) for each in item]
            return items if _differ(items, item) else item
        return item

    def _declared_family(self, entries: dict[str, Json]) -> Family | None:
        """Of `{"name": "DB_PASSWORD", "value": …}`, as containers and HTTP archives write it."""
        name = entries.get("name", entries.get("key"))
        return _family(self._text(name, Counter())) if isinstance(name, str) else None

    def _has_harmless_keys(self, entries: dict[str, Json]) -> bool:
        if "value" in entries and self._declared_family(entries):
            return False
        return self._harmless.issuperset(entries) or all(map(self._is_harmless, entries))

    def _is_harmless(self, key: str) -> bool:
        if key in self._harmless:
            return True
        if _family(key) or self._text(key, Counter()) is not key:
            return False
        if len(key) <= _MAX_KNOWN_LENGTH:
            if len(self._harmless) >= _MAX_KNOWN_KEYS:
                self._harmless.clear()
            self._harmless.add(key)
        return True


def _family(key: str) -> Family | None:
    return secret_family(plain(without_placeholders(key)))


def _unused(key: str, taken: dict[str, Json]) -> str:
    """Two keys may be scrubbed into one; neither entry is lost."""
    return key if key not in taken else _unused(key + "'", taken)


def _differ(new: Iterable[Json], old: Iterable[Json]) -> bool:
    return any(one is not two for one, two in zip(new, old, strict=True))


def _require_scalar(value: object) -> None:
    """Anything else could carry text past the scrubber."""
    if value is not None and not isinstance(value, bool | int | float):
        raise TypeError(f"not JSON: {type(value).__name__}")

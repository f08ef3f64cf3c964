"""Known errors: how each is recognised, what it means and what to do about it.

The patterns that ship are data, one TOML file an ecosystem in `pattern_pack/`; see `docs/patterns.md`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

import ahocorasick
import re2

CATEGORIES: Final = (
    "configuration",
    "resource",
    "dependency",
    "network",
    "permission",
    "syntax",
    "type",
    "runtime",
    "concurrency",
    "data",
    "build",
    "version",
    "security",
    "test",
)
SEVERITIES: Final = ("low", "medium", "high", "critical")
SCOPES: Final[Mapping[str, float]] = {"exact": 0.9, "family": 0.7, "symptom": 0.4}
"""How much a message tells: one cause; a kind of fault with a few causes; just that something died."""

_SHIPPED: Final = "contextd.services.pattern_pack"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9.+_-]{0,99}\Z")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PLAIN_QUOTES: Final = str.maketrans(
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u00a0", '\'\'\'\'""""" '
)
LEAST_KEYWORD: Final = 4
_MOST_CREDIT: Final = 99


@dataclass(frozen=True, slots=True)
class Action:
    description: str
    commands: tuple[str, ...]
    expected_outcome: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """One error that is known.

    A text matches when it holds one of the `keywords`, in any case, and the `regex` (RE2, within a line,
    in any case) finds something. Without keywords the longest line of `error_pattern` is the keyword.
    """

    id: str
    ecosystem: str
    category: str
    severity: str
    error_pattern: str
    root_cause: str
    solution: str
    verification_steps: tuple[str, ...]
    actions: tuple[Action, ...]
    tags: tuple[str, ...]
    examples: tuple[str, ...]
    misses: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    regex: str = ""
    scope: str = "family"

    def __post_init__(self) -> None:
        _check(_ID.match(self.id), self.id, "ids are lower-case letters, digits, '.', '-', '+' and '_'")
        _check(self.category in CATEGORIES, self.id, f"category is one of {', '.join(CATEGORIES)}")
        _check(self.severity in SEVERITIES, self.id, f"severity is one of {', '.join(SEVERITIES)}")
        _check(self.scope in SCOPES, self.id, f"scope is one of {', '.join(SCOPES)}")
        short = min((len(word) for word in self.keywords), default=LEAST_KEYWORD)
        _check(short >= LEAST_KEYWORD, self.id, f"keywords have at least {LEAST_KEYWORD} characters")


class PatternPack:
    """Immutable, and shared by threads. Of two patterns with one id, the later is meant."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._by_id = {pattern.id: pattern for pattern in patterns}
        self._regexes = {
            pattern.id: _compiled(pattern.id, pattern.regex) for pattern in self if pattern.regex
        }
        self._automaton = _automaton(self)

    @classmethod
    def shipped(cls) -> "PatternPack":
        """What comes with contextd. Raises ValueError, naming the file, when one of them is broken."""
        return _shipped()

    def match(self, text: str) -> list[tuple[Pattern, float]]:
        """The patterns of an error message and its stack trace, the most specific first."""
        view = _view(text)
        found: list[tuple[Pattern, float]] = []
        for id, length in self._candidates(view).items():
            regex = self._regexes.get(id)
            hit = regex.search(view) if regex else None
            if hit or not regex:
                told = max(length, hit.end() - hit.start()) if hit else length
                found.append((self._by_id[id], _specificity(self._by_id[id], told)))
        return sorted(found, key=lambda pair: (-pair[1], pair[0].id))

    def get(self, id: str) -> Pattern | None:
        return self._by_id.get(id)

    def with_patterns(self, more: Iterable[Pattern]) -> "PatternPack":
        """This pack and more. A pattern replaces the one that has its id."""
        return PatternPack((*self, *more))

    def __iter__(self) -> Iterator[Pattern]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def _candidates(self, view: bytes) -> dict[str, int]:
        """Each pattern that has a keyword in the text, with the length of its longest."""
        candidates: dict[str, int] = {}
        if self._automaton is not None:
            for _, (length, ids) in self._automaton.iter(view.decode("ascii").lower()):
                for id in ids:
                    candidates[id] = max(length, candidates.get(id, 0))
        return candidates


def _specificity(pattern: Pattern, told: int) -> float:
    """By the pattern's scope; within one scope, the longer the text that was recognised, the better."""
    return round(SCOPES[pattern.scope] + min(told, _MOST_CREDIT) / 1000, 3)


def _view(text: str) -> bytes:
    """What patterns see: no colours, straight quotes, one byte a character with `?` for the unusual."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.translate(_PLAIN_QUOTES).encode("ascii", "replace")


@lru_cache(maxsize=4_096)
def _compiled(id: str, regex: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(b"(?m)" + regex.encode("ascii"), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"pattern {id}: the regex is not RE2 in ASCII: {error}") from error


def _automaton(patterns: Iterable[Pattern]) -> Any:
    users: dict[str, list[str]] = {}
    for pattern in patterns:
        for word in pattern.keywords or _own_words(pattern):
            users.setdefault(_view(word).decode("ascii").lower(), []).append(pattern.id)
    if not users:
        return None
    automaton = ahocorasick.Automaton()
    for word, ids in users.items():
        automaton.add_word(word, (len(word), tuple(ids)))
    automaton.make_automaton()
    return automaton


def _own_words(pattern: Pattern) -> tuple[str, ...]:
    longest = max(pattern.error_pattern.splitlines(), key=len, default="").strip()
    return (longest,) if len(longest) >= LEAST_KEYWORD else ()


# --- the shipped files ----------------------------------------------------------------


@cache
def _shipped() -> PatternPack:
    folder = files(_SHIPPED)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    patterns = [
        pattern for name in names for pattern in parsed(name, (folder / name).read_text(encoding="utf-8"))
    ]
    pack = PatternPack(patterns)
    if len(pack) != len(patterns):
        ids = [pattern.id for pattern in patterns]
        raise ValueError(f"two patterns have one id: {sorted({id for id in ids if ids.count(id) > 1})}")
    return pack


def parsed(name: str, text: str) -> list[Pattern]:
    """The patterns of one file. Raises ValueError, naming the file."""
    try:
        document = tomllib.loads(text)
        patterns = [_pattern(document["ecosystem"], row) for row in document["pattern"]]
        for pattern in patterns:
            _compiled(pattern.id, pattern.regex)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error
    return patterns


def _pattern(ecosystem: str, row: Mapping[str, Any]) -> Pattern:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    actions = tuple(
        Action(each["description"], tuple(each.get("commands", ())), each["expected_outcome"])
        for each in row.get("actions", ())
    )
    values |= {"ecosystem": ecosystem, "actions": actions, "misses": tuple(row.get("misses", ()))}
    pattern = Pattern(**values)
    _check(pattern.id.startswith(f"{ecosystem}."), pattern.id, f"the id begins with '{ecosystem}.'")
    return pattern


def _check(holds: object, id: str, rule: str) -> None:
    if not holds:
        raise ValueError(f"pattern {id}: {rule}")

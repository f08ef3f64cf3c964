"""Whose language an error speaks for certain, so that advice for another is kept apart."""

import re
from collections.abc import Mapping
from typing import Final

from contextd.domain.fingerprints import ErrorText
from contextd.domain.stack_frames import language_of
from contextd.services.patterns import Pattern

_OF_PATTERNS: Final[Mapping[str, str]] = {
    **{name: name for name in ("c", "go", "java", "php", "python", "ruby", "rust", "swift")},
    "dotnet": "csharp",
    "node": "javascript",
}
"""A pattern's ecosystem to its language. Tools, systems and databases have none: they serve all."""

_OF_THE_PROGRAM: Final = frozenset(
    ("runtime", "type", "syntax", "concurrency", "data", "resource", "security", "test")
)
"""Categories of the running program. Builds and packages cross languages: a Python wheel compiles C."""


def _signs(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)


_SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    "c": _signs(
        r"Segmentation fault|(?:Address|Leak|Thread|Memory)Sanitizer|core dumped|EXC_BAD_ACCESS",
        r"\bstd::(?:bad_|\w{1,40}_error)|terminate called|(?:free|malloc)\(\): |stack smashing",
        # Where another language's runtime says that it died in native code.
        r"during cgo execution|^# C {1,4}\[",
        r"\.(?:c|cc|cpp|cxx|h|hpp):\d+:\d+: (?:fatal )?error:",
    ),
    "csharp": _signs(r"^Unhandled exception\. ", r"\bSystem\.(?:\w{1,60}\.){0,6}\w{1,60}Exception\b"),
    "go": _signs(
        r"^panic: |^goroutine \d+ \[|\[signal SIG\w{1,9}: [^\]\n]{0,80}code=0x",
        r"runtime error: (?:invalid memory address|index out of range|slice bounds|integer divide)",
        r"^fatal error: (?:all goroutines|concurrent map|stack overflow)",
    ),
    "java": _signs(
        r"Exception in thread \"",
        r"\b(?:java|javax|jakarta|kotlin|scala)\.[\w.$]{1,200}(?:Exception|Error)\b",
    ),
    "javascript": _signs(
        r"\bnode:internal/|JavaScript|\bnpm (?:ERR!|error )", r"^Uncaught \w{1,40}Error|Cannot read propert"
    ),
    "php": _signs(r"\bPHP (?:Fatal|Parse|Warning|Notice)", r"Fatal error: Uncaught "),
    "python": _signs(r"Traceback \(most recent call last\)", r"^Fatal Python error"),
    "ruby": _signs(r"\.rb:\d+:in ", r"\bnil:NilClass\b|for nil \(NoMethodError\)"),
    "rust": _signs(r"\bpanicked at |^error\[E\d{4}\]|\bRUST_BACKTRACE="),
    "swift": _signs(r"\.swift:\d+|\bSwift/\w{1,60}\.swift"),
}
"""What only one language's runtime or compiler writes."""


def languages_of(error: ErrorText) -> frozenset[str]:
    """Those that are certain, by stack frames or such signs; several where one runs in the other."""
    by_frames = language_of(error.message) or (error.ecosystem if error.frames else None)
    text = f"{error.message}\n{error.line}"
    signed = {language for language, signs in _SIGNS.items() if signs.search(text)}
    return frozenset(signed | {by_frames} if by_frames else signed)


def is_foreign(pattern: Pattern, languages: frozenset[str]) -> bool:
    """Whether it speaks of a running program in a language that is none of these.

    Patterns that people saved never do: their ecosystem was guessed from one message.
    """
    own = pattern.id.startswith(f"{pattern.ecosystem}.") and pattern.category in _OF_THE_PROGRAM
    language = _OF_PATTERNS.get(pattern.ecosystem) if own else None
    return bool(languages) and language is not None and language not in languages

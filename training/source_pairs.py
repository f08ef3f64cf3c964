"""Pairs from a source file: what is said of a thing, and the thing without what is said of it."""

import random
import re
from collections.abc import Iterator
from typing import Final

from code_questions import question_of
from contextd.adapters.tree_sitter import TreeSitterParser
from contextd.domain.code import Symbol
from contextd.domain.words import split_words
from contextd.languages import Languages
from pair import Pair, PairKind

_LONGEST_FILE: Final = 300_000
_LONGEST_DOCUMENT: Final = 6_000
_FEWEST_WORDS: Final = 8
_FUNCTIONS: Final = ("function", "method")
_TYPES: Final = ("struct", "interface", "class", "enum", "trait", "type")
_SKIPPED: Final = re.compile(
    r"(?:^|/)(?:vendor|node_modules|third_party|\.git|testdata|licenses?)/|\.min\.js$|\.pb\.go$|_pb2\.py$"
    r"|(?:^|/)(?:LICEN[CS]E|COPYING|CHANGELOG|CODE_OF_CONDUCT)",
    re.IGNORECASE,
)
_GENERATED: Final = re.compile(r"(?:code generated|do not edit|auto-?generated)", re.IGNORECASE)
_DOCSTRING: Final = re.compile(r"^[ \t]*[rRuUbB]?(\"\"\"|''')(?:.|\n)*?\1[ \t]*\n", re.MULTILINE)
_COMPLAINT: Final = re.compile(
    r"(?i)\b(?:raise|throw|panic|fatal\w*|errorf?|err\w*\.new|errors\.\w+|\w*(?:exception|error)|bail|anyhow)"
    r"\b[^\n\"']{0,60}[\"']([^\"'\n]{12,160})[\"']"
)
_HOLE: Final = re.compile(r"%[-+#0-9.]*[a-zA-Z]|\{[^{}\n]{0,30}\}|\$\{[^}\n]{0,30}\}")
_SENTENCE: Final = re.compile(r"^(.{20,300}?[.!?])\s+(\S.{60,})$", re.DOTALL)
_TEST: Final = re.compile(r"(?:test|Test|Benchmark|Example|Fuzz)(?:_|[A-Z]|$)")
_LICENCE: Final = re.compile(r"(?i)licensed under|copyright|permission is hereby|warrant(?:y|ies)")


class SourcePairs:
    def __init__(self) -> None:
        self._languages = Languages()
        self._parser = TreeSitterParser(self._languages.by_name)

    def of(self, repository: str, path: str, text: str, chance: random.Random) -> Iterator[Pair]:
        language = self._languages.of(path)
        if language is None or _SKIPPED.search(path) or len(text) > _LONGEST_FILE:
            return
        if _GENERATED.search(text[:1_000]):
            return
        lines = text.split("\n")
        for symbol in self._parser.outline(language.name, text).symbols:
            for kind, query, document in _of_symbol(language.name, symbol, lines, chance):
                if len(split_words(document)) >= _FEWEST_WORDS and not _LICENCE.search(document[:2_000]):
                    yield Pair(kind, repository, language.name, query, document[:_LONGEST_DOCUMENT])


def _of_symbol(
    language: str, symbol: Symbol, lines: list[str], chance: random.Random
) -> Iterator[tuple[PairKind, str, str]]:
    if _TEST.match(symbol.name):
        return
    if symbol.kind == "section":
        yield from _of_section(symbol, "\n".join(lines[symbol.line : symbol.end_line]))
        return
    code = "\n".join(lines[symbol.line - 1 : symbol.end_line])
    if language == "python" and symbol.doc:
        code = _DOCSTRING.sub("", code, count=1)
    said = question_of(symbol.doc, symbol.name) if symbol.doc else None
    if symbol.kind in _FUNCTIONS:
        if said:
            yield "doc", said, code
        name = " ".join(split_words(f"{symbol.container} {symbol.name}"))
        if len(name.split()) > 1 and symbol.end_line - symbol.line > 2:
            yield "name", name, re.sub(rf"\b{re.escape(symbol.name)}\b", "", code)
        for message in _COMPLAINT.findall(code)[:2]:
            yield "error", _filled(message, chance), code
    elif symbol.kind in _TYPES and said:
        yield "type", said, code


def _of_section(symbol: Symbol, text: str) -> Iterator[tuple[PairKind, str, str]]:
    heading = f"{symbol.container} {symbol.name}".strip()
    if len(split_words(heading)) > 1:
        yield "heading", heading, text
    for paragraph in text.split("\n\n"):
        match = _SENTENCE.match(" ".join(paragraph.split()))
        if match and not paragraph.lstrip().startswith(("```", "|", "    ")):
            yield "prose", match[1], match[2]


def _filled(message: str, chance: random.Random) -> str:
    """As it is seen: something stands where the message has a hole."""

    def some(_: re.Match[str]) -> str:
        number = chance.randint(0, 9_999)
        words = (str(number), f"item-{number}", f"/srv/app/{number}", "main", "default", f"id_{number}")
        return chance.choice(words)

    return _HOLE.sub(some, message)

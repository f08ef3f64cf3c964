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
_FURTHER: Final = re.compile(r"[.!?]\s+([A-Z].{25,300}?)(?:[.!?](?:\s|$)|$)")
_REMARK: Final = re.compile(r"^([A-Za-z][a-zA-Z ,'\-]{18,200})(?:[.:;(!?]|$)")
_ASIDE: Final = re.compile(r"(?i)todo|fixme|xxx|hack|nolint|noqa|type:|pragma|deprecated|copyright")
_TESTS_KEPT: Final = 0.1
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
                few = 3 if kind == "alike" else _FEWEST_WORDS
                if len(split_words(document)) >= few and not _LICENCE.search(document[:2_000]):
                    yield Pair(kind, repository, language.name, query, document[:_LONGEST_DOCUMENT])


def _of_symbol(
    language: str, symbol: Symbol, lines: list[str], chance: random.Random
) -> Iterator[tuple[PairKind, str, str]]:
    if symbol.kind == "section":
        yield from _of_section(symbol, "\n".join(lines[symbol.line : symbol.end_line]))
        return
    code = "\n".join(lines[symbol.line - 1 : symbol.end_line])
    if _TEST.match(symbol.name):
        if chance.random() < _TESTS_KEPT:
            yield "beside", "", code
        return
    told = "\n".join(lines[symbol.start_line - 1 : symbol.end_line])
    if language == "python" and symbol.doc:
        code = _DOCSTRING.sub("", code, count=1)
    said = question_of(symbol.doc, symbol.name) if symbol.doc else None
    if symbol.kind in _FUNCTIONS:
        if said:
            yield "doc", said, code
        yield from _of_function(language, symbol, code, told, chance)
    elif symbol.kind in _TYPES and said:
        yield "type", said, code


def _of_function(
    language: str, symbol: Symbol, code: str, told: str, chance: random.Random
) -> Iterator[tuple[PairKind, str, str]]:
    """`told` is the code with its doc comment, as it stands in an index: half of the documents are."""

    def either() -> str:
        return told if chance.random() < 0.5 else code

    name = " ".join(split_words(f"{symbol.container} {symbol.name}"))
    if len(name.split()) > 1 and symbol.end_line - symbol.line > 2:
        yield "name", name, re.sub(rf"\b{re.escape(symbol.name)}\b", "", either())
    further = _FURTHER.search(" ".join(symbol.doc.split("\n\n")[0].split())) if symbol.doc else None
    if further and (detail := question_of(further[1], symbol.name)):
        yield "detail", detail, code
    for message in _COMPLAINT.findall(code)[:2]:
        yield "error", _filled(message, chance), either()
        if _HOLE.search(message):
            yield "alike", _filled(message, chance), _filled(message, chance)
    remarks = list(_remarks(language, code))
    for remark, rest in chance.sample(remarks, min(2, len(remarks))):
        yield "remark", remark, rest


def _remarks(language: str, code: str) -> Iterator[tuple[str, str]]:
    """Comments inside a function that say what happens there, each with the code without it."""
    mark = "#" if language in ("python", "ruby") else "//"
    lines = code.split("\n")
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].lstrip().startswith(f"{mark} "):
            end += 1
        if end > at:
            text = " ".join(line.strip().lstrip(mark).strip() for line in lines[at:end])
            match = _REMARK.match(text)
            if match and len(split_words(text)) > 4 and not _ASIDE.search(text):
                yield match[1], "\n".join(lines[:at] + lines[end:])
        at = end + 1


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

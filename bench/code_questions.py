"""Questions about code with known answers, made from repositories that a script is pointed at.

A doc comment's first sentence is the question, with the function's name taken out of it; the function is
the answer. The comments of all functions are taken out of the copy that is indexed: what is left to find it
by is the code. Nothing of the repositories is kept.
"""

import ast
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from contextd.adapters.tree_sitter import TreeSitterParser
from contextd.domain.code_store import ChunkRow
from contextd.domain.words import query_words, split_words
from contextd.languages import Languages

_LEAST_WORDS: Final = 4
_SUFFIXES: Final = (".go", ".py")
_SENTENCE: Final = re.compile(r"^(.+?[.!?])(?:\s|$)", re.DOTALL)
_SKIPPED: Final = re.compile(r"(?:_test\.go|(?:^|/)tests?/.*|(?:^|/)test_[^/]*\.py|(?:^|/)vendor/.*)$")
_NOISE: Final = re.compile(r"deprecated|todo|nolint|copyright|:param|go:generate|@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A definition, or a whole file where nothing is named."""

    file: str
    container: str = ""
    name: str = ""
    line: int = 0
    """Where it is defined, if that is known: what shows this line is it, be it alone or among others."""

    def has(self, row: ChunkRow) -> bool:
        if row.path != self.file or not self.name:
            return row.path == self.file
        if self.line:
            return row.start_line <= self.line <= row.end_line
        symbol = row.symbol
        return (
            symbol is not None
            and row.part == 0
            and (symbol.container, symbol.name) == (self.container, self.name)
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the places that answer it, the best one first."""

    text: str
    answers: tuple[Place, ...]
    kind: str = ""

    @property
    def best(self) -> Place:
        return self.answers[0]


def prepare(repository: Path, copy: Path) -> list[Question]:
    """Copy a repository without its functions' comments. Returns the questions that they were."""
    shutil.copytree(repository, copy, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    parser = TreeSitterParser(Languages().by_name)
    questions: list[Question] = []
    for file in sorted(copy.rglob("*")):
        path = str(file.relative_to(copy))
        if file.suffix not in _SUFFIXES or _SKIPPED.search(path) or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        bare, found = (_bare_go if file.suffix == ".go" else _bare_python)(parser, text)
        file.write_text(bare, encoding="utf-8")
        questions += [
            Question(sentence, (Place(path, container, name),))
            for container, name, doc in found
            if (sentence := question_of(doc, name))
        ]
    return questions


def _bare_go(parser: TreeSitterParser, text: str) -> tuple[str, list[tuple[str, str, str]]]:
    lines = text.split("\n")
    found = []
    for symbol in parser.outline("go", text).symbols:
        if symbol.kind in ("function", "method") and symbol.doc:
            found.append((symbol.container, symbol.name, symbol.doc))
            lines[symbol.start_line - 1 : symbol.line - 1] = [""] * (symbol.line - symbol.start_line)
    return "\n".join(lines), found


def _bare_python(parser: TreeSitterParser, text: str) -> tuple[str, list[tuple[str, str, str]]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text, []
    lines = text.split("\n")
    found = []
    for container, node in _functions(tree, ""):
        doc = ast.get_docstring(node)
        first = node.body[0]
        if not doc or first.end_lineno is None:
            continue
        found.append((container, node.name, doc))
        indent = " " * first.col_offset
        count = first.end_lineno - first.lineno + 1
        lines[first.lineno - 1 : first.end_lineno] = [f"{indent}pass", *[""] * (count - 1)]
    return "\n".join(lines), found


def _functions(
    node: ast.AST, container: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield container, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, child.name)
        elif not isinstance(child, ast.expr):
            yield from _functions(child, container)


def question_of(doc: str, name: str) -> str | None:
    """The first sentence without the function's name; None for one that asks nothing."""
    paragraph = " ".join(doc.strip().split("\n\n")[0].split())
    match = _SENTENCE.match(paragraph)
    sentence = match[1] if match else paragraph
    if _NOISE.search(sentence):
        return None
    text = re.sub(rf"\b{re.escape(name)}\b(?:\(\))?", "", sentence).strip(" ,.:;-")
    return text if len(split_words(text)) >= _LEAST_WORDS and len(text) <= 400 else None


def shortened(question: Question, chance: random.Random) -> Question:
    """As people type: a few telling words, in order."""
    words = [word for word in query_words(question.text) if word.isalpha()]
    count = min(len(words), chance.randint(2, 4))
    kept = sorted(chance.sample(range(len(words)), count)) if words else []
    text = " ".join(words[at] for at in kept)
    return replace(question, text=text or question.text)

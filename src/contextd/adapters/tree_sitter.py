"""Source text into an outline, by tree-sitter and what `languages/` says of each language."""

import importlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from contextd.adapters.syntax_matches import Definition, Seen, take
from contextd.adapters.syntax_nesting import nested, wrap
from contextd.adapters.syntax_symbols import symbols_of
from contextd.domain.code import Outline, Reference, Trouble
from contextd.languages.language import Language, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_MOST_TROUBLES: Final = 20
_BLANK: Final = re.compile(r"\s+")
_MOST_OPEN: Final = 1024
"""Matches that are under way at once; code that people write has a quarter at most. The time for a chain
of calls grows with its square, to minutes for thousands of them, but for this bound."""


class TreeSitterParser:
    """Parsers and queries are made at the first file of their language. Not for several threads at once."""

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self._languages = languages
        self._ready: dict[str, tuple[Parser, Query]] = {}

    def outline(self, language: str, text: str) -> Outline:
        spoken = self._languages[language]
        spoken = self._languages.get(spoken.dialect(text), spoken) if spoken.dialect else spoken
        if spoken.sections is not None:
            return spoken.sections(text)
        parser, query = self._tools(spoken)
        from tree_sitter import QueryCursor

        source = spoken.source(text).encode("utf-8", "replace")
        root = parser.parse(source).root_node
        seen = Seen()
        for _, captures in QueryCursor(query, match_limit=_MOST_OPEN).matches(root):
            take(seen, spoken, captures)
        if spoken.wrappers or spoken.between:
            wrap(seen.definitions, spoken)
        definitions = nested(seen.definitions, spoken)
        symbols, owners = symbols_of(definitions, seen, spoken)
        return Outline(
            package=seen.package,
            symbols=tuple(symbols),
            references=tuple(_references(seen, definitions, owners, spoken)),
            imports=tuple(seen.imports),
            troubles=tuple(_troubles(root, text.rstrip("\n").count("\n") + 1)) if root.has_error else (),
            build=seen.build,
        )

    def _tools(self, spoken: Language) -> "tuple[Parser, Query]":
        if spoken.name not in self._ready:
            import tree_sitter

            module, _, function = spoken.grammar.partition(":")
            made = getattr(importlib.import_module(module), function or "language")
            grammar = tree_sitter.Language(made())
            self._ready[spoken.name] = (
                tree_sitter.Parser(grammar),
                tree_sitter.Query(grammar, spoken.query),
            )
        return self._ready[spoken.name]


def _references(
    seen: Seen, definitions: list[Definition], owners: list[int], spoken: Language
) -> Iterator[Reference]:
    defined = {name.start_byte for each in seen.definitions for name in each.names}
    starts = [each.start for each in definitions]
    for at in sorted(seen.uses.keys() - defined):
        node, kind, qualifier = seen.uses[at]
        name = text_of(node)
        if not qualifier and (name in spoken.builtins or name in seen.parameters):
            continue
        inside = bisect_right(starts, at) - 1
        while inside >= 0 and (definitions[inside].end <= at or owners[inside] < 0):
            inside = definitions[inside].parent
        yield Reference(
            name=name,
            kind="call" if kind == "call" else "type",
            line=node.start_point.row + 1,
            qualifier=qualifier,
            within=owners[inside] if inside >= 0 else -1,
        )


def _troubles(root: "Node", last: int) -> Iterator[Trouble]:
    """The outermost places that did not parse, in order, no later than the last line. There may be many."""
    waiting: list[Any] = [root]
    found = 0
    while waiting and found < _MOST_TROUBLES:
        node = waiting.pop()
        if node.is_missing:
            found += 1
            yield Trouble(min(node.start_point.row + 1, last), f"syntax error: {node.type} is missing")
        elif node.type == "ERROR":
            found += 1
            near = _BLANK.sub(" ", text_of(node)).strip()[:40]
            yield Trouble(min(node.start_point.row + 1, last), f"syntax error: unexpected {near!r}")
        elif node.has_error:
            waiting.extend(reversed(node.children))

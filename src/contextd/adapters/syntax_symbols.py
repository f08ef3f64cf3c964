"""Definitions as symbols: named, described, and with the lines on which the long ones may be split."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from contextd.adapters.doc_comments import comment_before, doc_inside, last_row, without_marks
from contextd.adapters.signatures import declared_at, head_of, signature_of
from contextd.adapters.syntax_matches import TYPES, Definition, Seen
from contextd.adapters.syntax_nesting import holds
from contextd.domain.code import Symbol, SymbolKind
from contextd.languages.language import Language, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LONG: Final = 30
"""Symbols of more lines than this get their statements' borders: they may be split."""


def symbols_of(
    definitions: list[Definition], seen: Seen, spoken: Language
) -> tuple[list[Symbol], list[int]]:
    """The symbols, and for each definition the index of its (first) symbol, or -1 for a scope."""
    symbols: list[Symbol] = []
    owners: list[int] = []
    marks = seen.marks
    inner = frozenset(each.node.id for each in definitions)
    for found in marks.values():
        found.sort()
    for each in definitions:
        owners.append(-1 if each.kind == "scope" or not each.names else len(symbols))
        if owners[-1] >= 0:
            parent = definitions[each.parent] if each.parent >= 0 else None
            mark = _mark(each, marks) if marks else ""
            symbols.extend(_described(each, parent, inner, mark, spoken))
    if seen.exported:
        symbols = [
            replace(each, exported=True) if each.name in seen.exported and not each.container else each
            for each in symbols
        ]
    return symbols, owners


def _mark(each: Definition, marks: "dict[int, list[tuple[int, str]]]") -> str:
    """The mark in a definition itself, or the last before it in its block; with a blank behind it."""
    if each.node.id in marks:
        return f"{marks[each.node.id][0][1]} "
    block = each.outer.parent
    found = marks.get(block.id, []) if block is not None else []
    before = bisect_right(found, (each.outer.start_byte, ""))
    return f"{found[before - 1][1]} " if before else ""


def _described(
    each: Definition, parent: Definition | None, inner: frozenset[int], mark: str, spoken: Language
) -> Iterator[Symbol]:
    container = text_of(each.captures["container"][0]) if "container" in each.captures else ""
    kind = each.kind
    if not container and parent is not None and parent.names and holds(parent.kind, kind):
        container = text_of(parent.names[0])
    if kind == "function" and parent is not None and parent.kind in (*TYPES, "scope"):
        kind = "method"
    first, doc_lines = comment_before(each.outer, spoken)
    if not doc_lines and each.outer is not each.node:
        # Alone in a group, it may have its comment inside of it.
        doc_lines = comment_before(each.node, spoken)[1]
    body = each.captures["body"][0] if "body" in each.captures else None
    declared = declared_at(each.node, spoken)
    head = head_of(each, declared, body, spoken)
    doc = doc_inside(body) if spoken.doc_inside and body is not None else ""
    doc = doc or without_marks([text_of(node) for node in each.captures.get("doc", [])])
    doc = spoken.doc(doc or without_marks(doc_lines))
    end = max(last_row(node) for node in (each.outer, *each.captures.get("doc", [])))
    signature = signature_of(each.kind, head, spoken)
    around = (each.outer.text or b"")[: each.node.start_byte - each.outer.start_byte].decode(
        "utf-8", "replace"
    )
    line = declared.start_point.row + 1
    for text in dict.fromkeys(text_of(name) for name in each.names):
        yield Symbol(
            name=text,
            kind=cast(SymbolKind, kind),
            signature=signature if text in signature else f"{signature} {text}",
            doc=doc,
            line=line,
            start_line=first + 1,
            end_line=end + 1,
            container=container,
            exported=spoken.exported(text, mark + around + head),
            borders=tuple(_borders(each.node, line, inner)) if end - first > _LONG else (),
            facts=spoken.facts(each.node, kind, each.captures),
        )


def _borders(node: "Node", first: int, inner: frozenset[int]) -> Iterator[int]:
    """Lines on which statements begin: those of the body, and within the long ones those inside.

    Definitions in there have borders of their own.
    """
    waiting = [node]
    rows: set[int] = set()
    while waiting:
        here = waiting.pop()
        for child in here.named_children:
            row = child.start_point.row
            rows.add(row)
            if child.end_point.row - row > 1 and child.id not in inner:
                waiting.append(child)
    yield from sorted(row + 1 for row in rows if row + 1 >= first)

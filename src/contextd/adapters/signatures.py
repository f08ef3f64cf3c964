"""A definition's signature: its text up to the body, in one line, without comments and decorators."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from contextd.adapters.syntax_matches import BODIES, Definition
from contextd.languages.language import LONGEST_SIGNATURE, Language

if TYPE_CHECKING:
    from tree_sitter import Node

_BLANK: Final = re.compile(r"\s+")
_LOOSE: Final = re.compile(r"(?<=[(\[]) |,? (?=[)\]])| (?=,)")
"""What is left between brackets when several lines become one."""
_COMMENT: Final = re.compile(rb"//|/\*|#|--")
_LONGEST_HEAD: Final = 4 * LONGEST_SIGNATURE
"""In bytes. What has no body may be one line as long as the file."""


def declared_at(node: "Node", spoken: Language) -> "Node":
    """Where a definition begins, after its decorators; some grammars keep these among the modifiers."""
    if not spoken.decorators:
        return node
    aside = spoken.decorators | spoken.comments
    for child in node.children:
        inside = child.children if child.type == "modifiers" else [child]
        for part in inside:
            if part.type not in aside:
                return part
    return node


def head_of(each: Definition, declared: "Node", body: "Node | None", spoken: Language) -> str:
    """A definition's text up to its body, or to the end of its line, in one line and without asides."""
    source, at = each.node.text or b"", each.node.start_byte
    start = declared.start_byte - at
    end = body.start_byte - at if body is not None else len(source)
    if body is None and each.kind not in BODIES:
        end = source.find(b"\n", start) if source.find(b"\n", start) >= 0 else end
    end = min(end, start + _LONGEST_HEAD)
    kept = bytearray(source[:end])
    for aside in _asides(each.node, start + at, end + at, spoken):
        first, last = aside.start_byte - at, min(aside.end_byte - at, end)
        kept[first:last] = b" " * (last - first)
    return _LOOSE.sub("", _BLANK.sub(" ", kept[start:].decode("utf-8", "ignore")).strip())


def signature_of(kind: str, head: str, spoken: Language) -> str:
    short = spoken.signature(kind, head.rstrip("{:=; ").rstrip())
    return short if len(short) <= LONGEST_SIGNATURE else short[: LONGEST_SIGNATURE - 1] + "…"


def _asides(node: "Node", start: int, end: int, spoken: Language) -> "Iterator[Node]":
    """Comments, decorators and what did not parse, within a stretch of a node."""
    plain = not spoken.decorators and not _COMMENT.search(node.text or b"", 0, end - node.start_byte)
    if plain and not node.has_error:
        return
    aside = spoken.comments | spoken.decorators | {"ERROR"}
    waiting = [node]
    while waiting:
        for child in _children(waiting.pop(), end):
            if child.type in aside and child.end_byte > start:
                yield child
            elif child.end_byte > start:
                waiting.append(child)


def _children(node: "Node", end: int) -> "Iterator[Node]":
    """Those that begin before the end, one by one: an array may have as many as the file has numbers."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more and cursor.node is not None and cursor.node.start_byte < end:
        yield cursor.node
        more = cursor.goto_next_sibling()

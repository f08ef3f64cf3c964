"""The comment that documents a definition: before it, or the first statement inside."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from contextd.languages.language import Language, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MARK: Final = re.compile(r"^[ \t]*(?:///?!?|/\*[*!]*|\*/|\*(?!/)|#+!?|--+|\"\"\"|''')[ \t]?")
_END_MARK: Final = re.compile(r"[ \t]*\*+/[ \t]*$")
_MOST_COMMENTS: Final = 500
"""Before one definition. A parser looks for each anew from the first of its siblings."""


def comment_before(node: "Node", spoken: Language) -> tuple[int, list[str]]:
    """The row on which the definition begins with its comment, and the comment's texts in order."""
    first = node.start_point.row
    texts: list[str] = []
    around = spoken.comments | spoken.between
    sibling = _before(node)
    while sibling is not None and sibling.type in around and len(texts) < _MOST_COMMENTS:
        if last_row(sibling) < first - 1 or _trails(sibling, spoken):
            break
        first = sibling.start_point.row
        if sibling.type in spoken.comments:
            texts.insert(0, text_of(sibling))
        sibling = sibling.prev_sibling
    return first, texts


def _before(node: "Node") -> "Node | None":
    """What stands before the first statement of a block, some grammars have before the block."""
    sibling = node.prev_sibling
    while sibling is None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
        sibling = node.prev_sibling
    return sibling


def _trails(comment: "Node", spoken: Language) -> bool:
    """Whether it stands behind code, on the line of its neighbour."""
    before = comment.prev_sibling
    if before is None or not before.is_named or before.type in spoken.comments | spoken.between:
        return False
    return last_row(before) == comment.start_point.row


def last_row(node: "Node") -> int:
    """Some grammars count the line break as part of the node."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def doc_inside(body: "Node") -> str:
    statement = body.named_children[0] if body.named_children else None
    if statement is not None and statement.type == "expression_statement" and statement.named_children:
        statement = statement.named_children[0]
    if statement is None or statement.type != "string":
        return ""
    inside = [text_of(part) for part in statement.named_children if part.type == "string_content"]
    return "\n".join(line.strip() for line in "".join(inside).strip().splitlines())


def without_marks(comments: Sequence[str]) -> str:
    """Comments without their marks."""
    lines = [line for comment in comments for line in comment.splitlines()]
    bare = [_END_MARK.sub("", _MARK.sub("", line)).rstrip() for line in lines]
    return "\n".join(bare).strip()

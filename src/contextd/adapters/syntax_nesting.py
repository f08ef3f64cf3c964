"""Which definition stands in which, and which of them are symbols."""

from collections import Counter

from contextd.adapters.doc_comments import comment_before
from contextd.adapters.syntax_matches import BODIES, TYPES, Definition
from contextd.languages.language import Language


def wrap(definitions: list[Definition], spoken: Language) -> None:
    """To each definition what is wrapped around it, unless that holds other definitions too.

    What may stand between it and its comment, a decorator, is where it starts.
    """
    nodes = {each.node.id: each.node for each in definitions}.values()
    inside = Counter(node.parent.id for node in nodes if node.parent is not None)
    for each in definitions:
        around = each.node.parent
        while around is not None and around.type in spoken.wrappers:
            if inside[around.id] > 1:
                break
            each.outer, each.start, each.end = around, around.start_byte, around.end_byte
            around = around.parent
        before = each.outer.prev_sibling
        while before is not None and before.type in spoken.between:
            each.start = before.start_byte
            before = before.prev_sibling


def nested(definitions: list[Definition], spoken: Language) -> list[Definition]:
    """In order, each with its parent; what is local to a function is left out, unless the language says."""
    kept: list[Definition] = []
    open_: list[int] = []
    skip_until = -1
    last: dict[int, int] = {}
    for each in sorted(definitions, key=lambda one: (one.start, -one.end, "body" not in one.captures)):
        if each.start < skip_until:
            continue
        if last.get(each.start) == each.end or _says_nothing(each, spoken):
            # A second pattern matched the same node, and the first counts, or the one that knows its body;
            # or it is a bare clause.
            continue
        while open_ and kept[open_[-1]].end <= each.start:
            open_.pop()
        inside = kept[open_[-1]] if open_ else None
        if inside is not None and _hides(inside.kind, each.kind) and not spoken.function_scope:
            skip_until = each.end
            continue
        if inside is not None and _is_part(each, inside):
            continue
        each.parent = open_[-1] if open_ else -1
        last[each.start] = each.end
        open_.append(len(kept))
        kept.append(each)
    return kept


def _hides(outer: str, inner: str) -> bool:
    """Whether what is inside is local: a function's, or one of a closure that makes a value."""
    return outer in BODIES or (outer in ("constant", "variable") and inner not in TYPES)


def _is_part(each: Definition, inside: Definition) -> bool:
    """Whether the definition around it has its name: `typedef struct line {…} line` is one symbol."""
    names = {name.start_byte for name in inside.names}
    return bool(each.names) and all(name.start_byte in names for name in each.names)


def _says_nothing(each: Definition, spoken: Language) -> bool:
    """A clause that names the file's package, as every file has one, and has no comment to tell more."""
    bare = each.kind == "module" and "body" not in each.captures
    return bare and not comment_before(each.outer, spoken)[1]


def holds(outer: str, inner: str) -> bool:
    """Whether what is inside has its container's name. A type does not belong to the variable it is for."""
    return outer not in BODIES and not (outer in ("constant", "variable") and inner in TYPES)

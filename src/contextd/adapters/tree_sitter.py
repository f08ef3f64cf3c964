"""Source text into an outline, by tree-sitter and what `languages/` says of each language."""

import importlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from contextd.domain.code import Import, Outline, Reference, Symbol, SymbolKind, Trouble
from contextd.languages.language import LONGEST_SIGNATURE, Captures, Language, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_KINDS: Final = frozenset(get_args(SymbolKind))
_TYPES: Final = frozenset({"class", "struct", "interface", "trait", "enum", "type"})
_BODIES: Final = frozenset({"function", "method", "macro"})
_LONG: Final = 30
"""Symbols of more lines than this get their statements' borders: they may be split."""
_MOST_TROUBLES: Final = 20

_MARK: Final = re.compile(r"^[ \t]*(?:///?!?|/\*[*!]*|\*/|\*(?!/)|#+!?|--+|\"\"\"|''')[ \t]?")
_END_MARK: Final = re.compile(r"[ \t]*\*+/[ \t]*$")
_BLANK: Final = re.compile(r"\s+")
_LOOSE: Final = re.compile(r"(?<=[(\[]) |,? (?=[)\]])| (?=,)")
"""What is left between brackets when several lines become one."""
_COMMENT: Final = re.compile(rb"//|/\*|#|--")
_LONGEST_QUALIFIER: Final = 100
_LONGEST_HEAD: Final = 4 * LONGEST_SIGNATURE
"""In bytes. What has no body may be one line as long as the file."""
_MOST_COMMENTS: Final = 500
"""Before one definition. A parser looks for each anew from the first of its siblings."""
_MOST_OPEN: Final = 1024
"""Matches that are under way at once; code that people write has a quarter at most. The time for a chain
of calls grows with its square, to minutes for thousands of them, but for this bound."""


@dataclass(slots=True)
class _Definition:
    """A definition as it was captured; `outer` has its decorators and the like around it."""

    kind: str
    node: "Node"
    outer: "Node"
    names: "list[Node]"
    captures: Captures
    start: int
    end: int
    parent: int = -1


@dataclass(slots=True)
class _Seen:
    """What the matches of one file amount to."""

    definitions: list[_Definition] = field(default_factory=list)
    uses: "dict[int, tuple[Node, str, str]]" = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    package: str = ""
    build: str = ""
    exported: set[str] = field(default_factory=set)
    """Names that the file exports elsewhere than where it defines them."""
    parameters: set[str] = field(default_factory=set)
    """Names of type parameters: few letters, which would be taken for types that no file defines."""
    marks: "dict[int, list[tuple[int, str]]]" = field(default_factory=dict)
    """By block: from which byte on its members are `public` or `private`."""


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
        seen = _Seen()
        for _, captures in QueryCursor(query, match_limit=_MOST_OPEN).matches(root):
            _take(seen, spoken, captures)
        if spoken.wrappers or spoken.between:
            _wrap(seen.definitions, spoken)
        definitions = _nested(seen.definitions, spoken)
        symbols, owners = _symbols(definitions, seen, spoken)
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


def _take(seen: _Seen, spoken: Language, captures: "dict[str, list[Node]]") -> None:
    """One match: a use of a name, a definition, an import, or a fact about the file."""
    for kind in ("call", "use"):
        if kind in captures:
            _take_use(seen, kind, captures)
            return
    if "uses" in captures:
        for name, before in spoken.uses(captures["uses"][0]):
            _take_use(
                seen, "use", {"use": [name]} if before is None else {"use": [name], "qualifier": [before]}
            )
    elif "import" in captures:
        seen.imports.extend(spoken.imports(captures))
    elif "package" in captures:
        seen.package = seen.package or text_of(captures["package"][0])
    elif "build" in captures:
        seen.build = text_of(captures["build"][0]).strip()
    elif "parameter" in captures:
        seen.parameters.update(text_of(node) for node in captures["parameter"])
    elif "exported" in captures:
        seen.exported.update(text_of(node) for node in captures["exported"])
    elif "public" in captures or "private" in captures:
        _take_mark(seen, captures)
    else:
        _take_definition(seen, spoken, captures)


def _take_definition(seen: _Seen, spoken: Language, captures: "dict[str, list[Node]]") -> None:
    kind = next(name for name in captures if name in _KINDS or name == "scope")
    node = captures[kind][0]
    found = spoken.definition(kind, captures)
    if found is not None:
        kind, known = found
        names = [name for name in known.get("name", []) if not name.is_missing]
        seen.definitions.append(_Definition(kind, node, node, names, known, node.start_byte, node.end_byte))


def _take_mark(seen: _Seen, captures: "dict[str, list[Node]]") -> None:
    for word in ("public", "private"):
        for node in captures.get(word, []):
            if node.parent is not None:
                seen.marks.setdefault(node.parent.id, []).append((node.start_byte, word))


def _take_use(seen: _Seen, kind: str, captures: "dict[str, list[Node]]") -> None:
    """Of two matches on one name, the one with a qualifier says more, and a call more than a use."""
    qualifier = _qualifier(captures["qualifier"][0]) if "qualifier" in captures else ""
    if "arguments" in captures and captures["arguments"][0].start_byte != captures[kind][0].end_byte:
        return
    for node in captures[kind]:
        if node.is_missing:
            continue
        known = seen.uses.get(node.start_byte)
        if known is None or (bool(qualifier), kind == "call") > (bool(known[2]), known[1] == "call"):
            seen.uses[node.start_byte] = (node, kind, qualifier)


def _qualifier(node: "Node") -> str:
    """A chain of calls may be as long as the file."""
    long = node.end_byte - node.start_byte > _LONGEST_QUALIFIER or node.start_point.row < node.end_point.row
    return "…" if long else text_of(node)


def _wrap(definitions: list[_Definition], spoken: Language) -> None:
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


def _nested(definitions: list[_Definition], spoken: Language) -> list[_Definition]:
    """In order, each with its parent; what is local to a function is left out, unless the language says."""
    kept: list[_Definition] = []
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
    return outer in _BODIES or (outer in ("constant", "variable") and inner not in _TYPES)


def _is_part(each: _Definition, inside: _Definition) -> bool:
    """Whether the definition around it has its name: `typedef struct line {…} line` is one symbol."""
    names = {name.start_byte for name in inside.names}
    return bool(each.names) and all(name.start_byte in names for name in each.names)


def _says_nothing(each: _Definition, spoken: Language) -> bool:
    """A clause that names the file's package, as every file has one, and has no comment to tell more."""
    bare = each.kind == "module" and "body" not in each.captures
    return bare and not _comment_before(each.outer, spoken)[1]


def _symbols(
    definitions: list[_Definition], seen: _Seen, spoken: Language
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


def _mark(each: _Definition, marks: "dict[int, list[tuple[int, str]]]") -> str:
    """The mark in a definition itself, or the last before it in its block; with a blank behind it."""
    if each.node.id in marks:
        return f"{marks[each.node.id][0][1]} "
    block = each.outer.parent
    found = marks.get(block.id, []) if block is not None else []
    before = bisect_right(found, (each.outer.start_byte, ""))
    return f"{found[before - 1][1]} " if before else ""


def _described(
    each: _Definition, parent: _Definition | None, inner: frozenset[int], mark: str, spoken: Language
) -> Iterator[Symbol]:
    container = text_of(each.captures["container"][0]) if "container" in each.captures else ""
    kind = each.kind
    if not container and parent is not None and parent.names and _holds(parent.kind, kind):
        container = text_of(parent.names[0])
    if kind == "function" and parent is not None and parent.kind in (*_TYPES, "scope"):
        kind = "method"
    first, doc_lines = _comment_before(each.outer, spoken)
    if not doc_lines and each.outer is not each.node:
        # Alone in a group, it may have its comment inside of it.
        doc_lines = _comment_before(each.node, spoken)[1]
    body = each.captures["body"][0] if "body" in each.captures else None
    declared = _declared(each.node, spoken)
    head = _head(each, declared, body, spoken)
    doc = _doc_inside(body) if spoken.doc_inside and body is not None else ""
    doc = doc or _plain([text_of(node) for node in each.captures.get("doc", [])])
    doc = spoken.doc(doc or _plain(doc_lines))
    end = max(_last_row(node) for node in (each.outer, *each.captures.get("doc", [])))
    signature = _signature(each.kind, head, spoken)
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


def _holds(outer: str, inner: str) -> bool:
    """Whether what is inside has its container's name. A type does not belong to the variable it is for."""
    return outer not in _BODIES and not (outer in ("constant", "variable") and inner in _TYPES)


def _declared(node: "Node", spoken: Language) -> "Node":
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


def _head(each: _Definition, declared: "Node", body: "Node | None", spoken: Language) -> str:
    """A definition's text up to its body, or to the end of its line, in one line and without asides."""
    source, at = each.node.text or b"", each.node.start_byte
    start = declared.start_byte - at
    end = body.start_byte - at if body is not None else len(source)
    if body is None and each.kind not in _BODIES:
        end = source.find(b"\n", start) if source.find(b"\n", start) >= 0 else end
    end = min(end, start + _LONGEST_HEAD)
    kept = bytearray(source[:end])
    for aside in _asides(each.node, start + at, end + at, spoken):
        first, last = aside.start_byte - at, min(aside.end_byte - at, end)
        kept[first:last] = b" " * (last - first)
    return _LOOSE.sub("", _BLANK.sub(" ", kept[start:].decode("utf-8", "ignore")).strip())


def _signature(kind: str, head: str, spoken: Language) -> str:
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


def _comment_before(node: "Node", spoken: Language) -> tuple[int, list[str]]:
    """The row on which the definition begins with its comment, and the comment's texts in order."""
    first = node.start_point.row
    texts: list[str] = []
    around = spoken.comments | spoken.between
    sibling = _before(node)
    while sibling is not None and sibling.type in around and len(texts) < _MOST_COMMENTS:
        if _last_row(sibling) < first - 1 or _trails(sibling, spoken):
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
    return _last_row(before) == comment.start_point.row


def _last_row(node: "Node") -> int:
    """Some grammars count the line break as part of the node."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _doc_inside(body: "Node") -> str:
    statement = body.named_children[0] if body.named_children else None
    if statement is not None and statement.type == "expression_statement" and statement.named_children:
        statement = statement.named_children[0]
    if statement is None or statement.type != "string":
        return ""
    inside = [text_of(part) for part in statement.named_children if part.type == "string_content"]
    return "\n".join(line.strip() for line in "".join(inside).strip().splitlines())


def _plain(comments: Sequence[str]) -> str:
    """Comments without their marks."""
    lines = [line for comment in comments for line in comment.splitlines()]
    bare = [_END_MARK.sub("", _MARK.sub("", line)).rstrip() for line in lines]
    return "\n".join(bare).strip()


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


def _references(
    seen: _Seen, definitions: list[_Definition], owners: list[int], spoken: Language
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

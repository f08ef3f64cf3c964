"""What the matches of a language's query amount to in one file: definitions, uses, imports, marks."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, get_args

from contextd.domain.code import Import, SymbolKind
from contextd.languages.language import Captures, Language, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS: Final = frozenset(get_args(SymbolKind))
TYPES: Final = frozenset({"class", "struct", "interface", "trait", "enum", "type"})
BODIES: Final = frozenset({"function", "method", "macro"})
_LONGEST_QUALIFIER: Final = 100


@dataclass(slots=True)
class Definition:
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
class Seen:
    """What the matches of one file amount to."""

    definitions: list[Definition] = field(default_factory=list)
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


def take(seen: Seen, spoken: Language, captures: "dict[str, list[Node]]") -> None:
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


def _take_definition(seen: Seen, spoken: Language, captures: "dict[str, list[Node]]") -> None:
    kind = next(name for name in captures if name in _KINDS or name == "scope")
    node = captures[kind][0]
    found = spoken.definition(kind, captures)
    if found is not None:
        kind, known = found
        names = [name for name in known.get("name", []) if not name.is_missing]
        seen.definitions.append(Definition(kind, node, node, names, known, node.start_byte, node.end_byte))


def _take_mark(seen: Seen, captures: "dict[str, list[Node]]") -> None:
    for word in ("public", "private"):
        for node in captures.get(word, []):
            if node.parent is not None:
                seen.marks.setdefault(node.parent.id, []).append((node.start_byte, word))


def _take_use(seen: Seen, kind: str, captures: "dict[str, list[Node]]") -> None:
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

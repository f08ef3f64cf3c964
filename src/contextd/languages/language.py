"""What a language is to the index: data for the parser, and a few questions about names and paths."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from contextd.domain.code import Facts, Import, Outline


class Node(Protocol):
    """The part of a syntax tree's node that languages look at; tree-sitter's has it."""

    @property
    def type(self) -> str: ...
    @property
    def text(self) -> bytes | None: ...
    @property
    def parent(self) -> Any: ...
    @property
    def named_children(self) -> list[Any]: ...
    @property
    def children(self) -> list[Any]: ...

    def child_by_field_name(self, name: str, /) -> Any: ...
    def children_by_field_name(self, name: str, /) -> list[Any]: ...


Captures = Mapping[str, list[Any]]
"""The nodes of one match, by the name of their capture."""


def anything(name: str, head: str) -> bool:
    return True


def as_written(kind: str, text: str) -> str:
    return text


def no_facts(node: Node, kind: str, captures: Captures) -> Facts:
    return {}


def no_imports(captures: Captures) -> Iterable[Import]:
    return ()


def as_captured(kind: str, captures: Captures) -> tuple[str, Captures]:
    return kind, captures


def no_uses(node: Node) -> Iterable[tuple[Any, Any]]:
    return ()


@dataclass(frozen=True)
class Language:
    """One language. `query` is a tree-sitter query; its captures say what is what.

    A definition is captured by its kind (`@function`, `@struct`, … as in SymbolKind) with `@name`, and
    `@body` where its signature ends. `@container` names the type of a method that stands outside of it.
    `@scope` with `@name` lends its name to what is inside and is no symbol itself (an `impl` block).
    `@call` and `@use` (of a type) are names in use, `@qualifier` what stands before their dot; where a
    query cannot tell a call from its neighbours, `@arguments` must begin where the name ends. `@import`
    goes to `imports`, `@uses` to `uses`. `@exported` is a name that is exported elsewhere than where it is
    defined, `@parameter` a type parameter, which is no use of a type. `@package` names the file's package,
    `@build` is the condition of its build. `@doc` is a doc comment that stands elsewhere than before its
    definition. `@public` and `@private` are tokens from which on the members of the same block are one or
    the other (`private:`, the brace of an interface), or that say it of the definition whose part they
    are: the word is put before the head that `exported` is asked about.
    """

    name: str
    suffixes: tuple[str, ...]
    grammar: str = ""
    """`module` or `module:function` that gives the grammar; empty where `sections` does the work."""
    query: str = ""
    names: tuple[str, ...] = ()
    """Whole names of files: `Makefile`."""
    dialect: Callable[[str], str] | None = None
    """The name of the language by whose rules a text is read, where several have a suffix in common."""
    source: Callable[[str], str] = str
    """The text as the parser sees it, line for line; without what its grammar stumbles over."""
    comments: frozenset[str] = frozenset({"comment"})
    """Types of nodes that are comments."""
    wrappers: frozenset[str] = frozenset()
    """Types of nodes around a definition that belong to it: `export`, decorators, `template <…>`."""
    between: frozenset[str] = frozenset()
    """Types of nodes that may stand between a comment and its definition, and belong to the latter."""
    decorators: frozenset[str] = frozenset()
    """Types of nodes inside a definition that its signature leaves out: annotations, attributes."""
    definition: Callable[[str, Captures], tuple[str, Captures] | None] = as_captured
    """What a match amounts to, for grammars that keep names deep in declarators; None if to nothing."""
    doc_inside: bool = False
    """The doc comment is the first statement of the body, as in Python."""
    function_scope: bool = False
    """Whether definitions inside a function's body are symbols of their own."""
    exported: Callable[[str, str], bool] = anything
    """From a symbol's name and its head, the text before its body without comments and decorators."""
    signature: Callable[[str, str], str] = as_written
    """From a symbol's kind and its text before the body, in one line."""
    doc: Callable[[str], str] = str
    """From a doc comment without its marks: what is left when the language's own markup is gone."""
    builtins: frozenset[str] = frozenset()
    """Names in use that no file defines: they are not kept as references."""
    imports: Callable[[Captures], Iterable[Import]] = no_imports
    uses: Callable[[Node], Iterable[tuple[Any, Any]]] = no_uses
    """The types that an expression names, each with what stands before its dot, or None."""
    facts: Callable[[Node, str, Captures], Facts] = no_facts
    sections: Callable[[str], Outline] | None = None
    """For what has no grammar: the outline of a text."""
    tests: tuple[str, ...] = ()
    """Globs of paths that are tests."""
    is_code: bool = True
    """False for documents and settings: a folder that holds nothing else is no code base."""


LONGEST_SIGNATURE: Final = 400


def text_of(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""

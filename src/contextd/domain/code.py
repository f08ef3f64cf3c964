"""Code as it is indexed: a file's outline, its chunks, and the files themselves."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from contextd.domain.records import Json, Vector

SymbolKind = Literal[
    "function",
    "method",
    "struct",
    "interface",
    "type",
    "class",
    "enum",
    "trait",
    "constant",
    "variable",
    "module",
    "macro",
    "section",
]
"""`module` is a package or namespace that is declared; `section` a part of a document or of settings."""

DddPattern = Literal[
    "aggregate", "entity", "value_object", "repository", "service", "command", "query", "handler"
]

ReferenceKind = Literal["call", "type"]

Facts: TypeAlias = Mapping[str, Json]
"""What a language says of a symbol's structure: its fields, what its methods assign, what it returns."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that is defined. Lines count from 1; `start_line` is that of its comment, if it has one."""

    name: str
    kind: SymbolKind
    signature: str
    doc: str
    line: int
    start_line: int
    end_line: int
    container: str = ""
    """The type that a method belongs to, the section that a section is in."""
    exported: bool = True
    borders: tuple[int, ...] = ()
    """Lines on which a statement begins, for symbols so long that they are split."""
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name. `within` is the index of the symbol that it stands in, or -1."""

    name: str
    kind: ReferenceKind
    line: int
    qualifier: str = ""
    """What stands before the dot: a package, a variable, a type."""
    within: int = -1


@dataclass(frozen=True, slots=True)
class Import:
    """`alias` is the name in this file; `name` what is taken from the module, empty for all of it."""

    module: str
    alias: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something in a file that could not be read. The rest of the file was."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Outline:
    """What a parser says of one file."""

    package: str = ""
    symbols: tuple[Symbol, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    build: str = ""
    """The condition under which the file is built, as the language writes it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of lines that is found as one. `symbol` is an index into the outline's, or -1."""

    start_line: int
    end_line: int
    symbol: int = -1
    part: int = 0
    """Of a symbol that was split: which part, from 0. Later parts repeat its signature."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A file's text, taken in: all that depends on its content and language, and on nothing else."""

    language: str
    lines: int
    outline: Outline
    chunks: tuple[Chunk, ...]
    words: tuple[tuple[str, str], ...]
    """For each chunk, what the keyword index holds of its names and of its text."""
    vectors: bytes
    """One after another, little-endian float16."""
    over_window: int = 0
    """Chunks of which the model saw only the beginning: single lines that are longer than its window."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """What a file is by its name: its language, and whether it is a test."""

    language: str
    is_code: bool
    is_test: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text, on its way into the index: scrubbed, and as it was written where that differs."""

    language: str
    text: str
    written: str = ""
    """To be parsed, and nothing else: it may hold secrets."""


class Digesting(Protocol):
    """Texts being taken in, by as many processes as are worth it. Safe to ask several times at once."""

    async def digest(self, sources: Sequence[Source]) -> list[Digest | Trouble]:
        """One answer for each, in order; Trouble for a text on which the parser itself broke down."""


class SourceReader(Protocol):
    """Knows languages, parses and embeds. Nothing here touches the disk or the store."""

    @property
    def recipe(self) -> str:
        """Names how a digest is made. Digests of another recipe are not mixed with these."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def kind(self, path: str) -> SourceKind | None:
        """By the file's name; None for a file that no language knows."""

    def digesting(self, count: int) -> AbstractAsyncContextManager[Digesting]:
        """For about this many texts."""

    def query(self, text: str) -> Vector:
        """A question's vector, to be compared with those of a digest. Raises EmbedderUnavailable."""

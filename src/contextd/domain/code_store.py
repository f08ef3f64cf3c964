"""Where a code index is kept, as small protocols and the rows that pass through them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from contextd.domain.code import DddPattern, Digest, Facts, Import, ReferenceKind, SymbolKind
from contextd.domain.records import Drawer, Json, Project, Vector

Purpose = Literal["code", "files"]
"""`code` is index_codebase's tree, `files` index_repository's: each keeps its own choice of files."""

Print = tuple[int, int, int, int, int]
"""What changes when a file does: size, both times, inode, device."""

TEST = 1
GENERATED = 2
"""Marks of a file, as bits."""


@dataclass(frozen=True, slots=True)
class BlobKey:
    hash: str
    language: str


@dataclass(frozen=True, slots=True)
class BlobCounts:
    """What hangs on a text."""

    symbols: int
    chunks: int
    embeddings: int
    over_window: int = 0
    troubles: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of a tree, as it was when it was taken in."""

    path: str
    blob: BlobKey
    print: Print
    marks: int = 0


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that a run has looked into. `blob` is None if it was left out, or is of another recipe."""

    print: Print
    blob: BlobKey | None
    left_out: str = ""
    """Why it is not held, by its content: `generated`, `binary`."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree as the index has it. `version` moves whenever a file of it does."""

    id: int
    path: str
    purpose: Purpose
    version: int
    about: Mapping[str, Json]
    """Options and figures of the last run; see services/code_index.py."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a run found. It becomes the tree in one step, or not at all."""

    kept: Sequence[FileRow]
    """New or changed files; their blobs are staged."""
    removed: Sequence[str]
    about: Mapping[str, Json]
    left_out: Sequence[tuple[str, Print, str]] = ()
    """Path, print and reason of files that are not held for what is in them: not read again unless they
    change."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A text with its digest, on its way to the store."""

    blob: BlobKey
    text: str
    digest: Digest


@dataclass(frozen=True, slots=True)
class Totals:
    files: int
    symbols: int
    chunks: int
    embeddings: int
    closer: Mapping[str, int]
    """Chunks that a text model has read too, by the name under which its vectors are kept."""
    words: int
    """Chunks that the keyword index has."""
    size_bytes: int
    languages: Mapping[str, int]
    troubles: Sequence[tuple[str, int, str]] = ()
    """Path, line and reason of what did not parse."""


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """A definition with its place. `folder` and `package` say where it belongs."""

    id: int
    blob: int
    name: str
    kind: SymbolKind
    container: str
    signature: str
    doc: str
    line: int
    start_line: int
    end_line: int
    exported: bool
    facts: Facts = field(default_factory=dict)
    path: str = ""
    package: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk that was found, with its file in the tree that was searched."""

    id: int
    blob: int
    path: str
    marks: int
    language: str
    package: str
    part: int
    start_line: int
    end_line: int
    symbol: SymbolRow | None


@dataclass(frozen=True, slots=True)
class UseRow:
    """A use of a name. `within` is the symbol around it."""

    name: str
    kind: ReferenceKind
    path: str
    line: int
    qualifier: str
    blob: int
    language: str
    package: str
    marks: int
    within: SymbolRow | None


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A verdict on a symbol, in a folder: the same text elsewhere is judged with its neighbours there."""

    symbol: int
    pattern: DddPattern
    evidence: Sequence[str]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class CodeFilter:
    """Which chunks are meant. Empty means all."""

    kinds: tuple[SymbolKind, ...] = ()
    file_pattern: str = ""
    below: str = ""
    """A folder of the tree; the search is for what is in it."""
    packages: tuple[str, ...] = ()
    ddd_patterns: tuple[DddPattern, ...] = ()


class CodeWriter(Protocol):
    """What a run needs. It makes and knows blobs of one recipe. Raises StoreUnavailable."""

    async def tree(self, project: Project, path: str, purpose: Purpose) -> Tree | None: ...

    async def files(self, project: Project, tree: int) -> Mapping[str, KnownFile]:
        """All that a tree's runs have looked into, by path."""

    async def generation(self, project: Project) -> int:
        """Of the newest blobs."""

    async def staged(
        self, project: Project, blobs: Collection[BlobKey], generation: int
    ) -> dict[BlobKey, BlobCounts]:
        """Those that are there already."""

    async def stage(self, project: Project, staged: Sequence[Staged], generation: int) -> None: ...

    async def change(
        self, project: Project, path: str, purpose: Purpose, change: Change, generation: int
    ) -> Tree:
        """Make it the tree, judge the patterns of the folders it touches, drop blobs that no tree has."""

    async def adopt(self, project: Project, blobs: Sequence[BlobKey]) -> bool:
        """Begin from another project's index that holds most of these texts; what is not of this project
        goes with the first change. False if there is none, or this project has an index."""

    async def drop(self, project: Project) -> None:
        """Forget the index."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What to look for: words by BM25, a vector by its nearness, symbols by their names."""

    words: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    """Words that a chunk must have, all of them."""
    whole: str = ""
    """A word that chunks should have; only if none has it are `words` looked for."""
    vector: Vector | None = None
    names: tuple[str, ...] = ()
    filter: CodeFilter = field(default_factory=CodeFilter)
    depth: int = 200


@dataclass(frozen=True, slots=True)
class Candidates:
    """What was found in one moment of the index. Lists are best first; `rows` has every chunk in them."""

    by_words: Sequence[tuple[int, float]]
    """With BM25's score: higher is better."""
    by_vector: Sequence[tuple[int, float]]
    """With the cosine."""
    by_name: Sequence[int]
    rows: Mapping[int, ChunkRow]
    total: int
    """Chunks that hold any of the words, or all that the filter leaves when there are none."""
    typical: Mapping[int, float] = field(default_factory=dict)
    """With the cosine to the mean of all that is indexed, for those that have a vector."""
    names_near: Mapping[int, float] = field(default_factory=dict)
    """With the cosine of the symbol's name to what was asked, once somebody looked."""


class CodeFinder(Protocol):
    """What a search needs. `trees` are of one project. Raises StoreUnavailable."""

    async def trees(self, project: Project) -> list[Tree]: ...

    async def projects(self) -> list[Project]:
        """Those that have an index."""

    async def totals(self, project: Project, trees: Sequence[Tree]) -> Totals: ...

    async def drawer(self, project: Project) -> Drawer | None: ...

    async def candidates(self, project: Project, trees: Sequence[Tree], probe: Probe) -> Candidates: ...

    async def prints(
        self, project: Project, trees: Sequence[Tree], paths: Collection[str]
    ) -> Mapping[str, tuple[int, Print]]:
        """For each path, its tree and the print that it was taken in with."""

    async def closer(
        self, project: Project, chunks: Sequence[int], model: str, vector: Vector
    ) -> Mapping[int, float]:
        """Cosines of those chunks that the text model has read."""

    async def texts(self, project: Project, blobs: Collection[int]) -> Mapping[int, str]: ...

    async def patterns(
        self, project: Project, trees: Sequence[Tree], symbols: Collection[int]
    ) -> list[PatternRow]: ...

    async def defined(self, project: Project, trees: Sequence[Tree], name: str) -> list[SymbolRow]:
        """Symbols of exactly this name."""

    async def used(self, project: Project, trees: Sequence[Tree], name: str) -> list[UseRow]:
        """Uses of this name, also where a file imports it by another."""

    async def uses_within(
        self, project: Project, trees: Sequence[Tree], symbol: SymbolRow
    ) -> list[UseRow]: ...

    async def imports(self, project: Project, blobs: Collection[int]) -> Mapping[int, Sequence[Import]]: ...


class CloserReading(Protocol):
    """For the background work that reads chunks with the text model."""

    async def unread(self, project: Project, model: str, limit: int) -> list[tuple[int, str]]:
        """Chunks without a vector of this model, with their text."""

    async def attach(self, project: Project, model: str, vectors: Sequence[tuple[int, Vector]]) -> None: ...

    async def forget_others(self, project: Project, model: str) -> None:
        """Vectors of any other model."""

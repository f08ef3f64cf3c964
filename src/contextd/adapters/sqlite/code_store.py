"""The code index on SQLite files, `code/<key>.db` for each project."""

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from contextd.adapters.sqlite import (
    closer_reading,
    code_adoption,
    code_files,
    code_symbols,
    code_totals,
    code_writing,
)
from contextd.adapters.sqlite.code_finding import find
from contextd.adapters.sqlite.code_schema import CODE
from contextd.adapters.sqlite.code_trees import TreeViews
from contextd.adapters.sqlite.code_vectors import CodeVectors
from contextd.adapters.sqlite.drawers import set_mark
from contextd.adapters.sqlite.readers import Readers
from contextd.adapters.sqlite.vectors import to_half
from contextd.adapters.sqlite.writer import Writer
from contextd.domain.code import Import
from contextd.domain.code_store import (
    BlobCounts,
    BlobKey,
    Candidates,
    Change,
    KnownFile,
    PatternRow,
    Print,
    Probe,
    Purpose,
    Staged,
    SymbolRow,
    Totals,
    Tree,
    UseRow,
)
from contextd.domain.records import Drawer, Project, Vector

T = TypeVar("T")
_MAPPED_BYTES: Final = 256 * 2**20
"""Ranking by words reads many pages."""


class SqliteCodeStore:
    """One writer thread, some readers; what is in memory follows the files, whichever process writes."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._folder = folder / "code"
        self._recipe = recipe
        self._writer = Writer(CODE)
        self._readers = Readers(CODE, _MAPPED_BYTES)
        self._views = TreeViews(recipe)
        self._vectors: dict[str, CodeVectors] = {}

    # --- writing ----------------------------------------------------------------------

    async def tree(self, project: Project, path: str, purpose: Purpose) -> Tree | None:
        known = await self.trees(project)
        return next((tree for tree in known if (tree.path, tree.purpose) == (path, purpose)), None)

    async def files(self, project: Project, tree: int) -> Mapping[str, KnownFile]:
        return await self._read(
            project, lambda connection: code_files.known_files(connection, tree, self._recipe), {}
        )

    async def generation(self, project: Project) -> int:
        return await self._read(project, code_files.newest_generation, 0)

    async def staged(
        self, project: Project, blobs: Collection[BlobKey], generation: int
    ) -> dict[BlobKey, BlobCounts]:
        return await self._read(
            project,
            lambda connection: code_writing.known(connection, blobs, self._recipe, generation),
            {},
        )

    async def stage(self, project: Project, staged: Sequence[Staged], generation: int) -> None:
        await self._writer.run(
            self._file(project),
            lambda connection: code_writing.stage(connection, staged, self._recipe, generation),
        )

    async def change(
        self, project: Project, path: str, purpose: Purpose, change: Change, generation: int
    ) -> Tree:
        def work(connection: sqlite3.Connection) -> Tree:
            set_mark(connection, "path", project.path)
            tree = code_writing.change(connection, path, purpose, change, self._recipe, generation)
            return code_files.tree(connection, tree)

        return await self._writer.run(self._file(project), work)

    async def adopt(self, project: Project, blobs: Sequence[BlobKey]) -> bool:
        some = code_adoption.sample(blobs)
        if not some or await self.trees(project):
            return False
        sibling = await self._readers.run(lambda: self._most_alike(project, some))
        if sibling is None:
            return False
        await self._writer.run(
            self._file(project), lambda connection: code_adoption.begin_from(connection, sibling)
        )
        return True

    def _most_alike(self, project: Project, some: Sequence[BlobKey]) -> Path | None:
        others = [path for path in sorted(self._folder.glob("*.db")) if path != self._file(project)]
        return code_adoption.most_alike(self._readers, others, some, self._recipe)

    async def drop(self, project: Project) -> None:
        """The file stays, as a drawer's does: another process may hold it open."""
        if self._file(project).exists():
            await self._writer.run(self._file(project), code_adoption.forget)

    # --- finding ----------------------------------------------------------------------

    async def trees(self, project: Project) -> list[Tree]:
        return await self._read(project, code_files.trees, [])

    async def projects(self) -> list[Project]:
        def work() -> list[Project]:
            found = []
            for path in sorted(self._folder.glob("*.db")):
                with self._readers.connection(path) as connection:
                    row = connection.execute("SELECT value FROM meta WHERE name = 'path'").fetchone()
                    if row and connection.execute("SELECT 1 FROM roots").fetchone():
                        found.append(Project(path.stem, str(row[0])))
            return found

        return await self._readers.run(work)

    async def drawer(self, project: Project) -> Drawer | None:
        """The index as a part of the project's collection."""
        trees = await self.trees(project)
        totals = await self.totals(project, trees)
        if not trees and not await self._read(project, code_files.has_texts, False):
            return None
        # Without a tree it is what a first run that was cut off had prepared.
        since = [datetime.fromisoformat(str(tree.about["indexed_at"])) for tree in trees]
        counts = {"code_file": totals.files, "code_chunk": totals.chunks}
        return Drawer(project, counts, totals.size_bytes, min(since, default=datetime.now(UTC)))

    async def totals(self, project: Project, trees: Sequence[Tree]) -> Totals:
        def work(connection: sqlite3.Connection) -> Totals:
            view = self._views.of(connection, project.key, trees)
            return code_totals.totals(connection, view, trees, self._recipe)

        return await self._read(project, work, Totals(0, 0, 0, 0, {}, 0, 0, {}))

    async def candidates(self, project: Project, trees: Sequence[Tree], probe: Probe) -> Candidates:
        vectors = self._vectors.setdefault(project.key, CodeVectors(self._recipe))

        def work(connection: sqlite3.Connection) -> Candidates:
            view = self._views.of(connection, project.key, trees)
            return find(connection, view, trees, vectors, probe)

        return await self._read(project, work, Candidates([], [], [], {}, 0))

    async def texts(self, project: Project, blobs: Collection[int]) -> Mapping[int, str]:
        return await self._read(project, lambda connection: code_files.texts(connection, blobs), {})

    async def prints(
        self, project: Project, trees: Sequence[Tree], paths: Collection[str]
    ) -> Mapping[str, tuple[int, Print]]:
        return await self._read(project, lambda connection: code_files.prints(connection, trees, paths), {})

    async def patterns(
        self, project: Project, trees: Sequence[Tree], symbols: Collection[int]
    ) -> list[PatternRow]:
        return await self._read(
            project, lambda connection: code_symbols.patterns(connection, trees, symbols), []
        )

    async def defined(self, project: Project, trees: Sequence[Tree], name: str) -> list[SymbolRow]:
        return await self._read(
            project, lambda connection: code_symbols.defined(connection, trees, name), []
        )

    async def used(self, project: Project, trees: Sequence[Tree], name: str) -> list[UseRow]:
        return await self._read(project, lambda connection: code_symbols.used(connection, trees, name), [])

    async def uses_within(self, project: Project, trees: Sequence[Tree], symbol: SymbolRow) -> list[UseRow]:
        return await self._read(
            project, lambda connection: code_symbols.uses_within(connection, trees, symbol), []
        )

    async def imports(self, project: Project, blobs: Collection[int]) -> Mapping[int, Sequence[Import]]:
        return await self._read(project, lambda connection: code_symbols.imports(connection, blobs), {})

    # --- reading closer -----------------------------------------------------------------

    async def closer(
        self, project: Project, chunks: Sequence[int], model: str, vector: Vector
    ) -> Mapping[int, float]:
        return await self._read(
            project, lambda connection: closer_reading.closer(connection, chunks, model, vector), {}
        )

    async def unread(self, project: Project, model: str, limit: int) -> list[tuple[int, str]]:
        return await self._read(
            project, lambda connection: closer_reading.unread(connection, self._recipe, model, limit), []
        )

    async def attach(self, project: Project, model: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        halves = [(chunk, to_half(vector)) for chunk, vector in vectors]
        await self._writer.run(
            self._file(project), lambda connection: closer_reading.attach(connection, model, halves)
        )

    async def forget_others(self, project: Project, model: str) -> None:
        await self._writer.run(
            self._file(project), lambda connection: closer_reading.forget_others(connection, model)
        )

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()

    # --- inside -----------------------------------------------------------------------

    def _file(self, project: Project) -> Path:
        return self._folder / f"{project.key}.db"

    async def _read(self, project: Project, work: Callable[[sqlite3.Connection], T], without: T) -> T:
        """`without` an index, which is a file that is not there."""

        def run() -> T:
            path = self._file(project)
            if not path.exists():
                return without
            with self._readers.connection(path) as connection:
                return work(connection)

        return await self._readers.run(run)

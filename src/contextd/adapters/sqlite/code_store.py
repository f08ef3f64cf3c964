"""The code index on SQLite files, `code/<key>.db` for each project."""

import json
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from contextd.adapters.sqlite import code_writing
from contextd.adapters.sqlite.code_finding import at_once, find
from contextd.adapters.sqlite.code_rows import SYMBOL_COLUMNS, to_print, to_symbol, to_tree, to_use
from contextd.adapters.sqlite.code_schema import CODE
from contextd.adapters.sqlite.code_trees import TreeView, TreeViews
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
_SAMPLE: Final = 64
_ALIKE: Final = 0.3
"""An index is begun from another that has at least this share of the texts."""
_MOST_USES: Final = 5_000


class SqliteCodeStore:
    """One writer thread, some readers; what is in memory follows the files, whichever process writes."""

    def __init__(self, folder: Path, recipe: str) -> None:
        self._folder = folder / "code"
        self._recipe = recipe
        self._writer = Writer(CODE)
        self._readers = Readers(CODE)
        self._views = TreeViews()
        self._vectors: dict[str, CodeVectors] = {}

    # --- writing ----------------------------------------------------------------------

    async def tree(self, project: Project, path: str, purpose: Purpose) -> Tree | None:
        known = await self.trees(project)
        return next((tree for tree in known if (tree.path, tree.purpose) == (path, purpose)), None)

    async def files(self, project: Project, tree: int) -> Mapping[str, KnownFile]:
        def work(connection: sqlite3.Connection) -> dict[str, KnownFile]:
            held = connection.execute(
                "SELECT files.path, blobs.hash, blobs.language, blobs.recipe, files.print"
                " FROM files JOIN blobs ON blobs.id = files.blob WHERE files.root = ?",
                (tree,),
            )
            known = {
                path: KnownFile(
                    to_print(print), BlobKey(hash, language) if recipe == self._recipe else None
                )
                for path, hash, language, recipe, print in held
            }
            others = connection.execute("SELECT path, print, reason FROM left_out WHERE root = ?", (tree,))
            return known | {path: KnownFile(to_print(print), None, why) for path, print, why in others}

        return await self._read(project, work, {})

    async def generation(self, project: Project) -> int:
        return await self._read(project, _newest, 0)

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
            return to_tree(connection.execute(f"{_TREES} WHERE id = ?", (tree,)).fetchone())

        return await self._writer.run(self._file(project), work)

    async def adopt(self, project: Project, blobs: Sequence[BlobKey]) -> bool:
        sample = blobs[:: max(1, len(blobs) // _SAMPLE)][:_SAMPLE]
        if not sample or await self.trees(project):
            return False
        sibling = await self._readers.run(lambda: self._most_alike(project, sample))
        if sibling is None:
            return False

        def work(connection: sqlite3.Connection) -> None:
            last = _last_tree(connection)
            connection.execute("COMMIT")
            with closing(sqlite3.connect(sibling)) as source:
                source.backup(connection)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("SAVEPOINT job")
            for table in ("files", "left_out", "patterns", "roots"):
                connection.execute(f"DELETE FROM {table}")
            # No id of a tree is used twice: what is remembered of trees is remembered by it.
            connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'roots'", (last,))
            set_mark(connection, "epoch", secrets.token_hex(8))

        await self._writer.run(self._file(project), work)
        return True

    def _most_alike(self, project: Project, sample: Sequence[BlobKey]) -> Path | None:
        best, most = None, _ALIKE * len(sample)
        for path in sorted(self._folder.glob("*.db")):
            if path == self._file(project):
                continue
            with self._readers.connection(path) as connection:
                here = len(code_writing.known(connection, sample, self._recipe, _newest(connection)))
            if here > most:
                best, most = path, here
        return best

    async def drop(self, project: Project) -> None:
        """The file stays, as a drawer's does: another process may hold it open."""

        def work(connection: sqlite3.Connection) -> None:
            for table in ("files", "left_out", "patterns", "roots"):
                connection.execute(f"DELETE FROM {table}")
            code_writing.sweep(connection)

        if self._file(project).exists():
            await self._writer.run(self._file(project), work)

    # --- finding ----------------------------------------------------------------------

    async def trees(self, project: Project) -> list[Tree]:
        return await self._read(
            project,
            lambda connection: [to_tree(row) for row in connection.execute(f"{_TREES} ORDER BY id")],
            [],
        )

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
        if not trees:
            return None
        totals = await self.totals(project, trees)
        since = min(datetime.fromisoformat(str(tree.about["indexed_at"])) for tree in trees)
        counts = {"code_file": totals.files, "code_chunk": totals.chunks}
        return Drawer(project, counts, totals.size_bytes, since)

    async def totals(self, project: Project, trees: Sequence[Tree]) -> Totals:
        def work(connection: sqlite3.Connection) -> Totals:
            return _totals(connection, self._views.of(connection, project.key, trees), trees)

        return await self._read(project, work, Totals(0, 0, 0, 0, 0, 0, 0, {}))

    async def candidates(self, project: Project, trees: Sequence[Tree], probe: Probe) -> Candidates:
        vectors = self._vectors.setdefault(project.key, CodeVectors(self._recipe))

        def work(connection: sqlite3.Connection) -> Candidates:
            view = self._views.of(connection, project.key, trees)
            return find(connection, view, trees, vectors, probe)

        return await self._read(project, work, Candidates([], [], [], {}, 0))

    async def texts(self, project: Project, blobs: Collection[int]) -> Mapping[int, str]:
        def work(connection: sqlite3.Connection) -> dict[int, str]:
            found: dict[int, str] = {}
            for some in at_once(set(blobs)):
                rows = connection.execute(
                    f"SELECT id, content FROM blobs WHERE id IN ({', '.join('?' * len(some))})", some
                )
                found |= {int(id): zlib.decompress(content).decode() for id, content in rows}
            return found

        return await self._read(project, work, {})

    async def prints(
        self, project: Project, trees: Sequence[Tree], paths: Collection[str]
    ) -> Mapping[str, tuple[int, Print]]:
        def work(connection: sqlite3.Connection) -> dict[str, tuple[int, Print]]:
            ids = [tree.id for tree in trees]
            return {
                path: (tree, to_print(print))
                for some in at_once(paths)
                for tree, path, print in connection.execute(
                    f"SELECT root, path, print FROM files WHERE root IN ({', '.join('?' * len(ids))})"
                    f" AND path IN ({', '.join('?' * len(some))}) ORDER BY root DESC",
                    [*ids, *some],
                )
            }

        return await self._read(project, work, {})

    async def patterns(
        self, project: Project, trees: Sequence[Tree], symbols: Collection[int]
    ) -> list[PatternRow]:
        def work(connection: sqlite3.Connection) -> list[PatternRow]:
            ids = [tree.id for tree in trees]
            return [
                PatternRow(symbol, pattern, json.loads(evidence), folder)
                for some in at_once(symbols)
                for symbol, pattern, evidence, folder, _ in connection.execute(
                    "SELECT symbol, pattern, evidence, folder, min(root) FROM patterns"
                    f" WHERE symbol IN ({', '.join('?' * len(some))})"
                    f" AND root IN ({', '.join('?' * len(ids))})"
                    " GROUP BY symbol, folder, pattern ORDER BY symbol, folder, pattern",
                    [*some, *ids],
                )
            ]

        return await self._read(project, work, [])

    async def defined(self, project: Project, trees: Sequence[Tree], name: str) -> list[SymbolRow]:
        def work(connection: sqlite3.Connection) -> list[SymbolRow]:
            rows = connection.execute(
                f"SELECT {SYMBOL_COLUMNS} FROM symbols JOIN blobs ON blobs.id = symbols.blob"
                " JOIN files ON files.blob = symbols.blob"
                f" WHERE symbols.name = ? AND {_is_of(trees)} ORDER BY files.path, symbols.line",
                (name,),
            )
            return [to_symbol(row) for row in rows if row[2] == name]

        return await self._read(project, work, [])

    async def used(self, project: Project, trees: Sequence[Tree], name: str) -> list[UseRow]:
        return await self._uses(project, trees, _IS_USED, name)

    async def uses_within(self, project: Project, trees: Sequence[Tree], symbol: SymbolRow) -> list[UseRow]:
        return await self._uses(project, trees, "uses.symbol = ?1", symbol.id)

    async def _uses(
        self, project: Project, trees: Sequence[Tree], condition: str, value: object
    ) -> list[UseRow]:
        def work(connection: sqlite3.Connection) -> list[UseRow]:
            rows = connection.execute(
                "SELECT uses.name, uses.kind, files.path, uses.line, uses.qualifier, uses.blob,"
                f" blobs.language, blobs.package, files.marks, {SYMBOL_COLUMNS}"
                " FROM uses JOIN blobs ON blobs.id = uses.blob JOIN files ON files.blob = uses.blob"
                " LEFT JOIN symbols ON symbols.id = uses.symbol"
                f" WHERE {condition} AND {_is_of(trees)} ORDER BY files.path, uses.line LIMIT ?2",
                (value, _MOST_USES),
            )
            return [to_use(row) for row in rows]

        return await self._read(project, work, [])

    async def imports(self, project: Project, blobs: Collection[int]) -> Mapping[int, Sequence[Import]]:
        def work(connection: sqlite3.Connection) -> dict[int, list[Import]]:
            found: dict[int, list[Import]] = {}
            for some in at_once(set(blobs)):
                rows = connection.execute(
                    "SELECT blob, module, alias, name FROM imports"
                    f" WHERE blob IN ({', '.join('?' * len(some))})",
                    some,
                )
                for blob, module, alias, name in rows:
                    found.setdefault(int(blob), []).append(Import(module, alias, name))
            return found

        return await self._read(project, work, {})

    # --- reading closer -----------------------------------------------------------------

    async def closer(
        self, project: Project, chunks: Sequence[int], model: str, vector: Vector
    ) -> Mapping[int, float]:
        def work(connection: sqlite3.Connection) -> dict[int, float]:
            import numpy as np

            query = np.frombuffer(vector, dtype="<f4")
            found: dict[int, float] = {}
            for some in at_once(chunks):
                rows = connection.execute(
                    "SELECT chunk, vector FROM closer WHERE model = ?"
                    f" AND chunk IN ({', '.join('?' * len(some))})",
                    [model, *some],
                )
                for chunk, half in rows:
                    found[int(chunk)] = float(np.frombuffer(half, "<f2").astype(np.float32) @ query)
            return found

        return await self._read(project, work, {})

    async def unread(self, project: Project, model: str, limit: int) -> list[tuple[int, str]]:
        def work(connection: sqlite3.Connection) -> list[tuple[int, str]]:
            rows = connection.execute(
                "SELECT chunks.id, chunks.start_line, chunks.end_line, blobs.content FROM chunks"
                " JOIN blobs ON blobs.id = chunks.blob LEFT JOIN closer"
                " ON closer.chunk = chunks.id AND closer.model = ?"
                " WHERE closer.chunk IS NULL AND chunks.blob IN (SELECT blob FROM files)"
                " ORDER BY chunks.id LIMIT ?",
                (model, limit),
            )
            return [
                (int(id), "\n".join(zlib.decompress(content).decode().split("\n")[start - 1 : end]))
                for id, start, end, content in rows
            ]

        return await self._read(project, work, [])

    async def attach(self, project: Project, model: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        rows = [(chunk, model, to_half(vector)) for chunk, vector in vectors]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO closer (chunk, model, vector) SELECT ?1, ?2, ?3"
                " WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?1)"
                " ON CONFLICT (chunk) DO UPDATE SET model = excluded.model, vector = excluded.vector",
                rows,
            )

        await self._writer.run(self._file(project), work)

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


_IS_USED: Final = (
    "uses.rowid IN (SELECT rowid FROM uses WHERE name = ?1 UNION"
    " SELECT uses.rowid FROM imports JOIN uses ON uses.blob = imports.blob AND uses.name = imports.alias"
    " WHERE imports.name = ?1 AND imports.name <> '' AND imports.alias <> imports.name"
    " AND uses.qualifier = '')"
)
"""By its name, or by the name that an import gives it."""
_TREES: Final = "SELECT id, path, purpose, version, about FROM roots"


def _is_of(trees: Sequence[Tree]) -> str:
    """That a file is of these trees; a path that several of them have counts once, by the first."""
    ids = ", ".join(str(tree.id) for tree in trees)
    if len(trees) == 1:
        return f"files.root = {ids}"
    first = f"SELECT min(root) FROM files AS first WHERE first.path = files.path AND first.root IN ({ids})"
    return f"files.root = ({first})"


def _newest(connection: sqlite3.Connection) -> int:
    (newest,) = connection.execute("SELECT coalesce(max(generation), 0) FROM blobs").fetchone()
    return int(newest)


def _last_tree(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'roots'").fetchone()
    return int(row[0]) if row else 0


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_size)


def _totals(connection: sqlite3.Connection, view: TreeView, trees: Sequence[Tree]) -> Totals:
    mine = f"(SELECT blob FROM files WHERE root IN ({', '.join(str(tree.id) for tree in trees)}))"
    counts = [
        int(connection.execute(f"SELECT count({what}) FROM {table} WHERE blob IN {mine}").fetchone()[0])
        for what, table in (("*", "symbols"), ("*", "chunks"), ("vector", "chunks"))
    ]
    (closer,) = connection.execute(
        f"SELECT count(*) FROM closer JOIN chunks ON chunks.id = closer.chunk WHERE chunks.blob IN {mine}"
    ).fetchone()
    (words,) = connection.execute(
        f"SELECT count(*) FROM words WHERE rowid IN (SELECT id FROM chunks WHERE blob IN {mine})"
    ).fetchone()
    languages: dict[str, int] = {}
    troubles: list[tuple[str, int, str]] = []
    for id, language, found in connection.execute(
        f"SELECT id, language, troubles FROM blobs WHERE id IN {mine}"
    ):
        places = view.places.get(int(id), [])
        languages[language] = languages.get(language, 0) + len(places)
        troubles += [(place.path, line, why) for place in places for line, why in json.loads(found)]
    return Totals(
        files=sum(map(len, view.places.values())),
        symbols=counts[0],
        chunks=counts[1],
        embeddings=counts[2],
        closer=int(closer),
        words=int(words),
        size_bytes=_size(connection),
        languages=dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        troubles=sorted(troubles),
    )

"""How an index stands against its files."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.domain.callers import Caller
from contextd.domain.code import SourceReader
from contextd.domain.code_store import KnownFile, Totals, Tree
from contextd.domain.errors import EmbedderUnavailable, NotIndexed
from contextd.domain.records import Project
from contextd.services.anchors import blob_id
from contextd.services.code_index import Choice, CodeIndex, IndexStore
from contextd.services.embedding import Embeddings
from contextd.services.indexed_trees import Indexed, indexed_at
from contextd.services.source_tree import FoundFile, SourceTree

_MOST_READ: Final = 500
"""Files that look changed by their times are read to be sure, so many at the most."""


@dataclass(frozen=True, slots=True)
class Staleness:
    changed: int
    added: int
    deleted: int

    @property
    def total(self) -> int:
        return self.changed + self.added + self.deleted


@dataclass(frozen=True, slots=True)
class CodeStatus:
    indexed: Indexed
    totals: Totals
    staleness: Staleness
    read_closer: int
    """Chunks that today's text model has read."""
    embeddings_available: bool
    running: bool

    @property
    def newest(self) -> Tree:
        return max(self.indexed.trees, key=lambda tree: str(tree.about.get("indexed_at", "")))


class CodeStatuses:
    def __init__(
        self, store: IndexStore, index: CodeIndex, reader: SourceReader, text_models: Embeddings
    ) -> None:
        self._store = store
        self._index = index
        self._reader = reader
        self._text_models = text_models

    @property
    def model(self) -> str:
        return self._reader.model

    async def status(self, path: str, caller: Caller) -> CodeStatus | None:
        """None when nothing is indexed there. Raises BadPath, Forbidden."""
        try:
            indexed = await indexed_at(self._store, path, caller)
        except NotIndexed:
            return None
        totals = await self._store.totals(indexed.project, indexed.trees)
        stale = [await self._staleness(indexed.project, tree) for tree in indexed.trees]
        return CodeStatus(
            indexed=indexed,
            totals=totals,
            staleness=Staleness(
                sum(each.changed for each in stale),
                sum(each.added for each in stale),
                sum(each.deleted for each in stale),
            ),
            read_closer=self._read_closer(totals),
            embeddings_available=await asyncio.to_thread(self._has_model),
            running=self._index.is_running(indexed.project),
        )

    def _read_closer(self, totals: Totals) -> int:
        today = self._text_models.model()
        return sum(count for name, count in totals.closer.items() if name.rpartition(":")[0] == today)

    async def _staleness(self, project: Project, tree: Tree) -> Staleness:
        walk = await self._index.walk(tree.path, Choice.of(tree))
        known = await self._store.files(project, tree.id)
        here = {file.path for file in walk.files}
        suspects = [
            file
            for file in walk.files
            if file.path in known and known[file.path].print != tuple(file.print)
        ]
        sure = suspects[:_MOST_READ]
        changed = await asyncio.to_thread(
            lambda: sum(self._differs(tree, file, known[file.path]) for file in sure)
        )
        return Staleness(
            changed=changed + len(suspects) - len(sure),
            added=len(here - known.keys()),
            deleted=sum(not known[path].left_out for path in known.keys() - here),
        )

    def _differs(self, tree: Tree, file: FoundFile, known: KnownFile) -> bool:
        """By content: a file that was merely touched is as it was."""
        if known.left_out:
            return not self._index.is_left_out(tree, file)
        if known.blob is None:
            return True
        try:
            data = SourceTree(Path(tree.path)).read(file.path, file.print.size + 1)
        except OSError:
            return True
        return data is None or blob_id(data) != known.blob.hash

    def _has_model(self) -> bool:
        try:
            self._reader.query("anything")
        except EmbedderUnavailable:
            return False
        return True

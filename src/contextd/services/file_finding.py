"""Indexed files beside checkpoints: the same search of code, answered as records."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from contextd.domain.callers import Caller
from contextd.domain.code_store import CodeFinder
from contextd.domain.errors import BadPath, NotIndexed
from contextd.domain.records import Hit, Record
from contextd.services.code_hits import CodeHit
from contextd.services.code_search import Ask, CodeSearch
from contextd.services.indexed_trees import Indexed, indexed_at

FILE_KIND = "file"


class FileFinding:
    def __init__(self, store: CodeFinder, search: CodeSearch) -> None:
        self._store = store
        self._search = search

    async def find(self, query: str, caller: Caller, project_path: str | None, limit: int) -> list[Hit]:
        """Best first, in a project or in every one that the caller may read; none where none is indexed."""
        found = await asyncio.gather(
            *(
                self._search.search_in(indexed, Ask(indexed.root, query, limit), caller)
                for indexed in await self._indexed(caller, project_path)
            )
        )
        hits = [_as_hit(hit, each.indexed) for each in found for hit in each.hits]
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    async def _indexed(self, caller: Caller, project_path: str | None) -> Sequence[Indexed]:
        if project_path is not None:
            try:
                return [await indexed_at(self._store, project_path, caller)]
            except (NotIndexed, BadPath):
                # A project of checkpoints need not be indexed, nor be on this disk.
                return []
        found: list[Indexed] = []
        for project in await self._store.projects():
            if caller.principal.may_use(project):
                trees = await self._store.trees(project)
                roots = dict.fromkeys(tree.path for tree in trees)
                found += [
                    Indexed(project, tuple(tree for tree in trees if tree.path == root)) for root in roots
                ]
        return found


def _as_hit(hit: CodeHit, indexed: Indexed) -> Hit:
    row = hit.row
    name = f" {row.symbol.name}" if row.symbol is not None else ""
    at = datetime.fromisoformat(str(indexed.trees[0].about["indexed_at"]))
    record = Record(
        id=f"file-{indexed.project.key}-{row.id}",
        kind=FILE_KIND,
        project=indexed.project,
        title=f"{row.path}:{row.start_line}{name}",
        text=hit.content,
        fields={
            "description": hit.content,
            "project_path": indexed.root,
            "context": {
                "file": row.path,
                "start_line": row.start_line,
                "end_line": row.end_line,
                "language": row.language,
            },
        },
        created_at=at,
        updated_at=at,
    )
    return Hit(record, hit.relevance, None)

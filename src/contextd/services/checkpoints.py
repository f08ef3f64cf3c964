"""Checkpoints: where the work stood, kept so that it can be resumed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from contextd.domain.callers import Caller
from contextd.domain.ids import new_id
from contextd.domain.records import Fusion, Hit, Json, Order, Page, Record
from contextd.services.archive import Archive

KIND: Final = "checkpoint"

Level = Literal["summary", "context", "full"]
Source = Literal["checkpoints", "files"]

FUSION: Final = Fusion()


@dataclass(frozen=True, slots=True)
class Draft:
    """A checkpoint before it is kept."""

    summary: str
    project_path: str
    description: str = ""
    content: str = ""
    context: Mapping[str, Json] | None = None
    state: Mapping[str, Json] | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    record: Record
    token_count: int


class Files(Protocol):
    """Files of indexed repositories, which checkpoint_search finds beside checkpoints."""

    async def find(self, query: str, caller: Caller, project_path: str | None, limit: int) -> list[Hit]: ...


class Checkpoints:
    def __init__(self, archive: Archive, files: Files) -> None:
        self._archive = archive
        self._files = files

    async def save(self, draft: Draft, caller: Caller) -> Saved:
        """Keep a checkpoint in its project. Raises Forbidden, StoreUnavailable."""
        project = self._archive.project(caller, draft.project_path)
        now = self._archive.now()
        record = Record(
            id=new_id("cp", project.key, now),
            kind=KIND,
            project=project,
            title=draft.summary,
            text=_searched(draft),
            fields={
                "description": draft.description,
                "content": draft.content,
                "project_path": draft.project_path,
                "context": dict(draft.context or {}),
                "state": dict(draft.state or {}),
            },
            tags=draft.tags,
            created_at=now,
            updated_at=now,
        )
        kept = await self._archive.keep(record)
        return Saved(kept, await self._archive.count_tokens(kept))

    async def search(
        self,
        query: str,
        caller: Caller,
        project_path: str | None = None,
        tags: Sequence[str] = (),
        limit: int = 5,
        sources: Sequence[Source] = ("checkpoints", "files"),
    ) -> list[Hit]:
        """By meaning and by words, best first; within a project, or in all that the caller may read."""
        kept: list[Hit] = []
        files: list[Hit] = []
        if "checkpoints" in sources:
            kept = await self._archive.search(caller, query, (KIND,), project_path, tags, limit, FUSION)
        # Files have no tags, so that a search for some finds none of them.
        if "files" in sources and not tags:
            files = await self._files.find(query, caller, project_path, limit)
        return _side_by_side(kept, files)[:limit] if kept and files else kept or files

    async def recent(
        self, caller: Caller, project_path: str | None, order: Order, offset: int, limit: int
    ) -> Page:
        return await self._archive.page(caller, KIND, project_path, order, offset, limit)

    async def restore(self, id: str, caller: Caller) -> Record:
        """Raises NotFound."""
        return await self._archive.fetch(caller, id, KIND, "checkpoint")


def _side_by_side(kept: Sequence[Hit], files: Sequence[Hit]) -> list[Hit]:
    """Two orders as one, by their ranks: scores of different things cannot be compared."""
    ranked = [
        replace(hit, score=(FUSION.k + 1) / (FUSION.k + rank))
        for hits in (kept, files)
        for rank, hit in enumerate(hits, start=1)
    ]
    return sorted(ranked, key=lambda hit: -hit.score)


def _searched(draft: Draft) -> str:
    """The words of a checkpoint: its prose, then the values of its context."""
    values = [
        str(value) for value in (draft.context or {}).values() if isinstance(value, str | int | float)
    ]
    return "\n".join(part for part in (draft.description, draft.content, *values) if part)


def as_json(record: Record) -> str:
    """A checkpoint whole, to be read."""
    shown: dict[str, Json] = {
        "id": record.id,
        "summary": record.title,
        **record.fields,
        "tags": list(record.tags),
        "created_at": record.created_at.isoformat(),
    }
    return json.dumps(shown, ensure_ascii=False, indent=1)

"""Checkpoints: where the work stood, kept so that it can be resumed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from contextd.domain.callers import Caller
from contextd.domain.ids import new_id
from contextd.domain.records import Fusion, Hit, Json, Order, Page, Record
from contextd.services.archive import Archive

KIND: Final = "checkpoint"
FILE_KIND: Final = "file"
"""Files of an indexed repository: checkpoint_search finds them beside checkpoints."""

Level = Literal["summary", "context", "full"]
Source = Literal["checkpoints", "files"]
_KINDS: Final[Mapping[Source, str]] = {"checkpoints": KIND, "files": FILE_KIND}

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


class Checkpoints:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive

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
        kinds = tuple(_KINDS[source] for source in sources)
        return await self._archive.search(caller, query, kinds, project_path, tags, limit, FUSION)

    async def recent(
        self, caller: Caller, project_path: str | None, order: Order, offset: int, limit: int
    ) -> Page:
        return await self._archive.page(caller, KIND, project_path, order, offset, limit)

    async def restore(self, id: str, caller: Caller) -> Record:
        """Raises NotFound."""
        return await self._archive.fetch(caller, id, KIND, "checkpoint")


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

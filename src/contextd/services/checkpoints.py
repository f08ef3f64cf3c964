"""Checkpoints: where the work stood, kept so that it can be resumed."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar, cast

from contextd.domain.callers import Caller
from contextd.domain.ids import new_id
from contextd.domain.ports import TokenCounter
from contextd.domain.records import Fusion, Hit, Json, Order, Page, Record
from contextd.services.archive import Archive
from contextd.services.checkpoint_levels import CONTEXT_TOKENS, Level

if TYPE_CHECKING:
    from contextd.services.checkpoint_resume import Resume

KIND: Final = "checkpoint"
TESTED: Final = "tested"
"""The field that holds how the checkpoint's own test went."""
_LONG: Final = 8_000
_TOLD_ON_SAVE: Final = 3

T = TypeVar("T")
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
    fidelity: float | None
    """The share of its own questions that a resume at level context answers."""
    unanswered: tuple[str, ...]
    """A few facts that such a resume would not know."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The fields of a level, and the record that they were taken from."""

    fields: Mapping[str, Json]
    record: Record


class Files(Protocol):
    """Files of indexed repositories, which checkpoint_search finds beside checkpoints."""

    async def find(self, query: str, caller: Caller, project_path: str | None, limit: int) -> list[Hit]: ...


class Checkpoints:
    def __init__(self, archive: Archive, files: Files, tokens: TokenCounter) -> None:
        self._archive = archive
        self._files = files
        self._tokens = tokens

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
        # Scrubbed before it is tested: what the test quotes is shown.
        clean = await self._archive.scrubbed(record)
        fidelity = (await self._resume(clean)).fidelity
        kept = await self._archive.keep(replace(clean, fields={**clean.fields, TESTED: fidelity.as_json()}))
        unanswered = tuple(f"{each.kind}: {each.answer}" for each in fidelity.unanswered[:_TOLD_ON_SAVE])
        return Saved(kept, await self._archive.count_tokens(kept), fidelity.share, unanswered)

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
        """As it was kept. Raises NotFound."""
        return await self._archive.fetch(caller, id, KIND, "checkpoint")

    async def resume(self, id: str, level: Level, caller: Caller) -> Restored:
        """As much as the level says, within its tokens; full is whole. Raises NotFound."""
        record = await self.restore(id, caller)
        if level == "context":
            limit = min(caller.tokens, CONTEXT_TOKENS)
            return Restored((await self._resume(record, limit)).answer, record)
        score = await self._score(record)
        if level == "full":
            return Restored({**_whole(record), **score}, record)
        from contextd.services.checkpoint_resume import headline

        return Restored(headline(record, score, self._tokens), record)

    async def _score(self, record: Record) -> dict[str, Json]:
        """As it was stored; checkpoints from before there was a test are tested now."""
        tested = cast(dict[str, Json] | None, record.fields.get(TESTED))
        tested = tested or (await self._resume(record)).fidelity.as_json()
        return {name: tested[name] for name in ("fidelity", "questions")}

    async def _resume(self, record: Record, limit: int = CONTEXT_TOKENS) -> "Resume":
        # Imported on first use: its many patterns would slow every start.
        from contextd.services.checkpoint_resume import Resumption

        size = len(record.text) + len(cast(str, record.fields.get("description") or ""))
        # To measure a state would take as long as a thread.
        size += _LONG if record.fields.get("state") else 0
        return await _aside(size, lambda: Resumption(record, self._tokens).context(limit))


def _side_by_side(kept: Sequence[Hit], files: Sequence[Hit]) -> list[Hit]:
    """Two orders as one, by their ranks: scores of different things cannot be compared."""
    ranked = [
        replace(hit, score=(FUSION.k + 1) / (FUSION.k + rank))
        for hits in (kept, files)
        for rank, hit in enumerate(hits, start=1)
    ]
    return sorted(ranked, key=lambda hit: -hit.score)


async def _aside(size: int, work: Callable[[], T]) -> T:
    """Long texts are read in a thread, so that other calls get their turn."""
    return await asyncio.to_thread(work) if size > _LONG else work()


def _whole(record: Record) -> dict[str, Json]:
    fields = record.fields
    return {
        "id": record.id,
        "level": "full",
        "summary": record.title,
        "project_path": fields.get("project_path", record.project.path),
        "created_at": record.created_at.isoformat(),
        "description": fields.get("description", ""),
        "context": fields.get("context", {}),
        "tags": [*record.tags],
        "content": fields.get("content", ""),
        "state": fields.get("state", {}),
    }


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

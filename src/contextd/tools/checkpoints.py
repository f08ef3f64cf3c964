"""Checkpoints, as an agent calls them."""

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.records import Hit, Record
from contextd.services.checkpoint_levels import CONTEXT_TOKENS, SUMMARY_TOKENS, Level
from contextd.services.checkpoints import Checkpoints, Draft, Source
from contextd.services.file_finding import FILE_KIND
from contextd.tools.declaration import Example, Input, Output, optional, tool
from contextd.tools.fields import (
    PREVIEW,
    Context,
    Description,
    Detail,
    Id,
    Limit,
    Object,
    Offset,
    ProjectPath,
    Score,
    SearchText,
    State,
    Summary,
    Tags,
)

_SOURCES: tuple[Source, ...] = ("checkpoints", "files")

_PROJECT = "/home/dev/shop"


class CheckpointSave(Input):
    old_names: ClassVar = {"metadata": "context"}

    summary: Summary = Field(description="What was done, in a line")
    project_path: ProjectPath = Field(description="Absolute path of the project")
    description: Description = Field(
        "", description="What to know to go on: decisions, open ends, next steps"
    )
    context: Context = Field(default_factory=dict, description="Facts by name: branch, files, commands")
    tags: Tags = Field(default_factory=list)
    content: str = Field("", max_length=limits.MAX_STATE_LENGTH, description="Longer notes, kept whole")
    state: State = Field(default_factory=dict, description="Anything to hand back at level full")

    @model_validator(mode="before")
    @classmethod
    def _summary_from_content(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        """Earlier clients send `content` alone: its first line is the summary."""
        content = arguments.get("content")
        if "summary" in arguments or not isinstance(content, str) or not content.strip():
            return arguments
        first = content.strip().splitlines()[0]
        return {**arguments, "summary": first[: limits.MAX_SUMMARY_LENGTH]}


class CheckpointSaved(Output):
    id: str
    summary: str
    created_at: datetime
    token_count: int = Field(description="tokens as the embedding model counts them")
    fidelity: float | None = Field(
        None, description="share of its own questions that level context answers"
    )
    unanswered: list[str] = Field(
        default_factory=list, description="what a resume would not know: put it into the description"
    )


@tool(
    toolset="checkpoints",
    not_for="a lesson that outlives this task: memory_store; an error with its fix: remediation_save",
    asked="interrupt the work and be able to go on later; hand it over to the next session",
    lean=("summary", "project_path", "description", "context"),
    examples=(
        Example(
            "where the work stands",
            {
                "summary": "Login works; refresh tokens are next",
                "description": "Chose JWT in a cookie. Tests: make test-auth. Open: rotation of the key.",
                "project_path": _PROJECT,
                "context": {"branch": "feat/login", "files": "auth.py, session.py"},
                "tags": ["auth"],
            },
        ),
    ),
)
async def checkpoint_save(checkpoints: Checkpoints, ask: CheckpointSave, caller: Caller) -> CheckpointSaved:
    """Save where the work stands, so that a later session can resume it."""
    saved = await checkpoints.save(
        Draft(
            summary=ask.summary,
            project_path=ask.project_path,
            description=ask.description,
            content=ask.content,
            context=ask.context,
            state=ask.state,
            tags=tuple(ask.tags),
        ),
        caller,
    )
    record = saved.record
    return CheckpointSaved(
        id=record.id,
        summary=record.title,
        created_at=record.created_at,
        token_count=saved.token_count,
        fidelity=saved.fidelity,
        unanswered=list(saved.unanswered),
    )


class CheckpointSearch(Input):
    query: SearchText = Field(description="What to look for, in words")
    top_k: Limit = 5
    project_path: ProjectPath | None = Field(None, description="Only this project")
    tags: Tags = Field(default_factory=list, description="Only those with all of these")
    sources: Annotated[list[Source], Field(min_length=1, max_length=2)] = Field(
        default_factory=lambda: [*_SOURCES], description="files: of indexed projects"
    )
    detail: Detail = Field("full", description="refs: no long texts; preview: their beginning")


class CheckpointFound(Output):
    id: str
    summary: str
    description: str = optional()
    project_path: str = optional()
    context: Object = optional()
    tags: list[str] = optional()
    score: Score
    distance: Score | None = optional("cosine distance; null for a hit by words alone")
    created_at: datetime
    source: Source


class CheckpointsFound(Output):
    sparse: ClassVar = True

    results: list[CheckpointFound]
    query: str
    top_k: int


@tool(
    toolset="checkpoints",
    not_for="lessons: memory_search; code: search_code; the newest of a project: checkpoint_list",
    asked="pick up earlier work again; where did we stop",
    lean=("query", "project_path", "detail"),
    timeout_s=10,
    read_only=True,
    examples=(Example("by meaning", {"query": "how did we do sign-in", "project_path": _PROJECT}),),
)
async def checkpoint_search(
    checkpoints: Checkpoints, ask: CheckpointSearch, caller: Caller
) -> CheckpointsFound:
    """Find earlier checkpoints by meaning and by words; ids lead to checkpoint_restore."""
    hits = await checkpoints.search(
        ask.query, caller, ask.project_path, ask.tags, ask.top_k, list(dict.fromkeys(ask.sources))
    )
    return CheckpointsFound(
        results=[_found(hit, ask.detail, caller) for hit in hits], query=ask.query, top_k=ask.top_k
    )


class CheckpointList(Input):
    limit: Limit = 10
    offset: Offset = 0
    project_path: ProjectPath | None = Field(None, description="Only this project")
    sort_by: Literal["created_at", "updated_at"] = "created_at"
    detail: Detail = Field("full", description="refs: no long texts; preview: their beginning")


class CheckpointListed(Output):
    id: str
    summary: str
    description: str = optional()
    project_path: str = optional()
    context: Object = optional()
    tags: list[str] = optional()
    created_at: datetime


class CheckpointsListed(Output):
    sparse: ClassVar = True

    checkpoints: list[CheckpointListed]
    total: int
    limit: int
    offset: int


@tool(
    toolset="checkpoints",
    not_for="finding one by what it says: checkpoint_search",
    timeout_s=5,
    read_only=True,
    examples=(Example("the newest of a project", {"project_path": _PROJECT, "limit": 3}),),
)
async def checkpoint_list(
    checkpoints: Checkpoints, ask: CheckpointList, caller: Caller
) -> CheckpointsListed:
    """List checkpoints, newest first, page by page."""
    page = await checkpoints.recent(caller, ask.project_path, ask.sort_by, ask.offset, ask.limit)
    return CheckpointsListed(
        checkpoints=[_listed(record, ask.detail, caller) for record in page.records],
        total=page.total,
        limit=ask.limit,
        offset=ask.offset,
    )


class CheckpointRestore(Input):
    id: Id = Field(description="From checkpoint_search or checkpoint_list")
    level: Level = Field("context", description="summary; context: what to go on with; full: state too")


class Essentials(Output):
    decisions: list[str] = optional()
    commands: list[str] = optional()
    next_steps: list[str] = optional()
    files: list[str] = optional()
    errors: list[str] = optional("that were solved, and how")


class CheckpointRestored(Output):
    sparse: ClassVar = True

    id: str
    level: Level
    summary: str
    project_path: str
    created_at: datetime
    description: str = optional()
    context: Object = optional()
    tags: list[str] = optional()
    content: str = optional()
    state: Object = optional()
    fidelity: float | None = Field(
        None, description="share of its own questions that level context answers"
    )
    essentials: Essentials = optional("what description and context do not say: from content and state")
    shortened: list[str] = optional("fields that are whole at level full")
    questions: int = optional("how many were asked for fidelity")
    unanswered: list[str] = optional("some that this leaves open; level full answers them")


def _restore_budget(ask: CheckpointRestore) -> int:
    return SUMMARY_TOKENS if ask.level == "summary" else CONTEXT_TOKENS


@tool(
    toolset="checkpoints",
    budget=_restore_budget,
    not_for="finding one: checkpoint_search",
    asked="go on with earlier work from where it stopped",
    lean=("id", "level"),
    read_only=True,
)
async def checkpoint_restore(
    checkpoints: Checkpoints, ask: CheckpointRestore, caller: Caller
) -> CheckpointRestored:
    """Bring back a checkpoint: its summary, the context to go on with, or all of it."""
    restored = await checkpoints.resume(ask.id, ask.level, caller)
    whole = restored.record.fields
    caller.tally.kept_out += [
        json.dumps(whole[name])
        for name in ("description", "context", "content", "state")
        if name not in restored.fields and whole.get(name)
    ]
    return CheckpointRestored.model_validate(restored.fields)


def _shown(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = dict(record.fields)
    return {
        "id": record.id,
        "summary": record.title,
        "description": fields.get("description", ""),
        "project_path": fields.get("project_path", record.project.path),
        "context": fields.get("context", {}),
        "tags": list(record.tags),
        "created_at": record.created_at,
    }


def _listed(record: Record, detail: Detail, caller: Caller) -> CheckpointListed:
    return CheckpointListed(**_detailed(_shown(record), detail, caller))


def _found(hit: Hit, detail: Detail, caller: Caller) -> CheckpointFound:
    source: Source = "files" if hit.record.kind == FILE_KIND else "checkpoints"
    shown = _detailed(_shown(hit.record), detail, caller)
    if detail != "refs":
        shown["distance"] = hit.distance
    return CheckpointFound(**shown, score=hit.score, source=source)


def _detailed(shown: dict[str, Any], detail: Detail, caller: Caller) -> dict[str, Any]:
    """With as much of the long texts as was asked for; refs are only named."""
    if detail == "full":
        return shown
    kept = PREVIEW if detail == "preview" else 0
    caller.tally.kept_out += [shown["description"][kept:], json.dumps(shown["context"])]
    if detail == "preview":
        return shown | {"context": {}, "description": shown["description"][:kept]}
    return {name: shown[name] for name in ("id", "summary", "created_at")}


TOOLS = (checkpoint_save, checkpoint_search, checkpoint_list, checkpoint_restore)

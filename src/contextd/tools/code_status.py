"""The state of a code index, as an agent calls it."""

from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.services.code_index import INDEX_VERSION
from contextd.services.code_status import CodeStatus, CodeStatuses
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import PATH_NAMES, ProjectPath, project_id

_PROJECT = "/home/dev/shop"


class GetStatus(Input):
    old_names: ClassVar = PATH_NAMES

    path: ProjectPath = Field(description="Absolute path of the project")


class ProjectShown(Output):
    id: int
    root_path: str
    module_name: str | None
    go_version: str | None
    index_version: str


class StatusStatistics(Output):
    total_files: int
    total_symbols: int
    total_chunks: int
    total_embeddings: int
    index_size_mb: float
    last_indexed_at: datetime
    indexing_duration_seconds: float
    languages: dict[str, int] = Field(description="files by language")
    chunks_read_closer: int = Field(description="chunks that the text model has read too, for ranking")


class StatusHealth(Output):
    database_accessible: bool
    embeddings_available: bool
    fts_indexes_built: bool
    embedding_model: str


class StalenessShown(Output):
    files_changed: int
    files_added: int
    files_deleted: int
    is_stale: bool


class IndexStatus(Output):
    success: Literal[True] = True
    indexed: bool
    project: ProjectShown | None
    statistics: StatusStatistics | None
    health: StatusHealth | None
    staleness: StalenessShown | None = Field(description="files on disk against the index")
    indexing: bool = Field(description="whether a run is under way")
    message: str


@tool(
    toolset="code",
    not_for="the health of contextd itself: status",
    asked="is the index fresh or outdated",
    timeout_s=30,
    read_only=True,
    examples=(Example("is it indexed", {"path": _PROJECT}),),
)
async def get_status(statuses: CodeStatuses, ask: GetStatus, caller: Caller) -> IndexStatus:
    """Say whether a project is indexed, with what, and how far its files have moved on since."""
    status = await statuses.status(ask.path, caller)
    if status is None:
        return IndexStatus(
            indexed=False,
            project=None,
            statistics=None,
            health=None,
            staleness=None,
            indexing=False,
            message="Project not indexed. Run index_codebase to create index.",
        )
    return _status(status, statuses.model)


def _status(status: CodeStatus, model: str) -> IndexStatus:
    about: dict[str, Any] = dict(status.newest.about)
    totals, stale = status.totals, status.staleness
    return IndexStatus(
        indexed=True,
        project=ProjectShown(
            id=project_id(status.indexed.project),
            root_path=status.indexed.root,
            module_name=about.get("module"),
            go_version=about.get("go_version"),
            index_version=INDEX_VERSION,
        ),
        statistics=StatusStatistics(
            total_files=totals.files,
            total_symbols=totals.symbols,
            total_chunks=totals.chunks,
            total_embeddings=totals.embeddings,
            index_size_mb=round(totals.size_bytes / 2**20, 2),
            last_indexed_at=datetime.fromisoformat(about["indexed_at"]),
            indexing_duration_seconds=about["duration_s"],
            languages=dict(totals.languages),
            chunks_read_closer=status.read_closer,
        ),
        health=StatusHealth(
            database_accessible=True,
            embeddings_available=status.embeddings_available,
            fts_indexes_built=totals.words == totals.chunks,
            embedding_model=model,
        ),
        staleness=StalenessShown(
            files_changed=stale.changed,
            files_added=stale.added,
            files_deleted=stale.deleted,
            is_stale=stale.total > 0,
        ),
        indexing=status.running,
        message=f"Project indexed successfully with {totals.files} files",
    )


TOOLS = (get_status,)

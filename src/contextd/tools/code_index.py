"""Indexing of code and files, as an agent calls it."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.services.code_index import Choice, CodeIndex, Report
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import PATH_NAMES, Globs, ProjectPath, project_id

_PROJECT = "/home/dev/shop"
_MOST_ERRORS = 100


class IndexCodebase(Input):
    old_names: ClassVar = PATH_NAMES

    path: ProjectPath = Field(description="Absolute path of the project's root")
    force_reindex: bool = Field(False, description="Read every file anew, whatever is known of it")
    include_tests: bool = Field(True, description="Index test files")
    include_vendor: bool = Field(False, description="Index vendor folders")


class IndexStatistics(Output):
    files_indexed: int = Field(description="new or changed files that were taken in")
    files_skipped: int = Field(description="unchanged files and those left out; skipped says why")
    files_failed: int = Field(description="files named in errors; what could be read of them is indexed")
    symbols_extracted: int
    chunks_created: int
    embeddings_generated: int = Field(description="vectors that were known from elsewhere count too")
    duration_seconds: float
    index_size_mb: float
    files_removed: int
    files_reused: int = Field(description="of those indexed: the text was known, from another place")
    chunks_over_window: int = Field(description="of which the model saw the beginning only")
    skipped: dict[str, int] = Field(description="files and folders left out, by reason")


class FileError(Output):
    file: str
    error: str
    line: int


class CodebaseIndexed(Output):
    success: Literal[True] = True
    project_id: int
    statistics: IndexStatistics
    errors: list[FileError]
    message: str


@tool(
    toolset="code",
    not_for="documents chosen by globs: index_repository",
    asked="make a project searchable; refresh the index of a repository",
    timeout_s=1_800,
    idempotent=True,
    examples=(Example("after a pull", {"path": _PROJECT}),),
)
async def index_codebase(index: CodeIndex, ask: IndexCodebase, caller: Caller) -> CodebaseIndexed:
    """Index a code base (Go and ten more languages, Markdown, settings), or bring its index up to date."""
    choice = Choice("code", include_tests=ask.include_tests, include_vendor=ask.include_vendor)
    report = await index.index(ask.path, choice, caller, force=ask.force_reindex)
    size = await index.size(report)
    taken = report.taken
    failed = {path for path, _, _ in taken.failed}
    return CodebaseIndexed(
        project_id=project_id(report.project),
        statistics=IndexStatistics(
            files_indexed=report.indexed,
            files_skipped=report.unchanged + sum(report.skipped.values()),
            files_failed=len(failed),
            symbols_extracted=taken.symbols,
            chunks_created=taken.chunks,
            embeddings_generated=taken.embeddings,
            duration_seconds=round(report.duration_s, 3),
            index_size_mb=round(size / 2**20, 2),
            files_removed=report.removed,
            files_reused=taken.reused,
            chunks_over_window=taken.over_window,
            skipped={"unchanged": report.unchanged, **report.skipped},
        ),
        errors=_errors(report),
        message=f"Successfully indexed {report.indexed} files in {report.duration_s:.1f} seconds",
    )


class IndexRepository(Input):
    old_names: ClassVar = PATH_NAMES

    path: ProjectPath = Field(description="Absolute path of the repository or folder")
    include_patterns: Globs = Field(default_factory=list, description="Such as *.md; none takes all files")
    exclude_patterns: Globs = Field(default_factory=list, description="Such as node_modules/**")
    max_file_size: int = Field(2**20, ge=1, le=10 * 2**20, description="Bytes")


class RepositoryIndexed(Output):
    path: str
    files_indexed: int
    include_patterns: list[str]
    exclude_patterns: list[str]
    max_file_size: int
    indexed_at: datetime
    skipped: dict[str, int] = Field(description="files and folders left out, by reason")
    errors: list[FileError]


@tool(
    toolset="code",
    not_for="source code with its symbols: index_codebase",
    asked="make documents, notes or logs searchable",
    timeout_s=300,
    idempotent=True,
    examples=(Example("the documents", {"path": _PROJECT, "include_patterns": ["*.md", "*.txt"]}),),
)
async def index_repository(index: CodeIndex, ask: IndexRepository, caller: Caller) -> RepositoryIndexed:
    """Index files of a folder by globs, for search_code and checkpoint_search."""
    choice = Choice(
        "files",
        include=tuple(ask.include_patterns),
        exclude=tuple(ask.exclude_patterns),
        max_file_size=ask.max_file_size,
    )
    report = await index.index(ask.path, choice, caller)
    return RepositoryIndexed(
        path=report.tree.path,
        files_indexed=report.indexed + report.unchanged,
        include_patterns=ask.include_patterns,
        exclude_patterns=ask.exclude_patterns,
        max_file_size=ask.max_file_size,
        indexed_at=report.at,
        skipped=dict(report.skipped),
        errors=_errors(report),
    )


def _errors(report: Report) -> list[FileError]:
    return [
        FileError(file=path, error=reason, line=line)
        for path, line, reason in report.taken.failed[:_MOST_ERRORS]
    ]


TOOLS = (index_codebase, index_repository)

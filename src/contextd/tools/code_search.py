"""Search of code, as an agent calls it."""

import time
from typing import Annotated, Literal

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.domain.code import DddPattern, SymbolKind
from contextd.domain.code_store import GENERATED, TEST, CodeFilter
from contextd.services.code_search import Ask, CodeHit, CodeSearch
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import PREVIEW, Detail, Glob, Limit, ProjectPath, Score, SearchText

_PROJECT = "/home/dev/shop"


class Filters(Input):
    symbol_types: list[SymbolKind] = Field(default_factory=list, max_length=20)
    file_pattern: Glob | None = Field(None, description="Glob, such as internal/**")
    ddd_patterns: list[DddPattern] = Field(default_factory=list, max_length=20)
    packages: list[Annotated[str, Field(min_length=1, max_length=500)]] = Field(
        default_factory=list, max_length=50, description="By name, folder or import path"
    )
    min_relevance: float = Field(0.0, ge=0.0, le=1.0)


class SearchCode(Input):
    path: ProjectPath = Field(description="Absolute path of the indexed project, or of a folder in it")
    query: SearchText = Field(description='Words, a name, or a "quoted phrase"')
    limit: Limit = 10
    filters: Filters | None = Field(None, description="What to narrow the search to")
    search_mode: Literal["hybrid", "vector", "keyword"] = "hybrid"
    detail: Detail = Field("full", description="refs: places alone; preview: the beginning of each text")


class DddEvidence(Output):
    pattern: DddPattern
    evidence: list[str]


class SymbolShown(Output):
    name: str
    kind: SymbolKind
    package: str
    signature: str
    doc_comment: str
    container: str
    exported: bool
    ddd_patterns: list[DddEvidence]


class FileShown(Output):
    path: str
    package: str
    start_line: int
    end_line: int
    language: str
    test: bool
    generated: bool


class CodeFound(Output):
    chunk_id: int
    rank: int
    relevance_score: Score
    symbol: SymbolShown
    file: FileShown
    content: str
    context_before: str
    context_after: str
    stale: bool = Field(description="the file changed since, and could not be read again")


class SearchStatistics(Output):
    total_results: int
    returned_results: int
    search_duration_ms: float
    cache_hit: bool


class CodeResults(Output):
    success: Literal[True] = True
    query: str
    results: list[CodeFound]
    statistics: SearchStatistics
    message: str


@tool(
    toolset="code",
    timeout_s=30,
    read_only=True,
    examples=(
        Example("by meaning", {"path": _PROJECT, "query": "user authentication logic"}),
        Example(
            "only methods below a folder",
            {
                "path": _PROJECT,
                "query": "ParseFile",
                "filters": {"symbol_types": ["function", "method"], "file_pattern": "internal/**"},
                "search_mode": "keyword",
            },
        ),
    ),
)
async def search_code(search: CodeSearch, ask: SearchCode, caller: Caller) -> CodeResults:
    """Search an indexed code base by meaning and by words; run index_codebase first."""
    started = time.perf_counter()
    least = ask.filters.min_relevance if ask.filters else 0.0
    found = await search.search(
        Ask(ask.path, ask.query, ask.limit, ask.search_mode, _filter(ask.filters), least), caller
    )
    elapsed = (time.perf_counter() - started) * 1000
    results = [_shown(hit, rank, ask.detail, caller) for rank, hit in enumerate(found.hits, start=1)]
    return CodeResults(
        query=ask.query,
        results=results,
        statistics=SearchStatistics(
            total_results=found.total,
            returned_results=len(results),
            search_duration_ms=round(elapsed, 2),
            cache_hit=found.cache_hit,
        ),
        message=f"Found {found.total} results in {elapsed:.0f}ms",
    )


def _doc(text: str, detail: Detail) -> str:
    return text if detail == "full" else text.split("\n", 1)[0][:PREVIEW]


def _filter(filters: Filters | None) -> CodeFilter:
    if filters is None:
        return CodeFilter()
    return CodeFilter(
        kinds=tuple(dict.fromkeys(filters.symbol_types)),
        file_pattern=filters.file_pattern or "",
        packages=tuple(dict.fromkeys(filters.packages)),
        ddd_patterns=tuple(dict.fromkeys(filters.ddd_patterns)),
    )


def _shown(hit: CodeHit, rank: int, detail: Detail, caller: Caller) -> CodeFound:
    row = hit.row
    texts = {"content": hit.content, "context_before": hit.before, "context_after": hit.after}
    if detail != "full":
        kept = PREVIEW if detail == "preview" else 0
        caller.tally.kept_out += [hit.content[kept:], hit.before, hit.after]
        texts = {"content": hit.content[:kept], "context_before": "", "context_after": ""}
    return CodeFound(
        chunk_id=row.id,
        rank=rank,
        relevance_score=hit.relevance,
        symbol=_symbol_shown(hit, detail),
        file=FileShown(
            path=row.path,
            package=row.package,
            start_line=row.start_line,
            end_line=row.end_line,
            language=row.language,
            test=bool(row.marks & TEST),
            generated=bool(row.marks & GENERATED),
        ),
        stale=hit.stale,
        **texts,
    )


def _symbol_shown(hit: CodeHit, detail: Detail) -> SymbolShown:
    """Lines outside of any symbol are named by their file."""
    folder, _, name = hit.row.path.rpartition("/")
    symbol = hit.row.symbol
    return SymbolShown(
        name=symbol.name if symbol else name,
        kind=symbol.kind if symbol else "section",
        package=folder or hit.row.package,
        signature=symbol.signature if symbol else "",
        doc_comment=_doc(symbol.doc if symbol else "", detail),
        container=symbol.container if symbol else "",
        exported=symbol.exported if symbol else True,
        ddd_patterns=[
            DddEvidence(pattern=each.pattern, evidence=list(each.evidence)) for each in hit.patterns
        ],
    )


TOOLS = (search_code,)

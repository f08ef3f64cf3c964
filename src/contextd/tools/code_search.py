"""Search of code, as an agent calls it."""

import time
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.domain.code import DddPattern, SymbolKind
from contextd.domain.code_store import GENERATED, TEST, CodeFilter
from contextd.services.code_hits import CodeHit
from contextd.services.code_search import Ask, CodeSearch
from contextd.tools.declaration import Example, Input, Output, optional, tool
from contextd.tools.fields import PATH_NAMES, PREVIEW, Detail, Glob, Limit, ProjectPath, Score, SearchText

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
    old_names: ClassVar = PATH_NAMES

    path: ProjectPath = Field(description="Absolute path of the indexed project, or of a folder in it")
    query: SearchText = Field(description='Words, a name, or a "quoted phrase"')
    limit: Limit = 10
    filters: Filters | None = Field(None, description="What to narrow the search to")
    search_mode: Literal["hybrid", "vector", "keyword"] = "hybrid"
    detail: Detail = Field("full", description="refs: no long texts; preview: their beginning")


class DddEvidence(Output):
    pattern: DddPattern
    evidence: list[str]


class SymbolShown(Output):
    name: str
    kind: SymbolKind
    package: str = optional()
    signature: str = optional()
    doc_comment: str = optional()
    container: str = optional()
    exported: bool = optional()
    ddd_patterns: list[DddEvidence] = optional()


class FileShown(Output):
    path: str
    package: str = optional()
    start_line: int
    end_line: int
    language: str = optional()
    test: bool = optional()
    generated: bool = optional()


class CodeFound(Output):
    chunk_id: int = optional()
    rank: int = optional()
    relevance_score: Score
    symbol: SymbolShown
    file: FileShown
    content: str = optional()
    context_before: str = optional()
    context_after: str = optional()
    stale: bool = optional("the file changed since, and could not be read again")


class SearchStatistics(Output):
    total_results: int
    returned_results: int
    search_duration_ms: float
    cache_hit: bool


class CodeResults(Output):
    sparse: ClassVar = True

    success: Literal[True]
    query: str = optional()
    results: list[CodeFound]
    statistics: SearchStatistics = optional()
    message: str


@tool(
    toolset="code",
    not_for="who calls a symbol: symbol_lookup; text that is no code: memory_search, checkpoint_search",
    asked="where in the source is something done; where do we do it; grep for an implementation",
    lean=("path", "query", "limit", "detail", "branch_id"),
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
    wholes = [_whole(hit, rank) for rank, hit in enumerate(found.hits, start=1)]
    results = [_shortened(whole, ask.detail, caller) for whole in wholes]
    message = f"Found {found.total} results"
    if ask.detail == "refs":
        return CodeResults(success=True, results=results, message=message)
    return CodeResults(
        success=True,
        query=ask.query,
        results=results,
        statistics=SearchStatistics(
            total_results=found.total,
            returned_results=len(results),
            search_duration_ms=round(elapsed, 2),
            cache_hit=found.cache_hit,
        ),
        message=message,
    )


def _filter(filters: Filters | None) -> CodeFilter:
    if filters is None:
        return CodeFilter()
    return CodeFilter(
        kinds=tuple(dict.fromkeys(filters.symbol_types)),
        file_pattern=filters.file_pattern or "",
        packages=tuple(dict.fromkeys(filters.packages)),
        ddd_patterns=tuple(dict.fromkeys(filters.ddd_patterns)),
    )


def _shortened(whole: CodeFound, detail: Detail, caller: Caller) -> CodeFound:
    if detail == "full":
        return whole
    if detail == "refs":
        return _reference(whole, caller)
    doc = whole.symbol.doc_comment
    caller.tally.kept_out += [whole.content[PREVIEW:], whole.context_before, whole.context_after]
    return whole.model_copy(
        update={
            "symbol": whole.symbol.model_copy(update={"doc_comment": doc.split("\n", 1)[0][:PREVIEW]}),
            "content": whole.content[:PREVIEW],
            "context_before": "",
            "context_after": "",
        }
    )


def _reference(whole: CodeFound, caller: Caller) -> CodeFound:
    """What it is, where it stands and how well it fits. Its place in the list is its rank, and no tool
    takes a chunk's number: ten such references fit into their budget, and ten of everything would not."""
    symbol = ("name", "kind", *(("container",) if whole.symbol.container else ()))
    place = ("path", "start_line", "end_line")
    named = ("relevance_score", "symbol", "file", *(("stale",) if whole.stale else ()))
    caller.tally.kept_out += [
        whole.symbol.without(*symbol),
        whole.file.without(*place),
        whole.without(*named),
    ]
    return whole.only(*named).model_copy(
        update={"symbol": whole.symbol.only(*symbol), "file": whole.file.only(*place)}
    )


def _whole(hit: CodeHit, rank: int) -> CodeFound:
    row = hit.row
    return CodeFound(
        chunk_id=row.id,
        rank=rank,
        relevance_score=hit.relevance,
        symbol=_symbol_shown(hit),
        file=FileShown(
            path=row.path,
            package=row.package,
            start_line=row.start_line,
            end_line=row.end_line,
            language=row.language,
            test=bool(row.marks & TEST),
            generated=bool(row.marks & GENERATED),
        ),
        content=hit.content,
        context_before=hit.before,
        context_after=hit.after,
        stale=hit.stale,
    )


def _symbol_shown(hit: CodeHit) -> SymbolShown:
    """Lines outside of any symbol are named by their file."""
    folder, _, name = hit.row.path.rpartition("/")
    symbol = hit.row.symbol
    return SymbolShown(
        name=symbol.name if symbol else name,
        kind=symbol.kind if symbol else "section",
        package=folder or hit.row.package,
        signature=symbol.signature if symbol else "",
        doc_comment=symbol.doc if symbol else "",
        container=symbol.container if symbol else "",
        exported=symbol.exported if symbol else True,
        ddd_patterns=[
            DddEvidence(pattern=each.pattern, evidence=list(each.evidence)) for each in hit.patterns
        ],
    )


TOOLS = (search_code,)

"""Remediations, as an agent calls them."""

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.ports import Usage
from contextd.services.remediations import Draft, Match, Remediations, Severity
from contextd.tools.declaration import Example, Input, Output, optional, tool
from contextd.tools.fields import (
    PREVIEW,
    Context,
    Detail,
    ErrorMessage,
    Limit,
    NotBlank,
    Object,
    ProjectPath,
    Score,
    StackTrace,
    Tags,
)

ErrorType = Annotated[str, Field(min_length=1, max_length=limits.MAX_ERROR_TYPE_LENGTH), NotBlank]
Solution = Annotated[str, Field(min_length=1, max_length=limits.MAX_SOLUTION_LENGTH), NotBlank]
Share = Annotated[float, Field(ge=0, le=1)]

_TITLE: Final = 60
"""Characters of a message by which a reference to it is known."""
_REFUSED = "dial tcp 127.0.0.1:8080: connect: connection refused"


class RemediationSave(Input):
    error_message: ErrorMessage = Field(description="The error, as it was printed")
    error_type: ErrorType = Field(description="Its kind, such as ConnectionError")
    solution: Solution = Field(description="What solved it, with the commands")
    project_path: ProjectPath | None = Field(
        None, description="Where it was met; it is found from everywhere"
    )
    context: Context = Field(default_factory=dict, description="Facts by name: versions, root_cause")
    tags: Tags = Field(default_factory=list)
    severity: Severity | None = None
    stack_trace: StackTrace = ""
    save_as_pattern: bool = Field(
        False, description="Also a pattern for troubleshoot; context may give root_cause and category"
    )


class RemediationSaved(Output):
    id: str
    error_message: str
    error_type: str
    solution: str
    created_at: datetime
    merged: bool = Field(description="it was known, with this solution: counted instead of kept twice")
    seen_count: int = Field(description="how often it was saved")
    pattern_id: str | None = Field(description="of the pattern that it was saved as")


@tool(
    toolset="errors",
    not_for="a lesson without an error: memory_store",
    asked="write down the fix of a bug",
    examples=(
        Example(
            "what solved it",
            {
                "error_message": _REFUSED,
                "error_type": "ConnectionError",
                "solution": "Start the server: ./server",
                "severity": "medium",
                "tags": ["networking", "server"],
            },
        ),
    ),
)
async def remediation_save(
    remediations: Remediations, ask: RemediationSave, caller: Caller
) -> RemediationSaved:
    """Save how an error was solved, so that it is found when the error comes back, in any project."""
    saved = await remediations.save(
        Draft(
            error_message=ask.error_message,
            error_type=ask.error_type,
            solution=ask.solution,
            project_path=ask.project_path,
            context=ask.context,
            tags=tuple(ask.tags),
            severity=ask.severity,
            stack_trace=ask.stack_trace,
            as_pattern=ask.save_as_pattern,
        ),
        caller,
    )
    fields: dict[str, Any] = dict(saved.record.fields)
    return RemediationSaved(
        id=saved.record.id,
        error_message=fields["error_message"],
        error_type=fields["error_type"],
        solution=fields["solution"],
        created_at=saved.record.created_at,
        merged=saved.merged,
        seen_count=saved.seen_count,
        pattern_id=saved.pattern_id,
    )


class RemediationSearch(Input):
    error_message: ErrorMessage = Field(description="The error, as it was printed")
    stack_trace: StackTrace = ""
    limit: Limit = 5
    min_score: Share = Field(0.5, description="Least match_score")
    tags: Tags = Field(default_factory=list, description="Only those with all of these")
    detail: Detail = Field("full", description="refs: no long texts; preview: their beginning")


class RemediationFound(Output):
    id: str
    error_message: str
    error_type: str
    solution: str = optional()
    tags: list[str] = optional()
    match_score: Score = Field(description="0.7 semantic_score + 0.3 string_score")
    semantic_score: Score = optional()
    string_score: Score = optional("of the messages without paths, numbers, ids, quoted values")
    stack_trace_match: bool = optional()
    error_type_match: bool = optional()
    context: Object = optional()
    created_at: datetime = optional()
    seen_count: int = optional()
    usage_count: int = optional()
    success_rate: Score | None = optional("of recorded outcomes; null without any")


class RemediationsFound(Output):
    sparse: ClassVar = True

    results: list[RemediationFound]
    query: str = optional()
    total: int
    semantic: bool = Field(description="false: no embedding model, match_score is string_score alone")


@tool(
    toolset="errors",
    not_for="an error that nobody solved yet: troubleshoot",
    asked="seen this exception before; known fix for a failure",
    lean=("error_message", "stack_trace", "detail"),
    timeout_s=10,
    read_only=True,
    examples=(
        Example("an error that came back", {"error_message": _REFUSED}),
        Example("a part of one", {"error_message": "connection refused", "min_score": 0.6}),
    ),
)
async def remediation_search(
    remediations: Remediations, ask: RemediationSearch, caller: Caller
) -> RemediationsFound:
    """Find how an error, or one like it, was solved before; call it as soon as something fails."""
    found = await remediations.search(
        ask.error_message, caller, ask.stack_trace, ask.limit, ask.min_score, ask.tags
    )
    wholes = [_whole(match, found.usage[match.record.id]) for match in found.matches]
    results = [_shortened(whole, ask.detail, caller) for whole in wholes]
    if ask.detail == "refs":
        return RemediationsFound(results=results, total=found.total, semantic=found.by_meaning)
    return RemediationsFound(
        results=results, query=ask.error_message, total=found.total, semantic=found.by_meaning
    )


def _shortened(whole: RemediationFound, detail: Detail, caller: Caller) -> RemediationFound:
    if detail == "full":
        return whole
    if detail == "refs":
        told = ("success_rate",) if whole.success_rate is not None else ()
        named = ("id", "error_message", "error_type", "match_score", *told)
        caller.tally.kept_out += [whole.error_message[_TITLE:], whole.without(*named)]
        return whole.only(*named).model_copy(update={"error_message": whole.error_message[:_TITLE]})
    texts = {name: getattr(whole, name) for name in ("error_message", "solution")}
    caller.tally.kept_out += [*(text[PREVIEW:] for text in texts.values()), json.dumps(whole.context)]
    return whole.model_copy(
        update={"context": {}, **{name: text[:PREVIEW] for name, text in texts.items()}}
    )


def _whole(match: Match, usage: Usage) -> RemediationFound:
    fields: dict[str, Any] = dict(match.record.fields)
    return RemediationFound(
        id=match.record.id,
        error_message=fields["error_message"],
        error_type=fields["error_type"],
        solution=fields["solution"],
        tags=list(match.record.tags),
        match_score=match.match_score,
        semantic_score=match.semantic_score,
        string_score=match.string_score,
        stack_trace_match=match.stack_trace_match,
        error_type_match=match.error_type_match,
        context=fields["context"],
        created_at=match.record.created_at,
        seen_count=fields["seen_count"],
        usage_count=usage.uses,
        success_rate=usage.success_rate,
    )


TOOLS = (remediation_save, remediation_search)

"""Troubleshooting, as an agent calls it."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.services.diagnosis import Diagnosis
from contextd.services.diagnosis_sessions import Mode
from contextd.services.hypotheses import Confidence, Hypothesis
from contextd.services.pattern_library import Listed
from contextd.services.plans import Step
from contextd.services.similar_issues import SimilarIssue
from contextd.services.troubleshooting import Ask, Troubleshooting, Verdict
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import Context, ErrorMessage, Id, Limit, ProjectPath, Score, StackTrace, Tags

Category = Annotated[str, Field(min_length=1, max_length=limits.MAX_TAG_LENGTH)]
Severity = Literal["critical", "high", "medium", "low"]


class Troubleshoot(Input):
    error_message: ErrorMessage = Field(
        description="The error, as it was printed; a continued session keeps its own"
    )
    stack_trace: StackTrace = ""
    context: Context = Field(
        default_factory=dict, description="Environment, versions; answers to questions by their names"
    )
    category: Category | None = Field(None, description="configuration, resource, dependency, ...")
    mode: Mode = Field(
        "auto", description="auto: all at once; interactive: with questions; guided: by steps"
    )
    tags: Tags = Field(default_factory=list, description="Only remediations with all of these")
    top_k: Limit = Field(5, description="How many similar issues")
    session_id: Id | None = Field(None, description="Continue this diagnosis")
    outcome: Verdict | None = Field(
        None, description="How the last step went, or the whole advice in mode auto"
    )
    project_path: ProjectPath | None = None


class HypothesisSaid(Output):
    description: str
    probability: Score
    evidence: list[str]
    category: str
    verification_steps: list[str]


class SimilarIssueSaid(Output):
    id: str
    error_pattern: str
    root_cause: str
    solution: str
    match_score: Score
    semantic_score: Score | None = Field(description="null for a pattern")
    success_rate: Score | None = Field(description="of recorded outcomes; null without any")
    severity: str
    category: str
    tags: list[str]
    confidence: Confidence
    is_destructive: bool
    safety_warnings: list[str]


class ActionSaid(Output):
    step: int
    description: str
    commands: list[str]
    expected_outcome: str
    destructive: bool
    safety_notes: str


class QuestionSaid(Output):
    name: str = Field(description="the key of the answer in context")
    question: str


class Diagnosed(Output):
    session_id: str
    root_cause: str
    confidence: Confidence
    confidence_score: Score
    category: str
    severity: str
    hypotheses: list[HypothesisSaid]
    similar_issues: list[SimilarIssueSaid]
    recommended_actions: list[ActionSaid]
    diagnostic_steps: list[str]
    next_step: ActionSaid | None = Field(description="guided: do this, then call again with the outcome")
    questions: list[QuestionSaid] = Field(description="interactive: call again with answers in context")
    llm: str = Field(description="used, off, or failed: why")
    time_taken_ms: Score
    diagnosed_at: datetime


@tool(
    toolset="errors",
    not_for="an error whose fix may be known: remediation_search is quicker",
    asked="why does this fail; debug a crash",
    timeout_s=60,
    examples=(
        Example(
            "a panic",
            {
                "error_message": "panic: runtime error: invalid memory address or nil pointer dereference",
                "stack_trace": "goroutine 1 [running]:\nmain.processRequest(...)\n\t/srv/app/main.go:42",
                "context": {"go_version": "1.21", "os": "linux"},
            },
        ),
        Example(
            "one step at a time",
            {"error_message": "ModuleNotFoundError: No module named 'requests'", "mode": "guided"},
        ),
    ),
)
async def troubleshoot(troubleshooting: Troubleshooting, ask: Troubleshoot, caller: Caller) -> Diagnosed:
    """Diagnose an error: likely causes with evidence, known fixes, what to do and what is dangerous."""
    given = ask.model_fields_set
    diagnosis = await troubleshooting.diagnose(
        Ask(
            error_message=ask.error_message,
            stack_trace=ask.stack_trace,
            context=ask.context,
            category=ask.category,
            mode=ask.mode if "mode" in given else None,
            tags=tuple(ask.tags) if "tags" in given else None,
            top_k=ask.top_k if "top_k" in given else None,
            session_id=ask.session_id,
            outcome=ask.outcome,
            project_path=ask.project_path,
        ),
        caller,
    )
    return _diagnosed(diagnosis)


class ListPatterns(Input):
    category: Category | None = Field(None, description="Only this category")
    severity: Severity | None = None
    min_success_rate: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Only those that helped this often; without history only for 0"
    )
    limit: Limit = 10


class PatternSaid(Output):
    id: str
    error_pattern: str
    category: str
    severity: str
    root_cause: str
    solution: str
    success_rate: Score | None = Field(description="null without outcomes")
    tags: list[str]
    usage_count: int
    last_used: datetime | None


class PatternsListed(Output):
    patterns: list[PatternSaid]
    total: int


@tool(
    toolset="errors",
    not_for="an error at hand: troubleshoot",
    asked="common failures",
    timeout_s=5,
    read_only=True,
    examples=(Example("the gravest", {"severity": "critical", "limit": 3}),),
)
async def list_patterns(
    troubleshooting: Troubleshooting, ask: ListPatterns, caller: Caller
) -> PatternsListed:
    """Browse known error patterns with what they mean, what helps, and how often it did."""
    listing = await troubleshooting.patterns.list(
        caller, ask.category, ask.severity, ask.min_success_rate, ask.limit
    )
    return PatternsListed(patterns=[_pattern(one) for one in listing.patterns], total=listing.total)


def _diagnosed(diagnosis: Diagnosis) -> Diagnosed:
    return Diagnosed(
        session_id=diagnosis.session_id,
        root_cause=diagnosis.root_cause,
        confidence=diagnosis.confidence,
        confidence_score=diagnosis.confidence_score,
        category=diagnosis.category,
        severity=diagnosis.severity,
        hypotheses=[_hypothesis(one) for one in diagnosis.hypotheses],
        similar_issues=[_similar(one) for one in diagnosis.similar],
        recommended_actions=[_action(step) for step in diagnosis.steps],
        diagnostic_steps=list(diagnosis.diagnostic_steps),
        next_step=_action(diagnosis.next_step) if diagnosis.next_step else None,
        questions=[QuestionSaid(name=one.name, question=one.question) for one in diagnosis.questions],
        llm=diagnosis.llm,
        time_taken_ms=diagnosis.time_taken_ms,
        diagnosed_at=diagnosis.at,
    )


def _hypothesis(hypothesis: Hypothesis) -> HypothesisSaid:
    lead = hypothesis.lead
    return HypothesisSaid(
        description=lead.description,
        probability=hypothesis.probability,
        evidence=list(lead.evidence),
        category=lead.category,
        verification_steps=list(lead.verification_steps),
    )


def _similar(issue: SimilarIssue) -> SimilarIssueSaid:
    return SimilarIssueSaid(
        id=issue.id,
        error_pattern=issue.error_pattern,
        root_cause=issue.root_cause,
        solution=issue.solution,
        match_score=issue.match_score,
        semantic_score=issue.semantic_score,
        success_rate=issue.success_rate,
        severity=issue.severity,
        category=issue.category,
        tags=list(issue.tags),
        confidence=issue.confidence,
        is_destructive=issue.safety.destructive,
        safety_warnings=list(issue.safety.warnings),
    )


def _action(step: Step) -> ActionSaid:
    return ActionSaid(
        step=step.number,
        description=step.action.description,
        commands=list(step.action.commands),
        expected_outcome=step.action.expected_outcome,
        destructive=step.safety.destructive,
        safety_notes=step.safety_notes,
    )


def _pattern(listed: Listed) -> PatternSaid:
    pattern, usage = listed.pattern, listed.usage
    return PatternSaid(
        id=pattern.id,
        error_pattern=pattern.error_pattern,
        category=pattern.category,
        severity=pattern.severity,
        root_cause=pattern.root_cause,
        solution=pattern.solution,
        success_rate=usage.success_rate,
        tags=list(pattern.tags),
        usage_count=usage.uses,
        last_used=usage.last,
    )


TOOLS = (troubleshoot, list_patterns)

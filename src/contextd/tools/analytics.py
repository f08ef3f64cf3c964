"""Analytics, as an agent calls them: counted, never invented."""

from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from contextd.domain.callers import Caller
from contextd.domain.ports import ToolTally
from contextd.services.analytics import Analytics, Period, Report, Tokens
from contextd.services.projects import permitted
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import ProjectPath, Score

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _a_day(text: str) -> str:
    """Of the forms that ISO 8601 has for a day, the one with month and day: not 2026-W05-6."""
    try:
        written = date.fromisoformat(text).isoformat()
    except ValueError:
        written = None
    if written != text:
        raise PydanticCustomError("bad_format", "must be a date such as 2026-01-31")
    return text


Day = Annotated[
    str,
    Field(min_length=10, max_length=10),
    AfterValidator(_a_day),
    WithJsonSchema({"type": "string", "format": "date", "minLength": 10, "maxLength": 10}),
]


class AnalyticsAsk(Input):
    period: Period = "weekly"
    project_path: ProjectPath | None = Field(None, description="Only this project")
    start_date: Day | None = Field(None, description="UTC; replaces the period's start")
    end_date: Day | None = Field(None, description="UTC, included")


class Feature(Output):
    feature: str
    count: int
    avg_latency_ms: Score
    success_rate: Score


class Performance(Output):
    avg_search_latency_ms: Score | None
    avg_checkpoint_latency_ms: Score | None
    cache_hit_rate: Score | None
    overall_success_rate: Score | None


class Overhead(Output):
    schemas: int = Field(description="tool listings")
    envelopes: int = Field(description="within answered")


class KeptOut(Output):
    detail: int = Field(description="against full detail")
    cut: int = Field(description="against no token budget")


class Ledger(Output):
    """Tokens that contextd put into contexts, and kept out of them."""

    answered: int
    overhead: Overhead
    kept_out: KeptOut
    folded: int = Field(description="into branches; not in net")
    net: int = Field(description="kept_out - answered - schemas")


class AnalyticsGot(Output):
    period: str
    start_date: datetime
    end_date: datetime
    total_sessions: int
    avg_token_reduction_pct: Score | None
    total_time_saved_min: Score | None
    search_precision: Score | None = Field(description="helpful share of feedback")
    estimated_cost_save_usd: Score | None = Field(description="of net tokens")
    top_features: list[Feature]
    performance: Performance
    tokens: Ledger
    session: Ledger | None = Field(description="yours")


@tool(
    toolset="system",
    not_for="whether all is well: status",
    read_only=True,
    examples=(Example("this week", {}),),
)
async def analytics_get(analytics: Analytics, ask: AnalyticsAsk, caller: Caller) -> AnalyticsGot:
    """Report use, latency, success and tokens from the recorded calls; what nobody measured is null."""
    span = analytics.span(ask.period, _date(ask.start_date), _date(ask.end_date))
    report = await analytics.report(span, _projects(caller, ask.project_path), caller)
    return AnalyticsGot(
        period=ask.period,
        start_date=report.span.since or _EPOCH,
        end_date=report.span.until,
        total_sessions=report.tallies.sessions,
        avg_token_reduction_pct=report.tokens.reduction_pct,
        total_time_saved_min=report.time_saved_min,
        search_precision=report.feedback.success_rate,
        estimated_cost_save_usd=report.cost_saved_usd,
        top_features=[_feature(tally) for tally in sorted(report.tallies.tools, key=_by_use)],
        performance=Performance(**_performance(report)),
        tokens=_ledger(report.tokens),
        session=_ledger(report.session) if report.session else None,
    )


def _projects(caller: Caller, path: str | None) -> frozenset[str] | None:
    """The one that was asked for, or those that the caller may read; None is every project."""
    return frozenset({permitted(caller, path).key}) if path else caller.principal.projects


def _date(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _by_use(tally: ToolTally) -> tuple[int, str]:
    return -tally.calls, tally.tool


def _feature(tally: ToolTally) -> Feature:
    return Feature(
        feature=tally.tool,
        count=tally.calls,
        avg_latency_ms=tally.duration_ms / tally.calls,
        success_rate=tally.ok / tally.calls,
    )


def _ledger(tokens: Tokens) -> Ledger:
    return Ledger(
        answered=tokens.answered,
        overhead=Overhead(schemas=tokens.schemas, envelopes=tokens.envelopes),
        kept_out=KeptOut(detail=tokens.detail, cut=tokens.cut),
        folded=tokens.folded,
        net=tokens.net,
    )


def _performance(report: Report) -> dict[str, Any]:
    return {
        "avg_search_latency_ms": report.mean_ms(lambda tool: "search" in tool),
        "avg_checkpoint_latency_ms": report.mean_ms(lambda tool: tool.startswith("checkpoint_")),
        "cache_hit_rate": report.cache_hit_rate,
        "overall_success_rate": report.success_rate,
    }


TOOLS = (analytics_get,)

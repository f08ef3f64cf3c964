"""Analytics: added up from what was recorded, null where nobody measured."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.adapters.sqlite import SqliteEventLog, SqliteOutcomeLog
from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS, connect
from contextd.adapters.tokens import O200kCounter
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import BadFormat, Forbidden, Invalid, OutOfRange
from contextd.domain.ports import Event, Outcome, Usage
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services.analytics import Tokens
from contextd.services.projects import project_at
from contextd.settings import RateLimit, Settings
from contextd.wiring import build, open_house
from running import Daemon

pytestmark = pytest.mark.anyio
NOW = datetime.now(UTC)


def event(at: datetime, tool: str = "status", outcome: str = "ok", **more: Any) -> Event:
    fields: dict[str, Any] = {
        "project": "p1",
        "session": "s1",
        "principal": "local",
        "duration_ms": 2.0,
        "tokens_out": 10,
        **more,
    }
    return Event(at=at, tool=tool, outcome=outcome, **fields)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteEventLog]:
    opened = SqliteEventLog(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[CallPipeline]:
    settings = Settings(
        data_dir=tmp_path,
        rate_limit=RateLimit(on=False),
        usd_per_million_tokens=3.0,
        tokens_per_minute=1000.0,
    )
    async with open_house(build(settings)) as house:
        yield pipeline_of(house)


async def test_an_empty_history_gives_nulls_and_zeros(log: SqliteEventLog, tmp_path: Path) -> None:
    assert (await log.tallies(None, None, None)).tools == ()
    async with open_house(build(Settings(data_dir=tmp_path / "new"))) as house:
        got = (await pipeline_of(house).call("analytics_get", {"period": "all-time"}, Caller())).data
    assert got["total_sessions"] == 0
    assert got["top_features"] == []
    for name in (
        "avg_token_reduction_pct",
        "total_time_saved_min",
        "search_precision",
        "estimated_cost_save_usd",
    ):
        assert got[name] is None
    assert set(got["performance"].values()) == {None}
    assert got["tokens"] == {"answered": 0, "kept_out": 0, "schemas": 0, "net": 0}


async def test_tallies_are_by_tool_time_and_project(log: SqliteEventLog) -> None:
    await log.append(
        [
            event(NOW - timedelta(hours=3), "status"),
            event(NOW - timedelta(hours=2), "checkpoint_search", session="s2", cache_hits=1),
            event(
                NOW - timedelta(hours=2),
                "checkpoint_search",
                outcome="SRV_002",
                project="p2",
                cache_misses=1,
            ),
        ]
    )
    everything = await log.tallies(None, None, None)
    assert {tally.tool: (tally.calls, tally.ok) for tally in everything.tools} == {
        "status": (1, 1),
        "checkpoint_search": (2, 1),
    }
    assert everything.sessions == 2
    late = await log.tallies(NOW - timedelta(hours=2, minutes=1), None, None)
    assert [tally.tool for tally in late.tools] == ["checkpoint_search"]
    early = await log.tallies(None, NOW - timedelta(hours=2), None)
    assert [tally.tool for tally in early.tools] == ["status"]
    one = await log.tallies(None, None, {"p2"})
    assert [(tally.calls, tally.ok, tally.cache_misses) for tally in one.tools] == [(1, 0, 1)]


async def test_old_events_are_rolled_up_and_the_sums_stay(tmp_path: Path) -> None:
    days = [event(NOW - timedelta(days=age), session=f"s{age % 3}", tokens_kept_out=5) for age in range(60)]
    first = SqliteEventLog(tmp_path)
    await first.append(days)
    before = await first.tallies(None, None, {"p1"})
    await first.close()
    second = SqliteEventLog(tmp_path)
    await second.append([event(NOW)])
    after = await second.tallies(None, None, None)
    (tally,) = after.tools
    assert (tally.calls, tally.ok, tally.tokens_out, tally.tokens_kept_out) == (61, 61, 610, 300)
    assert before.tools[0].calls == 60
    month = await second.tallies(NOW - timedelta(days=45), NOW - timedelta(days=35), None)
    assert 9 <= month.tools[0].calls <= 11
    await second.close()


async def test_a_session_in_two_projects_counts_once_before_and_after_the_roll_up(
    log: SqliteEventLog,
) -> None:
    for age, session in ((40, "s1"), (39, "s1"), (39, "s2"), (1, "s3")):
        at = NOW - timedelta(days=age)
        await log.append([event(at, session=session, project=project) for project in (None, "p1", "p2")])
    counted = [
        (await log.tallies(None, None, None)).sessions,
        (await log.tallies(None, None, {"p1"})).sessions,
        (await log.tallies(NOW - timedelta(days=2), None, None)).sessions,
        (await log.tallies(NOW - timedelta(days=2), None, {"p1", "p2"})).sessions,
        (await log.tallies(None, None, set())).sessions,
    ]
    assert counted == [4, 4, 1, 1, 0]


async def test_what_an_older_version_rolled_up_keeps_its_sums(tmp_path: Path) -> None:
    day = to_micros(NOW - timedelta(days=50))
    older = connect(tmp_path / "analytics.db", EVENTS[:1])
    rows = [(day, None, 1), (day, "p1", 2), (day + 1, "p1", 3)]
    older.executemany("INSERT INTO day_sessions VALUES (?, ?, ?)", rows)
    older.close()
    log = SqliteEventLog(tmp_path)
    await log.append([event(NOW - timedelta(days=40), project=project) for project in ("p1", "p2")])
    assert (await log.tallies(None, None, None)).sessions == 6 + 1
    assert (await log.tallies(None, None, {"p1"})).sessions == 5 + 1
    await log.close()


async def test_outcomes_are_counted_and_forgotten(tmp_path: Path) -> None:
    log = SqliteOutcomeLog(tmp_path)
    assert await log.total(None, None, None) == Usage()
    assert await log.usage(["a"]) == {"a": Usage()}
    await log.note([Outcome("sk-p1-x", NOW, True), Outcome("sk-p1-x", NOW), Outcome("sk-p2-y", NOW, False)])
    usage = await log.usage(["sk-p1-x", "sk-p2-y", "never"])
    assert (usage["sk-p1-x"].uses, usage["sk-p1-x"].success_rate) == (2, 1.0)
    assert usage["sk-p2-y"].success_rate == 0.0
    assert usage["never"].success_rate is None
    assert (await log.total(None, None, None)).success_rate == 0.5
    assert (await log.total(None, None, "p2")).uses == 1
    assert (await log.total(NOW + timedelta(seconds=1), None, None)).uses == 0
    await log.forget("sk-p1-x")
    assert (await log.usage(["sk-p1-x"]))["sk-p1-x"] == Usage()
    await log.close()


async def test_calls_that_just_ended_are_in_the_report(pipeline: CallPipeline) -> None:
    caller = Caller(session="one")
    saved = await pipeline.call(
        "checkpoint_save",
        {"summary": "s", "project_path": "/srv/a", "description": "word " * 200, "content": "more " * 300},
        caller,
    )
    for detail in ("refs", "preview", "full"):
        await pipeline.call("checkpoint_search", {"query": "word", "detail": detail}, Caller(session="two"))
    await pipeline.call(
        "checkpoint_restore", {"id": saved.data["id"], "level": "summary"}, Caller(session="two")
    )
    told = [pipeline.listing(Caller(session=session)) for session in ("one", "two", None)]
    got = (await pipeline.call("analytics_get", {"period": "daily"}, caller)).data
    features = {feature["feature"]: feature for feature in got["top_features"]}
    assert features["checkpoint_search"]["count"] == 3
    assert features["checkpoint_search"]["success_rate"] == 1.0
    assert got["total_sessions"] == 2
    assert got["performance"]["cache_hit_rate"] == pytest.approx(2 / 3, abs=1e-3)
    assert got["performance"]["avg_search_latency_ms"] > 0
    assert got["performance"]["avg_checkpoint_latency_ms"] > 0
    assert got["performance"]["overall_success_rate"] == 1.0
    ledger = got["tokens"]
    assert ledger["kept_out"] > 800
    cost = O200kCounter().count(pipeline.registry.listing())
    assert ledger["schemas"] == len(told) * cost > 1000
    assert "tools/list" not in features
    assert ledger["net"] == ledger["kept_out"] - ledger["answered"] - ledger["schemas"]
    assert 0 < got["avg_token_reduction_pct"] < 100
    assert got["total_time_saved_min"] == pytest.approx(ledger["kept_out"] / 1000, abs=1e-3)
    assert got["estimated_cost_save_usd"] == pytest.approx(ledger["net"] * 3 / 1e6, abs=1e-4)


async def test_a_projects_sessions_were_each_told_the_tools(pipeline: CallPipeline) -> None:
    for session in ("one", "two"):
        pipeline.listing(Caller(session=session))
        await pipeline.call(
            "checkpoint_save", {"summary": "s", "project_path": f"/srv/{session}"}, Caller(session=session)
        )
    got = (await pipeline.call("analytics_get", {"project_path": "/srv/one"}, Caller())).data
    assert got["total_sessions"] == 1
    assert got["tokens"]["schemas"] == O200kCounter().count(pipeline.registry.listing())


async def test_a_project_has_its_own_figures(pipeline: CallPipeline) -> None:
    for project in ("a", "a", "b"):
        await pipeline.call(
            "checkpoint_save", {"summary": "s", "project_path": f"/srv/{project}"}, Caller()
        )
    got = (await pipeline.call("analytics_get", {"project_path": "/srv/b"}, Caller())).data
    assert [(f["feature"], f["count"]) for f in got["top_features"]] == [("checkpoint_save", 1)]


async def test_a_token_for_some_projects_sees_the_figures_of_those_alone(pipeline: CallPipeline) -> None:
    for project, helpful in (("a", True), ("b", True), ("secret", False)):
        path = f"/srv/{project}"
        stored = await pipeline.call(
            "memory_store",
            {"project_path": path, "title": "Run the linter first", "content": "ruff sees missing imports"},
            Caller(session="everywhere"),
        )
        rated = {"id": stored.data["id"], "helpful": helpful}
        await pipeline.call("memory_feedback", rated, Caller(session="everywhere"))
    await pipeline.call("status", {}, Caller(session="elsewhere"))
    keys = frozenset(project_at(f"/srv/{project}").key for project in ("a", "b"))
    few, none = Caller(Principal("ci", keys)), Caller(Principal("none", frozenset()))
    got = (await pipeline.call("analytics_get", {}, few)).data
    assert {each["feature"]: each["count"] for each in got["top_features"]} == {
        "memory_store": 2,
        "memory_feedback": 2,
    }
    assert (got["total_sessions"], got["search_precision"]) == (1, 1.0)
    empty = (await pipeline.call("analytics_get", {}, none)).data
    assert (empty["total_sessions"], empty["top_features"], empty["search_precision"]) == (0, [], None)
    one = (await pipeline.call("analytics_get", {"project_path": "/srv/a"}, few)).data
    assert {each["count"] for each in one["top_features"]} == {1}
    with pytest.raises(Forbidden):
        await pipeline.call("analytics_get", {"project_path": "/srv/secret"}, few)
    whole = (await pipeline.call("analytics_get", {}, Caller())).data
    assert whole["search_precision"] == pytest.approx(2 / 3, abs=1e-3)


async def test_dates_take_the_place_of_the_period(pipeline: CallPipeline) -> None:
    got = (
        await pipeline.call(
            "analytics_get", {"start_date": "2026-01-05", "end_date": "2026-01-05"}, Caller()
        )
    ).data
    assert got["start_date"] == "2026-01-05T00:00:00Z"
    assert got["end_date"] == "2026-01-06T00:00:00Z"
    week = (await pipeline.call("analytics_get", {"end_date": "2026-01-07"}, Caller())).data
    assert week["start_date"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "arguments",
    [
        {"period": "yearly"},
        {"start_date": "2026-13-01"},
        {"start_date": "yesterday!"},
        {"start_date": "2026-1-1"},
        {"start_date": 5},
        {"end_date": "2026-02-30"},
        {"start_date": "2026-W05-3"},
        {"end_date": "2026-W05-3"},
    ],
)
async def test_bad_periods_and_dates_are_refused(pipeline: CallPipeline, arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await pipeline.call("analytics_get", arguments, Caller())


@pytest.mark.parametrize("period", ["daily", "weekly", "monthly", "all-time"])
@pytest.mark.parametrize("field", ["start_date", "end_date"])
@pytest.mark.parametrize("day", ["0001-01-01", "1969-12-31", "9999-01-01", "9999-12-31"])
async def test_a_date_that_no_call_can_have_is_refused_by_its_name(
    pipeline: CallPipeline, period: str, field: str, day: str
) -> None:
    with pytest.raises(OutOfRange, match="1970-01-01 to 9998-12-31") as refused:
        await pipeline.call("analytics_get", {"period": period, field: day}, Caller())
    assert refused.value.field == field


@pytest.mark.parametrize("period", ["daily", "weekly", "monthly", "all-time"])
@pytest.mark.parametrize("day", ["1970-01-01", "9998-12-31"])
async def test_the_first_and_the_last_date_have_a_report(
    pipeline: CallPipeline, period: str, day: str
) -> None:
    got = (await pipeline.call("analytics_get", {"period": period, "end_date": day}, Caller())).data
    assert got["end_date"] > day


async def test_a_start_in_the_future_is_refused(pipeline: CallPipeline) -> None:
    today = datetime.now(UTC).date()
    later = str(today + timedelta(days=2))
    for dates in ({"start_date": later}, {"start_date": later, "end_date": later}):
        with pytest.raises(BadFormat, match="start_date is in the future"):
            await pipeline.call("analytics_get", dates, Caller())
    got = (await pipeline.call("analytics_get", {"start_date": str(today)}, Caller())).data
    assert got["start_date"] < got["end_date"]


async def test_an_end_before_its_start_is_refused(pipeline: CallPipeline) -> None:
    dates = {"start_date": str(date(2026, 2, 1)), "end_date": str(date(2026, 1, 1))}
    with pytest.raises(BadFormat, match="before start_date"):
        await pipeline.call("analytics_get", dates, Caller())


@given(*[st.integers(0, 10**9)] * 3)
def test_the_ledger_adds_up(answered: int, kept_out: int, schemas: int) -> None:
    tokens = Tokens(answered, kept_out, schemas)
    assert tokens.net + tokens.answered + tokens.schemas == tokens.kept_out
    assert tokens.reduction_pct is None or 0 <= tokens.reduction_pct <= 100


def test_the_figures_are_there_over_the_wire_at_once(daemon: Daemon) -> None:
    session = daemon.session()
    session.call("status")
    got = session.call("analytics_get", period="daily")["result"]["structuredContent"]
    assert "status" in {feature["feature"] for feature in got["top_features"]}

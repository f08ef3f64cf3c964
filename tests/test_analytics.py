"""Analytics: added up from what was recorded, null where nobody measured."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.adapters.sqlite import SqliteEventLog, SqliteOutcomeLog
from contextd.adapters.sqlite.rows import to_micros
from contextd.adapters.sqlite.schema import EVENTS, connect
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import BadFormat, Forbidden, Invalid, OutOfRange
from contextd.domain.ports import LISTING, Event, Outcome, Tallies, Usage
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services.analytics import Tokens
from contextd.services.projects import project_at
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
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
async def house(tmp_path: Path) -> AsyncIterator[House]:
    settings = Settings(
        data_dir=tmp_path,
        rate_limit=RateLimit(on=False),
        usd_per_million_tokens=3.0,
        tokens_per_minute=1000.0,
    )
    async with open_house(build(settings)) as house:
        yield house


@pytest.fixture
def pipeline(house: House) -> CallPipeline:
    return pipeline_of(house)


def listing(at: datetime, tokens: int = 100, **more: Any) -> Event:
    return event(at, LISTING, project=None, tokens_out=tokens, **more)


def ledger(**figures: int) -> dict[str, Any]:
    """As an answer has it; what is not given is zero."""
    tokens = Tokens(**figures)
    return {
        "answered": tokens.answered,
        "overhead": {"schemas": tokens.schemas, "envelopes": tokens.envelopes},
        "kept_out": {"detail": tokens.detail, "cut": tokens.cut},
        "folded": tokens.folded,
        "net": tokens.net,
    }


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
    assert got["tokens"] == ledger()
    assert got["session"] is None


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


async def test_a_file_of_an_older_version_keeps_its_figures(tmp_path: Path) -> None:
    day = to_micros(NOW - timedelta(days=50)) // 86_400_000_000 * 86_400_000_000
    older = connect(tmp_path / "analytics.db", EVENTS[:2])
    columns = "at, tool, project, session, principal, outcome, duration_ms, tokens_out, tokens_kept_out"
    older.execute(
        f"INSERT INTO events ({columns}, cache_hits, cache_misses)"
        " VALUES (?, 'status', 'p1', 's1', 'local', 'ok', 2.0, 10, 5, 1, 2)",
        (to_micros(NOW),),
    )
    days = [(day, "status", "p1", 4, 3, 8.0, 40, 20, 6, 7), (day, LISTING, None, 3, 3, 0.0, 300, 0, 0, 0)]
    older.executemany("INSERT INTO days VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", days)
    sessions = [(day, "*", 3), (day, None, 3), (day, "p1", 2), (day + 1, "p1", 1)]
    older.executemany("INSERT INTO day_sessions VALUES (?, ?, ?)", sessions)
    older.close()
    log = SqliteEventLog(tmp_path)
    before = await log.tallies(None, None, None)
    assert told(before) == {"status": [50, 0, 25, 0, 0, 7, 9]}
    assert (before.sessions, before.tokens_listed) == (4, 300)
    # Two sessions on a day whose listings were 100 tokens on average; none is known of the other day.
    assert (await log.tallies(None, None, {"p1"})).tokens_listed == 200
    await log.append([event(NOW, tokens_envelope=1, tokens_cut=2, tokens_folded=3)])
    assert told(await log.tallies(None, None, {"p1"})) == {"status": [60, 1, 25, 2, 3, 7, 9]}
    assert told(await log.session("s1", "local", None)) == {"status": [20, 1, 5, 2, 3, 1, 2]}
    await log.close()


async def test_a_session_that_was_rolled_up_is_in_the_days_and_in_no_ledger_of_its_own(
    log: SqliteEventLog,
) -> None:
    assert (await log.session("s1", "local", None)).sessions == 0
    await log.append([event(NOW - timedelta(days=age), tokens_out=age) for age in (1, 40)])
    mine = await log.session("s1", "local", None)
    assert (mine.sessions, Tokens.of(mine).answered) == (1, 1)
    assert Tokens.of(await log.tallies(None, None, None)).answered == 41


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


async def test_calls_that_just_ended_are_in_the_report(house: House, pipeline: CallPipeline) -> None:
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
    for session in ("one", "two", None):
        house.analytics.listed(Caller(session=session), 1500)
    got = (await pipeline.call("analytics_get", {"period": "daily"}, caller)).data
    features = {feature["feature"]: feature for feature in got["top_features"]}
    assert features["checkpoint_search"]["count"] == 3
    assert features["checkpoint_search"]["success_rate"] == 1.0
    assert got["total_sessions"] == 2
    assert got["performance"]["cache_hit_rate"] == pytest.approx(2 / 3, abs=1e-3)
    assert got["performance"]["avg_search_latency_ms"] > 0
    assert got["performance"]["avg_checkpoint_latency_ms"] > 0
    assert got["performance"]["overall_success_rate"] == 1.0
    tokens = got["tokens"]
    kept_out = tokens["kept_out"]["detail"] + tokens["kept_out"]["cut"]
    assert tokens["kept_out"]["detail"] > 800
    assert tokens["overhead"]["schemas"] == 3 * 1500
    assert LISTING not in features
    assert tokens["net"] == kept_out - tokens["answered"] - 3 * 1500
    assert got["avg_token_reduction_pct"] == pytest.approx(
        100 * kept_out / (tokens["answered"] + kept_out), abs=1e-3
    )
    assert got["total_time_saved_min"] == pytest.approx(kept_out / 1000, abs=1e-3)
    assert got["estimated_cost_save_usd"] == pytest.approx(tokens["net"] * 3 / 1e6, abs=1e-4)


async def test_a_listing_costs_what_the_client_was_told(pipeline: CallPipeline) -> None:
    pipeline.listing(Caller(session="one"))
    got = (await pipeline.call("analytics_get", {}, Caller(session="one"))).data
    assert got["session"]["overhead"]["schemas"] > 1000
    assert got["session"] == got["tokens"]


async def test_the_ledger_tells_answers_overhead_and_each_baseline_apart(
    house: House, pipeline: CallPipeline
) -> None:
    figures: dict[str, Any] = {
        "tokens_out": 100,
        "tokens_envelope": 12,
        "tokens_kept_out": 30,
        "tokens_cut": 250,
    }
    house.analytics.record(event(NOW, "safe_bash", **figures))
    house.analytics.record(event(NOW, "return", tokens_out=40, tokens_envelope=8, tokens_folded=900))
    house.analytics.listed(Caller(session="s1"), 60)
    got = (await pipeline.call("analytics_get", {}, Caller())).data
    assert got["tokens"] == ledger(answered=140, envelopes=20, detail=30, cut=250, schemas=60, folded=900)
    assert got["tokens"]["net"] == 30 + 250 - 140 - 60
    assert got["avg_token_reduction_pct"] == pytest.approx(100 * 280 / 420, abs=1e-3)


async def test_a_session_has_a_ledger_of_its_own_over_all_its_time(
    house: House, pipeline: CallPipeline
) -> None:
    for session, age in (("one", 0), ("one", 3), ("two", 0)):
        house.analytics.record(
            event(NOW - timedelta(days=age), session=session, tokens_out=10, tokens_cut=7)
        )
    house.analytics.listed(Caller(session="one"), 50)
    house.analytics.listed(Caller(session="two"), 60)
    house.analytics.listed(Caller(), 70)
    one = (await pipeline.call("analytics_get", {"period": "daily"}, Caller(session="one"))).data
    assert one["session"] == ledger(answered=20, cut=14, schemas=50)
    assert one["tokens"] == ledger(answered=20, cut=14, schemas=180)
    new = (await pipeline.call("analytics_get", {}, Caller(session="new"))).data
    assert new["session"] == ledger()


async def test_a_session_is_its_principals_alone(house: House, pipeline: CallPipeline) -> None:
    house.analytics.record(event(NOW, session="one", principal="local"))
    house.analytics.listed(Caller(session="one"), 50)
    other = Caller(Principal("other"), session="one")
    assert (await pipeline.call("analytics_get", {}, other)).data["session"] == ledger()


async def test_a_token_for_some_projects_has_a_session_without_the_other_projects(
    house: House, pipeline: CallPipeline
) -> None:
    for project, tokens in (("p1", 1), ("p2", 20), ("secret", 300), (None, 4000)):
        house.analytics.record(event(NOW, principal="ci", project=project, tokens_out=tokens))
    few = Caller(Principal("ci", frozenset({"p1", "p2"})), session="s1")
    house.analytics.listed(few, 50)
    got = (await pipeline.call("analytics_get", {}, few)).data
    assert got["session"] == ledger(answered=4021, schemas=50)
    assert got["tokens"] == ledger(answered=21, schemas=50)


async def test_a_projects_listings_are_those_of_its_sessions(house: House, pipeline: CallPipeline) -> None:
    for session, tokens in (("one", 100), ("two", 20), ("idle", 3), ("one", 1000)):
        house.analytics.listed(Caller(session=session), tokens)
    for who, project in (("one", "a"), ("one", "a"), ("two", "b"), ("two", "a"), (None, "a")):
        await pipeline.call(
            "checkpoint_save", {"summary": "s", "project_path": f"/srv/{project}"}, Caller(session=who)
        )
    schemas = {}
    for project in ("a", "b", "c"):
        got = (await pipeline.call("analytics_get", {"project_path": f"/srv/{project}"}, Caller())).data
        schemas[project] = got["total_sessions"], got["tokens"]["overhead"]["schemas"]
    assert schemas == {"a": (2, 1120), "b": (1, 20), "c": (0, 0)}
    both = frozenset(project_at(f"/srv/{project}").key for project in ("a", "b"))
    got = (await pipeline.call("analytics_get", {}, Caller(Principal("ci", both)))).data
    assert (got["total_sessions"], got["tokens"]["overhead"]["schemas"]) == (2, 1120)
    whole = (await pipeline.call("analytics_get", {}, Caller())).data
    assert whole["tokens"]["overhead"]["schemas"] == 1123


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


@given(*[st.integers(0, 10**9)] * 5, st.integers(-(10**9), 10**9))
def test_the_ledger_adds_up(
    answered: int, schemas: int, envelopes: int, detail: int, cut: int, folded: int
) -> None:
    tokens = Tokens(answered, schemas, envelopes, detail, cut, folded)
    assert tokens.net + answered + schemas == tokens.kept_out == detail + cut
    assert tokens.reduction_pct is None or 0 <= tokens.reduction_pct <= 100
    assert tokens.net == Tokens(answered, schemas, 0, detail, cut, 0).net


# --- sums that hold for any events -------------------------------------------------------

AGES = (0, 1, 20, 40, 41, 70)
"""In days: on both sides of the roll-up."""
FEW = st.integers(0, 1000)
FIGURES = [field.name for field in fields(Event) if field.name.startswith(("tokens_", "cache_"))]


@st.composite
def histories(draw: st.DrawFn, *, session_of_one_day: bool = False) -> list[Event]:
    ages = {name: draw(st.sampled_from(AGES)) for name in ("s1", "s2", "s3")}
    events = []
    for _ in range(draw(st.integers(0, 12))):
        session = draw(st.sampled_from([*ages] if session_of_one_day else [*ages, None]))
        age = ages[session] if session_of_one_day and session else draw(st.sampled_from(AGES))
        at = NOW - timedelta(days=age)
        if draw(st.booleans()):
            events.append(listing(at, draw(FEW), session=session))
            continue
        figures: dict[str, Any] = {name: draw(FEW) for name in FIGURES}
        project = draw(st.sampled_from(["p1", "p2", None]))
        tool = draw(st.sampled_from(["status", "return"]))
        events.append(event(at, tool, session=session, project=project, **figures))
    return events


def summed(events: Sequence[Event]) -> dict[str, list[int]]:
    """What the log must say of these events by tool, listings apart."""
    calls = [each for each in events if each.tool != LISTING]
    return {
        tool: [sum(getattr(each, name) for each in calls if each.tool == tool) for name in FIGURES]
        for tool in {each.tool for each in calls}
    }


def told(tallies: Tallies) -> dict[str, list[int]]:
    return {tally.tool: [getattr(tally, name) for name in FIGURES] for tally in tallies.tools}


async def added(folder: Path, parts: Sequence[Sequence[Event]]) -> SqliteEventLog:
    """Each part by a log of its own, because a log rolls up when it first writes."""
    for part in parts:
        log = SqliteEventLog(folder)
        await log.append(part)
        await log.close()
    return SqliteEventLog(folder)


@settings(max_examples=30)
@given(histories(), st.lists(st.integers(0, 12), max_size=3), st.integers(0, 80))
def test_sums_are_the_same_however_events_are_split_and_rolled_up(
    events: list[Event], cuts: list[int], age: int
) -> None:
    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    parts = [events[start:end] for start, end in pairwise(edges)]
    midnight = datetime.combine((NOW - timedelta(days=age)).date(), datetime.min.time(), UTC)

    async def check(folder: Path) -> None:
        log = await added(folder, parts)
        whole = await log.tallies(None, None, None)
        assert told(whole) == summed(events)
        assert whole.tokens_listed == sum(each.tokens_out for each in events if each.tool == LISTING)
        for project in ("p1", "p2"):
            own = [each for each in events if each.project == project]
            assert told(await log.tallies(None, None, {project})) == summed(own)
        early, late = await log.tallies(None, midnight, None), await log.tallies(midnight, None, None)
        assert told(early) == summed([each for each in events if each.at < midnight])
        assert early.tokens_listed + late.tokens_listed == whole.tokens_listed
        await log.close()

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@settings(max_examples=30)
@given(histories(session_of_one_day=True))
def test_a_projects_listings_are_the_same_before_and_after_the_roll_up(events: list[Event]) -> None:
    async def check(folder: Path) -> None:
        log = await added(folder, [events])
        for project in ("p1", "p2"):
            sessions = {each.session for each in events if each.project == project}
            mine = [each for each in events if each.tool == LISTING and each.session in sessions]
            tallies = await log.tallies(None, None, {project})
            assert tallies.tokens_listed == sum(each.tokens_out for each in mine)
        await log.close()

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@settings(max_examples=30)
@given(histories())
def test_the_ledgers_of_all_sessions_add_up_to_the_whole(events: list[Event]) -> None:
    recent = [each for each in events if each.session and NOW - each.at < timedelta(days=25)]

    async def ledgers(log: SqliteEventLog, sessions: Collection[str]) -> list[Tokens]:
        return [Tokens.of(await log.session(session, "local", None)) for session in sessions]

    async def check(folder: Path) -> None:
        log = await added(folder, [recent])
        whole = Tokens.of(await log.tallies(None, None, None))
        parts = await ledgers(log, ("s1", "s2", "s3"))
        for field in fields(Tokens):
            assert sum(getattr(part, field.name) for part in parts) == getattr(whole, field.name)
        await log.close()

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


def test_the_figures_are_there_over_the_wire_at_once(daemon: Daemon) -> None:
    session = daemon.session()
    session.call("status")
    got = session.call("analytics_get", period="daily")["result"]["structuredContent"]
    assert "status" in {feature["feature"] for feature in got["top_features"]}

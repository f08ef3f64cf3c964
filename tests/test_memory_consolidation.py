"""Consolidation: near-duplicates become one memory, and nothing of them is lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.adapters.sqlite import SqliteOutcomeLog
from contextd.domain.callers import Caller
from contextd.domain.limits import MAX_MEMORY_CONTENT_LENGTH
from contextd.domain.records import Project, Record
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services import memory_consolidation as consolidation
from contextd.services.anchors import Anchor
from contextd.services.archive import Archive
from contextd.services.memories import Memories
from contextd.services.memory_quality import loses
from contextd.services.memory_records import Draft, Memory
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import Daemon, structured

HERE = "/srv/consolidated"
CALLER = Caller(session="tests")

BUILDS = (
    {
        "title": "Docker builds are slow without a cache mount",
        "content": "Mount the pip cache with --mount=type=cache, or builds download every wheel again.",
    },
    {
        "title": "Slow docker builds need a cache mount",
        "content": "Builds download all wheels again unless the pip cache is mounted. BuildKit must be on.",
    },
    {
        "title": "Cache mounts make docker builds quick",
        "content": "With the pip cache mounted no build downloads wheels again. Clear it after upgrades.",
    },
)
LINTER = {
    "title": "Run the linter before the tests",
    "content": "ruff shows a missing import in a second; the test run takes four minutes to say the same.",
}


async def call(pipeline: CallPipeline, name: str, /, **arguments: Any) -> dict[str, Any]:
    return (await pipeline.call(name, arguments, CALLER)).data


async def stored(pipeline: CallPipeline, *lessons: dict[str, str], **more: Any) -> list[str]:
    answers = [await call(pipeline, "memory_store", project_path=HERE, **each, **more) for each in lessons]
    assert all(answer["merged_into"] is None for answer in answers)
    return [answer["id"] for answer in answers]


async def found(pipeline: CallPipeline, query: str) -> list[str]:
    answer = await call(pipeline, "memory_search", query=query, project_path=HERE, limit=20)
    return [hit["id"] for hit in answer["results"]]


# --- through the tools ----------------------------------------------------------------


@pytest.mark.anyio
async def test_near_duplicates_become_one_and_their_sources_are_archived(pipeline: CallPipeline) -> None:
    sources = await stored(pipeline, *BUILDS)
    (linter,) = await stored(pipeline, LINTER)
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    (made,) = done["created"]
    assert set(made["sources"]) == set(done["archived"]) == set(sources)
    assert (done["skipped"], done["looked_at"], done["next_offset"]) == ([], 4, None)
    assert set(await found(pipeline, "docker build cache")) == {made["id"], linter}
    whole = await call(pipeline, "memory_get", id=made["id"])
    assert set(whole["archived_sources"]) == set(sources)
    assert whole["evidence"] == 3
    for said in ("--mount=type=cache", "BuildKit must be on", "Clear it after upgrades"):
        assert said in whole["content"]
    for source in sources:
        archived = await call(pipeline, "memory_get", id=source)
        assert archived["archived_into"] == made["id"]
        assert archived["content"] in [each["content"] for each in BUILDS]
    again = await call(pipeline, "memory_consolidate", project_path=HERE)
    assert (again["created"], again["archived"]) == ([], [])


@pytest.mark.anyio
async def test_a_dry_run_says_what_would_be_done_and_does_nothing(pipeline: CallPipeline) -> None:
    sources = await stored(pipeline, *BUILDS)
    planned = await call(pipeline, "memory_consolidate", project_path=HERE, dry_run=True)
    assert [each["id"] for each in planned["created"]] == [None]
    assert set(planned["archived"]) == set(sources)
    assert set(await found(pipeline, "docker build cache")) == set(sources)
    counts = (await call(pipeline, "collection_list"))["collections"][0]["counts"]
    assert counts == {"memory": 3}


@pytest.mark.anyio
async def test_what_came_of_the_sources_counts_for_the_one(pipeline: CallPipeline) -> None:
    first, second, _ = await stored(pipeline, *BUILDS)
    await call(pipeline, "memory_feedback", id=first, helpful=True)
    await call(pipeline, "memory_feedback", id=second, helpful=False)
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    (made,) = done["created"]
    whole = await call(pipeline, "memory_get", id=made["id"])
    assert (whole["good"], whole["bad"]) == (1, 1)
    late = await call(pipeline, "memory_feedback", id=first, helpful=True)
    assert late["confidence"] == round(10 / 12, 4)
    assert (await call(pipeline, "memory_get", id=made["id"]))["good"] == 2


@pytest.mark.anyio
async def test_the_least_of_the_sources_is_the_trust_of_the_one(pipeline: CallPipeline) -> None:
    await stored(pipeline, BUILDS[0], source="user", tags=["docker"])
    await stored(pipeline, BUILDS[1], source="web", tags=["pip"])
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    (made,) = done["created"]
    assert made["title"].startswith("> ")
    whole = await call(pipeline, "memory_get", id=made["id"])
    assert (whole["trust"], whole["quoted"]) == ("low", True)
    assert set(whole["tags"]) == {"docker", "pip"}


@pytest.mark.anyio
async def test_contradictions_are_left_apart_and_told(pipeline: CallPipeline) -> None:
    kept = await stored(pipeline, BUILDS[0], outcome="success")
    kept += await stored(pipeline, BUILDS[1], outcome="failure")
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    assert (done["created"], done["archived"]) == ([], [])
    assert {each["id"] for each in done["skipped"]} == set(kept)
    assert all(each["reason"].startswith("contradicts mem-") for each in done["skipped"])


@pytest.mark.anyio
async def test_opposite_outcomes_are_left_apart_under_other_titles_too(pipeline: CallPipeline) -> None:
    same = "The migration ran with the concurrent index option while the worker held the orders lock."
    won = {"title": "Concurrent index migration", "content": f"{same} It spared the shop a downtime."}
    lost = {"title": "Nightly batch orders lock", "content": f"{same} Every checkout queued behind it."}
    kept = await stored(pipeline, won, outcome="success")
    kept += await stored(pipeline, lost, outcome="failure")
    done = await call(pipeline, "memory_consolidate", project_path=HERE, threshold=0.6)
    assert (done["created"], done["archived"]) == ([], [])
    assert {each["id"]: each["reason"] for each in done["skipped"]} == {
        kept[0]: f"has the opposite outcome of {kept[1]}",
        kept[1]: f"has the opposite outcome of {kept[0]}",
    }


@pytest.mark.anyio
async def test_a_higher_threshold_joins_less(pipeline: CallPipeline) -> None:
    await stored(pipeline, *BUILDS)
    done = await call(pipeline, "memory_consolidate", project_path=HERE, threshold=0.99)
    assert (done["created"], done["skipped"], done["looked_at"]) == ([], [], 3)


def test_over_the_wire_with_another_project_untouched(daemon: Daemon) -> None:
    session = daemon.session()
    for path in (HERE, f"{HERE}-other"):
        for lesson in BUILDS:
            structured(session.call("memory_store", project_path=path, **lesson))
    done = structured(session.call("memory_consolidate", project_path=HERE))
    assert len(done["archived"]) == 3
    other = structured(
        session.call("memory_search", query="docker cache", project_path=f"{HERE}-other", limit=20)
    )
    assert len(other["results"]) == 3


# --- while others work, and for as long as there is time ------------------------------


@pytest.mark.anyio
async def test_a_memory_that_changed_meanwhile_is_left(
    pipeline: CallPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = await stored(pipeline, *BUILDS)
    real_plan = consolidation.plan

    async def plan_and_be_overtaken(*arguments: Any) -> consolidation.Plan:
        plan = await real_plan(*arguments)
        again = await call(pipeline, "memory_store", project_path=HERE, **BUILDS[0])
        assert again["merged_into"] == first
        return plan

    monkeypatch.setattr(consolidation, "plan", plan_and_be_overtaken)
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    assert (done["created"], done["archived"]) == ([], [])
    assert {each["reason"] for each in done["skipped"]} == {"changed meanwhile: consolidate again"}
    monkeypatch.setattr(consolidation, "plan", real_plan)
    assert len((await call(pipeline, "memory_consolidate", project_path=HERE))["archived"]) == 3


@pytest.mark.anyio
async def test_a_project_that_is_dropped_meanwhile_leaves_nothing_to_do(
    pipeline: CallPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(pipeline, *BUILDS)
    real_plan = consolidation.plan

    async def plan_and_drop(*arguments: Any) -> consolidation.Plan:
        plan = await real_plan(*arguments)
        await call(pipeline, "collection_delete", project_path=HERE)
        return plan

    monkeypatch.setattr(consolidation, "plan", plan_and_drop)
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    assert (done["created"], len(done["skipped"])) == ([], 3)


@pytest.mark.anyio
@pytest.mark.parametrize("overtaken", [1, 2, 3])
async def test_what_another_process_changes_at_the_last_moment_is_left_and_said_so(
    house: House,
    pipeline: CallPipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    overtaken: int,
) -> None:
    sources = await stored(pipeline, *BUILDS)
    changed, gone = set(sources[:overtaken]), set(sources[overtaken:])
    real_keep = Archive.keep

    async def keep_and_be_overtaken(archive: Archive, record: Record) -> Record:
        kept = await real_keep(archive, record)
        monkeypatch.setattr(Archive, "keep", real_keep)
        async with open_house(build(Settings(data_dir=tmp_path, rate_limit=RateLimit(on=False)))) as other:
            for lesson, id in zip(BUILDS[:overtaken], sources, strict=False):
                again = await call(pipeline_of(other), "memory_store", project_path=HERE, **lesson)
                assert again["merged_into"] == id
        return kept

    monkeypatch.setattr(Archive, "keep", keep_and_be_overtaken)
    done = await call(pipeline, "memory_consolidate", project_path=HERE)
    assert set(done["archived"]) == gone
    assert {each["id"]: each["reason"] for each in done["skipped"]} == dict.fromkeys(
        changed, "changed meanwhile: consolidate again"
    )
    made = {each["id"] for each in done["created"]}
    assert [set(each["sources"]) for each in done["created"]] == ([gone] if gone else [])
    assert set(await found(pipeline, "docker build cache")) == changed | made
    wholes = {id: await call(pipeline, "memory_get", id=id) for id in (*sources, *made)}
    assert [wholes[id]["evidence"] for id in sources[:overtaken]] == [2] * overtaken
    assert [wholes[id]["evidence"] for id in made] == ([len(gone)] if gone else [])
    assert {id for id in sources if wholes[id]["archived_into"]} == gone
    last = await call(pipeline, "memory_consolidate", project_path=HERE)
    (one,) = last["created"]
    whole = await call(pipeline, "memory_get", id=one["id"])
    assert whole["evidence"] == 3 + overtaken
    assert all(
        said in whole["content"]
        for said in ("--mount=type=cache", "BuildKit must be on", "Clear it after upgrades")
    )


@pytest.mark.anyio
async def test_of_two_processes_that_consolidate_at_once_each_member_leaves_for_one(
    house: House, pipeline: CallPipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = await stored(pipeline, *BUILDS)
    real_plan, both_planned = consolidation.plan, asyncio.Barrier(2)

    async def plan_and_wait(*arguments: Any) -> consolidation.Plan:
        plan = await real_plan(*arguments)
        async with asyncio.timeout(20):
            await both_planned.wait()
        return plan

    monkeypatch.setattr(consolidation, "plan", plan_and_wait)
    async with open_house(build(Settings(data_dir=tmp_path, rate_limit=RateLimit(on=False)))) as other:
        both = await asyncio.gather(
            *(
                call(each, "memory_consolidate", project_path=HERE)
                for each in (pipeline, pipeline_of(other))
            )
        )
    archived = [id for done in both for id in done["archived"]]
    assert sorted(archived) == sorted(sources)
    made = [each["id"] for done in both for each in done["created"]]
    evidence = [(await call(pipeline, "memory_get", id=id))["evidence"] for id in made]
    assert sum(evidence) == 3


class Hurried:
    """A clock by which each look takes eight seconds."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        self.elapsed += 4.0
        return self.elapsed


@pytest.fixture
async def outcomes(tmp_path: Path) -> AsyncIterator[SqliteOutcomeLog]:
    log = SqliteOutcomeLog(tmp_path)
    yield log
    await log.close()


@pytest.mark.anyio
@pytest.mark.parametrize("dry_run", [True, False])
async def test_it_stops_in_time_and_goes_on_from_where_it_was(
    house: House, pipeline: CallPipeline, outcomes: SqliteOutcomeLog, dry_run: bool
) -> None:
    await stored(pipeline, LINTER, *BUILDS)
    archive = Archive(house.store, house.embeddings, house.scrubber, house.telemetry, house.clock)
    progress: list[float] = []

    async def heard(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    caller = Caller(session="tests", progress=heard)
    looked_at, offset = 0, 0
    for _ in range(4):
        memories = Memories(archive, outcomes, Hurried())
        done = await memories.consolidate(HERE, caller, threshold=0.85, dry_run=dry_run, offset=offset)
        looked_at += done.looked_at
        if done.next_offset is None:
            break
        assert done.looked_at < 4
        offset = done.next_offset
    assert done.next_offset is None
    if dry_run:
        assert looked_at == 4
        assert progress == sorted(progress)
    assert progress[-1] == (4 if dry_run else 2)


# --- which belong together ------------------------------------------------------------


def memory(number: int, content: str, **more: Any) -> Memory:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    draft = Draft("/srv/p", "Nightly import", content)
    return replace(draft.memory(Project("key", "/srv/p"), at), id=f"mem-key-{number}", **more)


def test_nothing_is_joined_by_way_of_a_third() -> None:
    rich = memory(0, "alpha beta gamma delta epsilon")
    middle, far = memory(1, "alpha beta gamma"), memory(2, "alpha beta")
    all_of_them = {each.id: each for each in (rich, middle, far)}
    near = {rich.id: {middle.id}, middle.id: {rich.id, far.id}, far.id: {middle.id}}
    clusters, left = consolidation.cluster(all_of_them, near)
    assert [{each.id for each in cluster} for cluster in clusters] == [{rich.id, middle.id}]
    assert left == ()


def test_a_cluster_that_is_full_says_so() -> None:
    many = [
        memory(number, f"alpha beta gamma word{'abcdefghijklmnopqrstuvwxyz'[number]}")
        for number in range(22)
    ]
    near = {each.id: {other.id for other in many if other is not each} for each in many}
    clusters, left = consolidation.cluster({each.id: each for each in many}, near)
    assert [len(cluster) for cluster in clusters] == [20, 2]
    assert left == ()
    clusters, left = consolidation.cluster(
        {each.id: each for each in many[:21]},
        {each.id: {other.id for other in many[:21] if other is not each} for each in many[:21]},
    )
    assert [len(cluster) for cluster in clusters] == [20]
    assert [each.reason for each in left] == ["its cluster is full: consolidate again"]


# --- what the one says ----------------------------------------------------------------


def test_the_one_has_the_richest_words_and_what_the_others_add_once() -> None:
    rich = memory(
        0,
        "The import fails when the disk is full. Rotate the logs first.",
        anchors=(Anchor("a.py", "", "old"), Anchor("b.py", "", "b")),
    )
    second = memory(
        2,
        "The import fails on a full disk.\n- Alert at ninety percent usage.\n```sh\ndf -h /var\n```",
        description="Seen at night",
        anchors=(Anchor("a.py", "", "new"),),
        outcome="failure",
    )
    third = memory(1, "Alert at ninety percent usage. Rotate logs first.", ancestors=("mem-key-9",))
    one = consolidation.composed([rich, second, third], "mem-key-one")
    assert one.content == (
        "The import fails when the disk is full. Rotate the logs first."
        "\n- Seen at night\n- Alert at ninety percent usage.\n```sh\ndf -h /var\n```"
    )
    assert one.description == "Seen at night"
    assert one.outcome == "failure"
    assert one.anchors == (Anchor("a.py", "", "new"), Anchor("b.py", "", "b"))
    assert one.ancestors == ("mem-key-0", "mem-key-2", "mem-key-1", "mem-key-9")
    assert (one.created_at, one.updated_at) == (rich.created_at, second.updated_at)


def test_to_change_an_outcome_is_to_lose_it() -> None:
    told = memory(0, "The import fails when the disk is full.")
    won, lost = replace(told, outcome="success"), replace(told, outcome="failure")
    assert loses(won, lost)
    assert loses(won, told)
    assert not loses(told, won)
    assert not loses(won, won)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=400), min_size=2, max_size=5), st.integers(1, 60))
def test_the_one_never_outgrows_its_field_and_keeps_the_richest_whole(texts: list[str], times: int) -> None:
    members = [
        memory(number, (text * times)[:MAX_MEMORY_CONTENT_LENGTH]) for number, text in enumerate(texts)
    ]
    one = consolidation.composed(members, "mem-key-one")
    assert len(one.content) <= MAX_MEMORY_CONTENT_LENGTH
    assert one.content.startswith(members[0].content)

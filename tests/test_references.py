"""References: what did not fit is held, read by lines or by a pattern, for those who got the answer."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types import TextResourceContents

from contextd.adapters.sqlite import SqliteStore
from contextd.adapters.tokens import O200kCounter
from contextd.domain import limits
from contextd.domain.callers import Caller, Principal, Tally
from contextd.domain.cutting import pieces
from contextd.domain.errors import BadFormat, NoSuchRef, OutOfRange
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.mcp_library import library_of
from contextd.services.answer_outline import Part
from contextd.services.projects import project_at
from contextd.services.ref_reading import RefReading, Wanted
from contextd.services.references import References
from contextd.wiring import House

pytestmark = pytest.mark.anyio
SHOP = "/srv/shop"
NOTES = "".join(f"note {number}: all is well in part {number}\n" for number in range(1, 1_501))


class Clock:
    def __init__(self) -> None:
        self.days = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=self.days)

    def monotonic(self) -> float:
        return self.days * 86_400


async def ask(
    pipeline: CallPipeline, name: str, caller: Caller | None = None, /, **more: Any
) -> dict[str, Any]:
    answer = await pipeline.call(name, more, caller or Caller())
    assert O200kCounter().count(answer.text) == answer.tokens_used
    return {**answer.data, **answer.envelope()}


@pytest.fixture
async def restored(pipeline: CallPipeline) -> dict[str, Any]:
    """An answer that did not fit."""
    saved = await ask(pipeline, "checkpoint_save", summary="Notes", content=NOTES, project_path=SHOP)
    return await ask(pipeline, "checkpoint_restore", id=saved["id"], level="full")


async def test_an_answer_that_does_not_fit_says_so_and_names_a_ref(restored: dict[str, Any]) -> None:
    assert restored["truncated"] is restored["has_more"] is True
    assert restored["tokens_used"] <= limits.DEFAULT_TOKENS
    assert re.search(rf"left out: ref_get {restored['refs'][0]}(\.\d+)? …\]\n", restored["content"])
    assert restored["content"].startswith("note 1:")
    assert restored["content"].endswith("note 1500: all is well in part 1500\n")


async def test_pages_of_a_ref_are_together_the_whole_text(
    pipeline: CallPipeline, restored: dict[str, Any]
) -> None:
    named = re.search(r"ref_get (\S+)", restored["content"])
    assert named is not None
    text, line = "", 1
    while True:
        page = await ask(pipeline, "ref_get", ref=named[1], start_line=line, token_budget=1_000)
        assert page["tokens_used"] <= 1_000
        text += page["content"]
        assert (page["start_line"], page["total_lines"]) == (line, 1_500)
        if not page["has_more"]:
            break
        line = page["end_line"] + 1
    assert text == NOTES


async def test_the_range_that_a_mark_names_is_what_is_missing(
    pipeline: CallPipeline, restored: dict[str, Any]
) -> None:
    mark = re.search(r"\[… lines (\d+)-(\d+) left out: ref_get (\S+) …\]\n", restored["content"])
    assert mark is not None
    got = await ask(
        pipeline,
        "ref_get",
        ref=mark[3],
        start_line=int(mark[1]),
        end_line=int(mark[2]),
        token_budget=32_768,
    )
    assert not got["has_more"]
    assert restored["content"].replace(mark[0], got["content"]) == NOTES


async def test_lines_are_found_by_a_pattern(pipeline: CallPipeline, restored: dict[str, Any]) -> None:
    ref = re.search(r"ref_get (\S+)", restored["content"])
    assert ref is not None
    found = await ask(pipeline, "ref_get", ref=ref[1], pattern=r"note 77\d:")
    assert found["content"].splitlines()[0] == "770: note 770: all is well in part 770"
    assert found["matches"] == 10
    many = await ask(pipeline, "ref_get", ref=ref[1], pattern="note", token_budget=300)
    assert many["has_more"]
    assert many["matches"] == 1_500
    rest = await ask(pipeline, "ref_get", ref=ref[1], pattern="note 1500", start_line=many["end_line"] + 1)
    assert rest["content"].startswith("1500: ")
    none = await ask(pipeline, "ref_get", ref=ref[1], pattern="nothing of the kind")
    assert (none["content"], none["matches"], none["has_more"]) == ("", 0, False)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"start_line": 1_501}, OutOfRange),
        ({"start_line": 9, "end_line": 8}, OutOfRange),
        ({"pattern": "("}, BadFormat),
        ({"pattern": r"(?=x)"}, BadFormat),
    ],
)
async def test_what_cannot_be_read_is_said_to_be_so(
    pipeline: CallPipeline, restored: dict[str, Any], more: dict[str, Any], fault: type[Exception]
) -> None:
    ref = re.search(r"ref_get (\S+)", restored["content"])
    assert ref is not None
    with pytest.raises(fault):
        await ask(pipeline, "ref_get", ref=ref[1], **more)


async def test_an_answer_with_several_gaps_lists_them_under_one_ref(pipeline: CallPipeline) -> None:
    for number in range(4):
        await ask(
            pipeline, "checkpoint_save", summary=f"Part {number}", project_path=SHOP,
            description=f"part {number}\n" * 400,
        )  # fmt: skip
    listed = await ask(pipeline, "checkpoint_list", project_path=SHOP, token_budget=600)
    (ref,) = listed["refs"]
    contents = (await ask(pipeline, "ref_get", ref=ref))["content"].splitlines()
    assert [line.split()[1] for line in contents[:4]] == [
        f"checkpoints[{at}].description" for at in range(4)
    ]
    assert contents[4].startswith("== ")
    every = await ask(pipeline, "ref_get", ref=ref, pattern="^part ", token_budget=16_000)
    assert every["matches"] == 4 * 400
    one = await ask(pipeline, "ref_get", ref=contents[0].split()[0], token_budget=16_000)
    assert one["content"] == "part 3\n" * 400


async def test_dropped_items_are_held_a_line_each(pipeline: CallPipeline) -> None:
    for number in range(12):
        await ask(pipeline, "checkpoint_save", summary=f"Checkpoint number {number}", project_path=SHOP)
    listed = await ask(pipeline, "checkpoint_list", project_path=SHOP, limit=12, token_budget=400)
    assert 0 < len(listed["checkpoints"]) < 12
    assert listed["total"] == 12
    rest = await ask(pipeline, "ref_get", ref=listed["refs"][0], token_budget=16_000)
    assert len(listed["checkpoints"]) + rest["content"].count('"summary"') == 12


async def test_a_ref_is_for_those_who_got_the_answer(
    pipeline: CallPipeline, restored: dict[str, Any]
) -> None:
    key = project_at(SHOP).key
    strangers = (Principal("ci"), Principal("local", frozenset({key})), Principal("ci", frozenset({key})))
    for principal in strangers:
        with pytest.raises(NoSuchRef):
            await ask(pipeline, "ref_get", Caller(principal), ref=restored["refs"][0])
    for made_up in ("ref-nope", "ref-shared-0000000000", f"{restored['refs'][0]}.99", "../../etc/passwd"):
        with pytest.raises(NoSuchRef):
            await ask(pipeline, "ref_get", ref=made_up)


async def test_a_ref_goes_with_its_project(pipeline: CallPipeline, restored: dict[str, Any]) -> None:
    await ask(pipeline, "ref_get", ref=restored["refs"][0])
    await ask(pipeline, "collection_delete", project_path=SHOP)
    with pytest.raises(NoSuchRef):
        await ask(pipeline, "ref_get", ref=restored["refs"][0])


async def test_the_same_answer_twice_has_the_same_ref(pipeline: CallPipeline) -> None:
    await ask(pipeline, "checkpoint_save", summary="Notes", description="x\n" * 2_000, project_path=SHOP)
    first, again = [
        (await pipeline.call("checkpoint_list", {"token_budget": 300}, Caller())).text for _ in range(2)
    ]
    assert first == again


async def test_what_is_held_is_scrubbed(pipeline: CallPipeline, house: House) -> None:
    secret = "ghp_" + "a1B2" * 9
    saved = await ask(
        pipeline,
        "checkpoint_save",
        summary="Notes",
        content=f"{NOTES}token {secret}\n{NOTES}",
        project_path=SHOP,
    )
    cut = await ask(pipeline, "checkpoint_restore", id=saved["id"], level="full")
    found = await ask(pipeline, "ref_get", ref=f"{cut['refs'][0]}", pattern="token ")
    assert "REDACTED" in found["content"] or found["matches"] == 0
    assert secret.encode() not in b"".join(
        file.read_bytes() for file in house.settings.data_dir.rglob("*.db*")
    )


# --- the bounds -------------------------------------------------------------------------


@pytest.fixture
def caller() -> Caller:
    return Caller(tally=Tally(project=project_at(SHOP)))


async def test_refs_are_held_for_three_days(tmp_path: Path, caller: Caller) -> None:
    clock, store = Clock(), SqliteStore(tmp_path)
    references = References(store, clock)
    parts = [Part("content", "text")]
    try:
        await references.keep(caller, parts)
        ref = references.handle(caller, parts)
        clock.days = 2.9
        assert (await references.get(ref, caller)).text == "text"
        await references.keep(caller, parts)
        clock.days = 5.8
        assert (await references.get(ref, caller)).text == "text"
        clock.days = 6
        with pytest.raises(NoSuchRef):
            await references.get(ref, caller)
        assert await references.sweep(project_at(SHOP)) == 2
    finally:
        await store.close()


async def test_the_oldest_refs_of_a_project_make_room_for_new_ones(
    tmp_path: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextd.services.references.REFS_CHARS", 1_000)
    clock, store = Clock(), SqliteStore(tmp_path)
    references = References(store, clock)
    bundles = [[Part("content", f"{number}" * 400)] for number in range(4)]
    try:
        for number, parts in enumerate(bundles):
            clock.days = number / 100
            await references.keep(caller, parts)
        await references.sweep(project_at(SHOP))
        kept = []
        for parts in bundles:
            try:
                kept.append((await references.get(references.handle(caller, parts), caller)).text[0])
            except NoSuchRef:
                continue
        assert kept == ["2", "3"]
    finally:
        await store.close()


async def test_a_text_too_long_to_hold_keeps_its_ends(
    tmp_path: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextd.services.references.REF_CHARS", 100)
    store = SqliteStore(tmp_path)
    references = References(store, Clock())
    parts = [Part("content", "a" * 500 + "z" * 500)]
    try:
        await references.keep(caller, parts)
        held = (await references.get(references.handle(caller, parts), caller)).text
        assert held == f"{'a' * 50}\n[… 900 characters were not kept …]\n{'z' * 50}"
    finally:
        await store.close()


# --- any text ---------------------------------------------------------------------------

texts = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=2_000),
    st.lists(st.sampled_from(["", "short", "x" * 700, "é…中" * 50, "error: no"]), max_size=60).map(
        "\n".join
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, tokens=st.integers(100, 2_000))
async def test_any_text_is_read_whole_page_by_page(
    tmp_path_factory: pytest.TempPathFactory, text: str, tokens: int
) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("refs"))
    references, counter = References(store, Clock()), O200kCounter()

    async def no_trail(branch_id: str, caller: Caller) -> str:
        raise AssertionError(branch_id)

    reading = RefReading(references, no_trail, counter)
    caller = replace(Caller(tally=Tally(project=project_at(SHOP))), tokens=tokens)
    try:
        await references.keep(caller, [Part("content", text)])
        ref = references.handle(caller, [Part("content", text)])
        again, line = "", 1
        while True:
            page = await reading.read(Wanted(ref, line), caller)
            again += page.content
            one = max((counter.count(piece) for piece in pieces(page.content)), default=0)
            assert counter.count(page.content) <= max(tokens, one)
            if not page.has_more:
                break
            line = page.end_line + 1
        assert again == text
    finally:
        await store.close()


async def test_a_ref_is_a_resource_too(
    house: House, pipeline: CallPipeline, restored: dict[str, Any]
) -> None:
    library = library_of(house)
    read = await library.read(f"contextd://refs/{restored['refs'][0]}", Caller())
    assert isinstance(read.contents[0], TextResourceContents)
    assert read.contents[0].text == NOTES
    with pytest.raises(NoSuchRef):
        await library.read("contextd://refs/ref-nope", Caller())

"""One contract, every store: what the `Store` port promises, sentence by sentence.

A store ships when it passes this file untouched. Set CONTEXTD_TEST_QDRANT_URI to run it against
a Qdrant server as well.
"""

import asyncio
import math
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import cast
from uuid import uuid4

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contextd.adapters.qdrant import QdrantStore
from contextd.adapters.sqlite import SqliteStore
from contextd.domain.errors import EmbedderUnavailable, Misconfigured, StoreUnavailable
from contextd.domain.ports import Store
from contextd.domain.records import (
    SHARED,
    Embedding,
    Entry,
    Filter,
    Fusion,
    Hit,
    Json,
    Order,
    Page,
    Project,
    Query,
    Record,
    Vector,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
]

# --- backends -------------------------------------------------------------------------

SERVER = os.environ.get("CONTEXTD_TEST_QDRANT_URI", "")
BACKENDS = ["sqlite", "qdrant-local", *(["qdrant-server"] if SERVER else [])]

Opener = Callable[[], Store]
"""Opens one more store on the same data, as another process would."""


@asynccontextmanager
async def sqlite_backend(folder: Path) -> AsyncIterator[Opener]:
    async with AsyncExitStack() as opened:

        def open_store() -> Store:
            store = SqliteStore(folder)
            opened.push_async_callback(store.close)
            return store

        yield open_store


@asynccontextmanager
async def qdrant_backend(url: str) -> AsyncIterator[Opener]:
    from qdrant_client import AsyncQdrantClient

    prefix = f"contextd-test-{uuid4().hex}"
    client = AsyncQdrantClient(url) if url == ":memory:" else AsyncQdrantClient(url=url)
    try:
        yield lambda: QdrantStore(url, prefix, client)
    finally:
        await client.delete_collection(f"{prefix}-records")
        await client.close()


def backend(name: str, folder: Path) -> AbstractAsyncContextManager[Opener]:
    if name == "sqlite":
        return sqlite_backend(folder)
    return qdrant_backend(SERVER if name == "qdrant-server" else ":memory:")


@pytest.fixture(params=BACKENDS)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    async with backend(request.param, tmp_path) as opener:
        yield opener


@pytest.fixture
def store(open_store: Opener) -> Store:
    return open_store()


# --- records, vectors, queries --------------------------------------------------------

ALPHA = Project("aaaa000001", "/work/alpha")
BETA = Project("bbbb000002", "/work/beta")
NOON = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
KIND = "note"
DIMENSION = 16


def note(id: str, text: str = "written down", *, at: datetime = NOON, project: Project = ALPHA) -> Record:
    return Record(
        id=id, kind=KIND, project=project, title="", text=text, fields={}, created_at=at, updated_at=at
    )


def leaning(cosine: float, axis: int = 1) -> Embedding:
    """A unit vector with this cosine to the first axis, the rest of it along another."""
    values = [0.0] * DIMENSION
    values[0], values[axis] = cosine, math.sqrt(1 - cosine * cosine)
    return Embedding("test", Vector(struct.pack(f"<{DIMENSION}f", *values)))


AHEAD = leaning(1.0)


def entries(*records: Record) -> list[Entry]:
    return [Entry(record) for record in records]


def notes_of(*projects: Project) -> Filter:
    return Filter(kinds=(KIND,), projects=projects)


EVERYWHERE = Filter(kinds=(KIND,))


async def ids(store: Store, filter: Filter, order: Order = "created_at") -> list[str]:
    return [record.id for record in (await store.page(filter, order, 0, 100)).records]


async def search(
    store: Store, text: str, embedding: Embedding | None = None, filter: Filter = EVERYWHERE
) -> list[Hit]:
    return await store.search(Query(text, filter, 50, embedding))


async def found(
    store: Store, text: str, embedding: Embedding | None = None, filter: Filter = EVERYWHERE
) -> list[str]:
    return [hit.record.id for hit in await search(store, text, embedding, filter)]


# --- put and get ----------------------------------------------------------------------


async def test_a_record_comes_back_with_every_field_as_it_was(store: Store) -> None:
    whole = Record(
        id="cp-aaaa000001-0123456789abcdefg",
        kind="checkpoint",
        project=ALPHA,
        title="Über den Fluß 🚣 مرحبا",
        text="line one\r\nline two\ttabbed\n\n日本語 é é \u2028 end ",
        fields={
            "none": None,
            "yes": True,
            "zero": 0,
            "large": 2**70,
            "real": -0.1,
            "text": "ünï",
            "nested": {"list": [1, [2, {"deep": "er"}], ""], "empty": {}, "": []},
        },
        tags=("zeta", "alpha", "Ünï", "with space"),
        created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        updated_at=datetime(2026, 1, 2, 3, 4, 5, 678902, tzinfo=UTC),
    )
    await store.put([Entry(whole, AHEAD)])
    assert await store.get(ALPHA, whole.id) == whole
    assert await store.page(Filter(("checkpoint",)), "created_at", 0, 1) == Page((whole,), 1)
    assert [hit.record for hit in await search(store, "Fluß", None, Filter(("checkpoint",)))] == [whole]


async def test_times_come_back_in_utc_whatever_zone_they_came_in(store: Store) -> None:
    elsewhere = datetime(2026, 3, 4, 1, 30, tzinfo=timezone(timedelta(hours=-9, minutes=-30)))
    await store.put(entries(note("a", at=elsewhere)))
    kept = await store.get(ALPHA, "a")
    assert kept is not None
    assert (kept.created_at, kept.created_at.utcoffset()) == (elsewhere, timedelta(0))
    assert (kept.updated_at, kept.updated_at.utcoffset()) == (elsewhere, timedelta(0))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    title=TEXT,
    text=TEXT,
    tags=st.lists(TEXT.filter(bool), max_size=3, unique=True),
    fields=st.dictionaries(TEXT, JSON, max_size=3),
    at=st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
)
async def test_whatever_is_put_comes_back(
    store: Store, title: str, text: str, tags: list[str], fields: dict[str, Json], at: datetime
) -> None:
    kept = replace(note("any", text, at=at), title=title, tags=tuple(tags), fields=fields)
    await store.put([Entry(kept)])
    assert await store.get(ALPHA, "any") == kept


async def test_an_unknown_record_is_none_in_a_known_and_in_an_unknown_project(store: Store) -> None:
    await store.put(entries(note("a")))
    assert await store.get(ALPHA, "b") is None
    assert await store.get(BETA, "a") is None


async def test_putting_an_id_again_replaces_the_record(store: Store) -> None:
    await store.put(entries(replace(note("a", "walrus"), tags=("old",))))
    newer = replace(note("a", "penguin", at=NOON + timedelta(hours=1)), tags=("new",))
    await store.put(entries(newer))
    assert await store.get(ALPHA, "a") == newer
    assert (await store.page(EVERYWHERE, "created_at", 0, 10)).total == 1
    assert await found(store, "walrus") == []
    assert await found(store, "penguin") == ["a"]
    assert await ids(store, replace(EVERYWHERE, tags=("old",))) == []


async def test_a_record_replaced_without_a_vector_has_none(store: Store) -> None:
    await store.put([Entry(note("a", "walrus"), AHEAD)])
    await store.put(entries(note("a", "penguin", at=NOON + timedelta(hours=1))))
    assert await found(store, "", AHEAD) == []
    assert [hit.distance for hit in await search(store, "penguin", AHEAD)] == [None]


async def test_of_an_id_twice_in_one_put_the_last_stands(store: Store) -> None:
    await store.put(entries(note("a", "first"), note("a", "second")))
    page = await store.page(EVERYWHERE, "created_at", 0, 10)
    assert [record.text for record in page.records] == ["second"]


async def test_putting_nothing_is_fine(store: Store) -> None:
    await store.put([])
    assert await store.drawers() == []


async def test_a_put_that_fails_leaves_nothing_of_itself(store: Store) -> None:
    await store.put(entries(note("kept", "before")))
    unsayable = replace(note("bad"), fields={"x": cast(Json, object())})
    with pytest.raises(TypeError):
        await store.put(entries(note("good"), note("kept", "after"), unsayable))
    assert await ids(store, EVERYWHERE) == ["kept"]
    kept = await store.get(ALPHA, "kept")
    assert kept is not None
    assert kept.text == "before"


async def test_the_same_id_in_two_projects_is_two_records(store: Store) -> None:
    await store.put(entries(note("a", "mine"), note("a", "yours", project=BETA)))
    mine, yours = await store.get(ALPHA, "a"), await store.get(BETA, "a")
    assert mine is not None
    assert yours is not None
    assert (mine.text, yours.text) == ("mine", "yours")
    await store.delete(ALPHA, ["a"])
    assert await store.get(BETA, "a") == yours


async def test_another_process_sees_a_write_that_returned(open_store: Opener) -> None:
    writer, reader = open_store(), open_store()
    assert await found(reader, "walrus", AHEAD) == []
    for text in ("walrus", "penguin"):
        await writer.put([Entry(note("a", text), AHEAD)])
        (hit,) = await search(reader, text, AHEAD)
        assert hit.record.text == text
        assert hit.distance == pytest.approx(0, abs=1e-2)
        assert await ids(reader, EVERYWHERE) == ["a"]
    await writer.delete(ALPHA, ["a"])
    assert await found(reader, "penguin", AHEAD) == []


async def test_a_write_outlives_the_store_that_made_it(open_store: Opener) -> None:
    store = open_store()
    await store.put([Entry(note("a", "walrus"), AHEAD)])
    await store.close()
    again = open_store()
    assert await found(again, "walrus", AHEAD) == ["a"]
    assert [drawer.project for drawer in await again.drawers()] == [ALPHA]


async def test_writes_at_the_same_moment_all_land(open_store: Opener) -> None:
    writers = [open_store(), open_store()]
    names = [f"n{number:02}" for number in range(30)]
    puts = [writers[n % 2].put(entries(note(name))) for n, name in enumerate(names)]
    await asyncio.gather(*puts)
    assert sorted(await ids(writers[0], EVERYWHERE)) == names


# --- swap -----------------------------------------------------------------------------


def later(record: Record, text: str, seconds: int = 1) -> Record:
    return replace(record, text=text, updated_at=record.updated_at + timedelta(seconds=seconds))


async def test_a_swap_for_nothing_puts_what_was_not_there(store: Store) -> None:
    assert await store.swap(Entry(note("a", "walrus"), AHEAD), None) is True
    assert await found(store, "walrus", AHEAD) == ["a"]
    assert [drawer.project for drawer in await store.drawers()] == [ALPHA]


async def test_a_swap_for_nothing_leaves_what_is_there(store: Store) -> None:
    await store.put([Entry(note("a", "walrus"), AHEAD)])
    assert await store.swap(Entry(later(note("a"), "penguin")), None) is False
    assert await store.get(ALPHA, "a") == note("a", "walrus")
    assert await found(store, "walrus", AHEAD) == ["a"]


async def test_a_swap_for_the_record_as_it_is_replaces_all_of_it(store: Store) -> None:
    first = note("a", "walrus")
    await store.put([Entry(first, AHEAD)])
    assert await store.swap(Entry(later(first, "penguin")), first) is True
    assert await store.get(ALPHA, "a") == later(first, "penguin")
    assert await found(store, "walrus") == []
    assert await found(store, "penguin") == ["a"]
    assert [record.id for record in await store.unembedded("test", 9)] == ["a"]


async def test_a_swap_for_a_record_that_moved_on_does_nothing(store: Store) -> None:
    first = note("a", "walrus")
    await store.put(entries(first))
    assert await store.swap(Entry(later(first, "penguin")), first) is True
    assert await store.swap(Entry(later(first, "seal", 2), AHEAD), first) is False
    assert await store.get(ALPHA, "a") == later(first, "penguin")
    assert await found(store, "seal", AHEAD) == []


async def test_a_swap_for_a_record_that_went_away_does_not_bring_it_back(store: Store) -> None:
    first = note("a", "walrus")
    await store.put(entries(first))
    await store.delete(ALPHA, ["a"])
    assert await store.swap(Entry(later(first, "penguin"), AHEAD), first) is False
    assert await store.get(ALPHA, "a") is None
    assert await store.swap(Entry(first), None) is True


async def test_a_swap_in_one_project_does_not_touch_another(store: Store) -> None:
    mine, yours = note("a", "mine"), note("a", "yours", project=BETA)
    await store.put(entries(mine, yours))
    assert await store.swap(Entry(later(mine, "changed")), mine) is True
    assert await store.get(BETA, "a") == yours


async def test_what_is_put_beside_a_swap_is_there_when_it_is(store: Store) -> None:
    first = note("a", "walrus")
    beside = [Entry(note("b", "seal"), AHEAD), Entry(note("c"))]
    assert await store.swap(Entry(first), None, beside) is True
    assert await store.get(ALPHA, "a") == first
    assert await store.get(ALPHA, "b") == note("b", "seal")
    assert await store.get(ALPHA, "c") == note("c")
    assert await found(store, "seal", AHEAD) == ["b"]


async def test_a_record_without_words_is_found_by_its_id_alone(store: Store) -> None:
    bare = replace(note("a"), title="", text="", tags=())
    await store.put(entries(bare, note("b", "walrus")))
    assert await store.get(ALPHA, "a") == bare
    assert await found(store, "walrus") == ["b"]
    assert [record.id for record in await store.unembedded("test", 9)] == ["b"]
    assert sorted(await ids(store, EVERYWHERE)) == ["a", "b"]
    await store.put(entries(replace(bare, text="penguin")))
    assert await found(store, "penguin") == ["a"]
    assert await store.delete(ALPHA, ["a"]) == 1


async def test_of_many_who_swap_at_once_in_two_processes_one_succeeds(open_store: Opener) -> None:
    stores = [open_store(), open_store()]
    first = note("a")
    drafts = [note("a", f"draft{number}") for number in range(10)]
    made = await asyncio.gather(*(stores[n % 2].swap(Entry(d), None) for n, d in enumerate(drafts)))
    assert made.count(True) == 1
    assert await stores[0].get(ALPHA, "a") == drafts[made.index(True)]
    changes = [later(first, f"change{number}", number + 1) for number in range(10)]
    swaps = (stores[n % 2].swap(Entry(change), first) for n, change in enumerate(changes))
    changed = await asyncio.gather(*swaps)
    assert changed.count(True) == 1
    assert await stores[1].get(ALPHA, "a") == changes[changed.index(True)]


# --- delete ---------------------------------------------------------------------------


async def test_delete_says_how_many_were_there(store: Store) -> None:
    await store.put(entries(note("a", "walrus"), note("b", "walrus"), note("c", "walrus")))
    assert await store.delete(ALPHA, ["a", "c", "never"]) == 2
    assert await store.delete(ALPHA, ["a"]) == 0
    assert await store.get(ALPHA, "a") is None
    assert await ids(store, EVERYWHERE) == ["b"]
    assert await found(store, "walrus") == ["b"]


async def test_deleting_nothing_or_in_an_unknown_project_is_zero(store: Store) -> None:
    await store.put(entries(note("a")))
    assert await store.delete(ALPHA, []) == 0
    assert await store.delete(BETA, ["a"]) == 0
    assert await ids(store, EVERYWHERE) == ["a"]


async def test_a_deleted_record_is_found_by_its_vector_no_more(store: Store) -> None:
    await store.put([Entry(note("a"), AHEAD), Entry(note("b"), leaning(0.5))])
    assert await found(store, "", AHEAD) == ["a", "b"]
    await store.delete(ALPHA, ["a"])
    assert await found(store, "", AHEAD) == ["b"]


# --- page -----------------------------------------------------------------------------


async def test_a_page_is_newest_first_by_the_order_asked_for(store: Store) -> None:
    hour = timedelta(hours=1)
    old_but_touched = replace(note("a"), updated_at=NOON + 9 * hour)
    await store.put(entries(old_but_touched, note("b", at=NOON + hour), note("c", at=NOON + 2 * hour)))
    assert await ids(store, EVERYWHERE, "created_at") == ["c", "b", "a"]
    assert await ids(store, EVERYWHERE, "updated_at") == ["a", "c", "b"]


async def test_a_microsecond_decides_the_order(store: Store) -> None:
    tick = timedelta(microseconds=1)
    await store.put(entries(note("a", at=NOON + 2 * tick), note("c", at=NOON), note("b", at=NOON + tick)))
    assert await ids(store, EVERYWHERE) == ["a", "b", "c"]


async def test_of_the_same_moment_the_greater_id_comes_first_on_every_page(store: Store) -> None:
    names = ["d", "a", "e", "c", "b"]
    await store.put(entries(*(note(name) for name in names), note("z", at=NOON - timedelta(days=1))))
    assert await ids(store, EVERYWHERE) == ["e", "d", "c", "b", "a", "z"]
    for offset in range(6):
        page = await store.page(EVERYWHERE, "created_at", offset, 2)
        assert [record.id for record in page.records] == ["e", "d", "c", "b", "a", "z"][offset : offset + 2]


async def test_pages_join_without_gaps_across_projects(store: Store) -> None:
    moments = [NOON + timedelta(minutes=number) for number in range(9)]
    homes = [ALPHA, BETA, SHARED]
    await store.put(
        entries(*(note(f"n{n}", at=moment, project=homes[n % 3]) for n, moment in enumerate(moments)))
    )
    pages = [await store.page(EVERYWHERE, "created_at", offset, 4) for offset in (0, 4, 8)]
    assert [r.id for page in pages for r in page.records] == [f"n{n}" for n in range(8, -1, -1)]
    assert {page.total for page in pages} == {9}
    assert {r.project for page in pages for r in page.records} == set(homes)


async def test_the_total_counts_what_matches_not_what_is_shown(store: Store) -> None:
    await store.put(entries(*(note(f"n{number}") for number in range(5))))
    assert await store.page(EVERYWHERE, "created_at", 7, 3) == Page((), 5)
    assert await store.page(EVERYWHERE, "created_at", 0, 0) == Page((), 5)
    assert await store.page(Filter(("other",)), "created_at", 0, 3) == Page((), 0)


# --- filters, in pages and in searches alike ------------------------------------------


async def test_only_the_kinds_asked_for_are_seen(store: Store) -> None:
    await store.put(entries(*(replace(note(kind, "walrus"), kind=kind) for kind in ("x", "y", "z"))))
    for kinds in (("x",), ("x", "z"), ()):
        assert sorted(await ids(store, Filter(kinds))) == sorted(kinds)
        assert sorted(await found(store, "walrus", None, Filter(kinds))) == sorted(kinds)


async def test_every_tag_asked_for_must_be_present(store: Store) -> None:
    tagged = {"both": ("red", "blue"), "red": ("red",), "none": (), "near": ("redder", "blue")}
    await store.put(entries(*(replace(note(id, "walrus"), tags=tags) for id, tags in tagged.items())))
    for tags, expected in {("red",): ["both", "red"], ("blue", "red"): ["both"], ("RED",): []}.items():
        filter = replace(EVERYWHERE, tags=tags)
        assert sorted(await ids(store, filter)) == expected
        assert sorted(await found(store, "walrus", None, filter)) == expected


async def test_since_is_included_and_until_is_not(store: Store) -> None:
    tick = timedelta(microseconds=1)
    moments = {"before": NOON - tick, "at": NOON, "after": NOON + tick}
    await store.put([Entry(note(id, "walrus", at=moment), AHEAD) for id, moment in moments.items()])
    for filter, expected in (
        (replace(EVERYWHERE, since=NOON), ["after", "at"]),
        (replace(EVERYWHERE, until=NOON), ["before"]),
        (replace(EVERYWHERE, since=NOON, until=NOON + tick), ["at"]),
        (replace(EVERYWHERE, since=NOON, until=NOON), []),
    ):
        assert sorted(await ids(store, filter)) == expected
        assert sorted(await found(store, "walrus", None, filter)) == expected
        assert sorted(await found(store, "", AHEAD, filter)) == expected


async def test_a_time_asked_for_in_another_zone_is_the_same_moment(store: Store) -> None:
    await store.put(entries(note("a")))
    since = NOON.astimezone(timezone(timedelta(hours=5)))
    assert await ids(store, replace(EVERYWHERE, since=since)) == ["a"]


async def test_a_query_for_one_project_never_sees_another(store: Store) -> None:
    homes = {"mine": ALPHA, "yours": BETA, "ours": SHARED}
    await store.put([Entry(note(id, "walrus", project=home), AHEAD) for id, home in homes.items()])
    for filter, expected in (
        (notes_of(ALPHA), ["mine"]),
        (notes_of(BETA), ["yours"]),
        (notes_of(SHARED), ["ours"]),
        (notes_of(ALPHA, SHARED), ["mine", "ours"]),
        (notes_of(ALPHA, ALPHA), ["mine"]),
        (notes_of(), []),
        (notes_of(Project("cccc000003", "/work/gamma")), []),
        (EVERYWHERE, ["mine", "ours", "yours"]),
    ):
        assert sorted(await ids(store, filter)) == expected
        assert (await store.page(filter, "created_at", 0, 1)).total == len(expected)
        assert sorted(await found(store, "walrus", None, filter)) == expected
        assert sorted(await found(store, "", AHEAD, filter)) == expected
        assert sorted(await found(store, "walrus", AHEAD, filter)) == expected


async def test_a_crowd_in_another_project_hides_nothing(store: Store) -> None:
    crowd = [Entry(note(f"n{number}", "walrus", project=BETA), AHEAD) for number in range(150)]
    await store.put([*crowd, Entry(note("mine", "a walrus, said in more words"), leaning(0.1))])
    assert await found(store, "walrus", AHEAD, notes_of(ALPHA)) == ["mine"]


# --- search ---------------------------------------------------------------------------


async def test_words_find_the_record_that_has_them(store: Store) -> None:
    await store.put(
        entries(
            note("disk", "the disk is full and the write failed"),
            note("net", "connection refused by the remote host"),
            replace(note("auth", "send it again"), title="token expired"),
        )
    )
    for text, expected in (
        ("connection refused", "net"),
        ("why was my token expired?", "auth"),
        ("DISK full", "disk"),
    ):
        hits = await search(store, text)
        assert hits[0].record.id == expected
        assert hits[0].score == pytest.approx(1.0)
        assert all(hit.distance is None for hit in hits)


async def test_a_word_that_no_record_has_finds_nothing(store: Store) -> None:
    await store.put(entries(note("a", "the disk is full")))
    assert await search(store, "walrus") == []


@pytest.mark.parametrize(
    "text", ["http request", "parseHTTPRequest", "parsehttprequest", "parse_http_request", "request"]
)
async def test_an_identifier_is_found_whole_and_by_its_words(store: Store, text: str) -> None:
    await store.put(
        entries(note("it", "def parseHTTPRequest(self): pass"), note("other", "def renderPage(self): pass"))
    )
    assert (await found(store, text))[:1] == ["it"]


@pytest.mark.parametrize("text", ["naïve", "ÜBER", "東京", "день"])
async def test_words_of_any_script_are_found(store: Store, text: str) -> None:
    await store.put(entries(note("it", "a naïve über 東京 Добрый день"), note("other", "plain text")))
    assert await found(store, text) == ["it"]


async def test_the_nearest_vector_comes_first_when_words_say_nothing(store: Store) -> None:
    nearness = {"far": -0.5, "near": 0.9, "middle": 0.4}
    await store.put([Entry(note(id), leaning(cosine)) for id, cosine in nearness.items()])
    hits = await search(store, "", AHEAD)
    assert [hit.record.id for hit in hits] == ["near", "middle", "far"]
    assert hits[0].score == pytest.approx(1.0)


async def test_what_leads_by_words_and_by_vector_leads_with_a_full_score(store: Store) -> None:
    await store.put(
        [
            Entry(note("both", "walrus"), leaning(0.9)),
            Entry(note("words", "a walrus among many other words"), leaning(0.1)),
            Entry(note("vector", "penguin"), leaning(0.5)),
        ]
    )
    hits = await search(store, "walrus", AHEAD)
    assert hits[0].record.id == "both"
    assert hits[0].score == pytest.approx(1.0)
    assert {hit.record.id for hit in hits} == {"both", "words", "vector"}


async def test_the_weights_of_a_query_decide_between_words_and_vector(store: Store) -> None:
    await store.put([Entry(note("words", "walrus")), Entry(note("vector", "penguin"), AHEAD)])
    for fusion, expected in ((Fusion(3.0, 1.0), "words"), (Fusion(1.0, 3.0), "vector")):
        hits = await store.search(Query("walrus", EVERYWHERE, 1, AHEAD, fusion))
        assert [hit.record.id for hit in hits] == [expected]


async def test_scores_fall_within_zero_and_one(store: Store) -> None:
    await store.put(
        [Entry(note(f"n{n}", "walrus " * n + "word " * (9 - n)), leaning(n / 9 - 0.5)) for n in range(9)]
    )
    for embedding in (None, AHEAD):
        scores = [hit.score for hit in await search(store, "walrus word", embedding)]
        assert len(scores) == 9
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


async def test_distance_is_cosine_distance_of_every_hit_that_has_a_vector(store: Store) -> None:
    cosines = {f"n{number}": -1 + number / 10 for number in range(21)}
    vectors = [
        Entry(note(id, "walrus"), leaning(cosine, axis=1 + number % 9))
        for number, (id, cosine) in enumerate(cosines.items())
    ]
    await store.put([*vectors, Entry(note("bare", "walrus"))])
    hits = await search(store, "walrus", AHEAD)
    assert {hit.record.id for hit in hits} == {*cosines, "bare"}
    for hit in hits:
        expected = cosines.get(hit.record.id)
        assert hit.distance == (None if expected is None else pytest.approx(1 - expected, abs=1e-2))


async def test_a_hit_by_words_has_its_distance_however_far_it_is(store: Store) -> None:
    nearer = [Entry(note(f"n{number}"), leaning(0.9)) for number in range(150)]
    await store.put([*nearer, Entry(note("far", "walrus"), leaning(-0.7))])
    hits = {hit.record.id: hit for hit in await search(store, "walrus", AHEAD)}
    assert hits["far"].distance == pytest.approx(1.7, abs=1e-2)


async def test_a_vector_of_another_model_is_not_compared(store: Store) -> None:
    other = Embedding("other", AHEAD.vector)
    await store.put([Entry(note("a", "walrus"), AHEAD), Entry(note("b", "penguin"), other)])
    assert await found(store, "", AHEAD) == ["a"]
    assert await found(store, "", other) == ["b"]
    assert await found(store, "", Embedding("third", AHEAD.vector)) == []
    hits = {hit.record.id: hit.distance for hit in await search(store, "walrus penguin", AHEAD)}
    assert hits == {"a": pytest.approx(0, abs=1e-2), "b": None}


async def test_a_vector_of_another_length_is_not_compared(store: Store) -> None:
    await store.put([Entry(note("a", "walrus"), AHEAD)])
    short = Embedding("test", Vector(struct.pack("<4f", 1, 0, 0, 0)))
    assert [(hit.record.id, hit.distance) for hit in await search(store, "walrus", short)] == [("a", None)]


async def test_vectors_of_two_lengths_under_one_name_do_not_break_a_search(store: Store) -> None:
    short = Embedding("test", Vector(struct.pack("<4f", 1, 0, 0, 0)))
    await store.put([Entry(note("long", "walrus"), AHEAD)])
    assert await found(store, "", AHEAD) == ["long"]
    await store.put([Entry(note("short", "walrus"), short)])
    for embedding in (AHEAD, short):
        assert set(await found(store, "walrus", embedding)) == {"long", "short"}


async def test_a_record_without_a_vector_is_found_by_its_words_at_once(store: Store) -> None:
    await store.put([Entry(note("new", "walrus")), Entry(note("old", "penguin"), AHEAD)])
    assert await found(store, "walrus") == ["new"]
    assert set(await found(store, "walrus", AHEAD)) == {"new", "old"}


async def test_no_more_hits_come_than_were_asked_for(store: Store) -> None:
    await store.put([Entry(note(f"n{number}", "walrus"), AHEAD) for number in range(5)])
    for limit in (0, 1, 3, 5):
        assert len(await store.search(Query("walrus", EVERYWHERE, limit, AHEAD))) == limit
        assert len(await store.search(Query("walrus", EVERYWHERE, limit))) == limit


HOSTILE = [
    "",
    " \t\n",
    "'",
    '"',
    '"unbalanced',
    "*",
    "walrus*",
    "^walrus",
    "a AND b OR NOT c NEAR/3 d",
    "NEAR(walrus penguin)",
    "AND",
    "title:walrus",
    "{title text}: x",
    "((((",
    "-walrus +penguin",
    "'; DROP TABLE records; --",
    "%_\\",
    "?:@$1",
    "".join(map(chr, range(1, 32))),
    "\x7f\u200b\ufeff\u202e",
    "é" * 1000,
    "walrus " * 142,
    "!?.,;:-_/\\|()[]{}<>@#$%^&*~`'\"" * 30,
    "🦭🦭🦭",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_query_text_is_an_error(store: Store, text: str) -> None:
    await store.put([Entry(note("a", "the walrus and the penguin"), AHEAD)])
    assert set(await found(store, text)) <= {"a"}
    assert await found(store, text, AHEAD) == ["a"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200))
async def test_no_text_at_all_makes_a_search_fail(store: Store, text: str) -> None:
    await store.put([Entry(note("a", text), AHEAD)])
    assert set(await found(store, text)) <= {"a"}
    assert await found(store, text, AHEAD) == ["a"]


async def test_a_search_in_an_empty_store_finds_nothing(store: Store) -> None:
    assert await search(store, "walrus", AHEAD) == []


# --- vectors that come later ----------------------------------------------------------


async def test_records_without_a_vector_of_the_model_are_listed_oldest_first(store: Store) -> None:
    day = timedelta(days=1)
    await store.put(
        [
            Entry(note("newest", at=NOON + day)),
            Entry(note("oldest", at=NOON - day, project=BETA)),
            Entry(note("embedded", at=NOON - 2 * day), AHEAD),
            Entry(replace(note("shared", project=SHARED), kind="skill")),
        ]
    )
    lacking = [record.id for record in await store.unembedded("test", 10)]
    assert lacking == ["oldest", "shared", "newest"]
    assert [record.id for record in await store.unembedded("test", 2)] == ["oldest", "shared"]
    assert [record.id for record in await store.unembedded("other", 1)] == ["embedded"]


async def test_a_record_without_words_needs_no_vector(store: Store) -> None:
    await store.put(entries(note("silent", ""), note("spoken", "words")))
    assert [record.id for record in await store.unembedded("test", 10)] == ["spoken"]


async def test_an_empty_store_has_nothing_to_embed(store: Store) -> None:
    assert await store.unembedded("test", 10) == []


async def test_a_vector_that_comes_later_gives_what_one_that_is_there_gives(store: Store) -> None:
    await store.put([Entry(note("near"), AHEAD), Entry(note("worded", "walrus"), leaning(0.1))])
    query = Query("walrus", EVERYWHERE, 50)

    async def made(embedding: Embedding | None) -> Embedding | None:
        await asyncio.sleep(0)
        return embedding

    assert await store.search(query, made(AHEAD)) == await store.search(replace(query, embedding=AHEAD))
    assert await store.search(query, made(None)) == await store.search(query)


async def test_a_vector_that_fails_ends_the_search_and_not_the_store(store: Store) -> None:
    async def failing() -> Embedding | None:
        raise EmbedderUnavailable("it is away")

    await store.put(entries(note("a", "walrus")))
    with pytest.raises(EmbedderUnavailable):
        await store.search(Query("walrus", EVERYWHERE, 50), failing())
    assert await found(store, "walrus") == ["a"]


async def test_an_attached_vector_is_searched_and_no_longer_lacking(store: Store) -> None:
    await store.put(entries(note("a", "walrus"), note("b", project=BETA), note("c", project=SHARED)))
    lacking = await store.unembedded("test", 10)
    await store.attach([Entry(record, AHEAD) for record in lacking])
    assert await store.unembedded("test", 10) == []
    hits = await search(store, "", AHEAD)
    assert {hit.record.id: hit.distance for hit in hits} == dict.fromkeys("abc", pytest.approx(0, abs=1e-2))
    assert [hit.record for hit in await search(store, "walrus")] == [note("a", "walrus")]


async def test_an_attached_vector_takes_the_place_of_the_one_before(store: Store) -> None:
    await store.put([Entry(note("a"), leaning(0.2))])
    await store.attach([Entry(note("a"), AHEAD)])
    assert [hit.distance for hit in await search(store, "", AHEAD)] == [pytest.approx(0, abs=1e-2)]


async def test_a_record_can_be_given_a_vector_of_a_newer_model(open_store: Opener) -> None:
    store = open_store()
    await store.put([Entry(note("a"), AHEAD)])
    assert await found(store, "", AHEAD) == ["a"]
    newer = Embedding("newer", leaning(0.5).vector)
    await store.attach([Entry(record, newer) for record in await store.unembedded("newer", 10)])
    assert await store.unembedded("newer", 10) == []
    (hit,) = await search(store, "", Embedding("newer", AHEAD.vector))
    assert hit.distance == pytest.approx(0.5, abs=1e-2)
    assert await found(store, "", AHEAD) == await found(open_store(), "", AHEAD) == [], "the older went"


async def test_a_record_that_changed_meanwhile_does_not_get_the_stale_vector(store: Store) -> None:
    await store.put(entries(note("changed", "walrus"), note("same", "walrus")))
    lacking = await store.unembedded("test", 10)
    await store.put(entries(note("changed", "penguin", at=NOON + timedelta(microseconds=1))))
    await store.attach([Entry(record, AHEAD) for record in lacking])
    assert [record.id for record in await store.unembedded("test", 10)] == ["changed"]
    assert await found(store, "", AHEAD) == ["same"]


async def test_a_record_that_went_away_meanwhile_does_not_come_back(store: Store) -> None:
    await store.put(entries(note("gone"), note("stays"), note("dropped", project=BETA)))
    lacking = await store.unembedded("test", 10)
    await store.delete(ALPHA, ["gone"])
    await store.drop(BETA)
    await store.attach([Entry(record, AHEAD) for record in lacking])
    assert await ids(store, EVERYWHERE) == ["stays"]
    assert await found(store, "", AHEAD) == ["stays"]
    assert [drawer.project for drawer in await store.drawers()] == [ALPHA]


async def test_attaching_nothing_is_fine(store: Store) -> None:
    await store.attach([])
    await store.put(entries(note("a")))
    await store.attach(entries(note("a")))
    assert [record.id for record in await store.unembedded("test", 10)] == ["a"]


# --- drawers --------------------------------------------------------------------------


async def test_a_drawer_is_created_once(store: Store) -> None:
    before = datetime.now(UTC)
    assert await store.create(ALPHA) is True
    assert await store.create(ALPHA) is False
    (drawer,) = await store.drawers()
    assert drawer.project == ALPHA
    assert drawer.counts == {}
    assert before <= drawer.created_at <= datetime.now(UTC)


async def test_of_two_who_create_a_drawer_at_once_one_made_it(open_store: Opener) -> None:
    made = await asyncio.gather(*(open_store().create(ALPHA) for _ in range(4)))
    assert sorted(made) == [False, False, False, True]


async def test_the_first_record_makes_the_drawer(store: Store) -> None:
    await store.put(entries(note("a")))
    assert await store.create(ALPHA) is False
    assert [drawer.project for drawer in await store.drawers()] == [ALPHA]


async def test_drawers_count_their_records_by_kind(store: Store) -> None:
    await store.create(BETA)
    await store.put(
        entries(note("a"), note("b"), replace(note("c"), kind="memory"), note("s", project=SHARED))
    )
    drawers = {drawer.project: drawer for drawer in await store.drawers()}
    assert {project: drawer.counts for project, drawer in drawers.items()} == {
        ALPHA: {KIND: 2, "memory": 1},
        BETA: {},
        SHARED: {KIND: 1},
    }


async def test_a_drawer_has_a_size_once_something_is_in_it(store: Store) -> None:
    await store.put(entries(note("a", "walrus " * 100), note("b", "walrus " * 100)))
    (drawer,) = await store.drawers()
    assert drawer.size_bytes >= 1400


async def test_a_dropped_drawer_is_empty_and_forgotten(store: Store) -> None:
    await store.put([Entry(note("a", "walrus"), AHEAD), Entry(note("b", "walrus", project=BETA), AHEAD)])
    dropped = await store.drop(ALPHA)
    assert dropped is not None
    assert (dropped.project, dropped.counts) == (ALPHA, {KIND: 1})
    assert await store.get(ALPHA, "a") is None
    assert await ids(store, EVERYWHERE) == ["b"]
    assert await found(store, "walrus", AHEAD) == ["b"]
    assert await store.unembedded("test", 10) == []
    assert [drawer.project for drawer in await store.drawers()] == [BETA]
    assert await store.drop(ALPHA) is None


async def test_dropping_what_never_was_is_none(store: Store) -> None:
    assert await store.drop(ALPHA) is None
    assert await store.drawers() == []


async def test_a_dropped_drawer_can_be_made_anew(store: Store) -> None:
    await store.put([Entry(note("a", "walrus"), AHEAD)])
    await store.drop(ALPHA)
    assert await store.create(ALPHA) is True
    assert await ids(store, EVERYWHERE) == []
    await store.put([Entry(note("a", "penguin"), leaning(0.5))])
    (hit,) = await search(store, "walrus penguin", AHEAD)
    assert hit.record.text == "penguin"
    assert hit.distance == pytest.approx(0.5, abs=1e-2)


async def test_the_shared_drawer_is_a_drawer_like_any_other(store: Store) -> None:
    kept = note("s", "walrus", project=SHARED)
    assert await store.create(SHARED) is True
    await store.put([Entry(kept, AHEAD)])
    assert await store.get(SHARED, "s") == kept
    assert await found(store, "walrus", AHEAD, notes_of(SHARED)) == ["s"]
    assert await store.delete(SHARED, ["s"]) == 1
    dropped = await store.drop(SHARED)
    assert dropped is not None
    assert dropped.project == SHARED


# --- the engine -----------------------------------------------------------------------


async def test_a_store_that_answers_passes_its_check(store: Store) -> None:
    await store.check()
    await store.put(entries(note("a")))
    await store.check()


async def test_closing_twice_is_closing_once(open_store: Opener) -> None:
    used, unused = open_store(), open_store()
    await used.put(entries(note("a")))
    for store in (used, unused):
        await store.close()
        await store.close()


def sqlite_on_a_file(folder: Path) -> Store:
    (folder / "taken").write_text("a file where the folder should be")
    return SqliteStore(folder / "taken")


def qdrant_at_a_closed_port(folder: Path) -> Store:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return QdrantStore(f"http://127.0.0.1:{unused.getsockname()[1]}")


@pytest.mark.parametrize("broken", [sqlite_on_a_file, qdrant_at_a_closed_port])
async def test_an_engine_that_cannot_be_reached_is_told_as_such(
    broken: Callable[[Path], Store], tmp_path: Path
) -> None:
    store = broken(tmp_path)
    with anyio.fail_after(5):
        for ask in (
            store.check,
            lambda: store.put(entries(note("a"))),
            lambda: store.swap(Entry(note("a")), None),
            lambda: store.create(ALPHA),
        ):
            with pytest.raises(StoreUnavailable):
                await ask()
        await store.close()


def answering(status: int, body: dict[str, str]) -> Store:
    """A store whose server says the same to every request."""
    from qdrant_client import AsyncQdrantClient

    answer = httpx.MockTransport(lambda request: httpx.Response(status, json=body))
    url = "http://qdrant.invalid:6333"
    return QdrantStore(url, client=AsyncQdrantClient(url=url, check_compatibility=False, transport=answer))


@pytest.mark.parametrize("status", [401, 429, 500, 503])
async def test_a_qdrant_that_refuses_is_unavailable(status: int) -> None:
    store = answering(status, {"status": "no"})
    with pytest.raises(StoreUnavailable, match=str(status)):
        await store.check()
    with pytest.raises(StoreUnavailable, match=str(status)):
        await store.put(entries(note("a")))


async def test_something_else_at_the_address_of_qdrant_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await answering(200, {"hello": "world"}).check()


async def test_a_qdrant_too_old_for_new_models_is_refused() -> None:
    store = answering(200, {"title": "qdrant", "version": "1.17.3"})
    with pytest.raises(Misconfigured, match=r"Qdrant 1\.17\.3 is too old"):
        await store.check()


def test_qdrant_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    monkeypatch.delitem(sys.modules, "contextd.adapters.qdrant.collection", raising=False)
    with pytest.raises(Misconfigured) as refusal:
        QdrantStore("http://127.0.0.1:6333")
    assert refusal.value.remedy == 'pip install "contextd[qdrant]"'


def test_qdrant_at_no_address_says_what_to_set() -> None:
    with pytest.raises(Misconfigured, match="QDRANT_URI"):
        QdrantStore("ftp://somewhere")


# --- any sequence of calls ------------------------------------------------------------

HOMES = st.sampled_from([ALPHA, BETA, SHARED])
LETTERS = st.sampled_from("abcde")
KINDS = ("note", "memory")
TAGS = ("red", "blue")
MOMENTS = [NOON + timedelta(microseconds=number) for number in range(4)]
FILTERS = st.builds(
    Filter,
    kinds=st.sampled_from([KINDS, KINDS[:1], KINDS[1:]]),
    projects=st.none() | st.lists(HOMES, max_size=2, unique=True).map(tuple),
    tags=st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
    since=st.none() | st.sampled_from(MOMENTS),
    until=st.none() | st.sampled_from(MOMENTS),
)


@st.composite
def any_entry(draw: st.DrawFn) -> Entry:
    home = draw(HOMES)
    record = Record(
        id=f"{draw(LETTERS)}-{home.key}",
        kind=draw(st.sampled_from(KINDS)),
        project=home,
        title="common",
        text=draw(st.sampled_from(["", "walrus", "penguin"])),
        fields={"n": draw(st.integers(0, 9))},
        tags=tuple(draw(st.lists(st.sampled_from(TAGS), unique=True, max_size=2))),
        created_at=draw(st.sampled_from(MOMENTS)),
        updated_at=draw(st.sampled_from(MOMENTS)),
    )
    return Entry(record, draw(st.none() | st.just(AHEAD)))


def admits(filter: Filter, record: Record) -> bool:
    return (
        record.kind in filter.kinds
        and (filter.projects is None or record.project in filter.projects)
        and set(filter.tags) <= set(record.tags)
        and (filter.since is None or record.created_at >= filter.since)
        and (filter.until is None or record.created_at < filter.until)
    )


BRISK = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
"""Without the phase that explains a failure: it reruns the store under a tracer."""


class AgainstADictionary(RuleBasedStateMachine):
    """The store and a plain dictionary are told the same things, and must give the same answers."""

    runner: asyncio.Runner
    store: Store

    @initialize(entries=st.lists(any_entry(), min_size=4, max_size=8))
    def begin(self, entries: list[Entry]) -> None:
        self.kept: dict[tuple[Project, str], Entry] = {}
        for home in (ALPHA, BETA, SHARED):
            self.runner.run(self.store.drop(home))
        self.put(entries)

    def matching(self, filter: Filter) -> Iterable[Entry]:
        return [entry for entry in self.kept.values() if admits(filter, entry.record)]

    @rule(entries=st.lists(any_entry(), max_size=4))
    def put(self, entries: list[Entry]) -> None:
        self.runner.run(self.store.put(entries))
        self.kept.update({(entry.record.project, entry.record.id): entry for entry in entries})

    @rule(entry=any_entry(), old=st.none() | any_entry())
    def swap(self, entry: Entry, old: Entry | None) -> None:
        place = (entry.record.project, entry.record.id)
        there = self.kept.get(place)
        expected = (
            None if old is None else replace(old.record, id=entry.record.id, project=entry.record.project)
        )
        held = there.record.updated_at if there else None
        as_expected = held == (expected.updated_at if expected else None)
        assert self.runner.run(self.store.swap(entry, expected)) is as_expected
        if as_expected:
            self.kept[place] = entry

    @precondition(lambda self: self.kept)
    @rule(home=HOMES, letters=st.sets(LETTERS, max_size=3))
    def delete(self, home: Project, letters: set[str]) -> None:
        names = [f"{letter}-{home.key}" for letter in letters]
        there = [name for name in names if self.kept.pop((home, name), None)]
        assert self.runner.run(self.store.delete(home, names)) == len(there)

    @precondition(lambda self: len(self.kept) > 4)
    @rule(home=HOMES)
    def drop(self, home: Project) -> None:
        self.runner.run(self.store.drop(home))
        self.kept = {place: entry for place, entry in self.kept.items() if place[0] != home}

    @rule(home=HOMES, letter=LETTERS)
    def get(self, home: Project, letter: str) -> None:
        name = f"{letter}-{home.key}"
        kept = self.kept.get((home, name))
        assert self.runner.run(self.store.get(home, name)) == (kept.record if kept else None)

    @rule(
        filter=FILTERS,
        order=st.sampled_from(["created_at", "updated_at"]),
        offset=st.integers(0, 4),
        limit=st.integers(0, 6),
    )
    def page(self, filter: Filter, order: Order, offset: int, limit: int) -> None:
        everything = [entry.record for entry in self.matching(filter)]
        everything.sort(key=lambda record: (getattr(record, order), record.id), reverse=True)
        page = self.runner.run(self.store.page(filter, order, offset, limit))
        assert page == Page(tuple(everything[offset : offset + limit]), len(everything))

    @rule(filter=FILTERS, word=st.sampled_from(["common", "walrus"]))
    def search_by_word(self, filter: Filter, word: str) -> None:
        expected = {
            entry.record.id
            for entry in self.matching(filter)
            if word in (entry.record.title, entry.record.text)
        }
        hits = self.runner.run(self.store.search(Query(word, filter, 50)))
        assert {hit.record.id for hit in hits} == expected

    @rule(filter=FILTERS)
    def search_by_vector(self, filter: Filter) -> None:
        expected = {entry.record.id for entry in self.matching(filter) if entry.embedding}
        hits = self.runner.run(self.store.search(Query("", filter, 50, AHEAD)))
        assert {hit.record.id for hit in hits} == expected

    @rule()
    def unembedded(self) -> None:
        expected = {entry.record.id for entry in self.kept.values() if entry.embedding is None}
        lacking = self.runner.run(self.store.unembedded("test", 50))
        assert {record.id for record in lacking} == expected


@pytest.mark.parametrize("name", BACKENDS)
def test_any_sequence_of_calls_agrees_with_a_plain_dictionary(name: str, tmp_path: Path) -> None:
    chosen = backend(name, tmp_path)
    with asyncio.Runner() as runner:
        opener = runner.run(chosen.__aenter__())
        try:
            told = {"runner": runner, "store": opener()}
            run_state_machine_as_test(type("Told", (AgainstADictionary,), told), settings=BRISK)
        finally:
            runner.run(chosen.__aexit__(None, None, None))

"""A store that an older contextd filled, with vectors of older models: nobody has to do anything.

What is older is simulated by the models' names, under which vectors are kept. Every vector that was kept is
then made longer than any true one: were it compared with a query of today's, it would be the nearest.
"""

import asyncio
import os
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from code_projects import GO_SHOP, HERE, grown
from contextd.adapters import code_static, minilm
from contextd.adapters.index_locks import FileIndexLocks
from contextd.domain.callers import Tally
from contextd.domain.code_store import Candidates, Probe
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.records import Filter, Hit, Project, Query
from contextd.edge.call_pipeline import pipeline_of
from contextd.services.code_index import CodeIndex
from contextd.services.code_search import CodeSearch
from contextd.services.embedding import Embeddings
from contextd.services.indexed_trees import Indexed
from contextd.services.taking_in import Taken, TakingIn
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house

pytestmark = pytest.mark.anyio

Call = Callable[..., Awaitable[dict[str, Any]]]
CODE_MODEL: Final = code_static.MODEL
TEXT_MODEL: Final = f"{minilm.MODEL}:{minilm.DIMENSION}"
OLDER_CODE: Final = "code-static@000000000000"
OLDER_TEXT: Final = "minilm-dev-int8@000000000000"
MEANT: Final = "take money from a buyer"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a moment ago count as old ones: only what a test changes has changed."""
    monkeypatch.setattr("contextd.services.taking_in._SETTLED_NS", 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading closer does not wait until nobody asks for anything."""
    monkeypatch.setattr("contextd.services.closer_reading._QUIET_S", 0.0)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return grown(tmp_path / "shop", {**GO_SHOP, ".git/HEAD": "ref: refs/heads/main\n"})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@contextmanager
def models(*, code: str = OLDER_CODE, text: str = OLDER_TEXT) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(code_static, "MODEL", code)
        patched.setattr(minilm, "MODEL", text)
        yield


@asynccontextmanager
async def daemon(data: Path, *, follows: bool = True) -> AsyncIterator[tuple[House, Call]]:
    house = build(Settings(data_dir=data, rate_limit=RateLimit(on=False)))
    async with open_house(house, follows=follows):
        pipeline = pipeline_of(house)

        async def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
            return (await pipeline.call(tool, arguments, HERE)).data

        yield house, call


@asynccontextmanager
async def quiet_daemon(data: Path) -> AsyncIterator[tuple[House, Call]]:
    """One that has not come to anything in the background yet."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Embeddings, "catch_up", _never)
        async with daemon(data, follows=False) as opened:
            yield opened


async def _never(self: Embeddings, store: object) -> None:
    await asyncio.Event().wait()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - the files are all that tells
            await asyncio.sleep(0.02)


async def until_indexing(house: House) -> None:
    (project,) = await house.code.store.projects()
    await until(lambda: house.code.index.is_running(project))


def rows(files: Iterable[Path], statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Of all these databases."""
    found: list[tuple[Any, ...]] = []
    for file in files:
        with closing(sqlite3.connect(file)) as connection, connection:
            found += connection.execute(statement, values).fetchall()
    return found


def make_nearest(files: Iterable[Path], table: str, dimension: int) -> None:
    vector = struct.pack("<e", 9.0) * dimension
    rows(files, f"UPDATE {table} SET vector = ? WHERE vector IS NOT NULL", vector)


# --- records --------------------------------------------------------------------------

WRITES: Final[Mapping[str, dict[str, Any]]] = {
    "checkpoint_save": {"summary": "Sign-in works", "project_path": "/srv/shop"},
    "memory_store": {
        "title": "Migrations wait for the worker",
        "content": "Stop the worker before a migration, or it waits for a lock.",
        "project_path": "/srv/shop",
    },
    "remediation_save": {
        "error_message": "connection refused",
        "error_type": "ConnectionError",
        "solution": "Start the database first",
        "project_path": "/srv/shop",
    },
    "skill_create": {
        "name": "release",
        "description": "How a release is made here",
        "content": "# Release\n\nTag, build, publish.",
        "version": "1.0.0",
        "author": "ana",
        "category": "deployment",
    },
}


@pytest.fixture
async def older_records(data: Path) -> Path:
    with models():
        async with daemon(data) as (_, call):
            for tool, arguments in WRITES.items():
                await call(tool, **arguments)
    make_nearest(drawers(data), "records", minilm.DIMENSION)
    return data


def drawers(data: Path) -> list[Path]:
    return [data / "shared.db", *(data / "projects").glob("*.db")]


def vector_models(data: Path) -> Counter[str | None]:
    """Of the records that have words."""
    words = "SELECT model FROM records WHERE title <> '' OR body <> ''"
    return Counter(model for (model,) in rows(drawers(data), words))


async def found(house: House, text: str, limit: int = 4) -> list[Hit]:
    embedding = await house.embeddings.query(text, Tally())
    kinds = ("checkpoint", "memory", "remediation", "skill")
    return await house.store.search(Query(text, Filter(kinds=kinds), limit, embedding))


async def test_records_with_vectors_of_an_older_model_are_found_by_words_alone(
    older_records: Path,
) -> None:
    async with quiet_daemon(older_records) as (house, call):
        for text, kind in (
            ("sign-in", "checkpoint"),
            ("migrations worker", "memory"),
            ("connection refused", "remediation"),
            ("how a release is made", "skill"),
        ):
            (hit,) = await found(house, text)
            assert hit.record.kind == kind
            assert hit.distance is None, "no vector of the older model was compared"
        answer = await call("memory_search", project_path="/srv/shop", query="migrations worker")
        assert [each["title"] for each in answer["results"]] == ["Migrations wait for the worker"]
        assert await found(house, "entering the password") == []


async def test_the_status_says_while_records_wait_for_vectors_of_todays_model(
    older_records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = asyncio.Event()
    embed = minilm.MiniLM.embed

    async def later(self: minilm.MiniLM, *arguments: Any) -> list[Any]:
        await embedded.wait()
        return await embed(self, *arguments)

    monkeypatch.setattr(minilm.MiniLM, "embed", later)
    async with daemon(older_records) as (house, call):
        await until(lambda: house.embeddings.catching_up)
        told = await call("status")
        assert told["services"]["embedding"]["level"] == "catching up"
        assert told["metrics"]["embedding_model"] == minilm.MODEL
        embedded.set()
        await until(lambda: not house.embeddings.catching_up)
        assert (await call("status"))["services"]["embedding"]["level"] is None


async def test_records_are_embedded_again_as_soon_as_the_daemon_is_up(older_records: Path) -> None:
    before = vector_models(older_records)
    assert set(before) == {f"{OLDER_TEXT}:{minilm.DIMENSION}"}
    async with daemon(older_records) as (house, call):
        await until(lambda: set(vector_models(older_records)) == {TEXT_MODEL})
        assert vector_models(older_records).total() == before.total()
        hits = await found(house, "entering the password")
        assert hits[0].record.kind == "checkpoint"
        assert all(hit.distance is not None and 0 < hit.distance < 1 for hit in hits)
        assert (await call("status"))["metrics"]["embedding_model"] == minilm.MODEL


# --- code -----------------------------------------------------------------------------


@pytest.fixture
async def older_code(data: Path, shop: Path) -> Path:
    """Both trees of a project, indexed under the older models, and read closer."""
    with models():
        async with quiet_daemon(data) as (house, call):
            await call("index_codebase", path=str(shop))
            await call("index_repository", path=str(shop))
            (project,) = await house.code.store.projects()
            assert await house.code.closer.read(project) > 0
    make_nearest(indexes(data), "chunks", code_static.DIMENSION)
    make_nearest(indexes(data), "closer", minilm.DIMENSION)
    return data


def indexes(data: Path) -> Iterable[Path]:
    return (data / "code").glob("*.db")


def code_models(data: Path) -> set[str]:
    """The models of the texts that trees show, and of those that they do not."""
    return {recipe.partition(":")[2] for (recipe,) in rows(indexes(data), "SELECT recipe FROM blobs")}


def closer_models(data: Path) -> set[str]:
    return {model for (model,) in rows(indexes(data), "SELECT model FROM closer")}


async def near(house: House, text: str = MEANT) -> Candidates:
    (project,) = await house.code.store.projects()
    trees = await house.code.store.trees(project)
    probe = Probe(vector=house.code.reader.query(text))
    return await house.code.store.candidates(project, trees, probe)


def names(answer: Mapping[str, Any]) -> list[tuple[str, int, float]]:
    return [
        (hit["file"]["path"], hit["file"]["start_line"], hit["relevance_score"])
        for hit in answer["results"]
    ]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Runs take nothing in before it is set."""
    opened = asyncio.Event()
    take_in = TakingIn.take_in

    async def later(self: TakingIn, *arguments: Any) -> Taken:
        await opened.wait()
        return await take_in(self, *arguments)

    monkeypatch.setattr(TakingIn, "take_in", later)
    return opened


async def test_code_of_an_older_model_is_found_by_words_and_names_at_once(
    older_code: Path, shop: Path
) -> None:
    async with quiet_daemon(older_code) as (house, call):
        for query in ("AddLine", "charge customer card", '"two amounts"'):
            by_words = await call("search_code", path=str(shop), query=query, search_mode="keyword")
            both = await call("search_code", path=str(shop), query=query)
            assert {name for name, *_ in names(by_words)} == {name for name, *_ in names(both)} != set()
            assert both["results"][0]["relevance_score"] <= 1
        assert (await near(house)).by_vector == []
        assert code_models(older_code) == {OLDER_CODE}


async def test_the_status_counts_vectors_of_the_model_that_it_names(older_code: Path, shop: Path) -> None:
    async with quiet_daemon(older_code) as (_, call):
        before = await call("get_status", path=str(shop))
        assert before["health"]["embedding_model"] == CODE_MODEL
        assert before["statistics"]["total_embeddings"] == 0 < before["statistics"]["total_chunks"]
        assert not before["staleness"]["is_stale"], "its files did not change"
        await call("index_codebase", path=str(shop))
        await call("index_repository", path=str(shop))
        after = (await call("get_status", path=str(shop)))["statistics"]
        assert after["total_embeddings"] == after["total_chunks"]
        assert code_models(older_code) == {CODE_MODEL}


async def test_code_answers_while_it_is_taken_in_again_which_a_search_begins(
    older_code: Path, shop: Path, gate: asyncio.Event
) -> None:
    async with daemon(older_code) as (house, call):
        ask = {"path": str(shop), "query": "charge the card of a customer"}
        before = await call("search_code", **ask)
        assert before["results"]
        await until_indexing(house)
        async with asyncio.timeout(10):
            for mode in ("hybrid", "keyword"):
                assert (await call("search_code", **ask, search_mode=mode))["results"]
            known = await call("symbol_lookup", path=str(shop), symbol="NewMoney")
        assert [each["name"] for each in known["definitions"]] == ["NewMoney"]
        assert not known["coverage"]["up_to_date"]
        assert code_models(older_code) == {OLDER_CODE}
        gate.set()
        await until(lambda: code_models(older_code) == {CODE_MODEL})
        known = await call("symbol_lookup", path=str(shop), symbol="NewMoney")
        assert known["coverage"]["up_to_date"]
        assert (await near(house)).by_vector


async def test_a_lookup_begins_it_too_and_does_not_wait_for_it(
    older_code: Path, shop: Path, gate: asyncio.Event
) -> None:
    async with daemon(older_code) as (house, call):
        async with asyncio.timeout(10):
            known = await call("symbol_lookup", path=str(shop), symbol="NewMoney")
        assert known["definitions"]
        await until_indexing(house)
        gate.set()
        await until(lambda: code_models(older_code) == {CODE_MODEL})


async def test_code_taken_in_again_is_found_by_meaning_as_if_it_were_indexed_for_the_first_time(
    older_code: Path, shop: Path, tmp_path: Path
) -> None:
    ask = {"path": str(shop), "query": MEANT, "search_mode": "vector"}
    async with daemon(older_code) as (_, call):
        await call("search_code", **ask)
        await until(lambda: code_models(older_code) == {CODE_MODEL})
        again = await call("search_code", **ask)
    async with quiet_daemon(tmp_path / "new") as (_, call):
        await call("index_codebase", path=str(shop))
        await call("index_repository", path=str(shop))
        assert names(again) == names(await call("search_code", **ask)) != []


async def test_taking_in_again_that_was_cut_off_is_begun_anew(
    older_code: Path, shop: Path, gate: asyncio.Event
) -> None:
    async with daemon(older_code) as (house, call):
        await call("search_code", path=str(shop), query="money")
        await until_indexing(house)
    assert code_models(older_code) == {OLDER_CODE}
    gate.set()
    async with daemon(older_code) as (_, call):
        await call("search_code", path=str(shop), query="money")
        await until(lambda: code_models(older_code) == {CODE_MODEL})


async def test_a_run_that_found_the_index_locked_is_tried_again_though_no_file_changes(
    older_code: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextd.services.watching._LOOK_AGAIN_S", 0.05)
    tried = asyncio.Event()
    follow = CodeIndex.follow

    async def told(self: CodeIndex, *arguments: Any) -> Any:
        try:
            return await follow(self, *arguments)
        finally:
            tried.set()

    monkeypatch.setattr(CodeIndex, "follow", told)
    async with daemon(older_code) as (house, call):
        (project,) = await house.code.store.projects()
        async with FileIndexLocks(older_code).hold(project.key, background=False, patience_s=0):
            assert (await call("search_code", path=str(shop), query="money"))["results"]
            async with asyncio.timeout(10):
                await tried.wait()
            assert code_models(older_code) == {OLDER_CODE}
        await until(lambda: code_models(older_code) == {CODE_MODEL})


async def test_files_with_new_vectors_are_not_preferred_to_those_that_wait_for_theirs(
    older_code: Path, shop: Path
) -> None:
    """A search takes in the files that it shows and that have changed, and no others."""
    async with quiet_daemon(older_code) as (house, call):
        grown(shop, {"internal/order/money.go": GO_SHOP["internal/order/money.go"] + "\n// Changed.\n"})
        assert (await call("search_code", path=str(shop), query="NewMoney"))["results"]
        assert code_models(older_code) == {OLDER_CODE, CODE_MODEL}
        statistics = (await call("get_status", path=str(shop)))["statistics"]
        assert 0 < statistics["total_embeddings"] < statistics["total_chunks"]
        assert (await near(house)).by_vector == []
        ask = {"path": str(shop), "query": "charge the card of a customer"}
        assert (await call("search_code", **ask))["results"][0]["file"]["path"].endswith("billing.go")


async def test_a_command_without_a_daemon_looks_a_symbol_up_in_an_index_of_today(
    older_code: Path, shop: Path
) -> None:
    """There nothing works beside: what is older is taken in before it answers."""
    async with quiet_daemon(older_code) as (_, call):
        known = await call("symbol_lookup", path=str(shop), symbol="NewMoney")
        assert known["coverage"]["up_to_date"]
        assert code_models(older_code) == {CODE_MODEL}


# --- the text model's vectors of code -----------------------------------------------------


@pytest.fixture
async def older_text(data: Path, shop: Path) -> Path:
    """Code that was indexed under today's code model, and read with an older text model."""
    with models(code=CODE_MODEL):
        async with quiet_daemon(data) as (house, call):
            await call("index_codebase", path=str(shop))
            await call("search_code", path=str(shop), query=MEANT)
            (project,) = await house.code.store.projects()
            await house.code.closer.read(project)
    make_nearest(indexes(data), "closer", minilm.DIMENSION)
    assert closer_models(data) == {f"{OLDER_TEXT}:{minilm.DIMENSION}"}
    return data


async def read_closer(house: House, project: Project) -> int:
    return await asyncio.wait_for(house.code.closer.read(project), 60)


async def at_the_command_line(data: Path, shop: Path) -> tuple[str, str]:
    """The hits, and what was told beside them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "contextd", "search", "--path", str(shop), MEANT),
        env={**os.environ, "CONTEXTD_DATA_DIR": str(data)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, told = await process.communicate()
    assert process.returncode == 0
    hits, _, _how_long = out.decode().rstrip().rpartition("\n")
    return hits, told.decode()


async def test_a_search_at_the_command_line_takes_an_older_index_in_again_once(
    older_code: Path, shop: Path
) -> None:
    first, told = await at_the_command_line(older_code, shop)
    assert "another version" in told
    again, told = await at_the_command_line(older_code, shop)
    assert told == ""
    assert again == first
    async with quiet_daemon(older_code) as (_, call):
        statistics = (await call("get_status", path=str(shop)))["statistics"]
        assert statistics["total_embeddings"] == statistics["total_chunks"] > 0


async def test_where_that_fails_it_says_why_and_answers_by_words(older_code: Path, shop: Path) -> None:
    async with quiet_daemon(older_code) as (house, _):
        (project,) = await house.code.store.projects()
    async with FileIndexLocks(older_code).hold(project.key, background=False, patience_s=0):
        hits, told = await at_the_command_line(older_code, shop)
    assert hits
    assert "that failed, and words alone are searched: " in told
    assert code_models(older_code) == {OLDER_CODE}


async def test_code_that_an_older_text_model_read_is_read_again_and_ranked_without_it_until_then(
    older_text: Path, shop: Path, tmp_path: Path
) -> None:
    ask = {"path": str(shop), "query": MEANT}
    async with quiet_daemon(tmp_path / "new") as (house, call):
        await call("index_codebase", path=str(shop))
        unread = names(await call("search_code", **ask))
        (project,) = await house.code.store.projects()
        await read_closer(house, project)
        read = names(await call("search_code", **ask))
    async with quiet_daemon(older_text) as (house, call):
        assert names(await call("search_code", **ask)) == unread != read
        statistics = (await call("get_status", path=str(shop)))["statistics"]
        assert statistics["chunks_read_closer"] == 0, "by today's model"
        assert await read_closer(house, project) == statistics["total_chunks"]
        statistics = (await call("get_status", path=str(shop)))["statistics"]
        assert statistics["chunks_read_closer"] == statistics["total_chunks"]
        assert names(await call("search_code", **ask)) == read
        assert closer_models(older_text) == {TEXT_MODEL}


async def test_code_of_an_older_code_model_is_ranked_by_words_though_the_text_model_has_read_it(
    data: Path, shop: Path
) -> None:
    with models(text=minilm.MODEL):
        async with quiet_daemon(data) as (house, call):
            await call("index_codebase", path=str(shop))
            await call("search_code", path=str(shop), query=MEANT)
            (project,) = await house.code.store.projects()
            await read_closer(house, project)
    assert closer_models(data) == {TEXT_MODEL}
    async with quiet_daemon(data) as (house, call):
        found = [
            (await call("search_code", path=str(shop), query=MEANT, search_mode=mode))["results"]
            for mode in ("hybrid", "keyword", "vector")
        ]
    order = [[(hit["chunk_id"], hit["relevance_score"]) for hit in hits] for hits in found]
    assert order[0] == order[1] == order[2] != []


async def test_what_an_older_text_model_read_is_let_go_when_reading_begins(
    older_text: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(self: Embeddings, texts: list[str]) -> list[Any]:
        raise EmbedderUnavailable("it is away")

    monkeypatch.setattr(Embeddings, "documents", away)
    async with quiet_daemon(older_text) as (house, call):
        await call("search_code", path=str(shop), query=MEANT)
        (project,) = await house.code.store.projects()
        with pytest.raises(EmbedderUnavailable):
            await read_closer(house, project)
        statistics = (await call("get_status", path=str(shop)))["statistics"]
        assert statistics["chunks_read_closer"] == 0


async def test_chunks_that_are_about_to_be_made_anew_are_not_read_closer(older_code: Path) -> None:
    async with quiet_daemon(older_code) as (house, _):
        (project,) = await house.code.store.projects()
        assert await house.code.store.unread(project, TEXT_MODEL, 9) == []
        for tree in await house.code.store.trees(project):
            await house.code.index.follow(tree, project)
        assert len(await house.code.store.unread(project, TEXT_MODEL, 9)) == 9
        assert closer_models(older_code) == set(), "they went with their chunks"


async def test_a_search_that_an_upgraded_index_overtakes_answers_from_the_new_one(
    older_code: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had found has gone away with the old texts."""
    changed = CodeSearch._changed

    async def overtaken(self: CodeSearch, indexed: Indexed, *arguments: Any) -> Any:
        for tree in indexed.trees:
            await house.code.index.follow(tree, indexed.project)
        return await changed(self, indexed, *arguments)

    monkeypatch.setattr(CodeSearch, "_changed", overtaken)
    async with quiet_daemon(older_code) as (house, call):
        ask = {"path": str(shop), "query": "charge the card of a customer"}
        overtaken_answer = await call("search_code", **ask)
        assert code_models(older_code) == {CODE_MODEL}
        assert names(overtaken_answer) == names(await call("search_code", **ask)) != []


async def test_a_search_by_vector_alone_goes_on_by_words_until_there_are_vectors(
    older_code: Path, shop: Path
) -> None:
    async with quiet_daemon(older_code) as (_, call):
        ask = {"path": str(shop), "query": "charge the card of a customer"}
        by_words = await call("search_code", **ask, search_mode="keyword")
        assert names(await call("search_code", **ask, search_mode="vector")) == names(by_words) != []

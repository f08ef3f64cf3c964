"""Several processes on one data folder: nobody is locked out, and everybody sees what the others wrote."""

import asyncio
import json
import multiprocessing
import os
import shutil
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contextd.adapters.sqlite import SqliteStore, drawers
from contextd.adapters.sqlite.schema import RECORDS
from contextd.adapters.sqlite.vectors import Indexes
from contextd.domain.errors import StoreUnavailable
from contextd.domain.records import Embedding, Entry, Filter, Json, Project, Query, Record, Vector
from contextd.services.projects import project_at
from running import Daemon, Stdio, command, environment, running_daemon, running_stdio

SHOP = "/tmp/processes/shop"
SETTINGS = {"CONTEXTD_RATE_LIMIT": "off"}
WHOLE = {"token_budget": 32_768}
EACH = 25
"""Writes of every process."""
RACERS = 8
FOLDERS = 5
WAIT = 60.0


# --- what a plain process does, in a process of its own ------------------------------------


def entry(project: Project, id: str, vector: list[float] | None = None) -> Entry:
    now = datetime.now(UTC)
    fields: dict[str, Json] = {"description": "", "project_path": project.path, "context": {}}
    record = Record(id, "checkpoint", project, f"{id} is here", "", fields, now, now)
    packed = Vector(struct.pack(f"<{len(vector)}f", *vector)) if vector else None
    return Entry(record, Embedding("test", packed) if packed else None)


def write_and_read(folder: Path, project: Project, name: str) -> list[str]:
    """Puts records one by one; after each, reads what everyone has written so far."""

    async def work() -> list[str]:
        store = SqliteStore(folder)
        ids = [f"{name}-{number}" for number in range(EACH)]
        for id in ids:
            await store.put([entry(project, id, [1.0, 0.0])])
            assert await store.get(project, id) is not None
            page = await store.page(Filter(("checkpoint",), (project,)), "created_at", 0, 5)
            assert page.total > 0
            assert await store.search(Query(id, Filter(("checkpoint",), (project,)), 5))
        await store.close()
        return ids

    return asyncio.run(work())


def put_one(folder: Path, project: Project, id: str, vector: list[float]) -> None:
    async def work() -> None:
        store = SqliteStore(folder)
        await store.put([entry(project, id, vector)])
        await store.close()

    asyncio.run(work())


def write_until_full(folder: Path, project: Project) -> tuple[list[str], str]:
    """A limit on the size of files stands in for the end of a disk."""
    import resource

    async def work() -> tuple[list[str], str]:
        store = SqliteStore(folder)
        kept: list[str] = []
        for number in range(1000):
            many = [entry(project, f"{number}-{one}", [1.0] * 384) for one in range(10)]
            try:
                await store.put(many)
            except StoreUnavailable as fault:
                await store.close()
                return kept, fault.message
            kept += [each.record.id for each in many]
        raise AssertionError("the disk was never full")

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        return asyncio.run(work())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def race_to_open(folders: list[Path], start: Any, racer: int) -> None:
    """Opens each folder at the same moment as the others, and writes a record there."""

    async def work() -> None:
        for folder in folders:
            store = SqliteStore(folder)
            start.wait(WAIT)
            await asyncio.gather(store.check(), store.put([entry(project_at(SHOP), f"racer-{racer}")]))
            await store.close()

    asyncio.run(work())


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Fresh interpreters: a fork would share what SQLite forbids to share."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


# --- together ------------------------------------------------------------------------------


def saved_by_daemon(daemon: Daemon) -> list[str]:
    with httpx2.Client(base_url=daemon.url, timeout=WAIT) as client:
        answers = [
            client.post(
                "/api/v1/tools/checkpoint_save", json={"summary": f"daemon {n}", "project_path": SHOP}
            )
            for n in range(EACH)
        ]
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    return [answer.json()["data"]["id"] for answer in answers]


def saved_over_stdio(client: Stdio) -> list[str]:
    return [
        client.call("checkpoint_save", summary=f"stdio {number}", project_path=SHOP)["id"]
        for number in range(EACH)
    ]


def listed(pages: Iterator[dict[str, Any]]) -> set[str]:
    return {record["id"] for page in pages for record in page["checkpoints"]}


def test_a_daemon_two_stdio_servers_and_two_plain_processes_write_at_once(
    tmp_path: Path, processes: ProcessPoolExecutor
) -> None:
    shop = project_at(SHOP)
    with ExitStack() as stack, ThreadPoolExecutor(5) as pool:
        daemon = stack.enter_context(running_daemon(tmp_path, **SETTINGS))
        servers = [stack.enter_context(running_stdio(tmp_path, **SETTINGS)) for _ in range(2)]
        jobs = [
            processes.submit(write_and_read, tmp_path, shop, "plainone"),
            processes.submit(write_and_read, tmp_path, shop, "plaintwo"),
            pool.submit(saved_by_daemon, daemon),
            *(pool.submit(saved_over_stdio, server) for server in servers),
        ]
        written = {id for job in jobs for id in job.result(WAIT)}
        assert len(written) == 5 * EACH
        offsets = range(0, 5 * EACH, 100)
        seen_by_daemon = listed(
            daemon.tool("checkpoint_list", project_path=SHOP, limit=100, offset=offset, **WHOLE).json()[
                "data"
            ]
            for offset in offsets
        )
        assert seen_by_daemon == written
        for server in servers:
            assert written == listed(
                server.call("checkpoint_list", project_path=SHOP, limit=100, offset=offset, **WHOLE)
                for offset in offsets
            )
        assert daemon.stop() == 0
        assert not [line for line in daemon.log if "locked" in line or " ERROR " in line]


def test_what_one_process_was_told_is_kept_the_next_one_reads_at_once(tmp_path: Path) -> None:
    with running_daemon(tmp_path, **SETTINGS) as daemon, running_stdio(tmp_path, **SETTINGS) as server:
        for number in range(5):
            by_daemon = daemon.tool("checkpoint_save", summary=f"from daemon {number}", project_path=SHOP)
            id = by_daemon.json()["data"]["id"]
            assert server.call("checkpoint_restore", id=id)["summary"] == f"from daemon {number}"
            id = server.call("checkpoint_save", summary=f"from server {number}", project_path=SHOP)["id"]
            assert daemon.tool("checkpoint_restore", id=id).status_code == 200
        printed = subprocess.run(
            command("call", "checkpoint_list", "limit=100", "token_budget=32768"),
            env=environment(tmp_path, **SETTINGS),
            capture_output=True,
            check=True,
        )
        assert json.loads(printed.stdout)["total"] == 10
        assert daemon.tool("collection_delete", project_path=SHOP).status_code == 200
        assert server.call("checkpoint_list", project_path=SHOP)["total"] == 0
        server.call("checkpoint_save", summary="after all was deleted", project_path=SHOP)
        assert daemon.tool("checkpoint_list", project_path=SHOP).json()["data"]["total"] == 1


@pytest.mark.anyio
async def test_vectors_held_in_memory_follow_what_another_process_writes(
    tmp_path: Path, processes: ProcessPoolExecutor
) -> None:
    shop = project_at(SHOP)
    store = SqliteStore(tmp_path)
    await store.put([entry(shop, "ours", [1.0, 0.0])])
    query = Query(
        "nothing",
        Filter(("checkpoint",), (shop,)),
        1,
        Embedding("test", Vector(struct.pack("<2f", 0.0, 1.0))),
    )
    assert [hit.record.id for hit in await store.search(query)] == ["ours"]
    processes.submit(put_one, tmp_path, shop, "theirs", [0.0, 1.0]).result(WAIT)
    assert [hit.record.id for hit in await store.search(query)] == ["theirs"]
    await store.close()


@pytest.mark.anyio
async def test_a_reader_that_missed_many_removals_loads_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawers, "_KEPT_REVISIONS", 10)
    shop = project_at(SHOP)
    ours, theirs = SqliteStore(tmp_path), SqliteStore(tmp_path)
    upright = Embedding("test", Vector(struct.pack("<2f", 0.0, 1.0)))
    query = Query("", Filter(("checkpoint",), (shop,)), 50, upright)
    await ours.put([entry(shop, f"old-{number}", [0.0, 1.0]) for number in range(5)])
    assert len(await ours.search(query)) == 5
    for number in range(60):
        await theirs.put([entry(shop, f"old-{number % 4}", [0.0, 1.0])])
    await theirs.delete(shop, ["old-4"])
    assert sorted(hit.record.id for hit in await ours.search(query)) == [f"old-{n}" for n in range(4)]
    with closing(sqlite3.connect(next((tmp_path / "projects").glob("*.db")))) as file:
        (removals,) = file.execute("SELECT count(*) FROM removals").fetchone()
    assert removals <= 20
    await ours.close()
    await theirs.close()


@pytest.mark.anyio
async def test_no_record_takes_the_row_of_one_that_was_removed(tmp_path: Path) -> None:
    shop = project_at(SHOP)
    store = SqliteStore(tmp_path)
    seen: list[int] = []
    for number in range(3):
        await store.put([entry(shop, f"one-{number}")])
        with closing(sqlite3.connect(next((tmp_path / "projects").glob("*.db")))) as file:
            seen += [row[0] for row in file.execute("SELECT seq FROM records")]
        await store.delete(shop, [f"one-{number}"])
    assert len(set(seen)) == 3
    await store.close()


def test_vectors_that_nobody_searches_are_let_go() -> None:
    indexes = Indexes(idle_s=0.0)
    first = indexes.of("a", "model")
    time.sleep(0.001)
    assert indexes.of("b", "model") is not first
    assert len(indexes) == 1
    assert Indexes().of("a", "model") is not first


def test_a_writer_that_holds_the_file_for_long_is_waited_for(tmp_path: Path) -> None:
    with running_daemon(tmp_path, **SETTINGS) as daemon:
        first = daemon.tool("checkpoint_save", summary="first", project_path=SHOP)
        assert first.status_code == 200
        (file,) = (tmp_path / "projects").glob("*.db")
        with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            release = threading.Timer(1.0, lambda: other.execute("ROLLBACK"))
            release.start()
            second = daemon.tool("checkpoint_save", summary="second", project_path=SHOP)
            release.join()
        assert second.status_code == 200, second.text
        assert daemon.tool("checkpoint_list", project_path=SHOP).json()["data"]["total"] == 2


def test_eight_processes_may_open_a_fresh_folder_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(RACERS)
    folders = [tmp_path / str(number) for number in range(FOLDERS)]
    racers = [context.Process(target=race_to_open, args=(folders, start, n)) for n in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(WAIT)
    assert [racer.exitcode for racer in racers] == [0] * RACERS
    for folder in folders:
        (file,) = (folder / "projects").glob("*.db")
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (len(RECORDS),)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("SELECT count(*) FROM records").fetchone() == (RACERS,)


# --- files that are not ours to write ---------------------------------------------------------


@pytest.fixture
def newer(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A project's file as a later version would leave it, in the journal mode that is asked for."""
    put_one(tmp_path, project_at(SHOP), "from the future", [1.0])
    (file,) = (tmp_path / "projects").glob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA journal_mode = {getattr(request, 'param', 'WAL')}")
        connection.execute("PRAGMA user_version = 999")
    return file


@pytest.mark.parametrize("newer", ["WAL", "DELETE"], indirect=True)
def test_a_file_of_a_newer_version_is_refused_and_left_as_it_was(tmp_path: Path, newer: Path) -> None:
    before = newer.read_bytes()
    with running_daemon(tmp_path, **SETTINGS) as daemon:
        for answer in (
            daemon.tool("checkpoint_save", summary="too old to write this", project_path=SHOP),
            daemon.tool("checkpoint_list", project_path=SHOP),
            daemon.tool("checkpoint_search", query="future", project_path=SHOP),
            daemon.tool("collection_delete", project_path=SHOP),
        ):
            assert answer.status_code == 503
            assert answer.json()["category"] == "unavailable"
            assert "was written by a newer contextd" in answer.json()["message"]
            assert "upgrade contextd" in answer.json()["message"]
        assert (
            daemon.tool("checkpoint_save", summary="elsewhere", project_path="/tmp/else").status_code == 200
        )
    assert newer.read_bytes() == before
    assert sorted(path.name for path in newer.parent.glob(f"{newer.stem}*")) == [newer.name]


def test_the_command_line_says_that_a_file_is_newer(tmp_path: Path, newer: Path) -> None:
    ended = subprocess.run(
        command("call", "checkpoint_list", f"project_path={SHOP}"),
        env=environment(tmp_path, **SETTINGS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "was written by a newer contextd" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.anyio
@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be taken for one" * 100, b"\x00" * 8192]
)
async def test_a_file_that_is_no_database_is_an_error_and_left_as_it_was(
    tmp_path: Path, content: bytes
) -> None:
    shop = project_at(SHOP)
    file = tmp_path / "projects" / f"{shop.key}.db"
    file.parent.mkdir()
    file.write_bytes(content)
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreUnavailable, match=f"{shop.key}.db"):
        await store.put([entry(shop, "a")])
    with pytest.raises(StoreUnavailable, match=f"{shop.key}.db"):
        await store.get(shop, "a")
    await store.close()
    assert file.read_bytes() == content


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_made_is_an_error_each_time_and_not_a_wait(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shop, store = project_at(SHOP), SqliteStore(tmp_path / "file" / "data")
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="CONTEXTD_DATA_DIR"):
            await asyncio.wait_for(store.put([entry(shop, "a")]), WAIT)
    with pytest.raises(StoreUnavailable, match="CONTEXTD_DATA_DIR"):
        await asyncio.wait_for(store.check(), WAIT)
    assert await store.get(shop, "a") is None
    await asyncio.wait_for(store.close(), WAIT)


def test_a_daemon_whose_folder_cannot_be_made_says_so_and_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = subprocess.run(
        command("serve", "--port", "0"),
        env=environment(tmp_path / "file" / "data", **SETTINGS),
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert ended.returncode in (1, 2)
    assert "data folder" in ended.stderr or "CONTEXTD_DATA_DIR" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_full_disk_is_told_and_what_was_kept_before_stands(
    tmp_path: Path, processes: ProcessPoolExecutor
) -> None:
    shop = project_at(SHOP)
    kept, refusal = processes.submit(write_until_full, tmp_path, shop).result(WAIT)
    assert "CONTEXTD_DATA_DIR" in refusal
    assert kept
    (file,) = (tmp_path / "projects").glob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert [id for (id,) in connection.execute("SELECT id FROM records ORDER BY seq")] == kept


UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""For tests that run as root, to whom a read-only folder is none."""


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root writes anywhere")
@pytest.mark.parametrize("holds", ["nothing", "a store"])
def test_a_read_only_data_folder_is_a_clear_error(tmp_path: Path, holds: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if holds == "a store":
        put_one(data, project_at(SHOP), "kept", [1.0])
    folders = [data, *(path for path in data.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        ended = subprocess.run(
            [
                *(UNPRIVILEGED if os.geteuid() == 0 else []),
                *command("call", "checkpoint_save", "summary=refused", f"project_path={SHOP}"),
            ],
            env=environment(data, **SETTINGS),
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
        )
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["category"] == "unavailable"
    assert "CONTEXTD_DATA_DIR" in ended.stderr
    assert "Traceback" not in ended.stderr

"""`kill -9` while a code base is indexed: the index stays what it was, and the next run completes it."""

import os
import random
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from code_projects import HERE, Desk, grown, open_desk
from contextd.adapters.index_locks import FileIndexLocks
from contextd.services.anchors import blob_id
from contextd.services.projects import project_at
from running import command, environment
from test_code_differential import check_whole, dumped

CRASHES = int(os.environ.get("CONTEXTD_TEST_CRASHES", "10"))
FILES = 180
"""So many that processes of their own read them."""
WAIT = 30.0
MARK = "CONTEXTD_TESTS_CRASH"


def written(root: Path, edition: int) -> Path:
    """A tree whose files come and go and change from one edition to the next, but for every fifth."""
    for old in root.rglob("*.go"):
        old.unlink()
    for n in range(edition * 2, edition * 2 + FILES):
        of = 0 if n % 5 == 0 else edition
        functions = "".join(
            f"// Step{n}x{part} is of edition {of}.\nfunc Step{n}x{part}(count int) int {{\n"
            f"\tif count > {part} {{\n\t\treturn Step{n}x{part}(count - 1)\n\t}}\n\treturn {of}\n}}\n\n"
            for part in range(6)
        )
        grown(root, {f"pkg{n % 9}/file{n:04d}.go": f"package pkg{n % 9}\n\n{functions}"})
    return root


def on_disk(root: Path) -> dict[str, str]:
    return {str(file.relative_to(root)): blob_id(file.read_bytes()) for file in root.rglob("*.go")}


def in_index(database: Path) -> dict[str, str]:
    with closing(sqlite3.connect(database, timeout=WAIT)) as connection:
        found = connection.execute("SELECT path, hash FROM files JOIN blobs ON blobs.id = files.blob")
        return dict(found.fetchall())


def started(data_dir: Path, root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("call", "index_codebase", f"path={root}"),
        env=environment(data_dir, **{MARK: str(data_dir)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for_the_run(process: subprocess.Popen[bytes], data_dir: Path, root: Path) -> None:
    locks, key = FileIndexLocks(data_dir), project_at(str(root)).key
    deadline = time.monotonic() + WAIT
    while not locks.is_held(key) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def marked(data_dir: Path) -> set[int]:
    """Processes that came from a run in this folder."""
    found = set()
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and f"{MARK}={data_dir}".encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found


def check_nobody_is_left(data_dir: Path) -> None:
    deadline = time.monotonic() + WAIT / 3
    while left := marked(data_dir):
        if time.monotonic() > deadline:
            for process in left:
                os.kill(process, signal.SIGKILL)
            raise AssertionError(f"{len(left)} processes outlived the run that started them")
        time.sleep(0.02)


def crash(data_dir: Path, root: Path, after_s: float) -> bool:
    """Whether it was killed before it was done."""
    process = started(data_dir, root)
    wait_for_the_run(process, data_dir, root)
    with suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    process.kill()
    return process.wait(WAIT) != 0


def check_answers(desk: Desk, root: Path, edition: int) -> None:
    """From the index as it is: its lock is held, so that no search takes in what changed on disk."""
    first, last = edition * 2, edition * 2 + FILES - 1

    async def asked(query: str) -> list[dict[str, Any]]:
        locks = FileIndexLocks(desk.house.settings.data_dir)
        async with locks.hold(project_at(str(root)).key, background=False, patience_s=0.0):
            arguments = {"path": str(root), "query": query, "search_mode": "keyword", "limit": 1}
            results: list[dict[str, Any]] = (await desk.pipeline.call("search_code", arguments, HERE)).data[
                "results"
            ]
            return results

    for n in (first, first + 1, last):
        (hit,) = desk.run(asked(f"Step{n}x0"))
        assert hit["file"]["path"] == f"pkg{n % 9}/file{n:04d}.go"
        assert f"is of edition {0 if n % 5 == 0 else edition}." in hit["content"]
    assert desk.run(asked(f'"Step{last + 1}x0 is"')) == []
    assert desk.run(asked(f'"Step{first - 1}x0 is"')) == []
    assert desk.status(root)["statistics"]["total_files"] == FILES


@pytest.mark.timeout(120 + 10 * CRASHES)
def test_a_run_that_is_killed_leaves_the_old_index_whole(tmp_path: Path) -> None:
    """Seen by a server that lives on beside it."""
    data_dir, root = tmp_path / "data", tmp_path / "tree"
    dice = random.Random()
    with open_desk(data_dir) as desk:
        desk.index(written(root, 0))
        began = time.monotonic()
        desk.index(root, force_reindex=True)
        takes = time.monotonic() - began
        database, before, edition, killed = desk.database(root), on_disk(root), 0, 0
        for number in range(1, CRASHES + 1):
            after = on_disk(written(root, number))
            killed += crash(data_dir, root, dice.uniform(0.0, takes))
            check_nobody_is_left(data_dir)
            now = in_index(database)
            assert now in (before, after), "half of a run is to be seen"
            if now == after:
                before, edition = after, number
            check_answers(desk, root, edition)
        assert killed, "every run was done before it was killed"
        desk.index(root)
        assert in_index(database) == on_disk(root)
        check_answers(desk, root, CRASHES)
        check_whole(database)
    with open_desk(tmp_path / "fresh") as fresh:
        fresh.index(root)
        assert dumped(database, str(root)) == dumped(fresh.database(root), str(root))


def test_a_first_run_that_is_killed_is_no_index(tmp_path: Path) -> None:
    data_dir, root = tmp_path / "data", written(tmp_path / "tree", 1)
    if not crash(data_dir, root, 0.2):
        pytest.skip("the run was done before it was killed")
    check_nobody_is_left(data_dir)
    with open_desk(data_dir) as desk:
        assert desk.status(root)["indexed"] is False
        desk.index(root)
        check_answers(desk, root, 1)
        assert in_index(desk.database(root)) == on_disk(root)
        check_whole(desk.database(root))

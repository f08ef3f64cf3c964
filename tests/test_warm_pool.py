"""The warm pool: the next command finds a sandbox that waits, and nothing is left of any of them."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contextd.adapters.sandbox.bubblewrap import Bubblewrap, programs
from contextd.adapters.sandbox.cell import Cell
from contextd.adapters.sandbox.ladder import Ladder
from contextd.adapters.sandbox.layout import Layout, lay_out
from contextd.adapters.sandbox.warm_pool import WarmPool
from contextd.domain.sandboxing import Job, Policy, Stream
from sandboxes import IS_ROOT, ground_at, place

__all__ = ["place"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has a sandbox"),
]


@dataclass
class Starter:
    """The real thing, remembered."""

    cells: list[Cell] = field(default_factory=list)

    async def start(self, layout: Layout) -> Cell:
        cell = await Bubblewrap(programs()[0]).start(layout)
        self.cells.append(cell)
        return cell

    def waiting(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.waits]


@asynccontextmanager
async def pool_of(starter: Starter, *, most: int = 4, idle_s: float = 60.0) -> AsyncIterator[WarmPool]:
    pool = WarmPool(starter.start, most=most, idle_s=idle_s)
    try:
        yield pool
    finally:
        await pool.close()
        assert not starter.waiting()


def layout_of(folder: Path) -> Layout:
    folder.mkdir(exist_ok=True)
    return lay_out(os.path.realpath(folder), Policy(), (), named=True)


async def until(condition: Callable[[], object]) -> None:
    """The loop goes round meanwhile, which is all that is waited for."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - processes tell nobody
            await asyncio.sleep(0)


def resolved(path: Path) -> str:
    return os.path.realpath(path)


def quiet(stream: Stream, piece: bytes) -> None:
    """Nobody listens."""


def held() -> tuple[int, set[str], set[str], list[str]]:
    """Descriptors, children, temporary folders and groups: all that a command could leave behind."""
    pid = os.getpid()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    folders = {path.name for path in Path(tempfile.gettempdir()).iterdir()}
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/contextd-{pid}-*")]
    return len(list(Path("/proc/self/fd").iterdir())), set(children), folders, groups


async def test_the_second_command_takes_the_one_that_waits(tmp_path: Path) -> None:
    starter, layout = Starter(), layout_of(tmp_path)
    async with pool_of(starter) as pool:
        first = await pool.take(layout)
        pool.refill(layout)
        pool.refill(layout)
        second = await pool.take(layout)
        assert starter.cells == [first, second]
        await first.end()
        await second.end()


async def test_one_that_died_while_it_waited_is_replaced(tmp_path: Path) -> None:
    starter, layout = Starter(), layout_of(tmp_path)
    async with pool_of(starter) as pool:
        pool.refill(layout)
        await until(starter.waiting)
        starter.cells[0].kill()
        await until(lambda: not starter.cells[0].waits)
        cell = await pool.take(layout)
        assert cell.waits
        await cell.end()


async def test_of_too_many_the_oldest_goes(tmp_path: Path) -> None:
    starter = Starter()
    layouts = [layout_of(tmp_path / str(number)) for number in range(4)]
    async with pool_of(starter, most=2) as pool:
        for layout in layouts:
            pool.refill(layout)
        assert len(pool) == 2
        await until(lambda: len(starter.cells) == 4 and len(starter.waiting()) == 2)


async def test_one_that_nobody_needs_ends(tmp_path: Path) -> None:
    starter = Starter()
    async with pool_of(starter, idle_s=0.05) as pool:
        pool.refill(layout_of(tmp_path))
        await until(lambda: starter.cells and not starter.waiting())
        assert len(pool) == 0


async def test_a_folder_that_was_replaced_is_another_folder(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    before = layout_of(folder)
    folder.rename(tmp_path / "old")
    assert layout_of(folder) != before


async def test_a_protected_path_that_came_since_is_protected(tmp_path: Path) -> None:
    sandbox = Ladder("bubblewrap", (), lambda project: True, lambda names: {})
    project = resolved(tmp_path)
    await sandbox.run(Job("true", project, project, 20.0), Policy(), quiet)
    (tmp_path / ".envrc").write_text("mine")
    await sandbox.run(Job("echo evil >.envrc", project, project, 20.0), Policy(), quiet)
    assert (tmp_path / ".envrc").read_text() == "mine"
    await sandbox.close()


@pytest.fixture
def temporary(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files that nobody else uses."""
    folder = place / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_two_hundred_commands_leave_nothing_behind(tmp_path: Path, temporary: Path) -> None:
    before = held()
    sandbox = Ladder("bubblewrap", (), lambda project: True, lambda names: {})
    project = resolved(tmp_path)
    for _ in range(100):
        jobs = [Job("echo x; sleep 60 & mktemp", project, project, 20.0) for _ in range(2)]
        finished = await asyncio.gather(*(sandbox.run(job, Policy(), quiet) for job in jobs))
        assert [each.exit_code for each in finished] == [0, 0]
    await sandbox.close()
    assert held() == before
    assert not any(os.scandir(project))


async def test_landlock_leaves_nothing_behind_either(place: Path, temporary: Path) -> None:
    stand = "landlock as root for a user" if IS_ROOT else "landlock as a user"
    project = str(ground_at(stand, place).project)
    before = held()
    sandbox = Ladder("landlock", (), lambda project: True, lambda names: {})
    for _ in range(10):
        job = Job(
            "mkdir $HOME/a; touch $HOME/a/b; chmod 0 $HOME/a; setsid sleep 60 &", project, project, 20.0
        )
        assert (await sandbox.run(job, Policy(), quiet)).exit_code == 0
    await sandbox.close()
    assert held() == before

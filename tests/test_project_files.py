"""Files beneath a folder: nothing outside is read or written, whatever is swapped, linked or killed."""

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from contextd.adapters.beneath import Opener, by_kernel, by_kernel_or_walk, by_walk
from contextd.adapters.project_files import LocalProjectFiles
from contextd.domain.errors import (
    BadPath,
    Conflict,
    Fault,
    FileChanged,
    Forbidden,
    HardLinked,
    NotFound,
    OutsideProject,
    TooLarge,
)

MOST = 1_000_000
SWAPS = 20_000
CRASHES = 12


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("secret")
    return folder


@pytest.fixture(params=[by_kernel, by_walk], ids=["kernel", "walk"])
def opener(request: pytest.FixtureRequest) -> Opener:
    chosen: Opener = request.param
    return chosen


@pytest.fixture(params=[True, False], ids=["unnamed", "named"])
def files(opener: Opener, request: pytest.FixtureRequest) -> LocalProjectFiles:
    return LocalProjectFiles(opener=opener, unnamed=request.param)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(files: LocalProjectFiles, project: Path, path: str, data: bytes) -> None:
    files.put(str(project), files.look(str(project), path, MOST), data)


def test_a_file_is_made_with_its_folders_then_replaced(files: LocalProjectFiles, project: Path) -> None:
    write(files, project, "a/b/new.txt", b"one")
    assert (project / "a/b/new.txt").read_bytes() == b"one"
    write(files, project, "a/b/new.txt", b"two" * 1_000)
    found = files.look(str(project), "a/b/new.txt", MOST)
    assert (found.path, found.data) == ("a/b/new.txt", b"two" * 1_000)
    assert names(project / "a/b") == ["new.txt"]


def test_links_that_stay_inside_are_followed(files: LocalProjectFiles, project: Path) -> None:
    (project / "real").mkdir()
    (project / "real/file").write_text("here")
    (project / "folder").symlink_to("real")
    (project / "real/back").symlink_to("../link")
    (project / "link").symlink_to("folder/./file")
    assert files.look(str(project), "real/back", MOST).path == "real/file"
    write(files, project, "real/back", b"through links")
    assert (project / "real/file").read_bytes() == b"through links"
    assert (project / "link").is_symlink()
    write(files, project, "folder/new/file", b"new")
    assert (project / "real/new/file").read_bytes() == b"new"


@pytest.mark.parametrize(
    "target", ["../outside/file", "../outside", "{outside}/file", "inner/../../outside/file"]
)
def test_links_that_leave_are_refused(
    files: LocalProjectFiles, project: Path, outside: Path, target: str
) -> None:
    (project / "inner").mkdir()
    (project / "link").symlink_to(target.format(outside=outside))
    with pytest.raises(OutsideProject, match="leads out of the project"):
        files.look(str(project), "link", MOST)
    (project / "folder").symlink_to(outside)
    with pytest.raises(OutsideProject):
        files.look(str(project), "folder/file", MOST)
    with pytest.raises(OutsideProject):
        files.look(str(project), "folder/deep/new", MOST)
    assert names(outside) == ["file"]


def test_links_in_a_circle_and_to_nowhere_are_refused(files: LocalProjectFiles, project: Path) -> None:
    (project / "one").symlink_to("two")
    (project / "two").symlink_to("one")
    (project / "nowhere").symlink_to("not-there")
    for name in ("one", "nowhere"):
        with pytest.raises(BadPath):
            files.look(str(project), name, MOST)


def test_magic_links_of_the_kernel_are_not_followed(files: LocalProjectFiles, outside: Path) -> None:
    held = os.open(outside, os.O_RDONLY)
    try:
        with pytest.raises(Fault) as refused:
            files.look("/proc/self", f"fd/{held}/file", MOST)
    finally:
        os.close(held)
    assert isinstance(refused.value, BadPath | OutsideProject)


def test_a_hard_link_is_refused_with_the_remedy_unless_allowed(
    files: LocalProjectFiles, project: Path, outside: Path
) -> None:
    os.link(outside / "file", project / "file")
    with pytest.raises(HardLinked, match=r"CONTEXTD_ALLOW_HARD_LINKS=true; pnpm"):
        files.look(str(project), "file", MOST)
    allowing = LocalProjectFiles(hard_links=True)
    write(allowing, project, "file", b"mine")
    assert (outside / "file").read_text() == "secret"
    assert (project / "file").read_text() == "mine"


def test_what_is_no_plain_file_is_refused_and_nothing_waits(
    files: LocalProjectFiles, project: Path
) -> None:
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(project / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(BadPath, match="not a plain file"):
                files.look(str(project), name, MOST)
    with pytest.raises(BadPath, match="is a folder"):
        files.look(str(project), "folder", MOST)
    with pytest.raises(BadPath, match="no folder"):
        write(files, project, "pipe/below", b"")
    with pytest.raises(BadPath, match="too long"):
        files.look(str(project), "x" * 300, MOST)
    with pytest.raises(BadPath, match="not a plain file"):
        files.look("/dev", "null", MOST)


def test_a_project_that_is_not_there_is_said(files: LocalProjectFiles, project: Path) -> None:
    with pytest.raises(NotFound, match="the project's folder not found"):
        files.look(str(project / "none"), "file", MOST)


def test_a_file_that_is_too_large_is_refused(files: LocalProjectFiles, project: Path) -> None:
    (project / "large").write_bytes(b"x" * 11)
    assert files.look(str(project), "large", 11).data == b"x" * 11
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        files.look(str(project), "large", 10)
    with pytest.raises(TooLarge):
        # Its size is not told, so it is read until it is too much.
        files.look("/proc", f"{os.getpid()}/maps", 10)


def test_permissions_stay_and_read_only_is_obeyed(files: LocalProjectFiles, project: Path) -> None:
    script = project / "run.sh"
    script.write_text("old")
    script.chmod(0o4750)
    if os.geteuid() == 0:
        os.chown(script, 1234, 1235)
        script.chmod(0o4750)
    write(files, project, "run.sh", b"new")
    about = script.stat()
    assert stat.S_IMODE(about.st_mode) == 0o750
    if os.geteuid() == 0:
        assert (about.st_uid, about.st_gid) == (1234, 1235)
    script.chmod(0o444)
    with pytest.raises(Forbidden, match="read-only"):
        write(files, project, "run.sh", b"newer")
    assert script.read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_root_makes_belongs_to_the_owner_of_the_folder(
    files: LocalProjectFiles, project: Path
) -> None:
    os.chown(project, 1234, 1235)
    write(files, project, "made/new", b"")
    for path in (project / "made", project / "made/new"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_what_came_or_changed_since_the_look_is_not_replaced(
    files: LocalProjectFiles, project: Path
) -> None:
    none = files.look(str(project), "new/file", MOST)
    (project / "new").mkdir()
    (project / "new/file").write_text("somebody's")
    with pytest.raises(FileChanged):
        files.put(str(project), none, b"mine")
    seen = files.look(str(project), "new/file", MOST)
    (project / "new/file").write_text("somebody's own")
    with pytest.raises(Conflict, match="read it again"):
        files.put(str(project), seen, b"mine")
    (project / "new/file").unlink()
    with pytest.raises(FileChanged):
        files.put(str(project), seen, b"mine")
    assert names(project / "new") == []


def test_a_failed_write_leaves_nothing_behind(
    files: LocalProjectFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kept").write_text("as it was")

    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    new, old = (files.look(str(project), name, MOST) for name in ("a/b/new", "kept"))
    monkeypatch.setattr(os, "write", full)
    for file in (new, old):
        with pytest.raises(Fault, match="disk is full"):
            files.put(str(project), file, b"data")
    assert [path.name for path in project.rglob("*")] == ["kept"]
    assert (project / "kept").read_text() == "as it was"


SWAPPER = """
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
HERE, EXCHANGE = -100, 2
one, other = map(os.fsencode, sys.argv[1:])
print("begun", flush=True)
while libc.renameat2(HERE, one, HERE, other, EXCHANGE) == 0:
    pass
"""


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Two names change places, at once and as fast as they can, in a process of its own."""
    command = [sys.executable, "-c", SWAPPER, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == b"begun\n"
            yield
            assert swapper.poll() is None
        finally:
            swapper.kill()


@pytest.mark.parametrize("target", ["{outside}", "../outside"])
def test_swapping_a_folder_for_a_link_never_leads_outside(
    opener: Opener, project: Path, outside: Path, target: str
) -> None:
    files = LocalProjectFiles(opener=opener)
    (project / "folder").mkdir()
    (project / "folder/file").write_text("inside")
    (project / "link").symlink_to(target.format(outside=outside))
    outcomes = {"read": 0, "written": 0, "refused": 0}
    with swapping(project / "folder", project / "link"):
        for turn in range(SWAPS):
            try:
                seen = files.look(str(project), "folder/file", MOST)
                assert seen.data in (None, b"inside", b"inside too")
                outcomes["read"] += seen.data is not None
                if turn % 10 == 0:
                    files.put(str(project), seen, b"inside too" if turn % 20 else b"inside")
                    outcomes["written"] += 1
            except Fault:
                outcomes["refused"] += 1
    assert (outside / "file").read_text() == "secret"
    assert names(outside) == ["file"]
    assert all(outcomes.values()), outcomes


WRITER = """
import sys
from contextd.adapters.project_files import LocalProjectFiles

files = LocalProjectFiles()
for turn in range(1_000_000):
    seen = files.look(sys.argv[1], "file", 10_000_000)
    files.put(sys.argv[1], seen, (b"a", b"b")[turn % 2] * 2_000_000)
    print(turn, flush=True)
"""


def test_a_kill_in_the_middle_leaves_the_old_or_the_new(project: Path) -> None:
    (project / "file").write_bytes(b"a" * 2_000_000)
    for crash in range(CRASHES):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(project)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(1 + crash % 3):
                assert writer.stdout.readline()
            with suppress(subprocess.TimeoutExpired):
                # Into the middle of the next write, further in each time.
                writer.wait(timeout=crash / 2_000)
            writer.send_signal(signal.SIGKILL)
        data = (project / "file").read_bytes()
        assert len(data) == 2_000_000
        assert len(set(data)) == 1


def test_the_kernel_is_asked_where_it_can(project: Path) -> None:
    (project / "file").write_text("here")
    found = os.open(project, os.O_RDONLY)
    try:
        opened = by_kernel_or_walk(found, "file", os.O_RDONLY)
        os.close(opened.fd)
    finally:
        os.close(found)
    assert opened.path == "file"

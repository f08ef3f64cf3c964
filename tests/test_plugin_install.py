"""Plugins on their way in: nothing that they say is believed, and nothing of them is ever half there."""

import functools
import hashlib
import http.server
import io
import os
import shlex
import stat
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contextd.adapters.tool_processes import archives, arrival
from contextd.adapters.tool_processes.installed import InstalledPlugins
from contextd.adapters.tool_processes.manifest import read_manifest
from contextd.adapters.tool_processes.sources import Source
from contextd.domain.callers import Caller
from contextd.domain.errors import NoSuchPlugin, NotInstallable
from contextd.edge.call_pipeline import pipeline_of
from contextd.settings import RateLimit, Settings
from contextd.wiring import build, open_house
from grpc_calls import client_of
from running import command, environment, running_daemon, structured
from tool_process_samples import EXAMPLE, beneath, install, write_plugin

Entry = tuple[tarfile.TarInfo, bytes]


def contextd(
    data_dir: Path, *arguments: str, said: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(data_dir),
        cwd=cwd,
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def entry(name: str, content: bytes = b"", **more: object) -> Entry:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def tar_of(place: Path, *entries: Entry) -> Path:
    with tarfile.open(place, "w:gz") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return place


def example_entries(prefix: str = "") -> list[Entry]:
    return [
        entry(f"{prefix}{file.name}", file.read_bytes()) for file in EXAMPLE.iterdir() if file.is_file()
    ]


def commit_of(folder: Path) -> str:
    """The example, committed."""
    folder.mkdir()
    git = functools.partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
    git(["git", "init", "-q", "-b", "main"])
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    git(["git", "add", "-A"])
    git(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"])
    return git(["git", "rev-parse", "HEAD"]).stdout.strip()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """An address, and the folder that is served there."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", folder
        finally:
            server.shutdown()
            thread.join()


def test_from_a_folder_it_is_shown_before_anybody_says_yes(data_dir: Path) -> None:
    ran = contextd(data_dir, "plugin", "install", str(EXAMPLE), said="n\n")
    assert ran.returncode == 1
    for told in ("wordcount 1.0.0", "may read   its own folder", "may reach  no host", "wordcount_count"):
        assert told in ran.stderr
    assert "nothing was installed" in ran.stderr
    assert list((data_dir / "plugins").iterdir()) == []


def test_installed_listed_called_looked_at_and_removed_by_hand(data_dir: Path) -> None:
    assert contextd(data_dir, "plugin", "install", str(EXAMPLE), said="y\n").returncode == 0
    listed = contextd(data_dir, "plugin", "list").stdout
    assert listed.split() == ["wordcount", "1.0.0", "wordcount_count,", "wordcount_frequent"]
    called = contextd(data_dir, "call", "wordcount_count", "text=one two")
    assert called.stdout.startswith('{"lines":1,"words":2,"characters":7')
    assert str(EXAMPLE) in contextd(data_dir, "plugin", "info", "wordcount").stdout
    assert "wordcount_frequent" in contextd(data_dir, "tools").stdout
    assert contextd(data_dir, "plugin", "remove", "wordcount").returncode == 0
    assert list((data_dir / "plugins").iterdir()) == []
    gone = contextd(data_dir, "call", "wordcount_count", "text=a")
    assert gone.returncode != 0


def test_the_commands_of_the_examples_page_work_as_written(data_dir: Path) -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    lines = page.split("```sh\n")[1].split("```")[0].splitlines()
    assert len(lines) == 3
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "contextd"
        ran = contextd(data_dir, *arguments, said="y\n", cwd=EXAMPLE.parent.parent.parent)
        assert ran.returncode == 0, ran.stderr


def test_from_a_commit_of_a_git_repository(tmp_path: Path, data_dir: Path) -> None:
    commit = commit_of(tmp_path / "repository")
    source = f"git+file://{tmp_path}/repository@{commit}"
    assert contextd(data_dir, "plugin", "install", source, "--yes").returncode == 0
    assert contextd(data_dir, "call", "wordcount_count", "text=a").returncode == 0
    (files,) = data_dir.glob("plugins/wordcount/1.0.0/files")
    assert not (files / ".git").exists()


def test_from_an_archive_with_its_checksum(tmp_path: Path, data_dir: Path) -> None:
    archive = tar_of(tmp_path / "wordcount.tar.gz", *example_entries("wordcount-1.0.0/"))
    ran = contextd(data_dir, "plugin", "install", str(archive), "--sha256", sha256(archive), "--yes")
    assert ran.returncode == 0, ran.stderr
    assert contextd(data_dir, "call", "wordcount_count", "text=a").returncode == 0


def fetched(source: str, folder: Path, sum: str | None = None) -> Path:
    folder.mkdir()
    Source(source, sum).fetch(folder)
    return folder


def test_a_zip_and_an_archive_on_the_web_hold_the_same(tmp_path: Path, web: tuple[str, Path]) -> None:
    address, served = web
    archive = served / "wordcount.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for info, content in example_entries("wordcount/"):
            zipped.writestr(info.name, content)
    here = fetched(str(archive), tmp_path / "here", sha256(archive))
    there = fetched(f"{address}/wordcount.zip", tmp_path / "there", sha256(archive).upper())
    for folder in (here, there):
        assert read_manifest(folder).name == "wordcount"
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == {
            info.name: content for info, content in example_entries()
        }


@pytest.mark.parametrize(
    ("source", "sum", "says"),
    [
        ("{web}/a.tar.gz", None, "needs its checksum"),
        ("{web}/a.tar.gz", "0" * 63, "needs its checksum"),
        ("{web}/a.tar.gz", "0" * 64, "not the one whose checksum was given"),
        ("{web}/nothing.tar.gz", "0" * 64, "cannot be fetched"),
        ("http://[", "0" * 64, "cannot be fetched"),
        ("{folder}/a.tar.gz", None, "needs its checksum"),
        ("{folder}/a.tar.gz", "0" * 64, "not the one whose checksum was given"),
        ("{folder}", "0" * 64, "a folder has no sha256"),
        ("{folder}/nothing", None, "no such folder or archive"),
        ("git+https://example.org/a.git", None, "needs a whole commit"),
        ("git+https://example.org/a.git@main", None, "needs a whole commit"),
        ("git+https://example.org/a.git@0123abc", None, "needs a whole commit"),
        (f"git+ssh://example.org/a.git@{'0' * 40}", None, "needs a whole commit"),
        (f"git+file:///nonexistent@{'0' * 40}", None, "git could not fetch"),
        (f"git+file:///nonexistent@{'0' * 40}", "0" * 64, "a commit has no sha256"),
    ],
)
def test_a_source_that_is_not_pinned_or_not_there_is_refused(
    tmp_path: Path, web: tuple[str, Path], source: str, sum: str | None, says: str
) -> None:
    address, folder = web
    tar_of(folder / "a.tar.gz", *example_entries())
    with pytest.raises(NotInstallable, match=says):
        fetched(source.format(web=address, folder=folder), tmp_path / "files", sum)
    assert list((tmp_path / "files").iterdir()) == []


OUTSIDE: dict[str, tuple[Entry, ...]] = {
    "absolute": (entry("/tmp/x", b"x"),),
    "upwards": (entry("../x", b"x"),),
    "upwards within": (entry("a/../../x", b"x"),),
    "backslashes": (entry("..\\x", b"x"),),
    "a control character": (entry("a\x1b[2J", b"x"),),
    "an absolute link": (entry("a", type=tarfile.SYMTYPE, linkname="/etc"),),
    "a link upwards": (entry("a", type=tarfile.SYMTYPE, linkname="../x"),),
    "a link through a link": (
        entry("p/q/r/up", type=tarfile.SYMTYPE, linkname="../../.."),
        entry("out", type=tarfile.SYMTYPE, linkname="p/q/r/up/../.."),
    ),
    "a file through a link": (
        entry("sub", type=tarfile.DIRTYPE),
        entry("a", type=tarfile.SYMTYPE, linkname="sub"),
        entry("a/x", b"x"),
    ),
    "a folder through a link": (
        entry("a", type=tarfile.SYMTYPE, linkname="."),
        entry("a/b", type=tarfile.DIRTYPE),
    ),
    "a file over a link": (entry("a", type=tarfile.SYMTYPE, linkname="b"), entry("a", b"x")),
    "a link out of the one folder": (
        entry("top/plugin.toml", b""),
        entry("top/up", type=tarfile.SYMTYPE, linkname=".."),
    ),
    "a hard link": (entry("a", b"x"), entry("b", type=tarfile.LNKTYPE, linkname="a")),
    "a device": (entry("a", type=tarfile.CHRTYPE, devmajor=1, devminor=3),),
    "a pipe": (entry("a", type=tarfile.FIFOTYPE),),
    "no name": (entry("./", b"x"),),
    "a long name": (entry("a" * 300, b"x"),),
    "a deep name": (entry("a/" * 40 + "x", b"x"),),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_of_an_archive_gets_out_of_its_folder(tmp_path: Path, name: str) -> None:
    around = tmp_path / "around"
    around.mkdir()
    archive = tar_of(tmp_path / "a.tar.gz", *OUTSIDE[name])
    with pytest.raises(NotInstallable):
        fetched(str(archive), around / "files", sha256(archive))
    assert [each.name for each in around.iterdir()] == ["files"]
    assert not Path("/tmp/x").exists()


def test_links_that_stay_inside_are_kept_and_special_rights_are_not(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "a.tar.gz",
        entry("plugin.toml", b""),
        entry("bin/run", b"#!/bin/sh\n", mode=0o6777),
        entry("lib/data", b"d", mode=0o4644),
        entry("bin/data", type=tarfile.SYMTYPE, linkname="../lib/data"),
    )
    files = fetched(str(archive), tmp_path / "files", sha256(archive))
    assert (files / "bin/data").read_bytes() == b"d"
    modes = [stat.S_IMODE((files / name).stat().st_mode) for name in ("bin/run", "lib/data")]
    assert modes == [0o755, 0o644]


def zipped_link(place: Path) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        info = zipfile.ZipInfo("a")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return place


def zipped_upwards(place: Path) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("../x", "x")
    return place


def zipped_device(place: Path) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        info = zipfile.ZipInfo("a")
        info.external_attr = (stat.S_IFCHR | 0o666) << 16
        archive.writestr(info, "")
    return place


def half_a_tar(place: Path) -> Path:
    whole = tar_of(place, *example_entries()).read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    return place


def no_archive(place: Path) -> Path:
    place.write_bytes(b"#!/bin/sh\n" * 100)
    return place


@pytest.mark.parametrize("make", [zipped_link, zipped_upwards, zipped_device, half_a_tar, no_archive])
def test_a_bad_archive_is_refused_and_no_crash(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    archive = make(tmp_path / "archive")
    with pytest.raises(NotInstallable):
        fetched(str(archive), tmp_path / "files", sha256(archive))
    assert not (tmp_path / "x").exists()


def test_bombs_are_refused_before_they_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "LARGEST", 1 << 20)
    monkeypatch.setattr(arrival, "MOST_ENTRIES", 50)
    monkeypatch.setattr(archives, "LARGEST", 1 << 20)
    monkeypatch.setattr(archives, "_HEADERS", 1 << 20)
    large = tar_of(tmp_path / "large.tar.gz", entry("zeros", bytes(8 << 20)))
    many = tar_of(tmp_path / "many.tar.gz", *(entry(f"f{at}") for at in range(60)))
    folders = tar_of(tmp_path / "folders.tar.gz", *(entry(f"d{at}/e/f/g/h", b"") for at in range(20)))
    zipped = tmp_path / "a.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(8 << 20))
    for at, bomb in enumerate((large, many, folders, zipped)):
        with pytest.raises(NotInstallable, match="more than"):
            fetched(str(bomb), tmp_path / f"files{at}", sha256(bomb))
        size = sum(each.stat().st_size for each in (tmp_path / f"files{at}").rglob("*") if each.is_file())
        assert size <= 1 << 20


def test_a_folder_with_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    folder = write_plugin(tmp_path / "plugin")
    (folder / "keys").symlink_to(Path.home())
    with pytest.raises(NotInstallable, match="leads out of it"):
        fetched(str(folder), tmp_path / "files")


def test_what_git_would_run_at_a_checkout_is_not_run(tmp_path: Path) -> None:
    """A filter that the repository asks for by its attributes, and the user's settings would run."""
    repository = tmp_path / "repository"
    commit_of(repository)
    (repository / ".gitattributes").write_text("* filter=evil export-subst\n")
    git = functools.partial(subprocess.run, cwd=repository, check=True, capture_output=True, text=True)
    git(["git", "config", "filter.evil.smudge", f"touch {tmp_path}/ran"])
    git(["git", "config", "uploadpack.packObjectsHook", f"touch {tmp_path}/ran; exec"])
    git(["git", "add", ".gitattributes"])
    git(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "two"])
    commit = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    files = fetched(f"git+file://{repository}@{commit}", tmp_path / "files")
    assert read_manifest(files).name == "wordcount"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"name": "Word_Count"}, "no fit name"),
        ({"name": "../up"}, "no fit name"),
        ({"version": "../../1"}, "no fit version"),
        ({"version": "1/2"}, "no fit version"),
        ({"command": []}, "no command"),
        ({"command": "sh"}, "no fit command"),
        ({"command": ["a\x1b[2J"]}, "no fit command"),
        ({"readable": ["relative"]}, "no fit readable"),
        ({"readable": ["/home/../etc"]}, "no fit readable"),
        ({"readable": ["/"]}, "no fit readable"),
        ({"hosts": ["http://example.org/"]}, "no fit hosts"),
        ({"environment": ["AWS_*"]}, "no fit environment"),
        ({"environment": ["CONTEXTD_DATA_DIR"]}, "variables of contextd"),
        ({"writable": ["/"]}, "keys that nobody knows"),
    ],
)
def test_a_manifest_that_asks_for_too_much_is_refused(
    tmp_path: Path, row: dict[str, object], says: str
) -> None:
    more: dict[str, object] = {"name": "probe", **row}
    with pytest.raises(NotInstallable, match=says):
        read_manifest(write_plugin(tmp_path / "plugin", **more))  # type: ignore[arg-type]  # rows are of any kind


def test_a_plugin_that_would_pass_for_one_of_contextds_own_is_refused(
    tmp_path: Path, data_dir: Path
) -> None:
    folder = write_plugin(tmp_path / "plugin", name="safe")
    ran = contextd(data_dir, "plugin", "install", str(folder), "--yes")
    assert ran.returncode == 2
    assert "would pass for contextd's own" in ran.stderr
    assert list((data_dir / "plugins").iterdir()) == []


def test_one_that_does_not_start_is_not_installed(tmp_path: Path, data_dir: Path) -> None:
    folder = write_plugin(tmp_path / "plugin", "import sys\nsys.exit(5)\n")
    ran = contextd(data_dir, "plugin", "install", str(folder), "--yes")
    assert ran.returncode == 1
    assert "the plugin probe ended with exit code 5" in ran.stderr
    assert list((data_dir / "plugins").iterdir()) == []


@pytest.mark.anyio
async def test_the_same_version_is_not_replaced_and_another_takes_its_place(
    tmp_path: Path, data_dir: Path
) -> None:
    await install(data_dir, EXAMPLE)
    with pytest.raises(Exception, match="is installed already"):
        await install(data_dir, EXAMPLE)
    newer = write_plugin(tmp_path / "newer", name="wordcount", version="2.0")
    assert (await install(data_dir, newer)).manifest.version == "2.0"
    plugins = InstalledPlugins(data_dir)
    assert [each.manifest.version for each in plugins] == ["2.0"]
    assert [each.name for each in beneath(data_dir / "plugins", "*")] == ["wordcount"]
    assert (await install(data_dir, EXAMPLE)).manifest.version == "1.0.0"
    plugins.remove("wordcount")
    with pytest.raises(NoSuchPlugin):
        plugins["wordcount"]


@pytest.mark.anyio
async def test_what_a_killed_installation_left_is_neither_used_nor_kept(data_dir: Path) -> None:
    """One was killed while it fetched, hours ago; another after its files were in place."""
    left = data_dir / "plugins" / ".aside-left"
    (left / "files").mkdir(parents=True)
    os.utime(left, (0, 0))
    await install(data_dir, EXAMPLE)
    (data_dir / "plugins" / "wordcount" / "current").unlink()
    assert not left.exists()
    assert list(InstalledPlugins(data_dir)) == []
    assert (await install(data_dir, EXAMPLE)).manifest.name == "wordcount"


@pytest.mark.anyio
@pytest.mark.parametrize("damage", ["", "{}", '{"manifest": {"name": "../x"}, "tools": [], "source": ""}'])
async def test_a_damaged_one_is_left_out_and_the_others_answer(
    tmp_path: Path, data_dir: Path, damage: str
) -> None:
    await install(data_dir, EXAMPLE)
    await install(data_dir, write_plugin(tmp_path / "probe"))
    (record,) = beneath(data_dir, "plugins/probe/*/record.json")
    record.write_text(damage)
    settings = Settings(data_dir=data_dir, rate_limit=RateLimit(on=False))
    async with open_house(build(settings), follows=False) as house:
        assert house.registry.get("probe_say") is None
        answer = await pipeline_of(house).call("wordcount_count", {"text": "a"}, Caller())
        assert answer.data["words"] == 1


def test_its_tools_are_at_every_door_and_in_the_audit(data_dir: Path) -> None:
    assert contextd(data_dir, "plugin", "install", str(EXAMPLE), "--yes").returncode == 0
    with running_daemon(data_dir) as daemon, client_of(daemon) as client:
        session = daemon.session()
        listed = session.rpc("tools/list").json()["result"]["tools"]
        assert "wordcount_count" in {tool["name"] for tool in listed}
        over_mcp = structured(session.call("wordcount_count", text="one two"))
        over_http = daemon.tool("wordcount_count", text="one two").json()["data"]
        over_grpc = client.data("wordcount_count", text="one two")
        assert over_mcp["words"] == over_http["words"] == over_grpc["words"] == 2
        refused = daemon.tool("wordcount_count", text=7).json()
        assert refused["code"] == "VAL_002"
    lines = "".join(file.read_text() for file in (data_dir / "audit").glob("*.jsonl")).splitlines()
    ours = [line for line in lines if '"wordcount_count"' in line]
    assert len(ours) == 4
    assert sum('"isolation":"bubblewrap"' in line.replace(" ", "") for line in ours) == 3

"""contextd-proxy as an agent runs it: by a tool's name, with flags or JSON, with a daemon or without."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from contextd.edge.tool_folders import write_launcher
from grpc_calls import socket_of
from running import KEYWORD_ONLY, Daemon, command, environment, running_daemon
from test_pipeline import eventually

PROGRAM = Path(sys.executable).parent / "contextd-proxy"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(
        tmp_path_factory.mktemp("proxy"), CONTEXTD_RATE_LIMIT="off", **KEYWORD_ONLY
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def tools(served: Daemon) -> Path:
    """Every tool as a folder."""
    folder = served.data_dir / "tools"
    subprocess.run(
        command("tools", "install", "--dir", str(folder)),
        env=environment(served.data_dir),
        check=True,
        timeout=WAIT_S,
    )
    return folder


def run(
    program: Path | str,
    *words: str,
    cwd: Path | None = None,
    stdin: str = "",
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} if env is None else env,
    )


def test_a_tool_is_called_by_its_name_with_flags(tools: Path, tmp_path: Path) -> None:
    saved = run(
        tools / "checkpoint_save/checkpoint_save",
        *("--summary", "42", "--project-path", "."),
        *("--tags", "a", "--tags", "b", "--context", '{"n": 1}'),
        cwd=tmp_path,
    )
    assert saved.returncode == 0, saved.stderr
    answer = json.loads(saved.stdout)
    assert set(answer) == {"data", "refs", "tokens_used", "has_more", "truncated"}
    found = run(tools / "checkpoint_restore/checkpoint_restore", answer["data"]["id"])
    restored = json.loads(found.stdout)["data"]
    assert restored["summary"] == "42"
    assert restored["context"] == {"n": 1}
    listed = run(tools / "checkpoint_list/checkpoint_list", f"--project-path={tmp_path}", "--limit=1")
    assert json.loads(listed.stdout)["data"]["checkpoints"][0]["tags"] == ["a", "b"]


@pytest.mark.parametrize("words", [(), ("-",)])
def test_a_tool_is_called_with_json_on_standard_input(
    tools: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    sent = json.dumps({"summary": "by pipe, naïvely", "tags": ["é"]})
    saved = run(tools / "checkpoint_save/checkpoint_save", *words, cwd=tmp_path, stdin=sent)
    assert saved.returncode == 0, saved.stderr
    assert json.loads(saved.stdout)["data"]["summary"] == "by pipe, naïvely"


def test_a_required_project_is_the_repository_around_the_current_folder(
    tools: Path, tmp_path: Path
) -> None:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/.git/HEAD").touch()
    (tmp_path / "repo/deep/down").mkdir(parents=True)
    saved = run(tools / "checkpoint_save/checkpoint_save", "here", cwd=tmp_path / "repo/deep/down")
    assert saved.returncode == 0, saved.stderr
    listed = run(tools / "checkpoint_list/checkpoint_list", "--project-path", str(tmp_path / "repo"))
    assert [each["summary"] for each in json.loads(listed.stdout)["data"]["checkpoints"]] == ["here"]


def test_an_optional_project_is_left_to_the_caller(tools: Path, tmp_path: Path) -> None:
    run(tools / "checkpoint_save/checkpoint_save", "somewhere", cwd=tmp_path)
    (tmp_path / "elsewhere/.git").mkdir(parents=True)
    (tmp_path / "elsewhere/.git/HEAD").touch()
    listed = run(tools / "checkpoint_list/checkpoint_list", cwd=tmp_path / "elsewhere")
    assert json.loads(listed.stdout)["data"]["total"] >= 1


def test_a_path_of_a_code_tool_is_the_project_too(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("def total() -> int:\n    return 1\n")
    indexed = run(tools / "index_codebase/index_codebase", "--no-include-tests", cwd=tmp_path)
    assert indexed.returncode == 0, indexed.stderr
    found = run(tools / "search_code/search_code", "total", cwd=tmp_path)
    assert "cart.py" in found.stdout


@pytest.mark.parametrize(
    ("tool", "words", "status", "says"),
    [
        ("checkpoint_list", ["--limit", "0"], 2, "limit is out of range"),
        ("checkpoint_list", ["--limt", "1"], 2, "did you mean --limit?"),
        ("checkpoint_list", ["--limit", "many"], 2, "--limit takes a whole number"),
        ("checkpoint_list", ["--limit"], 2, "--limit needs a value"),
        ("checkpoint_list", ["--limit", "1", "--limit", "2"], 2, "given twice"),
        ("checkpoint_list", ["stray"], 2, "too many words"),
        ("checkpoint_save", ["x", "--context", "bare"], 2, "JSON object or KEY=VALUE"),
        ("memory_feedback", ["id", "maybe"], 2, "--helpful takes true or false"),
        ("checkpoint_restore", [], 2, "id is required"),
        ("checkpoint_restore", ["nope"], 1, "checkpoint not found"),
        ("get_status", ["--path", "/no/such/place"], 2, "path does not exist"),
    ],
)
def test_mistakes_are_told_on_standard_error_with_a_status(
    tools: Path, tmp_path: Path, tool: str, words: list[str], status: int, says: str
) -> None:
    ran = run(tools / tool / tool, *words, cwd=tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr) == (status, False), ran.stderr
    assert says in ran.stderr
    if ran.stdout:
        assert set(json.loads(ran.stdout)) == {"category", "code", "message", "details"}


@pytest.mark.parametrize("sent", ["{", "[1]", '"x"'])
def test_standard_input_that_is_no_object_is_wrong_usage(tools: Path, sent: str) -> None:
    ran = run(tools / "checkpoint_list/checkpoint_list", "-", stdin=sent)
    assert ran.returncode == 2
    assert "JSON" in ran.stderr


def test_a_pipe_that_stays_silent_keeps_nobody_waiting(tools: Path) -> None:
    ours, theirs = os.pipe()
    try:
        ran = subprocess.run(
            [tools / "status/status"],
            stdin=ours,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert json.loads(ran.stdout)["data"]["version"]


def test_help_names_each_field(tools: Path) -> None:
    shown = run(tools / "checkpoint_save/checkpoint_save", "--help")
    assert shown.returncode == 0
    assert "--project-path" in shown.stdout
    assert "(required)" in shown.stdout


def test_text_is_the_content_alone(tools: Path, tmp_path: Path) -> None:
    for number in range(30):
        run(tools / "checkpoint_save/checkpoint_save", f"{number} " + "word " * 40, cwd=tmp_path)
    cut = run(
        tools / "checkpoint_list/checkpoint_list",
        *("--project-path", str(tmp_path), "--limit", "30", "--token-budget", "300", "--text"),
    )
    assert "truncated; more under ref" in cut.stderr
    (ref, *_) = re.findall(r"more under ([^,\s]+)", cut.stderr)
    more = run(tools / "ref_get/ref_get", ref, "--text")
    assert more.returncode == 0
    assert "word word" in more.stdout
    assert '"content"' not in more.stdout


def test_a_large_request_arrives_whole(tools: Path) -> None:
    """Larger than any window that is open at first."""
    sent = json.dumps({"summary": "x" * 3_000_000, "project_path": "/srv/large"})
    ran = run(tools / "checkpoint_save/checkpoint_save", stdin=sent)
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["code"] == "VAL_003"
    over = run(tools / "checkpoint_save/checkpoint_save", stdin=sent.replace("x" * 100, "x" * 200))
    assert over.returncode == 1
    assert "larger than max" in over.stderr


def test_the_program_itself_takes_the_tools_name(served: Daemon, tmp_path: Path) -> None:
    env = environment(served.data_dir)
    assert json.loads(run(PROGRAM, "status", env=env).stdout)["data"]["version"]
    assert run(PROGRAM, env=env).returncode == 2
    unknown = run(PROGRAM, "no_such_tool", env=env)
    assert unknown.returncode == 1
    assert json.loads(unknown.stdout)["code"] == "TOOL_001"


def test_an_interpreter_with_an_awkward_path_starts_it_too(served: Daemon, tmp_path: Path) -> None:
    awkward = tmp_path / "with space" / "python3"
    awkward.parent.mkdir()
    awkward.symlink_to(Path(sys.executable).resolve())
    launcher = write_launcher(tmp_path / "contextd-proxy", str(awkward), served.data_dir, None)
    assert json.loads(run(launcher, "status").stdout)["data"]["version"]


def test_nothing_of_contextd_but_the_proxy_is_loaded(served: Daemon, tools: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-IS", "-X", "importtime", str(tools / "status/status")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    loaded = {line.rsplit("|", 1)[1].strip() for line in ran.stderr.splitlines() if "|" in line}
    assert {name for name in loaded if name.startswith("contextd")} <= {
        "contextd",
        "contextd.proxy",
        "contextd.proxy.__main__",
        *(f"contextd.proxy.{part}" for part in ("flags", "http2", "messages", "place")),
    }
    assert not loaded & {"argparse", "dataclasses", "typing", "subprocess", "ssl", "pathlib"}


# --- a daemon that is not running -------------------------------------------------------


@contextmanager
def no_daemon_left(data_dir: Path) -> Iterator[None]:
    """Ends what a proxy started, by the id that the socket's lock has."""
    try:
        yield
    finally:
        lock = socket_of(data_dir).with_name("contextd.sock.lock")
        if lock.exists():
            with lock.open() as held:
                stop(held.fileno(), int(held.read() or 0))


def stop(lock: int, pid: int) -> None:
    if not is_held(lock):
        return
    os.kill(pid, signal.SIGTERM)
    assert eventually(lambda: not is_held(lock), 20), f"process {pid} goes on"


def is_held(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def daemons_of(data_dir: Path) -> list[int]:
    """Its children are not counted: between fork and exec, a child looks like its daemon."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"serve" in words and f"CONTEXTD_DATA_DIR={data_dir}".encode() in variables:
            parents[int(process.name)] = parent
    return [each for each, parent in parents.items() if parent not in parents]


def test_ten_proxies_at_once_start_one_daemon(tmp_path: Path) -> None:
    env = environment(tmp_path, **KEYWORD_ONLY)
    with no_daemon_left(tmp_path):
        with ThreadPoolExecutor(10) as pool:
            ran = list(pool.map(lambda _: run(PROGRAM, "status", env=env), range(10)))
        assert [each.returncode for each in ran] == [0] * 10, ran[0].stderr
        assert len(daemons_of(tmp_path)) == 1
        again = run(PROGRAM, "status", env=env)
        assert again.returncode == 0
        assert len(daemons_of(tmp_path)) == 1


def test_a_daemon_that_was_killed_is_started_again(tmp_path: Path) -> None:
    env = environment(tmp_path, **KEYWORD_ONLY)
    with no_daemon_left(tmp_path):
        assert run(PROGRAM, "status", env=env).returncode == 0
        (first,) = daemons_of(tmp_path)
        os.kill(first, signal.SIGKILL)
        with socket_of(tmp_path).with_name("contextd.sock.lock").open() as lock:
            assert eventually(lambda: not is_held(lock.fileno()))
        assert socket_of(tmp_path).is_socket()
        assert run(PROGRAM, "status", env=env).returncode == 0
        assert daemons_of(tmp_path) != [first]


def test_a_daemon_that_is_started_takes_another_port_when_its_own_is_taken(
    served: Daemon, tmp_path: Path
) -> None:
    taken = served.url.rsplit(":", 1)[1]
    env = environment(tmp_path, CONTEXTD_HTTP_PORT=taken, **KEYWORD_ONLY)
    with no_daemon_left(tmp_path):
        assert run(PROGRAM, "status", env=env).returncode == 0
        assert f":{taken}\n" not in (tmp_path / "run/daemon.log").read_text()


def test_a_daemon_that_does_not_start_says_why(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = run(PROGRAM, "status", env=environment(tmp_path, CONTEXTD_STORE="mongo:"))
    assert ran.returncode == 1
    assert "CONTEXTD_STORE names no known store" in ran.stderr
    assert time.monotonic() - started < 20
    assert daemons_of(tmp_path) == []


def test_a_daemon_for_the_proxy_does_not_stay_beside_another(served: Daemon) -> None:
    ran = subprocess.run(
        command("serve", "--port", "0", "--background"),
        env=environment(served.data_dir, **KEYWORD_ONLY),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ran.returncode == 2
    assert "another contextd" in ran.stderr


def test_a_daemon_that_was_started_is_stopped_by_name(tmp_path: Path) -> None:
    env = environment(tmp_path, **KEYWORD_ONLY)

    def stop_it() -> subprocess.CompletedProcess[str]:
        return run(command("stop")[0], *command("stop")[1:], env=env)

    with no_daemon_left(tmp_path):
        assert "no daemon runs" in stop_it().stderr
        assert run(PROGRAM, "status", env=env).returncode == 0
        ended = stop_it()
        assert (ended.returncode, ended.stderr) == (0, "stopped\n")
        assert eventually(lambda: daemons_of(tmp_path) == [])


def test_switched_off_is_told_and_not_waited_for(tmp_path: Path) -> None:
    ran = run(PROGRAM, "status", env=environment(tmp_path, CONTEXTD_GRPC="off"))
    assert ran.returncode == 1
    assert "unset CONTEXTD_GRPC" in ran.stderr


# --- over the network -------------------------------------------------------------------


def test_over_the_network_it_shows_its_certificate(tmp_path: Path) -> None:
    out = tmp_path / "cert"
    subprocess.run(
        command("cert", "issue", "--name", "far", "--out", str(out)),
        env=environment(tmp_path),
        check=True,
        timeout=WAIT_S,
        capture_output=True,
    )
    with running_daemon(tmp_path, CONTEXTD_GRPC="127.0.0.1:0", **KEYWORD_ONLY) as daemon:
        assert daemon.tool("status").status_code == 200
        address = re.findall(r"gRPC +(\S+)", "".join(daemon.log))[0]
        env = environment(tmp_path / "far", CONTEXTD_GRPC=address)
        told = run(PROGRAM, "status", env={**env, "CONTEXTD_CERT": str(out)})
        assert json.loads(told.stdout)["data"]["version"]
        without = run(PROGRAM, "status", env=env)
    assert without.returncode == 1
    assert "CONTEXTD_CERT" in without.stderr
    gone = run(PROGRAM, "status", env={**env, "CONTEXTD_CERT": str(out)})
    assert gone.returncode == 1
    assert "cannot reach" in gone.stderr

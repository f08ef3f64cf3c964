"""A command in the sandbox: what it can, what it cannot, and that nothing of it is left, on all rungs."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contextd.adapters.sandbox.ladder import Ladder
from contextd.domain.errors import OutsideProject, SandboxUnavailable
from contextd.domain.sandboxing import TIMED_OUT, Job, Limits, Policy, Stream
from running import command, environment
from sandboxes import IS_ROOT, SECRET, Ground, ground, ground_at, place, running

__all__ = ["ground", "place"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone has a sandbox"),
]


HOME = Path.home()
SLEEP = f"3600.{os.getpid()}"
"""So long, and told apart from the sleep of another run of these tests."""


def limits(**values: int) -> Policy:
    return Policy(limits=replace(Limits(), **values))


def ladder(level: str = "auto") -> Ladder:
    return Ladder(level, (), lambda project: False, lambda names: {})


def resolved(path: Path | str) -> str:
    return os.path.realpath(path)


def hush(stream: Stream, piece: bytes) -> None:
    """Nobody listens."""


# --- what a command can do ----------------------------------------------------------------


def test_what_it_prints_and_its_exit_code_come_back(ground: Ground) -> None:
    ran = ground.run("echo out; echo err >&2; exit 7")
    assert (ran.finished.exit_code, ran.stdout, ran.stderr) == (7, "out\n", "err\n")
    assert ran.finished.level == ground.level
    assert not ran.finished.timed_out


def test_a_signal_is_an_exit_code_as_in_a_shell(ground: Ground) -> None:
    assert ground.run("kill -TERM $$").finished.exit_code == 143


def test_it_writes_in_its_project_and_its_owner_owns_it(ground: Ground) -> None:
    ran = ground.run("mkdir -p a/b && echo text >a/b/new && mv a/b/new a/renamed && cat a/renamed")
    assert ran.stdout == "text\n"
    assert (ground.project / "a/renamed").stat().st_uid == ground.project.stat().st_uid


def test_standard_input_and_added_variables_reach_it_whole(ground: Ground) -> None:
    value = 'it\'s "$HOME" `id` \\ \n\té'
    ran = ground.run('cat; printf %s "$ADDED"', env={"ADDED": value, "UID": "7"}, stdin=b"given " * 50_000)
    assert ran.stdout == "given " * 50_000 + value
    assert ran.stderr == ""


def test_temporary_files_have_a_place_and_are_gone_afterwards(ground: Ground) -> None:
    ran = ground.run('file=$(mktemp) && echo x >"$file" && cd && touch mine && pwd && echo "$file"')
    assert ran.finished.exit_code == 0, ran.stderr
    assert not any(Path(line).exists() for line in ran.stdout.split())


def test_git_works_in_it(ground: Ground) -> None:
    ran = ground.run(
        "git init -q . && git config user.email a@b.c && git config user.name A && echo x >x"
        " && git add x && git commit -qm first && git log --oneline"
    )
    assert "first" in ran.stdout, ran.stderr
    assert (ground.project / ".git/HEAD").exists(), "a plain repository stays"
    assert "contextd:" not in ran.stderr


# --- what it cannot reach -------------------------------------------------------------------


def test_files_outside_are_neither_read_nor_written(ground: Ground) -> None:
    secret = ground.outside / "secret"
    ran = ground.run(
        f"cat {secret}; echo x >>{secret}; echo x >{ground.outside}/new; cat /etc/shadow; true"
    )
    assert SECRET not in ran.stdout
    assert secret.read_text() == SECRET
    assert not (ground.outside / "new").exists()
    assert "root:" not in ran.stdout


def test_links_and_parents_do_not_lead_out(ground: Ground) -> None:
    (ground.project / "link").symlink_to(ground.outside / "secret")
    ran = ground.run("cat link ../outside/secret; ln -s ../outside o && cat o/secret; true")
    assert SECRET not in ran.stdout


def test_the_environment_of_the_daemon_is_not_to_be_found(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTD_SECRET", SECRET)
    ran = ground.run("env; cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert SECRET not in ran.stdout
    assert "PATH=" in ran.stdout


def test_there_is_no_network(ground: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ran = ground.run(f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo connected; true")
    assert "connected" not in ran.stdout


def test_unix_sockets_outside_cannot_be_reached(ground: Ground) -> None:
    path = ground.outside / "s"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(path))
        path.chmod(0o777)
        abstract.bind(f"\0contextd-test-{os.getpid()}")
        named.listen()
        abstract.listen()
        ran = ground.run(
            f"""/usr/bin/python3 -c '
import socket
for name in ("{path}", "\\0contextd-test-{os.getpid()}"):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("connected")
    except OSError as error:
        print("refused")
'"""
        )
    assert ran.stdout == "refused\nrefused\n", ran.stderr


def test_processes_outside_cannot_be_ended(ground: Ground) -> None:
    with subprocess.Popen(["sleep", "60"]) as victim:
        ground.run(f"kill -9 {victim.pid}; kill -9 -1; true")
        assert victim.poll() is None
        victim.kill()


@pytest.mark.skipif(not IS_ROOT, reason="only root could write them")
def test_root_without_capabilities_writes_nothing_of_the_kernel(place: Path) -> None:
    """Root is the owner of these files, whatever it has given up: they must be read-only or hidden."""
    ground = ground_at("bubblewrap as root", place)
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    ran = ground.run(
        "for file in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger;"
        " do (echo h >$file) 2>/dev/null && echo wrote $file; done;"
        " find /proc -maxdepth 1 -type f -not -perm -004;"
        " cat /proc/kmsg /proc/kcore 2>/dev/null | head -c 1;"
        " mknod x b 8 0 && echo node; id -u"
    )
    assert ran.stdout == "1000\n"
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_no_program_can_be_left_that_lends_its_owners_rights(ground: Ground) -> None:
    ran = ground.run(
        "cp /bin/true a; chmod u+s a; chmod g+s a; install -m 4755 /bin/true b;"
        " /usr/bin/python3 -c 'import os; os.open(\"c\", os.O_CREAT | os.O_WRONLY, 0o4755)'; true"
    )
    modes = [path.stat().st_mode & 0o6000 for path in ground.project.iterdir()]
    assert modes, ran.stderr
    assert set(modes) == {0}


# --- what it may use up ---------------------------------------------------------------------


def test_when_its_time_is_over_it_ends_and_what_it_said_is_kept(ground: Ground) -> None:
    ran = ground.run(f"echo before; trap '' TERM; sleep {SLEEP} & sleep {SLEEP}", timeout_s=1.0)
    assert (ran.finished.exit_code, ran.finished.timed_out) == (TIMED_OUT, True)
    assert ran.stdout == "before\n"
    assert ran.finished.duration_ms < 15_000
    assert running(SLEEP) == []


def test_background_processes_end_with_the_command_and_are_not_waited_for(ground: Ground) -> None:
    ran = ground.run(f"sleep {SLEEP} & setsid sleep {SLEEP} & (setsid nohup sleep {SLEEP} &) ; echo done")
    assert ran.stdout == "done\n"
    assert ran.finished.duration_ms < 15_000
    assert running(SLEEP) == []


def test_output_beyond_its_limit_is_dropped_and_counted(ground: Ground) -> None:
    ran = ground.run("head -c 3000000 /dev/zero; echo end >&2", limits(output_mb=1))
    assert len(ran.stdout) == 2**20
    assert ran.finished.dropped_bytes == 3_000_000 - 2**20
    assert ran.stderr == "end\n"


def test_a_file_cannot_grow_beyond_its_limit(ground: Ground) -> None:
    ran = ground.run("head -c 3000000 /dev/zero >big; stat -c %s big", limits(file_mb=1))
    assert int(ran.stdout) == 2**20


def test_a_memory_bomb_is_stopped(ground: Ground) -> None:
    ran = ground.run("/usr/bin/python3 -c 'bytearray(900 * 2**20)'; echo after", limits(memory_mb=256))
    assert "MemoryError" in ran.stderr or "Killed" in ran.stderr
    assert ran.stdout == "after\n"


def test_a_fork_bomb_is_stopped(ground: Ground) -> None:
    bomb = (
        "import os\nmade = 0\ntry:\n    while made < 300:\n        made += 1\n"
        f"        os.fork() or os.execlp('sleep', 'sleep', '{SLEEP}')\n"
        "except BlockingIOError:\n    print(made)"
    )
    ran = ground.run(f'/usr/bin/python3 -c "{bomb}"', limits(processes=60))
    assert 10 < int(ran.stdout) <= 70, ran.stderr
    assert running(SLEEP) == []


async def test_a_cancelled_command_is_killed_before_the_caller_goes_on(tmp_path: Path) -> None:
    sandbox, started = ladder(), asyncio.Event()
    project = resolved(tmp_path)
    job = Job(f"echo started; sleep {SLEEP} & sleep {SLEEP}", project, project, 60.0)
    task = asyncio.create_task(sandbox.run(job, Policy(), lambda stream, piece: started.set()))
    async with asyncio.timeout(20):
        await started.wait()
    assert running(SLEEP)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(SLEEP) == []
    await sandbox.close()


async def test_a_listener_that_fails_ends_the_command(tmp_path: Path) -> None:
    def fail(stream: Stream, piece: bytes) -> None:
        raise ConnectionError("nobody is there any more")

    sandbox = ladder()
    project = resolved(tmp_path)
    with pytest.raises(ConnectionError):
        await sandbox.run(Job(f"echo x; sleep {SLEEP}", project, project, 60.0), Policy(), fail)
    assert running(SLEEP) == []
    await sandbox.close()


# --- what programs outside would obey -------------------------------------------------------


@pytest.fixture
def repository(ground: Ground) -> Iterator[Ground]:
    subprocess.run(["git", "init", "-q", str(ground.project)], check=True)
    (ground.project / ".git/hooks/pre-commit").write_text("#!/bin/sh\n")
    (ground.project / ".claude").mkdir()
    (ground.project / ".claude/settings.json").write_text("{}")
    ground.give_to_owner()
    yield ground


def test_what_is_protected_is_as_it_was(repository: Ground) -> None:
    config = (repository.project / ".git/config").read_text()
    repository.run(
        "echo evil >.git/hooks/pre-commit; echo evil >.git/hooks/post-checkout; chmod +x .git/hooks/*;"
        " git config core.fsmonitor evil; echo evil >.git/config; echo evil >.claude/settings.json;"
        " rm -rf .git/hooks .claude; true"
    )
    assert (repository.project / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\n"
    assert not (repository.project / ".git/hooks/post-checkout").exists()
    assert (repository.project / ".git/config").read_text() == config
    assert (repository.project / ".claude/settings.json").read_text() == "{}"


def test_a_protected_repository_cannot_be_exchanged_for_another(repository: Ground) -> None:
    repository.run("mv .git old; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; true")
    assert (repository.project / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\n"


def test_commits_work_although_hooks_are_protected(repository: Ground) -> None:
    ran = repository.run(
        "echo x >x; git add x; git -c user.name=a -c user.email=a@b commit -qnm works && git log --oneline"
    )
    assert "works" in ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "attack",
    [
        "git init -q . && echo evil >.git/hooks/pre-commit",
        "git init -q . && git config core.fsmonitor evil",
        "git init -q . && printf '[include]\\n\\tpath = ../evil\\n' >>.git/config",
        "git init -q other && mv other/.git elsewhere && echo 'gitdir: elsewhere' >.git",
        "git init -q elsewhere && ln -s elsewhere/.git .git",
        "mkdir -p .git evil && echo ../evil >.git/commondir",
    ],
)
def test_a_new_repository_that_would_run_something_is_moved_aside(ground: Ground, attack: str) -> None:
    ran = ground.run(attack)
    assert ran.finished.exit_code == 0, ran.stderr
    assert not os.path.lexists(ground.project / ".git")
    assert "contextd: .git was made by this command" in ran.stderr
    assert len(list(ground.project.glob(".git.from-sandbox-*"))) == 1


@pytest.mark.parametrize("path", [".claude/settings.json", ".mcp.json", ".envrc", ".vscode/tasks.json"])
def test_what_agents_and_editors_obey_cannot_be_slipped_in(ground: Ground, path: str) -> None:
    ran = ground.run(f"mkdir -p $(dirname {path}); echo evil >{path}")
    assert not (ground.project / path).exists()
    assert "was made by this command" in ran.stderr


def test_a_link_in_a_protected_path_is_not_followed_when_it_is_moved(ground: Ground) -> None:
    """The daemon moves things as itself: it must not be led to somebody else's folder."""
    policy = Policy(protected=("conf/secret",))
    ground.run(f"ln -s {ground.outside} conf", policy)
    assert (ground.outside / "secret").read_text() == SECRET
    assert not os.path.lexists(ground.project / "conf")


def test_in_a_worktree_commits_work_and_the_repository_is_protected(ground: Ground, place: Path) -> None:
    main, who = place / "main", "-c user.name=a -c user.email=a@b"
    ground.project.rmdir()
    for line in (
        f"git init -q -b main {main}",
        f"git -C {main} {who} commit -q --allow-empty -m first",
        f"git -C {main} worktree add -q {ground.project} -b side",
    ):
        subprocess.run(line.split(), check=True, capture_output=True)
    owner = replace(ground, project=main)
    owner.give_to_owner()
    ground.give_to_owner()
    ran = ground.run(
        f"echo x >x; git add x; git {who} commit -qm second && git log --oneline;"
        f" git config core.fsmonitor evil; echo evil >{main}/.git/hooks/pre-commit; echo gone >.git;"
        f" echo {ground.project}/e >{main}/.git/worktrees/project/commondir;"
        f" echo evil >{main}/.git/worktrees/project/config.worktree; true"
    )
    assert "second" in ran.stdout, ran.stderr
    assert "fsmonitor" not in (main / ".git/config").read_text()
    assert not (main / ".git/hooks/pre-commit").exists()
    assert (ground.project / ".git").read_text().startswith("gitdir: ")
    assert (main / ".git/worktrees/project/commondir").read_text() == "../..\n"
    assert not (main / ".git/worktrees/project/config.worktree").exists()


def test_what_is_protected_outside_the_project_cannot_be_slipped_in(ground: Ground) -> None:
    policy = Policy(writable=(".", str(ground.outside)), protected=(f"{ground.outside}/conf",))
    ran = ground.run(f"echo evil >{ground.outside}/conf; echo fine >{ground.outside}/new", policy)
    assert not (ground.outside / "conf").exists(), ran.stderr
    assert (ground.outside / "new").exists()


def test_a_git_file_that_lies_opens_no_other_folder(ground: Ground) -> None:
    (ground.project / ".git").write_text(f"gitdir: {ground.outside}\n")
    ground.give_to_owner()
    ran = ground.run(f"cat {ground.outside}/secret; echo x >{ground.outside}/new; true")
    assert SECRET not in ran.stdout
    assert not (ground.outside / "new").exists()


# --- policies and projects ------------------------------------------------------------------


def test_extras_are_readable_and_no_more(ground: Ground) -> None:
    policy = Policy(readable=(str(ground.outside),))
    ran = ground.run(f"cat {ground.outside}/secret; echo x >{ground.outside}/new; true", policy)
    assert ran.stdout == SECRET
    assert not (ground.outside / "new").exists()


def test_only_what_the_policy_says_is_writable(ground: Ground) -> None:
    (ground.project / "build").mkdir()
    ground.give_to_owner()
    policy = Policy(writable=("build",))
    ground.run("echo x >build/made; echo x >made", policy)
    assert (ground.project / "build/made").exists()
    assert not (ground.project / "made").exists()


def test_what_contextd_keeps_in_a_project_is_not_shown(place: Path) -> None:
    ground = ground_at("bubblewrap as root" if IS_ROOT else "bubblewrap as a user", place)
    data = ground.project / "data"
    data.mkdir()
    (data / "placeholders.key").write_text(SECRET)
    (ground.project / "policies.toml").write_text(SECRET)
    ground = replace(ground, own=(str(data), str(ground.project / "policies.toml")))
    ran = ground.run("cat data/* policies.toml; ls data; echo x >data/new; mv data other; true")
    assert ran.stdout == ""
    assert [path.name for path in data.iterdir()] == ["placeholders.key"]


def test_landlock_does_not_run_where_it_cannot_hide(place: Path) -> None:
    ground = ground_at("landlock as root for a user" if IS_ROOT else "landlock as a user", place)
    ground = replace(ground, own=(str(ground.project / "data"),))
    (ground.project / "data").mkdir()
    with pytest.raises(SandboxUnavailable, match="CONTEXTD_DATA_DIR"):
        ground.run("true")


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr/lib", "/proc", "~", "~/.ssh", "~/.config/x"])
async def test_the_machine_and_a_home_are_no_projects(folder: str) -> None:
    """Who names the project is the caller: it must not be able to name its way out."""
    sandbox, project = ladder("off"), resolved(Path(folder.replace("~", str(HOME))))
    with pytest.raises(OutsideProject, match="no project"):
        await sandbox.run(Job("true", project, project, 5.0), Policy(), hush)
    await sandbox.close()


async def test_contextds_own_folder_is_no_project(tmp_path: Path) -> None:
    sandbox = Ladder("off", (str(tmp_path),), lambda project: True, lambda names: {})
    project = resolved(tmp_path)
    with pytest.raises(OutsideProject):
        await sandbox.run(Job("true", project, project, 5.0), Policy(), hush)
    await sandbox.close()


def test_a_virtual_environment_works_by_its_own_interpreter(place: Path) -> None:
    ground = ground_at(STANDS_HERE, place)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ground.project / ".venv"], check=True)
    ran = ground.run(".venv/bin/python -c 'import sys, json; print(sys.prefix)'")
    assert ran.stdout.strip() == str(ground.project / ".venv"), ran.stderr


def test_a_virtual_environment_that_lies_opens_no_other_folder(ground: Ground) -> None:
    (ground.project / ".venv").mkdir()
    (ground.outside / "bin").mkdir()
    (ground.project / ".venv/pyvenv.cfg").write_text(f"home = {ground.outside}/bin\n")
    ground.give_to_owner()
    assert SECRET not in ground.run(f"cat {ground.outside}/secret").stdout


STANDS_HERE = "bubblewrap as root" if IS_ROOT else "bubblewrap as a user"


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/srv", "/opt"])
def test_a_project_is_where_it_is_wherever_that_is(folder: str) -> None:
    if not os.access(folder, os.W_OK):
        pytest.skip(f"{folder} is not ours")
    with tempfile.TemporaryDirectory(dir=resolved(folder), prefix="contextd-ground-") as made:
        Path(made).chmod(0o755)
        ground = ground_at(STANDS_HERE, Path(made))
        ran = ground.run("pwd -P && echo x >made")
        assert ran.stdout == f"{ground.project}\n", ran.stderr
        assert (ground.project / "made").exists()


# --- the ladder and the command line --------------------------------------------------------


async def test_off_runs_plainly_and_says_so(tmp_path: Path) -> None:
    sandbox = ladder("off")
    project = resolved(tmp_path)
    finished = await sandbox.run(Job("exit 3", project, project, 20.0), Policy(), hush)
    assert (finished.level, finished.exit_code) == ("off", 3)
    await sandbox.close()


@pytest.mark.skipif(not IS_ROOT, reason="for root alone")
async def test_landlock_refuses_roots_own_project_and_says_what_to_do(tmp_path: Path) -> None:
    sandbox = ladder("landlock")
    project = resolved(tmp_path)
    with pytest.raises(SandboxUnavailable, match="ordinary user"):
        await sandbox.run(Job("true", project, project, 5.0), Policy(), hush)
    await sandbox.close()


async def test_a_machine_without_a_sandbox_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bwrap that cannot make namespaces, as in many containers."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("contextd.adapters.sandbox.ladder.programs", lambda: [str(broken)])
    sandbox = ladder("bubblewrap")
    with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace") as raised:
        await sandbox.level()
    assert "CONTEXTD_SANDBOX=off" in raised.value.remedy


async def test_a_bwrap_that_isolates_nothing_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes all arguments and runs the command as it is: the probe must notice."""
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/bash\nwhile [ "$1" != -- ]; do [ "$1" = --info-fd ] && tell=$2; shift; done; shift\n'
        'eval "echo {\\\\\\"child-pid\\\\\\": $$} >&$tell; exec $tell>&-"\nexec "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr("contextd.adapters.sandbox.ladder.programs", lambda: [str(fake)])
    with pytest.raises(SandboxUnavailable, match="does not hold: it"):
        await ladder("bubblewrap").level()


def test_the_command_line_passes_everything_through(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    done = subprocess.run(
        command("sandbox", "run", "--project", str(project), "--", "cat; echo err >&2; pwd; exit 9"),
        env=environment(tmp_path / "data"),
        input="in\n",
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (9, f"in\n{os.path.realpath(project)}\n", "err\n")


def test_the_command_line_shows_the_policy_in_force(tmp_path: Path) -> None:
    policies = tmp_path / "policies.toml"
    project = Path(os.path.realpath(tmp_path), "project")
    project.mkdir()
    policies.write_text(f'[projects."{project}"]\nhosts = ["pypi.org"]\n')
    policies.chmod(0o600)
    done = subprocess.run(
        command("sandbox", "policy", str(project)),
        env=environment(tmp_path / "data", CONTEXTD_POLICIES=str(policies)),
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(f'# {policies}, [projects."{project}"]\n')
    assert 'hosts = ["pypi.org"]' in done.stdout
    assert "timeout_s = 120.0" in done.stdout


def test_nothing_is_left_when_the_daemon_is_killed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with subprocess.Popen(
        command(
            "sandbox", "run", "--project", str(project), "--", f"echo up; sleep {SLEEP} & sleep {SLEEP}"
        ),
        env=environment(tmp_path / "data"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
        process.wait(timeout=20)
    deadline = time.monotonic() + 20
    while running(SLEEP) and time.monotonic() < deadline:
        os.sched_yield()
    assert running(SLEEP) == []

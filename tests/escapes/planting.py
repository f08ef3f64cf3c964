"""Leaving something in the project, or in HOME, that a program outside runs or obeys later.

What is left behind for git is proven by git itself: it is run outside, afterwards, and must not run the
payload.
"""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from escapes.case import Case
from escapes.ground import Ground
from escapes.outliving import HOLDING

_HOOK: Final = "printf '#!/bin/sh\\ntouch @payload_ran@\\n' > {path}; chmod +x {path}"
_FSMONITOR: Final = "printf '[core]\\n\\tfsmonitor = touch @payload_ran@; false\\n' >> {path}"
_REPOSITORY: Final = (
    "mkdir -p {path}/objects {path}/refs/heads {path}/hooks; echo ref: refs/heads/main > {path}/HEAD; "
    "printf '[core]\\n\\trepositoryformatversion = 0\\n' > {path}/config; " + _FSMONITOR
).replace(">> {path}", ">> {path}/config")


def _hook(path: str) -> str:
    return _HOOK.format(path=path)


def _fsmonitor(path: str) -> str:
    return _FSMONITOR.format(path=path)


def _repository(path: str) -> str:
    return _REPOSITORY.format(path=path)


def _with_git(ground: Ground) -> None:
    ground.as_owner("git", "init", "--quiet", str(ground.project))
    ground.as_owner("git", "-C", str(ground.project), "add", "source.txt")


def _with_linked_git(ground: Ground) -> None:
    ground.as_owner(
        "git", "init", "--quiet", f"--separate-git-dir={ground.outside}/real.git", str(ground.project)
    )
    (ground.project / ".git").unlink()
    (ground.project / ".git").symlink_to(ground.outside / "real.git")


def _with_git_file(ground: Ground) -> None:
    ground.as_owner(
        "git", "init", "--quiet", f"--separate-git-dir={ground.outside}/real.git", str(ground.project)
    )


def _with_submodule(ground: Ground) -> None:
    _with_git(ground)
    (ground.project / ".git" / "modules").mkdir()
    ground.own()
    ground.as_owner(
        "git", "init", "--quiet", f"--separate-git-dir={ground.project}/.git/modules/part", "part"
    )


def _git_runs_it(folder: str = ".") -> Callable[[Ground], bool]:
    """Whether the things that people do with git every minute run the payload."""

    def runs(ground: Ground) -> bool:
        for command in (("status",), ("add", "-A"), ("commit", "-qm", "x"), ("checkout", "-q", "-b", "y")):
            who = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
            ground.as_owner("git", "-C", str(ground.project / folder), *who, *command)
        return ground.payload_ran.exists()

    return runs


def _holds(path: str, text: str = "payload") -> Callable[[Ground], bool]:
    def holds(ground: Ground) -> bool:
        file = ground.project / path
        return file.is_file() and text in file.read_text()

    return holds


def _before(path: str) -> Callable[[Ground], None]:
    def arrange(ground: Ground) -> None:
        (ground.project / path).parent.mkdir(parents=True, exist_ok=True)
        (ground.project / path).write_text("{}\n")

    return arrange


def _changed(path: str) -> Case:
    return Case(
        f"changes {path}",
        "planting",
        f"echo payload > {path}",
        arrange=_before(path),
        damage=_holds(path),
    )


def _made(path: str) -> Case:
    folder = str(Path(path).parent)
    return Case(
        f"makes {path} where there is none",
        "planting",
        f"mkdir -p {folder}; echo payload > {path}",
        damage=_holds(path),
    )


def _in_home(path: str) -> Callable[[Ground], bool]:
    def planted(ground: Ground) -> bool:
        file = ground.home / path
        return file.is_file() and "payload" in file.read_text()

    return planted


def _raises_later(ground: Ground) -> bool:
    left = [path.lstat() for path in ground.project.iterdir()]
    return any(file.st_mode & stat.S_ISUID and file.st_uid == 0 for file in left)


def _device_left(ground: Ground) -> bool:
    return any(path.is_block_device() for path in ground.project.iterdir())


PLANTING: Final = (
    Case(
        "writes a git hook",
        "planting",
        _hook(".git/hooks/pre-commit"),
        arrange=_with_git,
        damage=_git_runs_it(),
    ),
    Case(
        "writes git's configuration",
        "planting",
        _fsmonitor(".git/config"),
        arrange=_with_git,
        damage=_git_runs_it(),
    ),
    Case(
        "moves .git aside and puts another there",
        "planting",
        f"mv .git was; {_repository('.git')}",
        arrange=_with_git,
        damage=_git_runs_it(),
    ),
    Case(
        "leads git to another configuration by commondir",
        "planting",
        f"{_repository('evil')}; echo ../evil > .git/commondir",
        arrange=_with_git,
        damage=_git_runs_it(),
    ),
    Case(
        "puts a folder in the place of a linked .git",
        "planting",
        f"{_hook('.git/hooks/pre-commit')}; rm -f .git; {_repository('.git')}",
        arrange=_with_linked_git,
        damage=_git_runs_it(),
    ),
    Case(
        "points a .git file to a repository of its own",
        "planting",
        f"{_repository('evil')}; rm -f .git; echo gitdir: @project@/evil > .git",
        arrange=_with_git_file,
        damage=_git_runs_it(),
    ),
    Case(
        "makes a repository where there is none",
        "planting",
        _repository(".git"),
        damage=_git_runs_it(),
    ),
    Case(
        "makes a repository in a folder of the project",
        "planting",
        f"mkdir -p docs; {_repository('docs/.git')}",
        arrange=_with_git,
        damage=_git_runs_it("docs"),
    ),
    Case(
        "writes the configuration of a submodule",
        "planting",
        _fsmonitor(".git/modules/part/config"),
        arrange=_with_submodule,
        damage=_git_runs_it("part"),
    ),
    _changed(".claude/settings.json"),
    _made(".claude/settings.json"),
    _changed(".mcp.json"),
    _made(".mcp.json"),
    _changed(".vscode/tasks.json"),
    _made(".vscode/tasks.json"),
    _changed(".envrc"),
    _made(".codex/config.toml"),
    _made(".cursor/mcp.json"),
    Case(
        "moves .claude aside and puts another there",
        "planting",
        "mv .claude was; mkdir .claude; echo payload > .claude/settings.json",
        arrange=_before(".claude/settings.json"),
        damage=_holds(".claude/settings.json"),
    ),
    Case(
        "puts a link in the place of .mcp.json",
        "planting",
        "echo payload > mine.json; ln -sf mine.json .mcp.json",
        arrange=_before(".mcp.json"),
        damage=_holds(".mcp.json"),
    ),
    Case(
        "makes .mcp.json, and lets nobody write to its folder",
        "planting",
        "echo payload > .mcp.json; chmod 555 .",
        damage=_holds(".mcp.json"),
    ),
    Case(
        "changes .claude/settings.json, and closes its folder",
        "planting",
        "echo payload > .claude/settings.json; chmod 555 .claude .",
        arrange=_before(".claude/settings.json"),
        damage=_holds(".claude/settings.json"),
    ),
    Case(
        "makes a git hook, and closes its folder",
        "planting",
        f"{_hook('.git/hooks/pre-commit')}; chmod 555 .git/hooks",
        arrange=_with_git,
        damage=_git_runs_it(),
    ),
    Case(
        "makes .claude a link to a folder of its own",
        "planting",
        "mkdir mine; echo payload > mine/settings.json; ln -s mine .claude",
        damage=_holds(".claude/settings.json"),
    ),
    Case(
        "makes .mcp.json, and the sandbox is killed",
        "planting",
        f"echo payload > .mcp.json; : > {HOLDING}; sleep 5",
        way="killed",
        damage=_holds(".mcp.json"),
    ),
    Case(
        "makes .mcp.json, and the sandbox is terminated",
        "planting",
        f"echo payload > .mcp.json; : > {HOLDING}; sleep 5",
        way="terminated",
        damage=_holds(".mcp.json"),
    ),
    Case(
        "plants a program in PATH",
        "planting",
        "echo payload > @home@/.local/bin/git; chmod +x @home@/.local/bin/git",
        damage=_in_home(".local/bin/git"),
    ),
    Case(
        "adds to the shell's start",
        "planting",
        "echo payload >> @home@/.bashrc",
        damage=_in_home(".bashrc"),
    ),
    Case(
        "leaves LD_PRELOAD for the next login",
        "planting",
        "cd @home@; mkdir -p .config/environment.d; echo LD_PRELOAD=payload > .config/environment.d/x.conf",
        damage=_in_home(".config/environment.d/x.conf"),
    ),
    Case(
        "leaves a program that runs as root",
        "planting",
        """
import stat
os.umask(0)
made = [os.open(f"left{number}", os.O_CREAT | os.O_WRONLY, 0o755) for number in range(3)]
how = ctypes.create_string_buffer(struct.pack("<QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
for attack in (
    lambda: os.chown("left0", 0, 0),
    lambda: os.chmod("left0", 0o4755),
    lambda: os.fchmod(made[1], 0o6755),
    lambda: kernel("fchmodat2", -100, b"left2", 0o4755, 0),
    lambda: os.open("left3", os.O_CREAT | os.O_WRONLY, 0o4755),
    lambda: kernel("openat2", -100, b"left4", how, 24),
    lambda: os.mknod("left5", stat.S_IFREG | 0o4755),
    lambda: os.link("/proc/self/fd/%d" % os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755), "left6"),
):
    try:
        attack()
    except OSError as error:
        print(error, file=sys.stderr)
""",
        "python",
        damage=_raises_later,
    ),
    Case(
        "leaves a device of the disk",
        "planting",
        "mknod left b @disk@",
        damage=_device_left,
    ),
)

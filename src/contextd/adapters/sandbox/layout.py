"""What one command gets to see of the machine, worked out from its policy and from what is there."""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.git_folders import GitFolder, git_folder
from contextd.adapters.sandbox.toolchains import interpreter_of
from contextd.domain.errors import OutsideProject
from contextd.domain.sandboxing import Limits, Policy
from contextd.services.grounds import check_grounds, is_within

ALWAYS_PROTECTED: Final = (".git/commondir", ".git/config.worktree", ".git/worktrees")
"""Besides those of the policy: each makes git read its settings, and so its programs, from elsewhere."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a daemon that runs as root becomes for this project."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Absent:
    """A protected path that cannot be mounted over: `link` is where it leads, None if nothing is there."""

    path: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Absolute paths, all of them there. Commands of equal layouts may use the same kind of sandbox."""

    project: str
    owner: Owner | None
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    protected: tuple[str, ...]
    """Of what is writable, what is not."""
    pinned: tuple[str, ...]
    """Folders on the way to what is protected: were they renamed, their likes could be made anew."""
    absent: tuple[Absent, ...]
    hidden: tuple[str, ...]
    limits: Limits
    hosts: tuple[str, ...]
    inodes: tuple[tuple[int, int], ...]
    """Of all these paths: a file that was replaced is another file, although its name is the same."""

    @property
    def has_git(self) -> bool:
        return Absent(f"{self.project}/.git") not in self.absent


def lay_out(project: str, policy: Policy, own: tuple[str, ...], *, named: bool) -> Layout:
    """`own` is what belongs to contextd: data, keys, policies. Raises OutsideProject."""
    check_grounds(project, named=named, own=own)
    there = Path(project).stat()
    git = git_folder(project)
    writable = _existing(project, policy.writable) + git.writable
    readable = _unless_within((project, *_existing(project, policy.readable), *git.readable), writable)
    readable += tuple(path for path in interpreter_of(project) if path not in readable)
    mounted, absent = _protected(project, policy, git)
    seen = readable + writable
    hidden = tuple(
        path for path in own if os.path.lexists(path) and any(is_within(path, each) for each in seen)
    )
    return Layout(
        project=project,
        owner=_owner(there.st_uid) if os.geteuid() == 0 and there.st_uid else None,
        readable=readable,
        writable=writable,
        protected=mounted,
        pinned=_pinned(writable, mounted + tuple(each.path for each in absent)),
        absent=absent,
        hidden=hidden,
        limits=policy.limits,
        hosts=policy.hosts,
        inodes=tuple(map(_inode, seen + mounted + hidden)),
    )


def _inode(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_dev, found.st_ino


def _owner(uid: int) -> Owner:
    """With the user's own group, not the folder's: that may be root's."""
    try:
        return Owner(uid, pwd.getpwuid(uid).pw_gid)
    except KeyError:
        return Owner(uid, uid)


def _existing(project: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are there. What is named relative to the project must not lead out of it by a link."""
    found = []
    for path in paths:
        full = os.path.realpath(Path(project, Path(path).expanduser()))
        if not Path(path).expanduser().is_absolute() and not is_within(full, project):
            raise OutsideProject("a path of the policy leads out of the project by a link")
        if Path(full).exists():
            found.append(full)
    return tuple(dict.fromkeys(found))


def _unless_within(paths: tuple[str, ...], writable: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(path for path in paths if not any(is_within(path, folder) for folder in writable))
    )


def _protected(project: str, policy: Policy, git: GitFolder) -> tuple[tuple[str, ...], tuple[Absent, ...]]:
    """A link is kept by its target's being read-only, and by looking afterwards whether it is there."""
    names = [os.path.normpath(Path(project, name)) for name in policy.protected + ALWAYS_PROTECTED]
    mounted, absent = list(git.protected), [Absent(path) for path in git.absent]
    if not os.path.lexists(f"{project}/.git"):
        absent.append(Absent(f"{project}/.git"))
        names = [name for name in names if not is_within(name, f"{project}/.git")]
    elif git.is_link:
        names = [name for name in names if not is_within(name, f"{project}/.git")]
        if Path(project, ".git").is_symlink():
            absent.append(Absent(f"{project}/.git", str(Path(project, ".git").readlink())))
    for name in names:
        try:
            mode = os.lstat(name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            absent.append(Absent(name))
            continue
        if stat.S_ISLNK(mode):
            absent.append(Absent(name, str(Path(name).readlink())))
            mounted += [target for target in (os.path.realpath(name),) if is_within(target, project)]
        else:
            mounted.append(name)
    return tuple(dict.fromkeys(path for path in mounted if Path(path).exists())), tuple(absent)


def _pinned(writable: tuple[str, ...], protected: tuple[str, ...]) -> tuple[str, ...]:
    pinned = {
        str(parent)
        for path in protected
        for parent in Path(path).parents
        if str(parent) not in writable and any(is_within(str(parent), folder) for folder in writable)
    }
    return tuple(sorted(path for path in pinned if Path(path).is_dir() and not Path(path).is_symlink()))

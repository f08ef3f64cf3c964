"""Where a project's git keeps its things, so that commits work and its programs stay the owner's."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LONGEST: Final = 4_096
_COMMON: Final = ("objects", "refs", "logs")
_LEADS_ELSEWHERE: Final = ("commondir", "config.worktree", "modules", "worktrees")
_HEADING: Final = re.compile(r'\[(core|user|init|remote "[\w.-]+"|branch "[\w./-]+")\]')
_HARMLESS: Final = re.compile(
    r"(repositoryformatversion = [01]"
    r"|(filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = (true|false)"
    r"|(name|email|fetch|remote|merge|defaultbranch) = [^\\]*"
    r"|url = (https?://|ssh://|git://|[\w.-]+@[\w.-]+:)[^\\]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GitFolder:
    """What must be mounted besides the project, where `.git` is a file that leads elsewhere."""

    is_link: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """What must not come to be there."""


def git_folder(project: str) -> GitFolder:
    """A worktree's. The file that leads there is believed only if git's own folder leads back."""
    link = Path(project, ".git")
    if not link.is_file():
        return GitFolder(is_link=link.is_symlink())
    own = _target(link, "gitdir:")
    if own is None or _target(own / "gitdir") != link.resolve():
        return GitFolder(is_link=True, protected=(str(link),))
    common = _target(own / "commondir")
    if common is None or own.parent.parent != common:
        return GitFolder(is_link=True, protected=(str(link),))
    folders = (own, *(common / name for name in _COMMON))
    pointers = (own / "gitdir", own / "commondir", own / "config.worktree")
    return GitFolder(
        is_link=True,
        readable=(str(common),),
        writable=tuple(str(folder) for folder in folders if folder.is_dir()),
        protected=(str(link), *(str(path) for path in pointers if path.exists())),
        absent=tuple(str(path) for path in pointers if not path.exists()),
    )


def is_harmless(folder: Path) -> bool:
    """Whether a repository that a command made holds nothing that git would run."""
    if (
        folder.is_symlink()
        or not folder.is_dir()
        or any(os.path.lexists(folder / name) for name in _LEADS_ELSEWHERE)
    ):
        return False
    hooks = folder / "hooks"
    if hooks.is_symlink() or (hooks.is_dir() and any(each.suffix != ".sample" for each in hooks.iterdir())):
        return False
    return _harmless_config(folder / "config")


def _harmless_config(file: Path) -> bool:
    if file.is_symlink() or not file.is_file():
        return not os.path.lexists(file)
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_LONGEST + 1)
    except (OSError, UnicodeDecodeError):
        return False
    lines = (line.strip() for line in text.splitlines())
    return len(text) <= _LONGEST and all(
        not line or _HEADING.fullmatch(line) or _HARMLESS.fullmatch(line) for line in lines
    )


def _target(file: Path, word: str = "") -> Path | None:
    """The path that a small file holds, resolved."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_LONGEST).strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(word) or "\n" in text:
        return None
    return Path(os.path.realpath(file.parent / text.removeprefix(word).strip()))

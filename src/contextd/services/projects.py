"""Which project a path means. Worktrees and symlinks of one repository are one project."""

import hashlib
import os
from pathlib import Path

from contextd.domain.callers import Caller
from contextd.domain.errors import Forbidden
from contextd.domain.records import Project


def project_at(path: str) -> Project:
    """The project of a path, which need not exist. Its key is stable and names one drawer."""
    canonical = _main_worktree(Path(os.path.realpath(path)))
    key = hashlib.sha256(os.fsencode(canonical)).hexdigest()[:12]
    return Project(key, str(canonical))


def permitted(caller: Caller, path: str) -> Project:
    """The project at a path, if this caller may use it. Raises Forbidden."""
    project = project_at(path)
    require(caller, project)
    return project


def require(caller: Caller, project: Project) -> None:
    if not caller.principal.may_use(project):
        raise Forbidden("this token does not cover the project")


def _main_worktree(path: Path) -> Path:
    """A linked worktree's folder, as the folder of the main one. Others stay as they are.

    A linked worktree has a `.git` file that points into `<main>/.git/worktrees/<name>`, where a
    `commondir` file leads back to `<main>/.git`.
    """
    for root in (path, *path.parents):
        marker = root / ".git"
        try:
            if marker.is_dir():
                return path
            main = _main_root(marker) if marker.is_file() else None
        except OSError:
            # A name that no disk takes is a project all the same.
            continue
        if main is not None:
            return main / path.relative_to(root)
    return path


def _main_root(marker: Path) -> Path | None:
    try:
        pointer = marker.read_text(encoding="utf-8")[:4096]
        gitdir = marker.parent / pointer.removeprefix("gitdir:").strip()
        common = gitdir / (gitdir / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    common = Path(os.path.realpath(common))
    return common.parent if common.name == ".git" else None

"""Which files of a project a tool may write, by the same policy as commands have."""

from pathlib import PurePosixPath
from typing import Final

from contextd.domain.errors import ProtectedPath
from contextd.domain.sandboxing import PROTECTED, Policy

_WORKTREES: Final = "worktrees"
"""A folder of agents in which they keep whole projects."""

_Parts = tuple[str, ...]


def require_writable(policy: Policy, folder: str, path: str) -> None:
    """Of the file at a path relative to the project's folder, links followed. Raises ProtectedPath."""
    file = _parts(f"{folder}/{path}")
    if not any(_is_within(file, _parts(f"{folder}/", entry)) for entry in policy.writable):
        raise ProtectedPath("the project's policy does not let this path be written")
    if _is_tool_folder(_parts(folder)):
        raise ProtectedPath("the folder belongs to git or to a tool, and is no project")
    inside = _parts(path)
    for entry in policy.protected:
        if entry in PROTECTED:
            found = any(_touches(inside[at:], _parts(entry)) for at in range(len(inside)))
        else:
            found = _touches(file, _parts(f"{folder}/", entry))
        if found:
            raise ProtectedPath("programs outside obey or run what is in this path, so it is protected")


def _parts(*path: str) -> _Parts:
    """Names that differ in case alone are one on some disks."""
    return tuple(part.casefold() for part in PurePosixPath(*path).parts)


def _is_within(path: _Parts, folder: _Parts) -> bool:
    return path[: len(folder)] == folder


def _touches(path: _Parts, protected: _Parts) -> bool:
    """Whether it is inside, or a file in the place of a folder above: a `.git` file leads git elsewhere."""
    return _is_within(path, protected) or _is_within(protected, path)


def _is_tool_folder(folder: _Parts) -> bool:
    """A project that begins inside of what is protected would see none of it as protected."""
    firsts = {_parts(entry)[0] for entry in PROTECTED}
    return any(
        part in firsts and folder[at + 1 : at + 2] != (_WORKTREES,) for at, part in enumerate(folder)
    )

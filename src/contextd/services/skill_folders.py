"""Folders with a SKILL.md, as coding agents keep them: read with suspicion, written with care.

Nothing in a folder is run. Of its other files only the paths are kept.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from contextd.domain.errors import BadLength, BadPath, BadText, Conflict
from contextd.services.skill_md import FILES, from_markdown
from contextd.services.skill_records import Skill

SKILL_MD: Final = "SKILL.md"
_MOST_BYTES: Final = 400_000
_MOST_FILES: Final = 512
_MOST_FILE_BYTES: Final = 16 * 2**20
_NO_LINKS: Final = "replace the link with what it points to"


def skill_folders(path: Path) -> list[Path]:
    """The folder itself, or that of the SKILL.md, or those one level below. Raises BadPath."""
    if path.name == SKILL_MD and path.is_file():
        return [path.parent]
    if (path / SKILL_MD).exists():
        return [path]
    found = sorted(each.parent for each in path.glob(f"*/{SKILL_MD}"))
    if not found:
        raise BadPath("path", "there is no SKILL.md here", f"name a folder that holds {SKILL_MD}")
    return found


def read_folder(folder: Path, author: str) -> Skill:
    """`author` is for a file that names none. Raises Invalid for what is not a skill."""
    skill = from_markdown(read_skill_md(folder), folder.resolve().name, author)
    files = sorted(_others(folder))
    return replace(skill, metadata={**skill.metadata, FILES: [*files]}) if files else skill


def write_folder(folder: Path, text: str) -> bool:
    """Whether SKILL.md changed. It is there whole or as it was before. Raises BadPath, Conflict."""
    target = folder / SKILL_MD
    for place in (folder, target):
        if place.is_symlink():
            raise BadPath("path", f"{place.name} is a link, and is not written through", _NO_LINKS)
    if target.exists() and target.read_bytes() == text.encode():
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{SKILL_MD}.{os.getpid()}"
        beside.write_bytes(text.encode())
        beside.replace(target)
    except OSError as error:
        raise Conflict(
            f"{target} cannot be written ({error.strerror})", "check the folder, or name another with --dir"
        ) from error
    return True


def read_skill_md(folder: Path) -> str:
    """Never through a link, never a pipe or a device, never more than a skill may be long."""
    if folder.is_symlink():
        raise BadPath("path", "the folder is a link", _NO_LINKS)
    try:
        descriptor = os.open(folder / SKILL_MD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadPath("path", f"SKILL.md cannot be read ({error.strerror})", _NO_LINKS) from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadPath("path", "SKILL.md is not a file", "write it as an ordinary file")
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise BadLength("SKILL.md", "SKILL.md is too long", f"keep it within {_MOST_BYTES} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadText("SKILL.md", "SKILL.md is not UTF-8", "save it as UTF-8") from error


def _others(folder: Path) -> Iterator[str]:
    """The paths of the other files, hidden ones left out. A folder that is suspicious is refused."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *names]):
            if name.startswith("."):
                continue
            path = Path(place, name)
            relative = path.relative_to(folder).as_posix()
            mode = path.lstat()
            if stat.S_ISDIR(mode.st_mode) or relative == SKILL_MD:
                continue
            count += 1
            _check_file(relative, mode, count)
            yield relative


def _check_file(relative: str, status: os.stat_result, count: int) -> None:
    try:
        relative.encode()
    except UnicodeEncodeError as error:
        raise BadText("path", "a file's name is not UTF-8", "rename it") from error
    if stat.S_ISLNK(status.st_mode):
        raise BadPath("path", f"{relative} is a link", _NO_LINKS)
    if not stat.S_ISREG(status.st_mode):
        raise BadPath("path", f"{relative} is not a file", "remove it from the folder")
    if status.st_size > _MOST_FILE_BYTES:
        raise BadLength("path", f"{relative} is too large", f"keep files within {_MOST_FILE_BYTES} bytes")
    if count > _MOST_FILES:
        raise BadLength("path", "the folder holds too many files", f"keep at most {_MOST_FILES}")

"""Which folders may be a project at all: a caller names it, so it must not be able to name the machine."""

import os
import pwd
from contextlib import suppress
from pathlib import Path
from typing import Final

from contextd.domain.errors import OutsideProject

_SYSTEM: Final = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
)
_SYSTEM_TOO: Final = ("/usr", "/var/lib", "/var/log", "/var/run", "/var/spool")


def check_grounds(project: str, *, named: bool, own: tuple[str, ...]) -> None:
    """Raises OutsideProject for the machine's folders, a home and what is hidden in it, and contextd's own.

    `named` says that the policies name this folder: then only contextd's `own` folders are refused.
    """
    if any(is_within(project, folder) for folder in own):
        raise OutsideProject("the project lies in a folder of contextd itself", "name another folder")
    if named:
        return
    if project == "/" or any(is_within(project, folder) for folder in _SYSTEM + _SYSTEM_TOO):
        raise _refused("belongs to the system")
    for home in _homes():
        if is_within(home, project):
            raise _refused("holds a whole home folder")
        if is_within(project, home) and project[len(home) + 1 :].startswith("."):
            raise _refused("lies in a hidden folder of a home, where keys are kept")


def is_within(path: str, folder: str) -> bool:
    """Of paths without links or dots."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _homes() -> set[str]:
    """The daemon's own, as the system and as the environment have it; a container's user may have none."""
    homes: set[str] = set()
    with suppress(KeyError):
        homes.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    with suppress(RuntimeError):
        homes.add(os.path.realpath(Path.home()))
    return homes - {"/"}


def _refused(why: str) -> OutsideProject:
    return OutsideProject(
        f"this folder is no project: it {why}",
        "name the project's own folder; if it is this one, give it a table in the policies"
        " ('contextd sandbox policy' says where they are)",
    )

"""What a command left that programs outside would obey: moved aside before anybody meets it.

What was there before is mounted read-only. What was not there cannot be mounted over without making it, so
it is looked at afterwards, when nothing of the command runs any more.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.git_folders import is_harmless
from contextd.adapters.sandbox.layout import Absent, Layout
from contextd.adapters.sandbox.locked_folders import unlock
from contextd.services.grounds import is_within

_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def put_aside(layout: Layout) -> tuple[str, ...]:
    """Sentences about what was moved, for whoever reads the command's output."""
    unlock((layout.project, *layout.pinned))
    return tuple(said for absent in layout.absent for said in _look(layout.project, absent))


def _look(project: str, absent: Absent) -> Iterator[str]:
    if not os.path.lexists(absent.path) or (absent.link and _link(absent.path) == absent.link):
        return
    if absent.link is None and absent.path == f"{project}/.git" and is_harmless(Path(absent.path)):
        return
    aside = f".from-sandbox-{secrets.token_hex(3)}"
    base = project if is_within(absent.path, project) else str(Path(absent.path).parent)
    with _folder_of(base, Path(absent.path).relative_to(base).parts) as (folder, name):
        with suppress(FileNotFoundError):
            os.rename(name, f"{name}{aside}", src_dir_fd=folder, dst_dir_fd=folder)
            yield (
                f"contextd: {name} was made by this command and programs outside would obey it:"
                f" it is now {name}{aside}; look at it and rename it if it is meant\n"
            )
        if absent.link:
            with suppress(FileExistsError):
                os.symlink(absent.link, name, dir_fd=folder)


@contextmanager
def _folder_of(project: str, parts: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The folder that holds it, walked to without following links: a link on the way is what must go."""
    folder = os.open(project, _FLAGS)
    for number, part in enumerate(parts[:-1]):
        try:
            below = os.open(part, _FLAGS, dir_fd=folder)
        except OSError:
            parts = parts[: number + 1]
            break
        os.close(folder)
        folder = below
    try:
        yield folder, parts[-1]
    finally:
        os.close(folder)


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None

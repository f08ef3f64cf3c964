"""Folders that a command closed behind it, opened again: nothing could be moved aside in them."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def unlock(folders: Iterable[str]) -> None:
    """Parents first. A link is not followed: where it leads is nobody's business here."""
    for folder in folders:
        with suppress(OSError):
            opened = os.open(folder, _FLAGS)
            try:
                mode = stat.S_IMODE(os.fstat(opened).st_mode)
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    os.chmod(f"/proc/self/fd/{opened}", mode | stat.S_IRWXU)  # noqa: PTH101 - by its descriptor
            finally:
                os.close(opened)


def unlock_tree(root: str) -> None:
    unlock([root])
    for folder, names, _ in os.walk(root):
        unlock(os.path.join(folder, name) for name in names)  # noqa: PTH118 - as os.walk has them

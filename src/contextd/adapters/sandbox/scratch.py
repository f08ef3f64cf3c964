"""A folder for a command's temporary files where it cannot have a file system of its own."""

import os
import shutil
from contextlib import suppress
from pathlib import Path


def remove_tree(folder: str) -> None:
    """Whatever the command made of it: folders that may not be entered any more are opened first."""
    for path, names, _ in os.walk(folder):
        for name in names:
            with suppress(OSError):
                if not Path(path, name).is_symlink():
                    Path(path, name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def tasks_of(uid: int) -> int:
    """How many threads a user has: the kernel counts them all against a limit of processes."""
    count = 0
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and process.stat().st_uid == uid:
                count += sum(1 for _ in (process / "task").iterdir())
    return count

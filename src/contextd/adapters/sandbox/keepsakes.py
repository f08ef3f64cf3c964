"""What is protected, kept as it was, and put back if a command changed it: where it cannot be read-only."""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.layout import Layout
from contextd.adapters.sandbox.locked_folders import unlock, unlock_tree
from contextd.domain.errors import SandboxUnavailable

_MOST_BYTES: Final = 16 * 2**20
_MOST_FILES: Final = 4_000
_UNOBEYED: Final = ("objects", "refs", "logs", "lfs")
"""Of a repository's folder, what nobody runs."""


@dataclass(frozen=True, slots=True)
class _File:
    """`content` of a link is where it leads."""

    content: bytes
    mode: int


def keep(layout: Layout) -> Callable[[], tuple[str, ...]]:
    """What to call afterwards: it puts everything back and says what it had to."""
    kept = {path: _taken(Path(path)) for path in layout.protected}
    files = [file for each in kept.values() for file in each.values()]
    if len(files) > _MOST_FILES or sum(len(file.content) for file in files) > _MOST_BYTES:
        raise SandboxUnavailable(
            "what is protected in this project is too much to watch over without namespaces",
            "take large folders out of `protected` in the policy, or make bubblewrap work",
        )

    def put_back() -> tuple[str, ...]:
        unlock((layout.project, *layout.pinned))
        return tuple(said for path, files in kept.items() for said in _put_back(Path(path), files))

    return put_back


def _taken(root: Path) -> dict[Path, _File]:
    files = {}
    for path in _walk(root):
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                files[path] = _File(os.fsencode(path.readlink()), mode)
            elif stat.S_ISREG(mode):
                files[path] = _File(path.read_bytes(), mode)
            else:
                files[path] = _File(b"", mode)
    return files


def _walk(root: Path) -> Iterator[Path]:
    if root.is_symlink() or not root.is_dir():
        yield from (root,) if os.path.lexists(root) else ()
        return
    for folder, names, files in os.walk(root):
        links = [name for name in names if Path(folder, name).is_symlink()]
        names[:] = [name for name in names if name not in _UNOBEYED and name not in links]
        yield from (Path(folder, name) for name in files + links)


def _put_back(root: Path, kept: dict[Path, _File]) -> Iterator[str]:
    unlock_tree(str(root))
    now = _taken(root)
    for path in sorted(path for path in kept.keys() | now.keys() if kept.get(path) != now.get(path)):
        if path in now:
            path.rename(f"{path}.from-sandbox-{secrets.token_hex(3)}")
        if path in kept:
            _write(path, kept[path])
        yield f"contextd: {path.name} is protected: what this command made of it was moved aside\n"


def _write(path: Path, file: _File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(file.mode):
        path.symlink_to(os.fsdecode(file.content))
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(file.content)
        os.fchmod(opened.fileno(), stat.S_IMODE(file.mode))

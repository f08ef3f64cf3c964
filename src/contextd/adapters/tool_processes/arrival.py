"""A folder that a stranger's files are put into, one by one, each looked at before it is there."""

import os
from pathlib import Path
from typing import IO, Final

from contextd.domain.errors import NotInstallable

MOST_ENTRIES: Final = 5_000
LARGEST: Final = 256 << 20
"""Bytes of all files together."""
_DEEPEST: Final = 32
_LONGEST_NAME: Final = 255
_PIECE: Final = 1 << 16


class Arrival:
    """Names do not lead out of `root`, links neither; nothing has special rights. Raises NotInstallable."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self._entries = 0
        self._size = 0

    def folder(self, name: str) -> None:
        if self._parts(name):
            self._made(self._root.joinpath(*self._parts(name)))

    def file(self, name: str, content: IO[bytes], *, executable: bool) -> None:
        place = self._place(name)
        opened = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "wb") as file:
            while piece := content.read(_PIECE):
                self._size += len(piece)
                if self._size > LARGEST:
                    raise NotInstallable(f"the plugin has more than {LARGEST >> 20} MB of files")
                file.write(piece)
            os.fchmod(file.fileno(), 0o755 if executable else 0o644)

    def link(self, name: str, target: str) -> None:
        """Upwards only at its beginning: after another link, `..` would lead elsewhere than it reads."""
        place = self._place(name)
        parts = target.split("/")
        ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
        below = len(place.relative_to(self._root).parts) - 1
        if not target or target[0] == "/" or "\0" in target or ups > below or ".." in parts[ups:]:
            raise _leads_out()
        place.symlink_to(target)

    def copy(self, folder: Path, *, without: frozenset[str]) -> None:
        """What lies in a folder of this machine, by the same rules."""
        for path, folders, files in os.walk(folder):
            folders[:] = sorted(set(folders) - without)
            for entry in sorted({*folders, *files} - without):
                self._copy(Path(path, entry), str(Path(path, entry).relative_to(folder)))

    def settle(self, wanted: str) -> None:
        """Everything is here: lifted if it was packed in one folder, and its links looked at once more."""
        self._lift(wanted)
        for path, folders, files in os.walk(self._root):
            for name in (*folders, *files):
                place = Path(path, name)
                if place.is_symlink() and not Path(os.path.realpath(place)).is_relative_to(self._root):
                    raise _leads_out()

    def _lift(self, wanted: str) -> None:
        inside = list(self._root.iterdir())
        if (self._root / wanted).exists() or len(inside) != 1:
            return
        if inside[0].is_symlink() or not inside[0].is_dir():
            return
        aside = self._root.with_name(f"{self._root.name}.lifted")
        inside[0].rename(aside)
        self._root.rmdir()
        aside.rename(self._root)

    def _copy(self, path: Path, name: str) -> None:
        if path.is_symlink():
            self.link(name, str(path.readlink()))
        elif path.is_dir():
            self.folder(name)
        elif path.is_file():
            with path.open("rb") as content:
                self.file(name, content, executable=os.access(path, os.X_OK))
        else:
            raise special()

    def _place(self, name: str) -> Path:
        parts = self._parts(name)
        if not parts:
            raise _unfit()
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise NotInstallable(f"the plugin has more than {MOST_ENTRIES} files")
        place = self._made(self._root.joinpath(*parts[:-1])) / parts[-1]
        if os.path.lexists(place):
            raise NotInstallable("the plugin has two files of one name")
        return place

    def _made(self, folder: Path) -> Path:
        """The folder, real all the way: nothing is put where a link leads."""
        if not folder.exists():
            self._entries += len(folder.relative_to(self._root).parts)
            if self._entries > MOST_ENTRIES:
                raise NotInstallable(f"the plugin has more than {MOST_ENTRIES} files")
            if Path(os.path.realpath(folder)) != folder:
                raise _unfit()
            folder.mkdir(parents=True, mode=0o755)
        if Path(os.path.realpath(folder)) != folder or not folder.is_dir():
            raise _unfit()
        return folder

    @staticmethod
    def _parts(name: str) -> list[str]:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        plain = all(part.isprintable() and len(part.encode()) <= _LONGEST_NAME for part in parts)
        if name.startswith("/") or ".." in parts or "\\" in name or not plain or len(parts) > _DEEPEST:
            raise _unfit()
        return parts


def special() -> NotInstallable:
    return NotInstallable(
        "the plugin has something else than files, folders and links", "pack plain files only"
    )


def _leads_out() -> NotInstallable:
    return NotInstallable("the plugin has a link that leads out of it", "pack files instead of links")


def _unfit() -> NotInstallable:
    return NotInstallable(
        "the plugin has a file name that leads out of it, or cannot be written",
        "pack it from its own folder",
    )

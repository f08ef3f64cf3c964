"""Tools as folders that an agent can read and run: written, kept current, and removed again."""

import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import contextd
from contextd.domain.errors import Conflict
from contextd.edge.tool_md import tool_md
from contextd.edge.tool_schema import tool_schema
from contextd.tools.declaration import AnyTool

_NOTES: Final = ".contextd.json"
"""Beside the folders: what was written, by path, so that nothing else is ever touched."""
_LONGEST_SHEBANG: Final = 127
"""Bytes of a first line that every Linux reads."""


class ToolFolders:
    """`folder` is an agent's, such as `.claude/tools`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written = self._read_notes()

    def install(self, tools: Iterable[AnyTool], launcher: Path, *, force: bool = False) -> list[Path]:
        """The paths that are new or changed. Raises Conflict for a file that is not ours, unless forced."""
        wanted = {path: text for tool in tools for path, text in _files(tool, launcher)}
        foreign = [path for path in wanted if not force and self._is_foreign(path, wanted[path])]
        if foreign:
            raise Conflict(
                f"{foreign[0]} in {self._folder} was not written by contextd, or was changed since",
                "move it away, or replace it with --force",
            )
        changed = [path for path, text in wanted.items() if self._now(path) != text]
        for path in changed:
            _write(self._folder / path, wanted[path])
        self._written |= {path: _mark(text) for path, text in wanted.items()}
        self._write_notes()
        return [self._folder / path for path in changed]

    def uninstall(self, names: Iterable[str] = ()) -> tuple[list[Path], list[Path]]:
        """What was removed, and what was left because somebody changed it. Without names, everything."""
        chosen = set(names)
        removed, left = [], []
        for path, mark in sorted(self._written.items()):
            if chosen and path.split("/")[0] not in chosen:
                continue
            now = self._now(path)
            if now is not None and _mark(now) != mark:
                left.append(self._folder / path)
                continue
            (self._folder / path).unlink(missing_ok=True)
            removed.append(self._folder / path)
            del self._written[path]
        self._tidy({path.parent for path in removed})
        return removed, left

    def _is_foreign(self, path: str, wanted: str) -> bool:
        now = self._now(path)
        return now is not None and now != wanted and _mark(now) != self._written.get(path)

    def _now(self, path: str) -> str | None:
        """A link is what it leads to."""
        place = self._folder / path
        try:
            if place.is_symlink():
                return f"-> {place.readlink()}"
            return place.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except OSError:
            return "a folder, or nothing that can be read"

    def _tidy(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self._write_notes()

    def _read_notes(self) -> dict[str, str]:
        try:
            notes = json.loads((self._folder / _NOTES).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        # A path that leads out of the folder was not written by us.
        return {str(path): str(mark) for path, mark in notes.items() if _is_plain(str(path))}

    def _write_notes(self) -> None:
        notes = self._folder / _NOTES
        if self._written:
            _write(notes, json.dumps(self._written, indent=1, sort_keys=True))
        else:
            notes.unlink(missing_ok=True)


def write_launcher(path: Path, python: str, data_dir: Path, address: str | None) -> Path:
    """The one program that every tool's name links to. It starts without site: that is half its speed."""
    home = str(Path(contextd.__file__).parent.parent)
    head = f"#!{python} -IS"
    if " " in python or len(os.fsencode(head)) > _LONGEST_SHEBANG:
        # A shell reads this as a command, Python as a string.
        head = f"#!/bin/sh\n''''exec '{python}' -IS \"$0\" \"$@\" # '''"
    text = (
        f"{head}\n"
        "# Written by `contextd tools install`.\n"
        "import sys\n\n"
        f"sys.path.append({home!r})\n"
        "from contextd.proxy.__main__ import main\n\n"
        f"main(data_dir={str(data_dir)!r}, address={address!r}, python={python!r})\n"
    )
    _write(path, text)
    path.chmod(stat.S_IRWXU)
    return path


def _files(tool: AnyTool, launcher: Path) -> Iterator[tuple[str, str]]:
    yield f"{tool.name}/schema.json", json.dumps(tool_schema(tool), indent=1, ensure_ascii=False) + "\n"
    yield f"{tool.name}/TOOL.md", tool_md(tool)
    yield f"{tool.name}/{tool.name}", f"-> {launcher}"


def _write(path: Path, text: str) -> None:
    """In one step, and never through a link that stands there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".contextd-") as folder:
        temporary = Path(folder) / path.name
        if text.startswith("-> "):
            temporary.symlink_to(text.removeprefix("-> "))
        else:
            temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


def _mark(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 2 and not any(part in ("", ".", "..") for part in parts)

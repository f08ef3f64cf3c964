"""The plugins that are installed: `plugins/NAME/VERSION/` in the data folder, and which version is used.

    plugins/wordcount/current            the version, as text
    plugins/wordcount/1.0.0/files/       what was fetched
    plugins/wordcount/1.0.0/record.json  what somebody said yes to

Files are put together aside and get here by one rename: nothing is ever half there.
"""

import json
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from contextd.adapters.sandbox.scratch import remove_tree
from contextd.adapters.tool_processes.manifest import manifest_of
from contextd.domain.errors import Conflict, Fault, NoSuchPlugin, NotInstallable
from contextd.domain.tool_processes import Installed, OfferedTool

logger = logging.getLogger(__name__)

_ASIDE: Final = ".aside-"
_FORGOTTEN_S: Final = 3_600.0
_CURRENT: Final = "current"
_FILES: Final = "files"
_RECORD: Final = "record.json"


class InstalledPlugins:
    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "plugins"

    def __iter__(self) -> Iterator[Installed]:
        """Those that can be used, by name. One that is damaged is left out, and the log says so."""
        for name in sorted(self._names()):
            try:
                yield self[name]
            except Fault as fault:
                logger.warning("the plugin %s is left out: %s", name, fault.problem)

    def __getitem__(self, name: str) -> Installed:
        """Raises NoSuchPlugin, and NotInstallable for one that is damaged."""
        if name not in self._names():
            raise NoSuchPlugin
        try:
            version = (self._folder / name / _CURRENT).read_text(encoding="utf-8").strip()
            folder = self._folder / name / Path(version).name
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
            return Installed(
                manifest_of(record["manifest"]),
                tuple(OfferedTool(**tool) for tool in record["tools"]),
                os.path.realpath(folder / _FILES),
                record["source"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise NotInstallable(
                f"the plugin {name} is damaged", f"'contextd plugin remove {name}', then install it again"
            ) from None

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """An empty folder for what is being looked at; gone at the end, unless it was taken in."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sweep()
        folder = tempfile.mkdtemp(prefix=_ASIDE, dir=self._folder)
        files = Path(folder, _FILES)
        files.mkdir()
        try:
            yield files
        finally:
            remove_tree(folder)

    def take_in(self, installed: Installed) -> None:
        """What lies aside becomes the version that is used. Raises Conflict if that version is there."""
        manifest, folder = installed.manifest, Path(installed.folder).parent
        record = {
            "manifest": asdict(manifest),
            "tools": [asdict(tool) for tool in installed.tools],
            "source": installed.source,
        }
        _write(folder / _RECORD, json.dumps(_plain(record), indent=1))
        home = self._folder / manifest.name
        home.mkdir(exist_ok=True, mode=0o700)
        self._clear(home, manifest.version)
        try:
            folder.rename(home / manifest.version)
        except OSError as error:
            raise Conflict(
                f"{manifest.name} {manifest.version} is installed already",
                f"remove it first: 'contextd plugin remove {manifest.name}'",
            ) from error
        _write(home / f".{_CURRENT}", manifest.version)
        (home / f".{_CURRENT}").rename(home / _CURRENT)

    def remove(self, name: str) -> None:
        """With all its versions. Raises NoSuchPlugin."""
        if name not in self._names():
            raise NoSuchPlugin
        self._put_away(self._folder / name)

    def _clear(self, home: Path, version: str) -> None:
        """A version that is there and not used, an older one or one that never got further, makes room."""
        current = home / _CURRENT
        used = current.read_text(encoding="utf-8").strip() if current.exists() else ""
        if version != used and (home / version).exists():
            self._put_away(home / version)

    def _put_away(self, folder: Path) -> None:
        """Gone at once for all who look, then file by file."""
        aside = tempfile.mkdtemp(prefix=_ASIDE, dir=self._folder)
        folder.rename(Path(aside, folder.name))
        remove_tree(aside)

    def _sweep(self) -> None:
        """What an installation that was killed has left."""
        for left in self._folder.glob(f"{_ASIDE}*"):
            if time.time() - left.stat().st_mtime > _FORGOTTEN_S:
                remove_tree(str(left))

    def _names(self) -> set[str]:
        if not self._folder.is_dir():
            return set()
        return {each.name for each in self._folder.iterdir() if each.is_dir() and each.name[0] != "."}


def _plain(value: Any) -> Any:
    """With lists for tuples, as JSON and TOML have them."""
    return json.loads(json.dumps(value))


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())

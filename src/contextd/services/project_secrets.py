"""What a project keeps in its files of secrets: known before a command prints it, in whatever form."""

import asyncio
from collections import OrderedDict
from typing import Final

from contextd.domain.errors import Fault
from contextd.domain.ports import StreamScrubber
from contextd.domain.project_files import ProjectFiles, Stamp

_FILES: Final = (
    ".env",
    ".env.local",
    ".env.development",
    ".env.development.local",
    ".env.test",
    ".env.production",
    ".env.production.local",
    ".npmrc",
    ".pypirc",
    ".netrc",
    "config/master.key",
    "credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
)
_LARGEST: Final = 65_536
_MOST_PROJECTS: Final = 64


class ProjectSecrets:
    """Files are read again when they have changed. One that cannot be read is none."""

    def __init__(self, files: ProjectFiles, scrubber: StreamScrubber) -> None:
        self._files = files
        self._scrubber = scrubber
        self._seen: OrderedDict[str, dict[str, Stamp]] = OrderedDict()

    async def learn(self, project: str) -> None:
        """The scrubber finds them from now on. `project` is resolved, and may be a project."""
        await asyncio.to_thread(self._learn, project)

    def _learn(self, project: str) -> None:
        seen = self._seen.setdefault(project, {})
        self._seen.move_to_end(project)
        while len(self._seen) > _MOST_PROJECTS:
            self._seen.popitem(last=False)
        for path in _FILES:
            try:
                file = self._files.look(project, path, _LARGEST)
            except Fault:
                continue
            if file.data is not None and file.stamp is not None and seen.get(path) != file.stamp:
                seen[path] = file.stamp
                self._scrubber.learn(file.data.decode("utf-8", "replace"))

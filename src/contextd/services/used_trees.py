"""Which indexed trees are in use, so that what works in the background knows where it is wanted."""

import asyncio
from dataclasses import dataclass
from typing import Final

from contextd.domain.code_store import Tree
from contextd.domain.ports import Clock
from contextd.domain.records import Project

IDLE_S: Final = 900.0
"""Without a call for so long, a tree is no longer in use."""


@dataclass(frozen=True, slots=True)
class UsedTree:
    project: Project
    tree: Tree


class UsedTrees:
    def __init__(self, clock: Clock, idle_s: float = IDLE_S) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._last: dict[tuple[str, int], tuple[float, UsedTree]] = {}
        self._read: dict[str, int] = {}
        self._touched = clock.monotonic()
        self.news = asyncio.Event()
        """Set when a tree comes into use, or is changed."""

    def touch(self, project: Project, *trees: Tree) -> None:
        now = self._touched = self._clock.monotonic()
        for tree in trees:
            key = (project.key, tree.id)
            before = self._last.get(key)
            self._last[key] = (now, UsedTree(project, tree))
            if before is None or before[1].tree.version != tree.version:
                self.news.set()

    def now(self) -> list[UsedTree]:
        """Those in use; the others are forgotten."""
        oldest = self._clock.monotonic() - self._idle_s
        self._last = {key: used for key, used in self._last.items() if used[0] >= oldest}
        return [used for _, used in self._last.values()]

    def quiet_s(self) -> float:
        """For how long nobody has asked for anything."""
        return self._clock.monotonic() - self._touched

    def read_closer(self, project: Project) -> None:
        """More of it was read with the text model: searches are ranked anew."""
        self._read[project.key] = self._read.get(project.key, 0) + 1

    def times_read(self, project: Project) -> int:
        return self._read.get(project.key, 0)

    def is_used(self, project: Project) -> bool:
        return any(used.project.key == project.key for used in self.now())

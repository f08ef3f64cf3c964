"""Indexed trees that are in use are kept up to their files, and left alone when nobody asks."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from contextd.domain.code_store import Tree
from contextd.domain.errors import Fault, IndexingInProgress, StoreUnavailable
from contextd.domain.ports import Clock
from contextd.domain.records import Project
from contextd.services.code_index import CodeIndex
from contextd.services.indexed_trees import Indexed
from contextd.services.used_trees import UsedTree, UsedTrees

logger = logging.getLogger(__name__)

_SHARE: Final = 0.2
"""Of one core's time, at the most, that following costs: after each run it rests accordingly."""
_LOOK_AGAIN_S: Final = 5.0
_QUICK_FILES: Final = 5_000
"""A tree of so many files is walked while a caller waits; a larger one is not."""


Place: TypeAlias = tuple[str, str]
"""A project's key, and a folder."""


class Watcher(Protocol):
    def changes(self, folder: str) -> AsyncIterator[None]:
        """One item for each burst of changes below a folder. Raises OSError when it cannot be watched."""


class Watching:
    def __init__(self, index: CodeIndex, watcher: Watcher, used: UsedTrees, clock: Clock) -> None:
        self._index = index
        self._watcher = watcher
        self._used = used
        self._clock = clock
        self._watched: dict[Place, asyncio.Task[None]] = {}
        self._runs = False

    async def run(self) -> None:
        """Watch what is in use, until cancelled."""
        self._runs = True
        try:
            while True:
                self._used.news.clear()
                wanted = {_place(each) for each in self._used.now()}
                for place in self._watched.keys() - wanted:
                    self._stop(place)
                for place in wanted - self._watched.keys():
                    self._start(place)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._used.news.wait(), _LOOK_AGAIN_S)
        finally:
            self._runs = False
            for place in list(self._watched):
                self._stop(place)

    async def up_to_date(self, indexed: Indexed) -> bool:
        """Bring the trees up to their files. False if that would take long, or is being done elsewhere."""
        self._used.touch(indexed.project, *indexed.trees)
        for tree in indexed.trees:
            if not await self._is_fresh(indexed.project, tree):
                return False
        return True

    async def _is_fresh(self, project: Project, tree: Tree) -> bool:
        if _file_count(tree) > _QUICK_FILES:
            return False
        if self._runs and await self._index.is_older(tree, project):
            # All of it is read again, beside: `touch` has said so.
            return False
        try:
            await self._index.follow(tree, project)
        except IndexingInProgress:
            return False
        return True

    def _start(self, place: Place) -> None:
        self._watched[place] = asyncio.create_task(self._watch(place), name=f"watch {place[0]}")

    def _stop(self, place: Place) -> None:
        self._watched.pop(place).cancel()

    async def _watch(self, place: Place) -> None:
        changed = asyncio.Event()
        listening = asyncio.create_task(self._listen(place[1], changed))
        try:
            # What changed while nobody was looking comes first.
            changed.set()
            while True:
                await changed.wait()
                changed.clear()
                started = self._clock.monotonic()
                # A folder may have two trees, of its code and of other files.
                trees = [used for used in self._used.now() if _place(used) == place]
                if all([await self._follow(used) for used in trees]):
                    rest = (self._clock.monotonic() - started) * (1 / _SHARE - 1)
                else:
                    # The files may never change again, and what is older than the model would stay so.
                    changed.set()
                    rest = _LOOK_AGAIN_S
                await asyncio.sleep(rest)
        finally:
            listening.cancel()

    async def _listen(self, folder: str, changed: asyncio.Event) -> None:
        try:
            async for _ in self._watcher.changes(folder):
                changed.set()
        except OSError as error:
            logger.warning("an indexed project cannot be watched (%s)", error.strerror or error)

    async def _follow(self, used: UsedTree) -> bool:
        """False when it should be tried again."""
        try:
            report = await self._index.follow(used.tree, used.project)
            if report.indexed or report.removed:
                logger.info("followed %d changed and %d removed files", report.indexed, report.removed)
        except IndexingInProgress:
            logger.debug("somebody else is indexing this project")
            return False
        except Fault as fault:
            logger.warning("following a project's files failed: %s", fault.problem)
            return not isinstance(fault, StoreUnavailable)
        return True


def _place(used: UsedTree) -> Place:
    return used.project.key, used.tree.path


def _file_count(tree: Tree) -> int:
    files = tree.about.get("files")
    return files if isinstance(files, int) else 0

"""The code index: which files of a project it holds, and how it follows them."""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, cast

from contextd.domain.callers import Caller
from contextd.domain.code import SourceReader
from contextd.domain.code_store import BlobKey, Change, CodeFinder, CodeWriter, KnownFile, Purpose, Tree
from contextd.domain.errors import BadPath, NotAProject, NotIndexed
from contextd.domain.ports import Clock, Scrubber, Telemetry
from contextd.domain.records import Drawer, Json, Project
from contextd.services.go_module import GoModule, go_module
from contextd.services.projects import permitted
from contextd.services.source_tree import MAX_FILE_BYTES, FoundFile, Selection, SourceTree, Walk
from contextd.services.taking_in import Rules, Taken, TakingIn
from contextd.services.used_trees import UsedTrees

INDEX_VERSION: Final = "1.0.0"
"""Of the answers about an index, as its users see them."""

_BACKGROUND_PATIENCE_S: Final = 20.0
_MOST_SKIPPED_FOLDERS: Final = 200
_SAMPLE: Final = 64
_REPORT_EVERY_S: Final = 0.1


class IndexStore(CodeWriter, CodeFinder, Protocol):
    """Both halves of a code store."""


class IndexLocks(Protocol):
    def hold(
        self, key: str, *, background: bool, patience_s: float
    ) -> AbstractAsyncContextManager[None]: ...

    def is_held(self, key: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files a tree is to hold."""

    purpose: Purpose = "code"
    include_tests: bool = True
    include_vendor: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_file_size: int = MAX_FILE_BYTES

    def as_json(self) -> dict[str, Json]:
        return {
            "include_tests": self.include_tests,
            "include_vendor": self.include_vendor,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "max_file_size": self.max_file_size,
        }

    @classmethod
    def of(cls, tree: Tree) -> "Choice":
        """As it was when the tree was indexed."""
        kept = cast(dict[str, object], tree.about["choice"])
        return cls(
            purpose=tree.purpose,
            include_tests=bool(kept["include_tests"]),
            include_vendor=bool(kept["include_vendor"]),
            include=tuple(cast(list[str], kept["include"])),
            exclude=tuple(cast(list[str], kept["exclude"])),
            max_file_size=cast(int, kept["max_file_size"]),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did."""

    project: Project
    tree: Tree
    taken: Taken
    unchanged: int
    removed: int
    skipped: Mapping[str, int]
    duration_s: float
    at: datetime

    @property
    def indexed(self) -> int:
        """Files that are new, or have another content than before."""
        return len(self.taken.rows) - self.taken.same


@dataclass(frozen=True, slots=True)
class _Plan:
    """What has to be looked into: files that are new or look changed by stat, and paths that went away."""

    changed: list[FoundFile]
    removed: list[str]
    unchanged: int
    left_out: Counter[str] = field(default_factory=Counter)
    """Files that were left out before, and are as they were."""
    before: Mapping[str, BlobKey] = field(default_factory=dict)
    """What the files held, by the index."""


class CodeIndex:
    def __init__(
        self,
        store: IndexStore,
        reader: SourceReader,
        scrubber: Scrubber,
        locks: IndexLocks,
        used: UsedTrees,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reader = reader
        self._taking_in = TakingIn(store, reader, scrubber)
        self._locks = locks
        self._used = used
        self._telemetry = telemetry
        self._clock = clock

    async def index(self, path: str, choice: Choice, caller: Caller, *, force: bool = False) -> Report:
        """Bring a tree up to its files. Raises BadPath, Forbidden, NotAProject, IndexingInProgress.

        Until it is done, and if it never is, searches answer from the tree as it was.
        """
        root = await asyncio.to_thread(folder_at, path)
        project = permitted(caller, root)
        caller.tally.project = project
        async with self._locks.hold(project.key, background=False, patience_s=_BACKGROUND_PATIENCE_S):
            report = await self._run(project, root, choice, caller, force)
        self._used.touch(project, report.tree)
        return report

    async def follow(self, tree: Tree, project: Project) -> Report:
        """Bring a tree up to its files, as it is chosen now. Raises IndexingInProgress, NotIndexed."""
        caller = Caller(transport="background")
        async with self._locks.hold(project.key, background=True, patience_s=1.0):
            kept = await self._kept(project, tree)
            return await self._run(project, kept.path, Choice.of(kept), caller, force=False)

    async def refresh(self, project: Project, tree: Tree, paths: Sequence[str]) -> bool:
        """Take in just these files, as they are now. Whether the tree changed."""
        source = SourceTree(Path(tree.path))
        async with self._locks.hold(project.key, background=True, patience_s=1.0):
            kept = await self._kept(project, tree)
            prints = await asyncio.to_thread(lambda: {path: source.stat(path) for path in paths})
            changed = [FoundFile(path, print) for path, print in prints.items() if print is not None]
            plan = _Plan(changed, [path for path, print in prints.items() if print is None], 0)
            generation = await self._store.generation(project)
            rules = self._rules(Choice.of(kept), generation)
            taken = await self._taking_in.take_in(project, source, plan.changed, rules, _no_step, {})
            change = self._change(plan, taken, dict(kept.about))
            after = await self._store.change(project, kept.path, kept.purpose, change, generation)
            return after.version != tree.version

    async def is_older(self, tree: Tree, project: Project) -> bool:
        """Whether files of it were taken in otherwise than today: the next run reads them again."""
        known = await self._store.files(project, tree.id)
        return any(file.blob is None and not file.left_out for file in known.values())

    async def _kept(self, project: Project, tree: Tree) -> Tree:
        """As it is now: another run may have chosen other files, or somebody may have dropped the index."""
        kept = await self._store.tree(project, tree.path, tree.purpose)
        if kept is None:
            raise NotIndexed
        return kept

    async def size(self, report: Report) -> int:
        """Of the project's whole index, in bytes."""
        return (await self._store.totals(report.project, [report.tree])).size_bytes

    async def drawer(self, project: Project) -> Drawer | None:
        """The index as a part of the project's collection."""
        return await self._store.drawer(project)

    async def projects(self) -> list[Project]:
        return await self._store.projects()

    async def drop(self, project: Project) -> None:
        """Forget the index, between two runs. Raises IndexingInProgress."""
        async with self._locks.hold(project.key, background=False, patience_s=_BACKGROUND_PATIENCE_S):
            await self._store.drop(project)

    def is_running(self, project: Project) -> bool:
        return self._locks.is_held(project.key)

    def is_left_out(self, tree: Tree, file: FoundFile) -> bool:
        """Whether a run would not hold this file for what is in it. Blocks on the disk: in a thread."""
        rules = self._rules(Choice.of(tree), 0)
        return self._taking_in.is_left_out(SourceTree(Path(tree.path)), file, rules)

    async def walk(self, root: str, choice: Choice) -> Walk:
        """The files that a run would look at. Raises BadPath."""
        try:
            return await asyncio.to_thread(SourceTree(Path(root)).walk, self._selection(choice))
        except OSError:
            raise BadPath("path", "path cannot be read", "give a folder that you may list") from None

    async def _run(
        self, project: Project, root: str, choice: Choice, caller: Caller, force: bool
    ) -> Report:
        started = self._clock.monotonic()
        await caller.progress(0, None, "looking for files")
        with self._telemetry.span("index", purpose=choice.purpose):
            walk = await self.walk(root, choice)
            self._require_code(walk, choice)
            tree = await self._store.tree(project, root, choice.purpose)
            source = SourceTree(Path(root))
            rules = self._rules(choice, await self._store.generation(project) + force)
            if tree is None and not force:
                await self._adopt(project, source, walk, rules)
                rules = self._rules(choice, await self._store.generation(project))
            plan = await self._plan(project, tree, walk, force)
            step = self._step(caller, len(plan.changed))
            before = {} if force else plan.before
            taken = await self._taking_in.take_in(project, source, plan.changed, rules, step, before)
            fresh = Counter(reason for _, _, reason in taken.left_out)
            skipped = Counter(walk.skipped) + plan.left_out + fresh
            duration = self._clock.monotonic() - started
            about = self._about(root, choice, walk, skipped, taken, plan, duration, tree)
            change = self._change(plan, taken, about)
            after = await self._store.change(project, root, choice.purpose, change, rules.generation)
        self._telemetry.count("contextd_files_indexed_total", len(taken.rows) - taken.same)
        return Report(
            project=project,
            tree=after,
            taken=taken,
            unchanged=plan.unchanged + taken.same,
            removed=sum(path in plan.before for path in change.removed),
            skipped=dict(sorted(skipped.items())),
            duration_s=self._clock.monotonic() - started,
            at=self._clock.now(),
        )

    async def _adopt(self, project: Project, source: SourceTree, walk: Walk, rules: Rules) -> None:
        """A clone begins from the index of its sibling, if there is one."""
        some = walk.files[:: max(1, len(walk.files) // _SAMPLE)][:_SAMPLE]
        await self._store.adopt(project, await self._taking_in.keys(source, some, rules))

    async def _plan(self, project: Project, tree: Tree | None, walk: Walk, force: bool) -> _Plan:
        known = await self._store.files(project, tree.id) if tree is not None else {}
        changed: list[FoundFile] = []
        left_out: Counter[str] = Counter()
        for file in walk.files:
            before = known.get(file.path)
            if force or before is None or before.print != tuple(file.print):
                changed.append(file)
            elif before.left_out:
                left_out[before.left_out] += 1
            elif before.blob is None:
                changed.append(file)
        here = {file.path for file in walk.files}
        removed = [path for path in known if path not in here]
        unchanged = len(walk.files) - len(changed) - left_out.total()
        return _Plan(changed, removed, unchanged, left_out, _held(known))

    def _change(self, plan: _Plan, taken: Taken, about: Mapping[str, Json]) -> Change:
        """What was looked into and is not to be held (any more) is removed with the rest."""
        held = {row.path for row in taken.rows}
        left_out = [file.path for file in plan.changed if file.path not in held]
        return Change(taken.rows, [*plan.removed, *left_out], about, taken.left_out)

    def _selection(self, choice: Choice) -> Selection:
        def is_wanted(path: str) -> str | None:
            kind = self._reader.kind(path)
            if kind is None:
                return "unsupported" if choice.purpose == "code" else None
            return "tests" if kind.is_test and not choice.include_tests else None

        return Selection(
            is_wanted=is_wanted,
            include_vendor=choice.include_vendor,
            include=choice.include,
            exclude=choice.exclude,
            max_file_size=choice.max_file_size,
        )

    def _rules(self, choice: Choice, generation: int) -> Rules:
        return Rules(choice.max_file_size, choice.purpose == "files", generation)

    def _require_code(self, walk: Walk, choice: Choice) -> None:
        """Documents and settings alone are no code base; files that were asked for by name are."""
        if choice.purpose == "files":
            return
        for file in walk.files:
            kind = self._reader.kind(file.path)
            if file.path == "go.mod" or (kind is not None and kind.is_code):
                return
        raise NotAProject("the folder holds no source file of a supported language")

    def _step(self, caller: Caller, total: int) -> "_Step":
        return _Step(caller, total, self._clock)

    def _about(
        self,
        root: str,
        choice: Choice,
        walk: Walk,
        skipped: Mapping[str, int],
        taken: Taken,
        plan: _Plan,
        duration: float,
        tree: Tree | None,
    ) -> dict[str, Json]:
        """Options and figures, kept with the tree."""
        module = _module(root)
        folders = dict(sorted(walk.skipped_folders.items())[:_MOST_SKIPPED_FOLDERS])
        unread = [path for path, _, reason in taken.failed if path not in {row.path for row in taken.rows}]
        is_idle = len(taken.rows) == taken.same and not plan.removed
        was = tree.about.get("duration_s") if tree and is_idle else None
        return {
            "choice": choice.as_json(),
            "files": plan.unchanged + len(taken.rows),
            "module": module.name,
            "go_version": module.go_version,
            "indexed_at": self._clock.now().isoformat(),
            "duration_s": was if was is not None else round(duration, 3),
            "skipped": dict(sorted(skipped.items())),
            "skipped_folders": cast(Json, folders),
            "unread": cast(Json, sorted(set(unread))[:_MOST_SKIPPED_FOLDERS]),
        }


class _Step:
    """Tells the caller how far it is, not more often than anybody can read."""

    def __init__(self, caller: Caller, total: int, clock: Clock) -> None:
        self._caller = caller
        self._total = total
        self._clock = clock
        self._told = clock.monotonic()

    async def __call__(self, done: int) -> None:
        now = self._clock.monotonic()
        if now - self._told >= _REPORT_EVERY_S or done == self._total:
            self._told = now
            await self._caller.progress(done, self._total, f"{done} of {self._total} files")


def _held(known: Mapping[str, KnownFile]) -> dict[str, BlobKey]:
    return {path: file.blob for path, file in known.items() if file.blob is not None}


async def _no_step(done: int) -> None:
    return None


def folder_at(path: str) -> str:
    """The folder with every link followed. Raises BadPath."""
    root = os.path.realpath(path)
    if root == os.sep:
        raise BadPath("path", "path is the root of the file system", "give the folder of one project")
    if not os.path.isdir(root):  # noqa: PTH112 - a string comes in and goes out
        raise BadPath(
            "path", "path does not exist or is not a folder", "give the absolute path of a folder"
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise BadPath("path", "path is not readable", "give a folder that you may list")
    return root


def _module(root: str) -> GoModule:
    try:
        text = (SourceTree(Path(root)).read("go.mod", MAX_FILE_BYTES) or b"").decode("utf-8", "replace")
    except OSError:
        return GoModule()
    return go_module(text)

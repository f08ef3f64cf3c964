"""Folding: a subtask works in a branch, within a budget, and its parent gets the summary alone.

Everything about a branch is kept in the store, so that it outlives a restart and is the same for every
replica: whoever changes a tree puts it back only if nobody else has changed it meanwhile.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

from contextd.domain import limits
from contextd.domain.branches import KIND, Branch, Ended, State, Step, Tree, Wish, tree_id, tree_of
from contextd.domain.callers import Caller
from contextd.domain.errors import NoSuchBranch, NotWorthKeeping, OtherProject
from contextd.domain.ids import drawer_of, new_id
from contextd.domain.ports import Clock, Scrubber, Store, TokenCounter
from contextd.domain.records import SHARED, Entry, Filter, Project
from contextd.services.answer_outline import Part
from contextd.services.branch_memories import BranchMemories, Lesson
from contextd.services.open_branches import OpenBranches
from contextd.services.projects import permitted, project_at
from contextd.services.references import References

Change = Callable[[Tree], Tree]
_SWEEP_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class Draft:
    """A branch before it is opened."""

    description: str
    prompt: str
    project_path: str | None = None
    budget: int | None = None
    timeout_s: float = limits.BRANCH_S
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    branch: Branch
    memories: tuple[Lesson, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    branch: Branch
    state: State
    summary: str
    children_returned: int
    note: str


@dataclass(frozen=True, slots=True)
class Status:
    branch: Branch
    state: State
    remaining: int
    seconds_left: float
    summary: str
    children: tuple[tuple[Branch, State, str], ...]


class Folding:
    def __init__(
        self,
        store: Store,
        references: References,
        memories: BranchMemories,
        scrubber: Scrubber,
        tokens: TokenCounter,
        clock: Clock,
    ) -> None:
        self._store = store
        self._references = references
        self._memories = memories
        self._scrubber = scrubber
        self._tokens = tokens
        self._clock = clock
        self._register = OpenBranches(store, clock)
        self._opened = 0
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- opening ----------------------------------------------------------------------

    async def open(self, draft: Draft, caller: Caller) -> Opened:
        """Raises NoSuchBranch, BranchEnded, BranchTimedOut, BudgetExhausted, TooDeep, BudgetBeyondParent,
        OtherProject, TooManyBranches, TreeFull, DaemonFull, Forbidden.

        What is refused leaves nothing behind. The prompt is the first thing that the branch has read, and
        is not charged, because its caller wrote it; memories are.
        """
        tree = await self._soil(draft, caller)
        wish = self._wish(draft, tree, caller)
        wished = tree.opened(wish, self._clock.now())[wish.id]
        memories = await self._told(wished, draft, tree, caller)
        steps = await self._first_steps(draft, memories, caller)
        await self._register.take(wish.id, caller.key, wished.deadline)
        try:
            tree = await self._changed(tree, lambda tree: self._grown(tree, wish, steps))
        except BaseException:
            await self._register.leave([wish.id])
            raise
        await self._forget_old(tree.project)
        return Opened(tree[wish.id], memories)

    async def _soil(self, draft: Draft, caller: Caller) -> Tree:
        """The parent's tree, or a new one that is not kept yet."""
        if draft.parent:
            tree = await self.tree(draft.parent, caller)
            if draft.project_path and project_at(draft.project_path).key != tree.project.key:
                raise OtherProject("project_path", "project_path is not the parent's project")
            return tree
        project, now = SHARED, self._clock.now()
        if draft.project_path:
            caller.tally.project = project = permitted(caller, draft.project_path)
        id = new_id("br", project.key, now)
        return Tree(id, project, draft.project_path or "", caller.principal.scope, now, now)

    def _wish(self, draft: Draft, tree: Tree, caller: Caller) -> Wish:
        id = f"{tree.id}.{secrets.token_hex(3)}" if tree.branches else tree.id
        description = self._scrubber.scrub(draft.description).text
        return Wish(id, description, caller.key, draft.parent, draft.budget, draft.timeout_s)

    async def _told(self, branch: Branch, draft: Draft, tree: Tree, caller: Caller) -> tuple[Lesson, ...]:
        if not tree.project_path:
            return ()
        most = int(branch.budget * limits.BRANCH_MEMORIES_SHARE)
        task = f"{draft.description}\n{draft.prompt}"
        return await self._memories.relevant(task, tree.project_path, caller, most)

    async def _first_steps(self, draft: Draft, told: Sequence[Lesson], caller: Caller) -> list[Step]:
        prompt = [Part("prompt", self._scrubber.scrub(draft.prompt).text)]
        await self._references.keep(caller, prompt)
        return [
            Step("prompt", 0, self._references.handle(caller, prompt)),
            *(Step("memory_get", lesson.tokens, lesson.id) for lesson in told),
        ]

    def _grown(self, tree: Tree, wish: Wish, steps: Sequence[Step]) -> Tree:
        now = self._clock.now()
        tree = tree.opened(wish, now)
        for step in steps:
            tree = tree.charged(wish.id, step, now)
        return tree

    async def _forget_old(self, project: Project) -> None:
        """Now and then. No branch lasts as long as refs do, so all that old have ended."""
        self._opened += 1
        if self._opened % _SWEEP_EVERY != 1:
            return
        until = self._clock.now() - timedelta(days=limits.REF_DAYS)
        page = await self._store.page(Filter((KIND,), (project,), until=until), "created_at", 0, 500)
        await self._store.delete(project, [record.id for record in page.records])

    # --- paying -----------------------------------------------------------------------

    async def tree(self, branch_id: str, caller: Caller) -> Tree:
        """The tree of a branch that the caller may use. Raises NoSuchBranch."""
        tree = await self._kept(branch_id)
        if tree.owner != caller.principal.scope:
            raise NoSuchBranch
        _ = tree[branch_id]
        return tree

    async def charge(self, tree: Tree, branch_id: str, step: Step, beside: Sequence[Entry]) -> bool:
        """Put an answer on the branch's bill, with what holds it, if the tree is still as it was."""
        charged = tree.charged(branch_id, step, self._clock.now())
        here = [entry for entry in beside if entry.record.project.key == tree.project.key]
        if elsewhere := [entry for entry in beside if entry not in here]:
            # An answer about another project is held in that project's own drawer.
            await self._store.put(elsewhere)
        return await self._store.swap(Entry(charged.record()), tree.record(), here)

    # --- ending -----------------------------------------------------------------------

    async def finish(
        self, branch_id: str, message: str, caller: Caller, *, remember: bool = False, failed: bool = False
    ) -> Returned:
        """End a branch, after its children. One that has ended answers as it did. Raises NoSuchBranch."""
        tree = await self.tree(branch_id, caller)
        caller.tally.project = None if tree.project == SHARED else tree.project
        summary = self._scrubber.scrub(message).text
        ended: Ended = "failed" if failed else "returned"
        closed = 0

        def change(tree: Tree) -> Tree:
            nonlocal closed
            tree, closed = tree.returned(branch_id, summary, ended, self._clock.now())
            return tree

        was = tree
        tree = await self._changed(tree, change)
        branch = tree[branch_id]
        await self._register.leave([each.id for each in tree.branches if each.ended])
        if was[branch_id].ended is None:
            folded_before = sum(child.used for child in was.children(branch_id) if child.ended)
            caller.tally.folded = branch.used - folded_before - self._tokens.count(branch.summary)
        branch, note = await self._distilled(tree, branch, caller, remember=remember)
        if was[branch_id].summary and was[branch_id].summary != summary and not note:
            note = "it had returned before: its first summary stands"
        return Returned(branch, branch.state(self._clock.now()), branch.summary, closed, note)

    async def _distilled(
        self, tree: Tree, branch: Branch, caller: Caller, *, remember: bool
    ) -> tuple[Branch, str]:
        """The branch with the memory that was made of it, or what to say about making one."""
        if branch.memory:
            return branch, ""
        if not tree.project_path:
            return branch, "no memory was kept: the branch has no project_path" if remember else ""
        if not remember:
            worth = self._memories.worth(branch.description, branch.summary)
            return branch, "call return again with remember=true to keep this as a memory" if worth else ""
        try:
            id = await self._memories.distil(branch, tree.project_path, caller)
        except NotWorthKeeping:
            return branch, "no memory was kept: the message says nothing that another session could use"
        now = self._clock.now()
        tree = await self._changed(tree, lambda tree: tree.remembered(branch.id, id, now))
        return tree[branch.id], ""

    # --- looking ----------------------------------------------------------------------

    async def status(self, branch_id: str, caller: Caller) -> Status:
        """Raises NoSuchBranch."""
        tree, now = await self.tree(branch_id, caller), self._clock.now()
        caller.tally.project = None if tree.project == SHARED else tree.project
        branch = tree[branch_id]
        left = 0.0 if branch.ended else max(0.0, tree.seconds_left(branch_id, now))
        children = tuple((child, child.state(now), child.told(now)) for child in tree.children(branch_id))
        state = branch.state(now)
        return Status(branch, state, tree.remaining(branch_id), left, branch.told(now), children)

    async def trail(self, branch_id: str, caller: Caller) -> str:
        """What the branch has read, a line each with its ref. Raises NoSuchBranch."""
        tree = await self.tree(branch_id, caller)
        caller.tally.project = None if tree.project == SHARED else tree.project
        branch = tree[branch_id]
        lines = [f"{branch.id}: {branch.description}\n"]
        lines += [f"{step.ref} {step.tool} ({step.tokens} tokens)\n" for step in branch.steps]
        lines += [f"{child.id} branch ({child.used} tokens)\n" for child in tree.children(branch_id)]
        return "".join(lines)

    # --- inside -----------------------------------------------------------------------

    async def _kept(self, branch_id: str) -> Tree:
        key = drawer_of(branch_id)
        record = await self._store.get(Project(key, ""), tree_id(branch_id)) if key else None
        if record is None or record.kind != KIND:
            raise NoSuchBranch
        return tree_of(record)

    async def _changed(self, tree: Tree, change: Change) -> Tree:
        """Changed from whatever it is by now: another call may have come first."""
        async with self._locks.setdefault(tree.id, asyncio.Lock()):
            while True:
                changed = change(tree)
                if await self._swapped(changed, tree):
                    return changed
                tree = await self._kept(tree.id)

    async def _swapped(self, changed: Tree, old: Tree) -> bool:
        """A tree without branches is not kept yet."""
        return await self._store.swap(Entry(changed.record()), old.record() if old.branches else None)

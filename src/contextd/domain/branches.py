"""Branches: subtasks with a budget of tokens and of time, and the tree that they form.

A tree is one thing that is kept: what a branch uses is used by its ancestors too, and children end with
their parent, so that all of it changes at once or not at all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

from contextd.domain.errors import (
    BranchEnded,
    BranchTimedOut,
    BudgetBeyondParent,
    BudgetExhausted,
    NoSuchBranch,
    TooDeep,
    TreeFull,
)
from contextd.domain.limits import BRANCH_TOKENS, BRANCH_WARNS_AT, MAX_BRANCH_DEPTH
from contextd.domain.records import Json, Project, Record

KIND: Final = "branch"
_MOST_IN_A_TREE: Final = 100
_MOST_STEPS: Final = 200

State = Literal["active", "returned", "timed_out", "failed"]
Ended = Literal["returned", "timed_out", "failed"]


@dataclass(frozen=True, slots=True)
class Step:
    """One answer that a branch got, and where it is held."""

    tool: str
    tokens: int
    ref: str


@dataclass(frozen=True, slots=True)
class Branch:
    id: str
    parent: str | None
    depth: int
    caller: str
    """Who opened it: a session, or a principal that has none."""
    description: str
    budget: int
    timeout_s: float
    opened_at: datetime
    used: int = 0
    ended: Ended | None = None
    summary: str = ""
    memory: str = ""
    """The id of what was distilled from it."""
    steps: tuple[Step, ...] = ()
    """The newest of them."""

    @property
    def deadline(self) -> datetime:
        return self.opened_at + timedelta(seconds=self.timeout_s)

    @property
    def remaining(self) -> int:
        return max(0, self.budget - self.used)

    def state(self, now: datetime) -> State:
        """Time ends a branch whether or not anybody is there to see it."""
        return self.ended or ("timed_out" if now >= self.deadline else "active")

    def told(self, now: datetime) -> str:
        """Its summary; of one that nobody returned, what it has."""
        if self.summary or self.state(now) == "active":
            return self.summary
        answers = [step for step in self.steps if step.tokens]
        read = "; ".join(f"{step.tool} {step.ref}" for step in answers[-5:])
        what = f"the last of {len(answers)} answers: {read}" if answers else "nothing was read"
        return f"No summary was given. {self.description} ({self.used} tokens; {what})"


@dataclass(frozen=True, slots=True)
class Wish:
    """A branch before it is opened."""

    id: str
    description: str
    caller: str
    parent: str | None
    budget: int | None
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Tree:
    """A branch, and all that were opened within it; `owner` is the scope that may use them."""

    id: str
    project: Project
    project_path: str
    owner: str
    created_at: datetime
    updated_at: datetime
    branches: tuple[Branch, ...] = ()

    def __getitem__(self, id: str) -> Branch:
        """Raises NoSuchBranch."""
        for branch in self.branches:
            if branch.id == id:
                return branch
        raise NoSuchBranch

    def line(self, id: str) -> tuple[Branch, ...]:
        """The branch, its parent, and so on to the outermost."""
        branch = self[id]
        return (branch, *self.line(branch.parent)) if branch.parent else (branch,)

    def children(self, id: str) -> tuple[Branch, ...]:
        return tuple(branch for branch in self.branches if branch.parent == id)

    def remaining(self, id: str) -> int:
        """Of the branch and of every one around it, the least."""
        return min(branch.remaining for branch in self.line(id))

    def open(self, now: datetime) -> Iterator[Branch]:
        return (branch for branch in self.branches if branch.state(now) == "active")

    def enter(self, id: str, now: datetime) -> int:
        """What an answer may cost here. Raises BranchEnded, BranchTimedOut, BudgetExhausted."""
        for branch in self.line(id):
            state = branch.state(now)
            if state == "timed_out" and branch.ended is None:
                raise BranchTimedOut(branch.timeout_s)
            if state != "active":
                raise BranchEnded(state)
            if not branch.remaining:
                raise BudgetExhausted(branch.id, branch.budget, branch.used)
        return self.remaining(id)

    def seconds_left(self, id: str, now: datetime) -> float:
        return min((branch.deadline - now).total_seconds() for branch in self.line(id))

    def warning(self, id: str, more: int = 0) -> str:
        """What to say when an answer of `more` tokens leaves a branch of the line with little."""
        for branch in self.line(id):
            used = branch.used + more
            if used >= branch.budget * BRANCH_WARNS_AT:
                whose = "this branch" if branch.id == id else f"the outer branch {branch.id}"
                when = "now" if used >= branch.budget else "soon"
                return f"{used} of {branch.budget} tokens of {whose} are used: return {when}"
        return ""

    # --- what happens to it -----------------------------------------------------------

    def opened(self, wish: Wish, now: datetime) -> "Tree":
        """Raises TooDeep, BudgetBeyondParent, TreeFull, and what `enter` of the parent does."""
        if len(self.branches) >= _MOST_IN_A_TREE:
            raise TreeFull(f"{_MOST_IN_A_TREE} branches were opened within the outermost one")
        budget, seconds, depth = wish.budget or BRANCH_TOKENS, wish.timeout_s, 1
        if wish.parent is not None:
            room = self.enter(wish.parent, now)
            depth = self[wish.parent].depth + 1
            if depth > MAX_BRANCH_DEPTH:
                raise TooDeep("parent_branch_id", f"branches nest to depth {MAX_BRANCH_DEPTH}")
            budget = budget if wish.budget else min(budget, room)
            if budget > room:
                raise BudgetBeyondParent("budget", f"budget is more than the {room} tokens that are left")
            seconds = min(seconds, self.seconds_left(wish.parent, now))
        branch = Branch(wish.id, wish.parent, depth, wish.caller, wish.description, budget, seconds, now)
        return self._with(now, branch)

    def charged(self, id: str, step: Step, now: datetime) -> "Tree":
        """The answer paid by the branch and by every one around it."""
        own, *outer = self.line(id)
        steps = (*own.steps, step)[-_MOST_STEPS:]
        paid = [replace(branch, used=branch.used + step.tokens) for branch in (own, *outer)]
        return self._with(now, replace(paid[0], steps=steps), *paid[1:])

    def returned(self, id: str, message: str, ended: Ended, now: datetime) -> tuple["Tree", int]:
        """The branch ended with its summary, after its children; and how many of those were still open.

        One that has ended keeps its state and its first summary.
        """
        branch = self[id]
        state = branch.state(now)
        below = [child for child in self._below(id) if child.state(now) == "active"]
        closed = [replace(child, ended="returned", summary=child.told(now)) for child in below]
        ended = ended if state == "active" else state
        one = replace(branch, ended=ended, summary=branch.summary or message)
        return self._with(now, one, *closed), len(below)

    def remembered(self, id: str, memory: str, now: datetime) -> "Tree":
        return self._with(now, replace(self[id], memory=memory))

    def _below(self, id: str) -> Iterator[Branch]:
        for child in self.children(id):
            yield child
            yield from self._below(child.id)

    def _with(self, now: datetime, *changed: Branch) -> "Tree":
        """Every change moves the time on: it is how another process sees that there was one."""
        by_id = {branch.id: branch for branch in (*self.branches, *changed)}
        later = max(now, self.updated_at + timedelta(microseconds=1))
        return replace(self, branches=tuple(by_id.values()), updated_at=later)

    # --- as it is kept ----------------------------------------------------------------

    def record(self) -> Record:
        return Record(
            id=self.id,
            kind=KIND,
            project=self.project,
            title="",
            text="",
            fields={
                "project_path": self.project_path,
                "owner": self.owner,
                "branches": [_as_json(branch) for branch in self.branches],
            },
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def tree_of(record: Record) -> Tree:
    fields = cast(Mapping[str, Any], record.fields)
    return Tree(
        id=record.id,
        project=record.project,
        project_path=fields["project_path"],
        owner=fields["owner"],
        created_at=record.created_at,
        updated_at=record.updated_at,
        branches=tuple(map(_from_json, fields["branches"])),
    )


def tree_id(branch_id: str) -> str:
    return branch_id.partition(".")[0]


def _as_json(branch: Branch) -> Json:
    return {
        "id": branch.id,
        "parent": branch.parent,
        "depth": branch.depth,
        "caller": branch.caller,
        "description": branch.description,
        "budget": branch.budget,
        "timeout_s": branch.timeout_s,
        "opened_at": branch.opened_at.isoformat(),
        "used": branch.used,
        "ended": branch.ended,
        "summary": branch.summary,
        "memory": branch.memory,
        "steps": [[step.tool, step.tokens, step.ref] for step in branch.steps],
    }


def _from_json(kept: Mapping[str, Any]) -> Branch:
    steps = tuple(Step(*step) for step in kept["steps"])
    opened_at = datetime.fromisoformat(kept["opened_at"])
    return Branch(**{**kept, "opened_at": opened_at, "steps": steps})

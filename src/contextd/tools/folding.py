"""Context folding, as an agent calls it."""

from typing import Annotated, ClassVar

from pydantic import Field

from contextd.domain import limits
from contextd.domain.branches import State
from contextd.domain.callers import Caller
from contextd.services.folding import Draft, Folding
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import Id, NotBlank, ProjectPath, Score, Summary

_PROJECT = "/home/dev/shop"


class BranchAsk(Input):
    description: Summary = Field(description="The subtask, in a line")
    prompt: Annotated[str, Field(min_length=1, max_length=limits.MAX_PROMPT_LENGTH), NotBlank] = Field(
        description="What to find out or do, and what to return"
    )
    project_path: ProjectPath | None = Field(None, description="Absolute path; the parent's if left out")
    budget: Annotated[int, Field(ge=limits.MIN_TOKENS, le=limits.MAX_BRANCH_TOKENS)] | None = Field(
        None, description="Tokens of all its answers: 8192, or what the parent has left"
    )
    timeout_s: Annotated[int, Field(ge=1, le=limits.MAX_BRANCH_S)] = limits.BRANCH_S
    parent_branch_id: Id | None = Field(None, description="To nest it, to depth 3")


class MemoryTold(Output):
    id: str
    title: str
    content: str
    confidence: Score


class BranchOpened(Output):
    branch_id: str
    budget: int
    depth: int
    timeout_s: float
    memories: list[MemoryTold] = Field(description="known already; charged to the branch")


@tool(
    toolset="folding",
    not_for="a single answer: give it a token_budget; saving work: checkpoint_save",
    asked="run a subtask in isolation; hand a task over to a context of its own; "
    "explore without filling the context window, fold",
    lean=("description", "prompt", "budget"),
    budget=limits.BRANCH_TOKENS,
    examples=(
        Example(
            "explore without filling the window",
            {
                "description": "Find where sessions are validated",
                "prompt": "Search the code for session validation. Return files, functions and the rule.",
                "project_path": _PROJECT,
                "budget": 4_096,
            },
        ),
    ),
)
async def branch(folding: Folding, ask: BranchAsk, caller: Caller) -> BranchOpened:
    """Open a branch for a subtask: give its branch_id to each call, then return a summary."""
    opened = await folding.open(
        Draft(
            description=ask.description,
            prompt=ask.prompt,
            project_path=ask.project_path,
            budget=ask.budget,
            timeout_s=ask.timeout_s,
            parent=ask.parent_branch_id or caller.branch,
        ),
        caller,
    )
    return BranchOpened(
        branch_id=opened.branch.id,
        budget=opened.branch.budget,
        depth=opened.branch.depth,
        timeout_s=round(opened.branch.timeout_s, 1),
        memories=[
            MemoryTold(id=each.id, title=each.title, content=each.content, confidence=each.confidence)
            for each in opened.memories
        ],
    )


class ReturnAsk(Input):
    branch_id: Id
    message: Annotated[str, Field(min_length=1, max_length=limits.MAX_RETURN_LENGTH), NotBlank] = Field(
        description="What the parent should know: the result, files, decisions"
    )
    remember: bool = Field(False, description="Also keep it as a memory of the project")
    failed: bool = Field(False, description="The subtask did not succeed")


class BranchReturned(Output):
    sparse: ClassVar[bool] = True

    branch_id: str
    state: State
    summary: str
    used: int = Field(description="tokens that the branch and its children used")
    budget: int
    children_returned: int = Field(description="children that were still open, and were returned first")
    memory_id: str = Field("", description="what was kept with remember")
    note: str = Field("", description="what to know about it")


@tool(
    toolset="folding",
    idempotent=True,
    not_for="saving work: checkpoint_save",
    asked="finish a subtask, close a branch, give its summary to the parent",
    lean=("branch_id", "message"),
)
async def return_(folding: Folding, ask: ReturnAsk, caller: Caller) -> BranchReturned:
    """End a branch: its summary goes to the parent; what it read stays under ref_get with its branch_id."""
    done = await folding.finish(
        ask.branch_id, ask.message, caller, remember=ask.remember, failed=ask.failed
    )
    more = {"memory_id": done.branch.memory, "note": done.note}
    return BranchReturned(
        branch_id=done.branch.id,
        state=done.state,
        summary=done.summary,
        used=done.branch.used,
        budget=done.branch.budget,
        children_returned=done.children_returned,
        **{name: text for name, text in more.items() if text},
    )


class BranchStatusAsk(Input):
    branch_id: Id


class ChildShown(Output):
    branch_id: str
    description: str
    state: State
    used: int
    summary: str


class BranchShown(Output):
    branch_id: str
    description: str
    state: State
    depth: int
    budget: int
    used: int
    remaining: int = Field(description="of it and of every branch around it, the least")
    seconds_left: float
    summary: str
    children: list[ChildShown]


@tool(
    toolset="folding",
    read_only=True,
    not_for="reading what it found: ref_get",
    asked="how many tokens and how much time a branch has left; has a subtask ended",
)
async def branch_status(folding: Folding, ask: BranchStatusAsk, caller: Caller) -> BranchShown:
    """Say how a branch stands: state, tokens and time left, its children."""
    status = await folding.status(ask.branch_id, caller)
    branch = status.branch
    return BranchShown(
        branch_id=branch.id,
        description=branch.description,
        state=status.state,
        depth=branch.depth,
        budget=branch.budget,
        used=branch.used,
        remaining=status.remaining,
        seconds_left=round(status.seconds_left, 1),
        summary=status.summary,
        children=[
            ChildShown(
                branch_id=child.id,
                description=child.description,
                state=state,
                used=child.used,
                summary=told,
            )
            for child, state, told in status.children
        ],
    )


TOOLS = (branch, return_, branch_status)

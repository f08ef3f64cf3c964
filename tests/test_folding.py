"""Branches: budgets that hold, time that ends them, and a store that remembers."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from contextd.adapters.sqlite import SqliteStore
from contextd.adapters.tokens import O200kCounter
from contextd.domain import limits
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import (
    BranchEnded,
    BranchTimedOut,
    BudgetBeyondParent,
    BudgetExhausted,
    DaemonFull,
    Fault,
    Forbidden,
    NoSuchBranch,
    NoSuchRef,
    OtherProject,
    TooDeep,
    TooManyBranches,
    TreeFull,
)
from contextd.edge.call_pipeline import CallPipeline
from contextd.scrubbing.scrubber import SecretScrubber
from contextd.services.answering import Answering, Draft
from contextd.services.branch_memories import BranchMemories
from contextd.services.folding import Draft as BranchDraft
from contextd.services.folding import Folding
from contextd.services.projects import project_at
from contextd.services.references import References
from contextd.wiring import House

T = TypeVar("T")
ME = Caller(session="me")
SHOP = "/srv/shop"
TOKENS = O200kCounter()


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    elapsed: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed


@dataclass
class Replica:
    """Everything about branches, on a folder that others may use at the same time."""

    folder: Path
    clock: Clock
    store: SqliteStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = SqliteStore(self.folder)
        references = References(self.store, self.clock)
        nothing: Any = None
        memories = BranchMemories(nothing, TOKENS)
        scrubber = SecretScrubber(key=lambda: b"k" * 32)
        self.folding = Folding(self.store, references, memories, scrubber, TOKENS, self.clock)
        self.answering = Answering(references, self.folding, TOKENS, self.clock)

    async def answer(self, branch_id: str, words: int, caller: Caller) -> int:
        """A call within a branch, as the pipeline makes it. Returns what it cost."""
        account = await self.answering.enter(branch_id, caller)
        data = {"text": "word\n" * words}
        draft = Draft("status", data, {"properties": {"text": {"type": "string"}}}, limits.DEFAULT_TOKENS)
        return (await self.answering.answer(draft, caller, account)).tokens_used


@dataclass
class Expected:
    """What a branch should be."""

    parent: str | None
    caller: str
    budget: int
    deadline: float
    used: int = 0
    ended: str | None = None


class Branching(RuleBasedStateMachine):
    """Two replicas on one store, several callers, time that passes and processes that start again."""

    branches = Bundle("branches")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        self.clock = Clock()
        self.replicas = [self.replica(), self.replica()]
        self.expected: dict[str, Expected] = {}
        self.ids: list[str | None] = []
        """By ticket: what is drawn must not depend on which of two calls came first."""

    def replica(self) -> Replica:
        return Replica(Path(self.folder.name), self.clock)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        for replica in self.replicas:
            self.run(replica.store.close())
        self.loop.close()
        self.folder.cleanup()

    # --- what should be ---------------------------------------------------------------

    def state(self, id: str) -> str:
        branch = self.expected[id]
        return branch.ended or ("timed_out" if self.clock.elapsed >= branch.deadline else "active")

    def line(self, id: str | None) -> list[str]:
        return [id, *self.line(self.expected[id].parent)] if id else []

    def refusal(self, id: str) -> type[Fault] | None:
        """Why a call within this branch is refused."""
        for each in self.line(id):
            branch = self.expected[each]
            if branch.ended:
                return BranchEnded
            if self.state(each) == "timed_out":
                return BranchTimedOut
            if branch.used >= branch.budget:
                return BudgetExhausted
        return None

    def open_of(self, caller: str) -> int:
        return sum(b.caller == caller and self.state(id) == "active" for id, b in self.expected.items())

    # --- what may happen --------------------------------------------------------------

    @rule(
        target=branches,
        caller=st.sampled_from(["a", "b"]),
        budget=st.integers(100, 3_000),
        seconds=st.integers(5, 60),
        at=st.integers(0, 1),
    )
    def open(self, caller: str, budget: int, seconds: int, at: int) -> int:
        draft = BranchDraft("d", "p", budget=budget, timeout_s=seconds)
        return self.opened(draft, caller, at)

    @rule(
        target=branches,
        parent=branches,
        budget=st.one_of(st.none(), st.integers(100, 2_000)),
        at=st.integers(0, 1),
    )
    def open_within(self, parent: int, budget: int | None, at: int) -> int:
        outer = self.ids[parent]
        if outer is None:
            return parent
        draft = BranchDraft("d", "p", budget=budget, timeout_s=30, parent=outer)
        return self.opened(draft, self.expected[outer].caller, at)

    def opened(self, draft: BranchDraft, caller: str, at: int) -> int:
        self.ids.append(None)
        wanted = self.why_not(draft, caller)
        work = self.replicas[at].folding.open(draft, Caller(session=caller))
        if wanted is not None:
            with pytest.raises(wanted):
                self.run(work)
            return len(self.ids) - 1
        branch = self.run(work).branch
        deadline = self.clock.elapsed + draft.timeout_s
        if draft.parent:
            deadline = min(deadline, *(self.expected[each].deadline for each in self.line(draft.parent)))
        self.expected[branch.id] = Expected(draft.parent, caller, branch.budget, deadline)
        self.ids[-1] = branch.id
        return len(self.ids) - 1

    def why_not(self, draft: BranchDraft, caller: str) -> type[Fault] | None:
        if draft.parent:
            if refused := self.refusal(draft.parent):
                return refused
            if len(self.line(draft.parent)) >= limits.MAX_BRANCH_DEPTH:
                return TooDeep
            left = min(self.expected[id].budget - self.expected[id].used for id in self.line(draft.parent))
            if draft.budget is not None and draft.budget > left:
                return BudgetBeyondParent
        if self.open_of(caller) >= limits.MAX_CALLER_BRANCHES:
            return TooManyBranches
        return None

    @rule(ticket=branches, words=st.lists(st.integers(0, 1_500), min_size=1, max_size=4))
    def call_at_once(self, ticket: int, words: list[int]) -> None:
        """Several calls in the same branch, at two replicas, at the same moment."""
        id = self.ids[ticket]
        if id is None:
            return
        caller = Caller(session=self.expected[id].caller)
        refused = self.refusal(id)

        async def all_of_them() -> list[int | BaseException]:
            calls = [
                self.replicas[number % 2].answer(id, count, caller) for number, count in enumerate(words)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

        for outcome in self.run(all_of_them()):
            if isinstance(outcome, BaseException):
                # One that came while another used up the budget is refused as well.
                assert isinstance(outcome, refused or BudgetExhausted)
                continue
            assert refused is None
            for each in self.line(id):
                self.expected[each].used += outcome

    @rule(ticket=branches, failed=st.booleans(), at=st.integers(0, 1))
    def finish(self, ticket: int, failed: bool, at: int) -> None:
        id = self.ids[ticket]
        if id is None:
            return
        caller = Caller(session=self.expected[id].caller)
        state = self.state(id)
        below = [
            each for each in self.expected
            if each != id and id in self.line(each) and self.state(each) == "active"
        ]  # fmt: skip
        done = self.run(self.replicas[at].folding.finish(id, "the summary", caller, failed=failed))
        if state == "active":
            self.expected[id].ended = "failed" if failed else "returned"
        else:
            self.expected[id].ended = state
        for each in below:
            self.expected[each].ended = "returned"
        assert done.children_returned == len(below)
        assert done.summary

    @rule(seconds=st.floats(0.1, 40))
    def wait(self, seconds: float) -> None:
        self.clock.elapsed += seconds

    @rule(at=st.integers(0, 1))
    def start_again(self, at: int) -> None:
        self.run(self.replicas[at].store.close())
        self.replicas[at] = self.replica()

    @precondition(lambda self: self.expected)
    @invariant()
    def every_replica_knows_every_branch(self) -> None:
        for id, branch in self.expected.items():
            for replica in self.replicas:
                status = self.run(replica.folding.status(id, Caller(session="whoever")))
                assert status.state == self.state(id)
                assert status.branch.used == branch.used
                # An answer is cut to what is left, down to its bare fields and its marks.
                assert status.branch.used <= branch.budget + 4 * 120

    @invariant()
    def no_caller_has_too_many_open(self) -> None:
        for caller in ("a", "b"):
            assert self.open_of(caller) <= limits.MAX_CALLER_BRANCHES


TestBranching = Branching.TestCase
TestBranching.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


# --- one thing at a time ----------------------------------------------------------------

pytestmark = pytest.mark.anyio


async def ask(
    pipeline: CallPipeline, name: str, caller: Caller = ME, /, **arguments: Any
) -> dict[str, Any]:
    answer = await pipeline.call(name, arguments, replace(caller, tally=type(caller.tally)()))
    return {**answer.data, **answer.envelope()}


async def opened(pipeline: CallPipeline, caller: Caller = ME, **more: Any) -> str:
    answer = await ask(
        pipeline, "branch", caller, **{"description": "look", "prompt": "look around", **more}
    )
    return str(answer["branch_id"])


async def test_an_answer_is_charged_to_its_branch_and_to_those_around_it(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline)
    inner = await opened(pipeline, parent_branch_id=outer, budget=1_000)
    used = (await ask(pipeline, "status", branch_id=inner))["tokens_used"]
    assert used > 0
    for id, budget in ((inner, 1_000), (outer, 8_192)):
        status = await ask(pipeline, "branch_status", branch_id=id)
        assert status["used"] == used
        assert status["remaining"] == budget - used
    assert (await ask(pipeline, "branch_status", branch_id=outer))["children"][0]["branch_id"] == inner


async def test_a_branch_opened_within_a_branch_is_its_child(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline)
    inner = await ask(pipeline, "branch", description="d", prompt="p", branch_id=outer)
    assert inner["depth"] == 2
    assert (await ask(pipeline, "branch_status", branch_id=outer))["used"] == inner["tokens_used"]


async def test_at_eighty_percent_it_warns_and_at_a_hundred_it_stops(pipeline: CallPipeline) -> None:
    id = await opened(pipeline, budget=1_200)
    warned = 0
    with pytest.raises(BudgetExhausted) as stopped:
        for _ in range(30):
            answer = await ask(pipeline, "status", branch_id=id)
            used = (await ask(pipeline, "branch_status", branch_id=id))["used"]
            assert ("warning" in answer) == (used >= 0.8 * 1_200)
            warned += "warning" in answer
    assert warned >= 1
    assert "call return" in stopped.value.message
    assert stopped.value.details["budget"] == 1_200
    returned = await ask(pipeline, "return", branch_id=id, message="all is well")
    assert returned["used"] >= 1_200


async def test_the_answer_that_crosses_the_budget_is_cut_to_what_is_left(pipeline: CallPipeline) -> None:
    text = "\n".join(f"step {number} went well" for number in range(600))
    saved = await ask(pipeline, "checkpoint_save", summary="s", content=text, project_path=SHOP)
    id = await opened(pipeline, project_path=SHOP, budget=500)
    answer = await ask(
        pipeline, "checkpoint_restore", id=saved["id"], level="full", branch_id=id, token_budget=8_000
    )
    assert answer["truncated"]
    assert answer["tokens_used"] <= 500
    held = await ask(pipeline, "ref_get", ref=answer["refs"][0], token_budget=16_000)
    assert "step 300 went well" in held["content"]


async def test_children_are_returned_before_their_parent(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline)
    middle = await opened(pipeline, parent_branch_id=outer)
    inner = await opened(pipeline, parent_branch_id=middle)
    returned = await ask(pipeline, "return", branch_id=outer, message="done")
    assert returned["children_returned"] == 2
    for id in (middle, inner):
        status = await ask(pipeline, "branch_status", branch_id=id)
        assert status["state"] == "returned"
        assert status["summary"].startswith("No summary was given")
        with pytest.raises(BranchEnded):
            await ask(pipeline, "status", branch_id=id)


async def test_returning_twice_answers_the_first_summary(pipeline: CallPipeline) -> None:
    id = await opened(pipeline)
    await ask(pipeline, "return", branch_id=id, message="first")
    again = await ask(pipeline, "return", branch_id=id, message="second", failed=True)
    assert again["summary"] == "first"
    assert again["state"] == "returned"


async def test_a_summary_is_scrubbed(pipeline: CallPipeline) -> None:
    id = await opened(pipeline)
    returned = await ask(pipeline, "return", branch_id=id, message="the token is ghp_" + "a1B2" * 9)
    assert "ghp_" not in returned["summary"]
    assert "[REDACTED:github" in (await ask(pipeline, "branch_status", branch_id=id))["summary"]


async def test_nesting_ends_at_depth_three(pipeline: CallPipeline) -> None:
    id = await opened(pipeline)
    for _ in range(2):
        id = await opened(pipeline, parent_branch_id=id)
    with pytest.raises(TooDeep):
        await opened(pipeline, parent_branch_id=id)


async def test_a_child_gets_no_more_than_its_parent_has_left(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline, budget=1_000)
    with pytest.raises(BudgetBeyondParent):
        await opened(pipeline, parent_branch_id=outer, budget=2_000)
    inner = await ask(pipeline, "branch", description="d", prompt="p", parent_branch_id=outer)
    assert inner["budget"] == 1_000


async def test_ten_branches_are_open_at_once_for_a_caller_and_a_hundred_in_all(
    pipeline: CallPipeline,
) -> None:
    first = [await opened(pipeline) for _ in range(10)]
    with pytest.raises(TooManyBranches):
        await opened(pipeline)
    await ask(pipeline, "return", branch_id=first[0], message="done")
    await opened(pipeline)
    for number in range(9):
        for _ in range(10):
            await opened(pipeline, Caller(session=f"other-{number}"))
    with pytest.raises(DaemonFull):
        await opened(pipeline, Caller(session="one more"))


async def test_a_tree_does_not_grow_without_end(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline)
    for _ in range(99):
        child = await opened(pipeline, parent_branch_id=outer)
        await ask(pipeline, "return", branch_id=child, message="done")
    with pytest.raises(TreeFull):
        await opened(pipeline, parent_branch_id=outer)


async def test_a_child_works_in_its_parents_project(pipeline: CallPipeline) -> None:
    outer = await opened(pipeline, project_path=SHOP)
    with pytest.raises(OtherProject):
        await opened(pipeline, parent_branch_id=outer, project_path="/srv/other")
    await opened(pipeline, parent_branch_id=outer, project_path=SHOP)


async def test_a_branch_is_nobody_elses(pipeline: CallPipeline) -> None:
    id = await opened(pipeline, project_path=SHOP)
    key = project_at(SHOP).key
    for stranger in (Principal("ci", frozenset({key})), Principal("local", frozenset({key}))):
        for name, more in (("branch_status", {}), ("return", {"message": "mine"})):
            with pytest.raises(NoSuchBranch):
                await ask(pipeline, name, Caller(stranger), branch_id=id, **more)
        with pytest.raises(NoSuchBranch):
            await ask(pipeline, "status", Caller(stranger), branch_id=id)
        with pytest.raises(NoSuchBranch):
            await ask(pipeline, "ref_get", Caller(stranger), ref=id)
    with pytest.raises(Forbidden):
        await opened(pipeline, Caller(Principal("ci", frozenset({"0" * 12}))), project_path=SHOP)
    for made_up in ("br-nope", id + "x", "cp-" + id, "../../etc"):
        with pytest.raises(NoSuchBranch):
            await ask(pipeline, "branch_status", branch_id=made_up)


async def test_another_session_of_the_same_principal_goes_on_with_a_branch(pipeline: CallPipeline) -> None:
    id = await opened(pipeline)
    later = Caller(session="after a reconnect")
    await ask(pipeline, "status", later, branch_id=id)
    assert (await ask(pipeline, "return", later, branch_id=id, message="done"))["state"] == "returned"


async def test_a_branch_whose_time_is_over_refuses_calls_and_returns_what_it_has(tmp_path: Path) -> None:
    clock = Clock()
    replica = Replica(tmp_path, clock)
    try:
        opened = await replica.folding.open(BranchDraft("look around", "p", timeout_s=10), ME)
        id = opened.branch.id
        await replica.answer(id, 5, ME)
        clock.elapsed = 10
        with pytest.raises(BranchTimedOut):
            await replica.answer(id, 5, ME)
        status = await replica.folding.status(id, ME)
        assert status.state == "timed_out"
        assert "status ref-" in status.summary
        done = await replica.folding.finish(id, "as far as I came", ME)
        assert (done.state, done.summary) == ("timed_out", "as far as I came")
        for _ in range(limits.MAX_CALLER_BRANCHES):
            await replica.folding.open(BranchDraft("d", "p"), ME)
    finally:
        await replica.store.close()


async def test_what_a_branch_read_stays_within_reach_of_its_parent(pipeline: CallPipeline) -> None:
    id = await opened(pipeline, prompt="look around carefully")
    version = (await ask(pipeline, "status", branch_id=id))["version"]
    await ask(pipeline, "return", branch_id=id, message="done")
    trail = (await ask(pipeline, "ref_get", ref=id))["content"].splitlines()
    assert [line.split()[1] for line in trail[1:]] == ["prompt", "status"]
    prompt, answer = [
        (await ask(pipeline, "ref_get", ref=line.split()[0]))["content"] for line in trail[1:]
    ]
    assert prompt == "look around carefully"
    assert f'"version": "{version}"' in answer


async def test_old_branches_and_refs_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    replica = Replica(tmp_path, clock)
    try:
        old = (await replica.folding.open(BranchDraft("d", "p"), ME)).branch
        held = old.steps[0].ref
        clock.elapsed = limits.REF_DAYS * 86_400 + 1
        with pytest.raises(NoSuchRef):
            await References(replica.store, clock).get(held, ME)
        for _ in range(32):
            new = (await replica.folding.open(BranchDraft("d", "p"), ME)).branch
            await replica.folding.finish(new.id, "done", ME)
        with pytest.raises(NoSuchBranch):
            await replica.folding.status(old.id, ME)
        assert (await replica.folding.status(new.id, ME)).state == "returned"
    finally:
        await replica.store.close()


# --- memories ---------------------------------------------------------------------------


async def remember(pipeline: CallPipeline, title: str, content: str, **more: Any) -> str:
    stored = await ask(pipeline, "memory_store", project_path=SHOP, title=title, content=content, **more)
    return str(stored["id"])


async def test_a_branch_starts_with_what_is_known_and_pays_for_it(pipeline: CallPipeline) -> None:
    known = await remember(
        pipeline,
        "Session tokens are checked in the gateway",
        "Validation of session tokens is in gateway/session.py; the services behind trust its header.",
    )
    await remember(
        pipeline,
        "Session tokens: advice from a web page",
        "Validation of session tokens can be switched off with the flag --insecure, says a forum.",
        source="web",
    )
    await remember(
        pipeline, "Stock is counted at night", "The stock job runs at 02:00 and locks the table."
    )
    answer = await ask(
        pipeline,
        "branch",
        description="Find where session tokens are validated",
        prompt="Where is the validation of session tokens?",
        project_path=SHOP,
    )
    assert [memory["id"] for memory in answer["memories"]] == [known]
    used = (await ask(pipeline, "branch_status", branch_id=answer["branch_id"]))["used"]
    assert 0 < used <= 0.2 * answer["budget"]


async def test_memories_take_a_fifth_of_the_budget_at_the_most(pipeline: CallPipeline) -> None:
    for number in range(6):
        await remember(
            pipeline,
            f"Deploying the gateway, lesson {number}",
            f"Deploying the gateway to zone {number} needs step {number}. "
            + f"Because of rule {number}. " * 20,
        )
    small = await ask(
        pipeline, "branch", description="Deploy the gateway", prompt="deploying the gateway",
        project_path=SHOP, budget=600,
    )  # fmt: skip
    large = await ask(
        pipeline, "branch", description="Deploy the gateway", prompt="deploying the gateway",
        project_path=SHOP, budget=20_000,
    )  # fmt: skip
    assert small["memories"] == []
    assert 1 <= len(large["memories"]) <= 3


async def test_a_returned_branch_can_become_a_memory(pipeline: CallPipeline) -> None:
    id = await opened(pipeline, project_path=SHOP, description="Why the import job stalls")
    message = "The import job stalls because it opens a second connection while the first holds the lock."
    first = await ask(pipeline, "return", branch_id=id, message=message, failed=True)
    assert "remember=true" in first["note"]
    kept = await ask(pipeline, "return", branch_id=id, message=message, remember=True)
    assert "note" not in kept
    memory = await ask(pipeline, "memory_get", id=kept["memory_id"])
    assert memory["content"] == message
    assert (memory["outcome"], memory["sources"], memory["confidence"]) == ("failure", ["distilled"], 0.6)


async def test_nothing_is_learned_from_a_summary_that_says_nothing(pipeline: CallPipeline) -> None:
    id = await opened(pipeline, project_path=SHOP)
    assert "note" not in await ask(pipeline, "return", branch_id=id, message="ok")
    again = await ask(pipeline, "return", branch_id=id, message="ok", remember=True)
    assert again["note"].startswith("no memory was kept")


# --- the doors --------------------------------------------------------------------------


async def test_a_call_that_outlasts_its_branch_is_ended_with_it(
    house: House, pipeline: CallPipeline
) -> None:
    id = await opened(pipeline, timeout_s=1)
    tool = pipeline.registry["status"]

    async def slow(*_: Any) -> Any:
        await asyncio.sleep(30)

    pipeline.registry._tools["status"] = replace(tool, run=slow)
    with pytest.raises(BranchTimedOut):
        await ask(pipeline, "status", branch_id=id)
    assert (await ask(pipeline, "branch_status", branch_id=id))["state"] == "timed_out"

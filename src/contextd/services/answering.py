"""The end of a call's road: its answer is weighed, cut to its budget, held, and paid by its branch."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contextd.domain.answers import Answer, weighed
from contextd.domain.branches import Step, Tree
from contextd.domain.callers import Caller
from contextd.domain.ports import Clock, TokenCounter
from contextd.services.answer_outline import Fitted, Part
from contextd.services.fitting import fitted
from contextd.services.folding import Folding
from contextd.services.references import References

_TRIES: Final = 3
"""The warning tells what is used, itself included."""
_LONG: Final = 60_000
"""Characters from which the work is done in a thread, so that other calls get their turn."""


@dataclass(frozen=True, slots=True)
class Account:
    """A branch, as it stood when the call came in."""

    tree: Tree
    branch: str

    @property
    def room(self) -> int:
        return self.tree.remaining(self.branch)

    @property
    def timeout_s(self) -> float:
        """Of the branch, or of the one around it that ends first."""
        return min(self.tree.line(self.branch), key=lambda branch: branch.deadline).timeout_s


@dataclass(frozen=True, slots=True)
class Draft:
    """A tool's answer before it leaves: scrubbed already."""

    tool: str
    data: dict[str, Any]
    schema: Mapping[str, Any]
    budget: int


class Answering:
    def __init__(
        self, references: References, folding: Folding, tokens: TokenCounter, clock: Clock
    ) -> None:
        self._references = references
        self._folding = folding
        self._tokens = tokens
        self._clock = clock

    async def enter(self, branch_id: str, caller: Caller) -> Account:
        """Raises NoSuchBranch, BranchEnded, BranchTimedOut, BudgetExhausted."""
        tree = await self._folding.tree(branch_id, caller)
        tree.enter(branch_id, self._clock.now())
        return Account(tree, branch_id)

    def seconds_left(self, account: Account) -> float:
        return account.tree.seconds_left(account.branch, self._clock.now())

    async def answer(self, draft: Draft, caller: Caller, account: Account | None) -> Answer:
        """What the caller gets. What was left out of it is held before this returns.

        An answer that was begun is given, however little its branch has left meanwhile: the tool has run,
        and what it did must be known.
        """
        if account is not None:
            return await self._charged(draft, caller, account)
        done = await self._fitted(draft, caller, draft.budget)
        if done.parts:
            await self._references.keep(caller, done.parts)
        return done.answer

    async def _charged(self, draft: Draft, caller: Caller, account: Account) -> Answer:
        """Cut to what is left and put on the bill; again, if another answer was paid meanwhile."""
        while True:
            done = await self._within(draft, caller, account)
            shown = [Part("answer", _pretty(done.answer.data))]
            bundles = [done.parts, shown] if done.parts else [shown]
            held = self._references.entries(caller, *bundles)
            step = Step(draft.tool, done.answer.tokens_used, self._references.handle(caller, shown))
            if await self._folding.charge(account.tree, account.branch, step, held):
                await self._references.tidy(caller)
                return done.answer
            account = Account(await self._folding.tree(account.branch, caller), account.branch)

    async def _within(self, draft: Draft, caller: Caller, account: Account) -> Fitted:
        """With a warning where one is due, which is a part of what is paid."""
        budget = min(draft.budget, account.room)
        done = await self._fitted(draft, caller, budget)
        for _ in range(_TRIES):
            warning = account.tree.warning(account.branch, done.answer.tokens_used)
            if warning == done.answer.warning:
                break
            done = await self._fitted(draft, caller, budget, warning)
        return done

    async def _fitted(self, draft: Draft, caller: Caller, budget: int, warning: str = "") -> Fitted:
        whole = weighed(draft.data, self._tokens.count, warning=warning)
        if whole.tokens_used <= budget:
            return Fitted(whole)

        def handle(parts: Sequence[Part]) -> str:
            return self._references.handle(caller, parts)

        def work() -> Fitted:
            return fitted(whole, budget, self._tokens.count, handle, draft.schema)

        return await asyncio.to_thread(work) if len(whole.text) > _LONG else work()


def _pretty(data: dict[str, Any]) -> str:
    """A field a line at the least, so that it can be read by lines."""
    return json.dumps(data, ensure_ascii=False, indent=1)

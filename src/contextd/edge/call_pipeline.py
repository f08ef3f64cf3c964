"""The one road that every call takes, whichever door it came in by.

span -> drain -> rate limit -> validate -> branch -> deadline -> tool -> scrub -> budget -> audit -> event.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, cast

from contextd.domain.answers import Answer
from contextd.domain.callers import Caller
from contextd.domain.errors import (
    BranchTimedOut,
    Draining,
    Fault,
    Forbidden,
    Internal,
    Invalid,
    NotAChoice,
    RateLimited,
    TimedOut,
)
from contextd.domain.limits import Allowance
from contextd.domain.ports import Clock, Event, Scrubber, Telemetry, TokenCounter
from contextd.domain.records import Json
from contextd.edge.call_audit import CallAudit
from contextd.services.analytics import Analytics
from contextd.services.answering import Account, Answering, Draft
from contextd.tools.declaration import AnyTool, Output
from contextd.tools.registry import Registry
from contextd.tools.validation import parse_call
from contextd.wiring import House

logger = logging.getLogger(__name__)

CALL_TOOL: Final = "call_tool"


@dataclass(frozen=True, slots=True)
class _Call:
    """What is known of a call while it is under way."""

    tool: AnyTool
    ask: Any
    caller: Caller
    account: Account | None


class CallPipeline:
    def __init__(
        self,
        registry: Registry,
        services: Mapping[type, object],
        allowance: Allowance | None,
        scrubber: Scrubber,
        tokens: TokenCounter,
        answering: Answering,
        analytics: Analytics,
        audit: CallAudit,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self.registry = registry
        self._services = services
        self._allowance = allowance
        self._scrubber = scrubber
        self._tokens = tokens
        self._answering = answering
        self._analytics = analytics
        self._audit = audit
        self._telemetry = telemetry
        self._clock = clock
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._cut_off: set[asyncio.Task[Any]] = set()
        self._draining = False

    def listing(self, caller: Caller, told: str = "") -> tuple[dict[str, Any], ...]:
        """What is advertised, and counted with all else that was `told`: it enters the caller's context."""
        self._analytics.listed(caller, self._tokens.count(self.registry.listing() + told))
        return self.registry.listings

    async def call(self, name: str, arguments: object, caller: Caller) -> Answer:
        """Run one tool. Raises Fault and nothing else; CancelledError passes through."""
        try:
            tool, arguments = self._named(name, arguments)
        except Fault as fault:
            await self._audit.ended(name, arguments, caller, "refused", fault)
            raise
        task = asyncio.current_task()
        assert task is not None
        outermost = task not in self._in_flight
        self._in_flight.add(task)
        try:
            with self._telemetry.span("tool", **{"tool.name": name}) as span:
                try:
                    return await self._observed(tool, arguments, caller)
                except Fault as fault:
                    span.fail(fault.id)
                    raise
        except asyncio.CancelledError:
            if task not in self._cut_off:
                raise
            task.uncancel()
            raise Draining from None
        finally:
            if outermost:
                self._in_flight.discard(task)

    def _named(self, name: str, arguments: object) -> tuple[AnyTool, object]:
        tool = self.registry[name]
        if name == CALL_TOOL:
            tool, arguments = self._inner(tool, arguments)
        if self._draining:
            raise Draining
        return tool, arguments

    def _inner(self, tool: AnyTool, arguments: object) -> tuple[AnyTool, object]:
        """The tool that call_tool names: it runs, is limited and is counted as itself."""
        terms, ask = parse_call(tool, arguments)
        inner = self.registry.get(ask.name)
        if inner is None or inner is tool:
            near = get_close_matches(ask.name, [each.name for each in self.registry if each is not tool], 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise NotAChoice(
                "name", "name is no tool's", f"{meant}find_tools finds a tool by what you want to do"
            )
        return inner, {**terms.model_dump(exclude_none=True), **ask.arguments}

    async def _observed(self, tool: AnyTool, arguments: object, caller: Caller) -> Answer:
        """Refused calls are not counted as use; what ran is, whatever came of it. All are written down."""
        started = self._clock.monotonic()
        answer: Answer | None = None
        ended: Fault | None = None
        outcome, ran = "cancelled", False
        try:
            self._charge(tool, caller)
            await self._audit.admit(tool)
            call = await self._admitted(tool, arguments, caller)
            caller, ran = call.caller, True
            answer = await self._run(call)
            await self._audit.answered(tool, arguments, caller, answer, self._clock.monotonic() - started)
            outcome = "ok"
        except (RateLimited, Invalid, Forbidden) as fault:
            ended, outcome, ran = fault, fault.id, False
            if isinstance(fault, Invalid) and tool.toolset == "code":
                # The code tools have always said it in these words, too.
                fault.details |= {"param": fault.field, "reason": fault.error}
            raise
        except Fault as fault:
            ended, outcome = fault, fault.id
            raise
        else:
            return answer
        finally:
            elapsed = self._clock.monotonic() - started
            self._telemetry.count("contextd_tool_calls_total", tool=tool.name, outcome=outcome)
            self._telemetry.observe(
                "contextd_tool_call_duration_seconds", elapsed, tool=tool.name, outcome=outcome
            )
            self._count_secrets("tool", caller.tally.secrets)
            if ran:
                self._analytics.record(self._event(tool, caller, outcome, elapsed, answer))
            if answer is None:
                await self._audit.ended(tool, arguments, caller, _came_of(ended, ran), ended, elapsed)

    def _event(
        self, tool: AnyTool, caller: Caller, outcome: str, elapsed: float, answer: Answer | None
    ) -> Event:
        tally = caller.tally
        return Event(
            at=self._clock.now(),
            tool=tool.name,
            project=tally.project.key if tally.project else None,
            session=caller.session,
            principal=caller.principal.name,
            outcome=outcome,
            duration_ms=elapsed * 1000,
            tokens_out=answer.tokens_used if answer else 0,
            tokens_kept_out=sum(self._tokens.count(text) for text in tally.kept_out),
            tokens_envelope=answer.tokens_beside if answer else 0,
            tokens_cut=answer.tokens_cut if answer else 0,
            tokens_folded=tally.folded,
            cache_hits=tally.cache_hits,
            cache_misses=tally.cache_misses,
        )

    def _charge(self, tool: AnyTool, caller: Caller) -> None:
        if self._allowance is None:
            return
        wait = self._allowance.take(caller.key, tool.name, self._clock.monotonic())
        if wait:
            self._telemetry.count("contextd_rate_limited_total", tool=tool.name)
            raise RateLimited(tool.name, max(1, round(wait * 1000)))

    async def _admitted(self, tool: AnyTool, arguments: object, caller: Caller) -> _Call:
        """The call as its tool will see it: what it may cost, and who pays."""
        terms, ask = parse_call(tool, arguments)
        account = None
        if terms.branch_id is not None:
            account = await self._answering.enter(terms.branch_id, caller)
        budget = terms.token_budget or tool.tokens(ask)
        room = budget if account is None else min(budget, account.room)
        if account is not None or room != caller.tokens:
            caller = replace(caller, tokens=room, branch=terms.branch_id)
        return _Call(tool, ask, caller, account)

    async def _run(self, call: _Call) -> Answer:
        tool, caller, account = call.tool, call.caller, call.account
        seconds = own = math.inf if tool.keeps_time else tool.timeout_s
        if account is not None:
            seconds = min(own, max(0.0, self._answering.seconds_left(account)))
        try:
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                output = await tool.run(self._services[tool.service], call.ask, caller)
            return await self._answered(output, call)
        except TimeoutError:
            if account is not None and seconds < own:
                raise BranchTimedOut(account.timeout_s) from None
            raise TimedOut(tool.name, tool.timeout_s) from None
        except Fault:
            raise
        except Exception:
            # The pipeline's catch-all: logged here, never echoed to a client.
            logger.exception("%s failed", tool.name)
            raise Internal(caller.request_id) from None

    async def _answered(self, output: Output, call: _Call) -> Answer:
        data, found = self._scrubbed(output.model_dump(mode="json", exclude_unset=output.sparse))
        if found:
            call.caller.tally.redacted = found
        draft = Draft(call.tool.name, data, call.tool.output_schema, call.caller.tokens)
        return await self._answering.answer(draft, call.caller, call.account)

    def _scrubbed(self, data: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, int]]:
        clean, found = self._scrubber.scrub_json(cast(Json, data))
        self._count_secrets("server", found)
        return cast(dict[str, Any], clean), found

    def _count_secrets(self, by: str, found: Mapping[str, int]) -> None:
        for rule, count in found.items():
            self._telemetry.count("contextd_secrets_redacted_total", count, **{"rule": rule, "pass": by})

    async def drain(self, seconds: float) -> int:
        """Refuse new calls and let those in flight finish. Returns how many were cut off."""
        self._draining = True
        waiting = {task for task in self._in_flight if task is not asyncio.current_task()}
        if not waiting:
            return 0
        _, late = await asyncio.wait(waiting, timeout=seconds)
        self._cut_off = late
        for task in late:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.gather(*late, return_exceptions=True)
        return len(late)


def _came_of(fault: Fault | None, ran: bool) -> str:
    """In the audit's words: a call without an answer."""
    if fault is None:
        return "cancelled"
    return "failed" if ran else "refused"


def pipeline_of(house: House) -> CallPipeline:
    audit = CallAudit(
        house.audit, house.scrubber, house.telemetry, house.clock, everything=house.settings.audit
    )
    return CallPipeline(
        house.registry,
        house.services,
        house.allowance,
        house.scrubber,
        house.tokens,
        house.answering,
        house.analytics,
        audit,
        house.telemetry,
        house.clock,
    )

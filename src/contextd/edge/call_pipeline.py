"""The one road that every call takes, whichever door it came in by.

span -> drain -> rate limit -> validate -> deadline -> tool -> scrub -> count -> event.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import to_json

from contextd.domain.callers import Caller
from contextd.domain.errors import Draining, Fault, Forbidden, Internal, Invalid, RateLimited, TimedOut
from contextd.domain.limits import Allowance
from contextd.domain.ports import Clock, Event, Scrubber, Telemetry, TokenCounter
from contextd.domain.records import Json
from contextd.services.analytics import Analytics
from contextd.tools.declaration import AnyTool, Registry
from contextd.tools.validation import parse
from contextd.wiring import House

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer, scrubbed and counted. `text` is `data` as JSON, made once."""

    data: dict[str, Any]
    text: str
    tokens_used: int
    truncated: bool = False
    has_more: bool = False
    refs: tuple[str, ...] = ()

    def envelope(self) -> dict[str, Any]:
        """What stands beside the data; only `tokens_used` when there is nothing else to say."""
        beside: dict[str, Any] = {"tokens_used": self.tokens_used}
        if self.truncated or self.refs:
            beside |= {"truncated": self.truncated, "has_more": self.has_more, "refs": list(self.refs)}
        return beside


class CallPipeline:
    def __init__(
        self,
        registry: Registry,
        services: Mapping[type, object],
        allowance: Allowance | None,
        scrubber: Scrubber,
        tokens: TokenCounter,
        analytics: Analytics,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self.registry = registry
        self._services = services
        self._allowance = allowance
        self._scrubber = scrubber
        self._tokens = tokens
        self._analytics = analytics
        self._telemetry = telemetry
        self._clock = clock
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._cut_off: set[asyncio.Task[Any]] = set()
        self._draining = False

    def listing(self, caller: Caller) -> tuple[AnyTool, ...]:
        """What is advertised, and counted: the tools' schemas enter the caller's context."""
        self._analytics.listed(caller)
        return self.registry.listed

    async def call(self, name: str, arguments: object, caller: Caller) -> Answer:
        """Run one tool. Raises Fault and nothing else; CancelledError passes through."""
        tool = self.registry[name]
        if self._draining:
            raise Draining
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

    async def _observed(self, tool: AnyTool, arguments: object, caller: Caller) -> Answer:
        """Refused calls are not counted as use; what ran is, whatever came of it."""
        started = self._clock.monotonic()
        tokens = 0
        outcome, ran = "cancelled", True
        try:
            self._charge(tool, caller)
            answer = await self._run(tool, parse(tool.input, arguments), caller)
            tokens, outcome = answer.tokens_used, "ok"
        except (RateLimited, Invalid, Forbidden) as fault:
            outcome, ran = fault.id, False
            if isinstance(fault, Invalid) and tool.toolset == "code":
                # The code tools have always said it in these words, too.
                fault.details |= {"param": fault.field, "reason": fault.error}
            raise
        except Fault as fault:
            outcome = fault.id
            raise
        else:
            return answer
        finally:
            elapsed = self._clock.monotonic() - started
            self._telemetry.count("contextd_tool_calls_total", tool=tool.name, outcome=outcome)
            self._telemetry.observe(
                "contextd_tool_call_duration_seconds", elapsed, tool=tool.name, outcome=outcome
            )
            if ran:
                self._analytics.record(
                    Event(
                        at=self._clock.now(),
                        tool=tool.name,
                        project=caller.tally.project,
                        session=caller.session,
                        principal=caller.principal.name,
                        outcome=outcome,
                        duration_ms=elapsed * 1000,
                        tokens_out=tokens,
                        tokens_kept_out=sum(self._tokens.count(text) for text in caller.tally.kept_out),
                        cache_hits=caller.tally.cache_hits,
                        cache_misses=caller.tally.cache_misses,
                    )
                )

    def _charge(self, tool: AnyTool, caller: Caller) -> None:
        if self._allowance is None:
            return
        wait = self._allowance.take(caller.allowance_key, tool.name, self._clock.monotonic())
        if wait:
            self._telemetry.count("contextd_rate_limited_total", tool=tool.name)
            raise RateLimited(tool.name, max(1, round(wait * 1000)))

    async def _run(self, tool: AnyTool, ask: Any, caller: Caller) -> Answer:
        try:
            async with asyncio.timeout(tool.timeout_s):
                output = await tool.run(self._services[tool.service], ask, caller)
        except TimeoutError:
            raise TimedOut(tool.name, tool.timeout_s) from None
        except Fault:
            raise
        except Exception:
            # The pipeline's catch-all: logged here, never echoed to a client.
            logger.exception("%s failed", tool.name)
            raise Internal(caller.request_id) from None
        return self._finished(output.model_dump(mode="json"))

    def _finished(self, data: dict[str, Any]) -> Answer:
        clean, found = self._scrubber.scrub_json(cast(Json, data))
        for rule, count in found.items():
            self._telemetry.count("contextd_secrets_redacted_total", count, rule=rule)
        scrubbed = cast(dict[str, Any], clean)
        text = to_json(scrubbed).decode()
        return Answer(scrubbed, text, self._tokens.count(text))

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


def pipeline_of(house: House) -> CallPipeline:
    return CallPipeline(
        house.registry,
        house.services,
        house.allowance,
        house.scrubber,
        house.tokens,
        house.analytics,
        house.telemetry,
        house.clock,
    )

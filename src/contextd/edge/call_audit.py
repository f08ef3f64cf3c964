"""What is written down of each call, at the end of its road."""

from contextlib import suppress
from typing import Final

from contextd.domain.answers import Answer, as_json
from contextd.domain.auditing import NOTHING_FOUND, AuditEntry, AuditLog
from contextd.domain.callers import Caller
from contextd.domain.errors import AuditUnavailable, Fault
from contextd.domain.ports import Clock, Scrubber, Telemetry
from contextd.edge.error_map import body
from contextd.tools.declaration import AnyTool

SAFE: Final = "safe"
"""The toolset whose calls touch the machine: none of them goes unrecorded."""
_LONGEST_NAME: Final = 64


class CallAudit:
    def __init__(
        self, log: AuditLog, scrubber: Scrubber, telemetry: Telemetry, clock: Clock, *, everything: bool
    ) -> None:
        self._log = log
        self._scrubber = scrubber
        self._telemetry = telemetry
        self._clock = clock
        self._everything = everything

    async def admit(self, tool: AnyTool) -> None:
        """Raises AuditUnavailable before a safe tool runs whose call could not be written down."""
        if tool.toolset == SAFE:
            await self._log.ready()

    async def answered(
        self, tool: AnyTool, arguments: object, caller: Caller, answer: Answer, elapsed: float
    ) -> None:
        """Raises AuditUnavailable: the answer of a safe tool is not given unless its call is on disk."""
        if not (self._everything or tool.toolset == SAFE):
            return
        entry = self._entry(tool.name, arguments, caller, elapsed, answer.text, answer.tokens_used)
        await self._log.append(entry, durable=tool.toolset == SAFE)

    async def ended(
        self,
        tool: AnyTool | str,
        arguments: object,
        caller: Caller,
        outcome: str,
        fault: Fault | None,
        elapsed: float = 0.0,
    ) -> None:
        """A call without an answer. What ended it is told, whether or not it can be written down."""
        is_safe = not isinstance(tool, str) and tool.toolset == SAFE
        if not (self._everything or is_safe):
            return
        name = self._scrubber.scrub(tool[:_LONGEST_NAME]).text if isinstance(tool, str) else tool.name
        output = as_json(body(fault)) if fault else ""
        error_id = fault.id if fault else None
        entry = self._entry(name, arguments, caller, elapsed, output, 0, outcome, error_id)
        with suppress(AuditUnavailable):
            await self._log.append(entry, durable=is_safe)

    def _entry(
        self,
        tool: str,
        arguments: object,
        caller: Caller,
        elapsed: float,
        output: str,
        tokens: int,
        outcome: str = "ok",
        error_id: str | None = None,
    ) -> AuditEntry:
        tally = caller.tally
        return AuditEntry(
            at=self._clock.now(),
            request_id=caller.request_id,
            trace_id=self._telemetry.trace_id(),
            principal=caller.principal.name,
            client=caller.client or caller.transport,
            session=caller.session,
            branch=caller.branch,
            project=tally.project.path if tally.project else None,
            tool=tool,
            input=arguments,
            output=output,
            tokens=tokens,
            secrets_tool=tally.secrets or NOTHING_FOUND,
            secrets_server=tally.redacted or NOTHING_FOUND,
            isolation=tally.isolation,
            exit_code=tally.exit_code,
            duration_ms=elapsed * 1000,
            outcome=outcome,
            error_id=error_id,
        )

"""What is served over gRPC: the same road as at every other door."""

import json
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from grpc_health.v1.health import aio as health_aio

from contextd.domain.answers import Answer, as_json
from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, Fault, Forbidden
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.error_map import body
from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.edge.grpc import contextd_v1_pb2_grpc as stubs
from contextd.edge.grpc_caller import Context, Doorkeeper, headers_of, is_local, refuse, wants_inline
from contextd.edge.request_body import parse_json
from contextd.edge.tool_md import tool_md
from contextd.edge.tool_schema import tool_schema
from contextd.services.health import Health
from contextd.wiring import House


class Calls:
    """One tool's call, whichever service asked for it."""

    def __init__(self, house: House, pipeline: CallPipeline, doorkeeper: Doorkeeper) -> None:
        self.pipeline = pipeline
        self.doorkeeper = doorkeeper
        self._telemetry = house.telemetry

    async def answer(
        self,
        method: str,
        tool: str,
        arguments: Callable[[], object],
        context: Context,
        watched: Callable[[Caller], Caller] = lambda caller: caller,
    ) -> wire.ExecuteReply:
        with self._telemetry.server_span(f"grpc {method}", headers_of(context), route=method):
            try:
                caller = watched(self.doorkeeper.caller(context))
                return _reply(await self.pipeline.call(tool, arguments(), caller))
            except Fault as fault:
                if wants_inline(context):
                    return wire.ExecuteReply(fault=_told(fault))
                await refuse(context, fault)

    async def admitted(self, context: Context) -> Caller:
        try:
            return self.doorkeeper.caller(context)
        except Fault as fault:
            await refuse(context, fault)


class ToolService(stubs.ToolServiceServicer):
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def ListTools(self, request: wire.ListToolsRequest, context: Context) -> wire.ListToolsReply:
        listings = self._calls.pipeline.listing(await self._calls.admitted(context))
        return wire.ListToolsReply(tools=[_listed(listing) for listing in listings])

    async def GetSchema(self, request: wire.GetSchemaRequest, context: Context) -> wire.GetSchemaReply:
        try:
            self._calls.doorkeeper.caller(context)
            tool = self._calls.pipeline.registry[request.tool]
        except Fault as fault:
            if wants_inline(context):
                return wire.GetSchemaReply(fault=_told(fault))
            await refuse(context, fault)
        return wire.GetSchemaReply(schema=as_json(tool_schema(tool)).encode(), tool_md=tool_md(tool))

    async def Execute(self, request: wire.ExecuteRequest, context: Context) -> wire.ExecuteReply:
        return await self._calls.answer("Execute", request.tool, lambda: _arguments(request), context)

    async def ExecuteStream(self, request: wire.ExecuteRequest, context: Context) -> None:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            told = wire.Progress(done=done, total=total, message=message or "")
            await context.write(wire.ExecuteEvent(progress=told))

        reply = await self._calls.answer(
            "ExecuteStream",
            request.tool,
            lambda: _arguments(request),
            context,
            lambda caller: replace(caller, progress=progress),
        )
        await context.write(wire.ExecuteEvent(reply=reply))


class RefService(stubs.RefServiceServicer):
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def GetRef(self, request: wire.GetRefRequest, context: Context) -> wire.ExecuteReply:
        given = {field.name: value for field, value in request.ListFields()}
        return await self._calls.answer("GetRef", "ref_get", lambda: given, context)


class ManagementService(stubs.ManagementServiceServicer):
    def __init__(self, calls: Calls, health: Health) -> None:
        self._calls = calls
        self._health = health

    async def Status(self, request: wire.StatusRequest, context: Context) -> wire.StatusReply:
        await self._calls.admitted(context)
        report = await self._health.report()
        return wire.StatusReply(
            status=report.state,
            version=report.version,
            uptime_s=report.uptime_s,
            tools=report.tools,
            parts=[wire.Part(name=part.name, error=part.error or "") for part in report.parts],
            pid=os.getpid(),
        )

    async def Shutdown(self, request: wire.ShutdownRequest, context: Context) -> wire.ShutdownReply:
        """By the signal that ends it anyway: there is one way to stop."""
        await self._calls.admitted(context)
        if not is_local(context):
            fault = Forbidden("the daemon is stopped from its own machine alone", "use its unix socket")
            await refuse(context, fault)
        os.kill(os.getpid(), signal.SIGTERM)
        return wire.ShutdownReply()


class HealthService(health_aio.HealthServicer):
    """The standard one, for whoever may call at all."""

    def __init__(self, admitted: Callable[[Context], Awaitable[Caller]]) -> None:
        super().__init__()
        self._admitted = admitted

    async def Check(self, request: Any, context: Context) -> Any:
        await self._admitted(context)
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Context) -> Any:
        await self._admitted(context)
        await super().Watch(request, context)


def _arguments(request: wire.ExecuteRequest) -> object:
    try:
        return parse_json(request.arguments)
    except (ValueError, RecursionError):
        raise BadFormat(
            "arguments", "the arguments are not JSON", "send a JSON object of named fields"
        ) from None


def _reply(answer: Answer) -> wire.ExecuteReply:
    return wire.ExecuteReply(
        data=as_json(answer.data).encode(),
        refs=answer.refs,
        tokens_used=answer.tokens_used,
        has_more=answer.has_more,
        truncated=answer.truncated,
        warning=answer.warning,
    )


def _told(fault: Fault) -> wire.Fault:
    told = body(fault)
    return wire.Fault(**{**told, "details": json.dumps(told["details"]).encode()})


def _listed(listing: dict[str, Any]) -> wire.ListedTool:
    rest = {key: value for key, value in listing.items() if key not in ("name", "description")}
    return wire.ListedTool(
        name=listing["name"], description=listing["description"], listing=as_json(rest).encode()
    )

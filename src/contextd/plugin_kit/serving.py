"""A tool process: it listens where contextd says, says so in one line, and answers until it is ended."""

import asyncio
import hmac
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from contextd.plugin_kit.handshake import COOKIE, COOKIE_HEADER, SOCKET, greeting
from contextd.plugin_kit.wire import plugin_v1_pb2 as wire
from contextd.plugin_kit.wire import plugin_v1_pb2_grpc as stubs

_USAGE: Final = 2
_Context = grpc.aio.ServicerContext[Any, Any]


class Failure(Exception):
    """Raised by a tool that cannot do what it is asked; the caller reads its words."""


@dataclass(frozen=True)
class Tool:
    """A function that takes the arguments and returns the answer. Its name and docstring are the tool's.

    `input` and `output` are the properties of each, by name, as JSON Schema; those in `optional` may be
    left out of the arguments.
    """

    run: Callable[[dict[str, Any]], Mapping[str, Any]]
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    optional: Sequence[str] = ()
    timeout_s: float = 30.0
    read_only: bool = False

    def described(self) -> wire.Tool:
        required = [name for name in self.input if name not in self.optional]
        return wire.Tool(
            name=self.run.__name__,
            description=inspect.cleandoc(self.run.__doc__ or ""),
            input_schema=_object(self.input, required),
            output_schema=b"" if self.output is None else _object(self.output, list(self.output)),
            timeout_s=self.timeout_s,
            read_only=self.read_only,
        )


def serve(*tools: Tool) -> NoReturn:
    """Answer until contextd ends the process."""
    if COOKIE not in os.environ or SOCKET not in os.environ:
        sys.stderr.write("this is a tool of contextd: install it with 'contextd plugin install FOLDER'\n")
        sys.exit(_USAGE)
    asyncio.run(_serve(tools, os.environ[SOCKET], os.environ[COOKIE]))
    sys.exit(0)


async def _serve(tools: Sequence[Tool], socket: str, cookie: str) -> None:
    server = grpc.aio.server(interceptors=[_OnlyContextd(cookie)])
    stubs.add_ToolProcessServicer_to_server(_Servicer(tools), server)
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    sys.stdout.write(f"{greeting(socket)}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


class _OnlyContextd(grpc.aio.ServerInterceptor):
    """Who does not show the cookie is told that there is nothing here."""

    def __init__(self, cookie: str) -> None:
        self._cookie = cookie

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        shown = dict(details.invocation_metadata or ()).get(COOKIE_HEADER, "")
        if hmac.compare_digest(str(shown), self._cookie):
            return await continuation(details)
        return None


class _Servicer(stubs.ToolProcessServicer):
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.run.__name__: tool for tool in tools}

    async def Describe(self, request: wire.DescribeRequest, context: _Context) -> wire.DescribeReply:  # noqa: N802 - the wire's name
        return wire.DescribeReply(tools=[tool.described() for tool in self._tools.values()])

    async def Execute(self, request: wire.ExecuteRequest, context: _Context) -> wire.ExecuteReply:  # noqa: N802 - the wire's name
        """On a thread, so that health checks are answered meanwhile."""
        run = self._tools[request.tool].run
        try:
            answer = await asyncio.to_thread(run, json.loads(request.arguments))
        except Failure as failure:
            return wire.ExecuteReply(failure=str(failure))
        return wire.ExecuteReply(data=json.dumps(answer, ensure_ascii=False).encode())


def _object(properties: Mapping[str, Any], required: list[str]) -> bytes:
    schema = {"type": "object", "properties": dict(properties), "required": required}
    return json.dumps(schema).encode()

"""One start of one plugin: from its first line until nothing of it is left."""

import asyncio
import logging
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contextd.adapters.sandbox.scratch import remove_tree
from contextd.adapters.tool_processes.confinement import job_of, policy_of
from contextd.adapters.tool_processes.offers import offered
from contextd.adapters.tool_processes.printed import Printed
from contextd.domain.errors import (
    Fault,
    SandboxUnavailable,
    ToolProcessDown,
    ToolProcessFailed,
    ToolProcessMisspoke,
)
from contextd.domain.sandboxing import Finished, Level, Sandbox
from contextd.domain.tool_processes import Executed, Manifest, OfferedTool
from contextd.plugin_kit.handshake import COOKIE, COOKIE_HEADER, SCRATCH, SOCKET, greeting

if TYPE_CHECKING:
    from grpc.aio import AioRpcError, Channel

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
_DESCRIBE_S: Final = 10.0
_NOTICE_S: Final = 2.0
"""How long after a broken connection the end of a process is waited for, to tell its exit code."""
LARGEST: Final = 4 << 20
"""Bytes of one answer, or of all descriptions."""
_LONGEST_PLACE: Final = 107 - len("/contextd-plugin-12345678/socket")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.default_authority", "localhost"),
)


@dataclass
class ToolProcess:
    name: str
    level: Level
    scratch: str
    printed: Printed
    running: asyncio.Task[Finished]
    cookie: str
    socket: int = -1
    channel: "Channel | None" = None
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def has_ended(self) -> bool:
        return self.running.done()

    async def execute(self, tool: str, arguments: bytes, timeout_s: float) -> Executed:
        """Raises ToolProcessDown, ToolProcessFailed, ToolProcessMisspoke and TimeoutError."""
        from contextd.plugin_kit.wire import plugin_v1_pb2 as wire

        request = wire.ExecuteRequest(tool=tool, arguments=arguments)
        reply: wire.ExecuteReply = await self._ask("Execute", request, timeout_s)
        if reply.WhichOneof("outcome") is None:
            raise ToolProcessMisspoke(f"the plugin {self.name} answered with nothing")
        return Executed(reply.data, reply.failure, self.level)

    async def describe(self) -> tuple[OfferedTool, ...]:
        """Raises ToolProcessDown and ToolProcessMisspoke."""
        from contextd.plugin_kit.wire import plugin_v1_pb2 as wire

        try:
            reply = await self._ask("Describe", wire.DescribeRequest(), _DESCRIBE_S)
        except TimeoutError:
            raise ToolProcessDown(f"the plugin {self.name} does not say which tools it has") from None
        return offered(self.name, reply.tools)

    async def is_healthy(self, within_s: float) -> bool:
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        assert self.channel is not None
        stub: Any = health_pb2_grpc.HealthStub(self.channel)
        metadata = ((COOKIE_HEADER, self.cookie),)
        try:
            reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=within_s, metadata=metadata)
        except grpc.aio.AioRpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def ended_within(self, seconds: float) -> bool:
        await asyncio.wait([self.running], timeout=seconds)
        return self.running.done()

    def down(self) -> ToolProcessDown:
        """How it ended, in words and as a number."""
        failure = None if self.running.cancelled() else self.running.exception()
        if isinstance(failure, Fault):
            return ToolProcessDown(f"the plugin {self.name} is down: {failure.problem}")
        if failure is not None or self.running.cancelled():
            return ToolProcessDown(f"the plugin {self.name} was ended")
        code = self.running.result().exit_code
        return ToolProcessDown(
            f"the plugin {self.name} ended with exit code {code}", None, {"exit_code": code}
        )

    async def end(self) -> None:
        """The whole sandbox, and what lies around. Once more does no harm."""
        async with self._ending:
            self.running.cancel()
            await asyncio.wait([self.running])
            if self.channel is not None:
                await self.channel.close()
            if self.socket >= 0:
                os.close(self.socket)
                self.socket = -1
            await asyncio.to_thread(remove_tree, self.scratch)

    async def _ask(self, method: str, request: Any, timeout_s: float) -> Any:
        import grpc

        from contextd.plugin_kit.wire import plugin_v1_pb2_grpc as stubs

        call = getattr(stubs.ToolProcessStub(self.channel), method)
        try:
            return await call(request, timeout=timeout_s, metadata=((COOKIE_HEADER, self.cookie),))
        except grpc.aio.AioRpcError as error:
            raise await self._meaning(error) from None
        except asyncio.CancelledError:
            # A channel that is closed cancels its calls; their callers did not.
            task = asyncio.current_task()
            if not self.has_ended or (task is not None and task.cancelling()):
                raise
            raise self.down() from None

    async def _meaning(self, error: "AioRpcError") -> Exception:
        """Its words are not repeated: nobody has looked at them."""
        from grpc import StatusCode

        match error.code():
            case StatusCode.DEADLINE_EXCEEDED:
                return TimeoutError()
            case StatusCode.RESOURCE_EXHAUSTED:
                return ToolProcessMisspoke(f"an answer of the plugin {self.name} is too large")
            case StatusCode.UNIMPLEMENTED:
                return ToolProcessMisspoke(f"the plugin {self.name} does not speak contextd.plugin.v1")
            case StatusCode.UNKNOWN:
                return ToolProcessFailed(f"a tool of the plugin {self.name} broke off with an error")
        if await self.ended_within(_NOTICE_S):
            return self.down()
        return ToolProcessDown(f"the plugin {self.name} does not answer")


async def start_process(
    sandbox: Sandbox, manifest: Manifest, folder: str, handshake_s: float = HANDSHAKE_S
) -> ToolProcess:
    """Wait until it listens. Raises ToolProcessDown, ToolProcessMisspoke and SandboxUnavailable."""
    level = await sandbox.level()
    if level == "landlock":
        raise SandboxUnavailable(
            "plugins need the bubblewrap sandbox: landlock gives them no socket to answer on",
            "run 'contextd doctor': it says why there is no bubblewrap here and how to get it",
        )
    scratch = await asyncio.to_thread(_scratch)
    cookie = secrets.token_hex(16)
    place = str(Path(scratch, "socket"))
    env = {COOKIE: cookie, SOCKET: place, SCRATCH: scratch}
    job, policy = job_of(manifest, folder, scratch, env), policy_of(manifest, folder)
    printed = Printed()
    running = asyncio.ensure_future(sandbox.run(job, policy, printed.take))
    process = ToolProcess(manifest.name, level, scratch, printed, running, cookie)
    try:
        await _greeted(process, place, handshake_s)
        _connect(process, place)
    except BaseException as error:
        await process.end()
        if isinstance(error, Fault):
            logger.warning("%s; it printed last: %s", error.problem, printed.last)
        raise
    return process


def _scratch() -> str:
    """Where temporary files go, unless a socket's address there would be longer than the kernel takes."""
    usual = os.path.realpath(tempfile.gettempdir())
    fits = len(os.fsencode(usual)) <= _LONGEST_PLACE
    return os.path.realpath(tempfile.mkdtemp(prefix="contextd-plugin-", dir=usual if fits else "/tmp"))


async def describe_apart(sandbox: Sandbox, manifest: Manifest, folder: str) -> tuple[OfferedTool, ...]:
    """What it offers, asked before anything was granted: without hosts, further paths or variables."""
    bare = replace(manifest, readable=(), hosts=(), environment=())
    process = await start_process(sandbox, bare, folder)
    try:
        return await process.describe()
    finally:
        await process.end()


async def _greeted(process: ToolProcess, place: str, seconds: float) -> None:
    greeted, name = process.printed.greeting, process.name
    either: set[asyncio.Future[Any]] = {greeted, process.running}
    await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if not greeted.done():
        if process.has_ended:
            raise _not_started(process)
        raise ToolProcessDown(
            f"the plugin {name} did not say within {seconds:g} s that it is ready",
            "the first line that it prints must be the handshake",
        )
    if greeted.result() != greeting(place).encode():
        raise ToolProcessMisspoke(
            f"the first line of the plugin {name} is not the handshake",
            f"it must print: {greeting('$' + SOCKET)}",
        )


def _not_started(process: ToolProcess) -> Exception:
    """A fault of the sandbox is told as such."""
    failure = None if process.running.cancelled() else process.running.exception()
    return failure if isinstance(failure, SandboxUnavailable) else process.down()


def _connect(process: ToolProcess, place: str) -> None:
    """By the socket itself and not by its name, which the plugin could make lead to somebody else's."""
    import grpc

    with suppress(OSError):
        process.socket = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    if process.socket < 0 or not stat.S_ISSOCK(os.fstat(process.socket).st_mode):
        raise ToolProcessMisspoke(f"the plugin {process.name} does not listen where it says")
    process.channel = grpc.aio.insecure_channel(f"unix:/proc/self/fd/{process.socket}", options=_OPTIONS)

"""Serving: HTTP until a signal, or stdio until the client leaves. Either way it ends in good order."""

import asyncio
import contextlib
import errno
import logging
import math
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from mcp.server.stdio import stdio_server

from contextd.domain.errors import Misconfigured
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.edge.http_app import HttpApp
from contextd.edge.mcp_library import library_of
from contextd.edge.mcp_server import McpFace
from contextd.edge.stdin_lines import StdinLines
from contextd.settings import Settings
from contextd.wiring import House, open_house

if TYPE_CHECKING:
    from contextd.edge.grpc_server import GrpcServer

logger = logging.getLogger(__name__)

_END_WITHIN_S: Final = 4.0
"""From the signal on; supervisors are promised five seconds."""
_WRITE_ANSWERS_S: Final = 1.0
"""At the most: as soon as none is left to write, it goes on."""
_CLOSE_CONNECTIONS_S: Final = 1
_FLUSH_S: Final = 2.0


class _Server(uvicorn.Server):
    """Leaves the signals to us: calls in flight finish before connections are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_http(
    house: House, announce: Callable[[str, Sequence[str]], None], *, background: bool = False
) -> None:
    """Listen until SIGTERM or SIGINT, then drain. Raises Misconfigured before anything is served.

    `background`: for the sake of gRPC. The port does not matter then, and without the socket there is
    nothing to do.
    """
    settings = house.settings
    settings.check_serving(has_tokens=any(True for _ in house.vault))
    listener = _listen(settings, any_port=background)
    async with open_house(house):
        pipeline = pipeline_of(house)
        app = HttpApp(house, pipeline)
        server = _Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_CLOSE_CONNECTIONS_S,
                limit_concurrency=None,
            )
        )
        grpc_server = await _grpc(house, pipeline, strict=background)
        stopped = asyncio.Event()
        ends_by = math.inf

        async def stop() -> None:
            nonlocal ends_by
            ends_by = time.monotonic() + _END_WITHIN_S
            if grpc_server is not None:
                await grpc_server.draining()
            await _drain(pipeline, settings.drain_s)
            stopped.set()

        undo = _on_signal(stop)
        announce(_address(listener, settings.http_host), grpc_server.places if grpc_server else ())
        closing = asyncio.create_task(_close_after(stopped, grpc_server))
        try:
            await _serve_until(stopped, server, app, listener)
        finally:
            undo()
            stopped.set()
            await closing
        # What is left to send may take what is left of the time, and no more.
        await asyncio.to_thread(house.telemetry.close, min(_FLUSH_S, max(0.2, ends_by - time.monotonic())))
    logger.info("stopped")


async def _grpc(house: House, pipeline: CallPipeline, *, strict: bool) -> "GrpcServer | None":
    if not house.settings.grpc:
        return None
    from contextd.edge.grpc_server import GrpcServer

    server = GrpcServer(house, pipeline)
    await server.start(strict=strict)
    return server


async def _close_after(stopped: asyncio.Event, server: "GrpcServer | None") -> None:
    """While HTTP closes, and not after it: both have the same second."""
    await stopped.wait()
    if server is not None:
        await server.close(_CLOSE_CONNECTIONS_S)


async def _serve_until(
    stopped: asyncio.Event, server: uvicorn.Server, app: HttpApp, listener: socket.socket
) -> None:
    """First nobody new comes in and answers are written; then sessions end, and with them the streams
    that clients hold open; then the connections close."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with app.running():
        waiting = asyncio.create_task(stopped.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        server.should_exit = True
        await app.answered(_WRITE_ANSWERS_S)
    await serving


async def serve_stdio(house: House) -> None:
    """Serve one client on standard input and output until it closes them, or a signal comes."""
    async with open_house(house):
        pipeline = pipeline_of(house)
        library = library_of(house)
        server = McpFace(pipeline, library, "stdio").server(traced=house.telemetry.exports)
        lines = StdinLines()

        async def stop() -> None:
            await _drain(pipeline, house.settings.drain_s)
            lines.end()

        undo = _on_signal(stop)
        try:
            # The SDK asks for no more of its standard input than that it gives lines.
            async with stdio_server(stdin=cast(Any, lines)) as (read, write):
                await server.run(read, write, server.create_initialization_options())
        finally:
            undo()


async def _drain(pipeline: CallPipeline, seconds: float) -> None:
    logger.info("stopping: calls in flight may finish within %g s", seconds)
    late = await pipeline.drain(seconds)
    if late:
        logger.warning("%d calls did not finish in time and were cut off", late)


def _on_signal(stop: Callable[[], Any]) -> Callable[[], None]:
    """Run `stop` once at the first SIGTERM or SIGINT; returns how to undo that."""
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[Any]] = []

    def handle() -> None:
        if not stopping:
            stopping.append(loop.create_task(stop()))

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle)

    def undo() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    return undo


def _listen(settings: Settings, *, any_port: bool) -> socket.socket:
    host = settings.http_host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        _bind(listener, host, settings.http_port, any_port=any_port)
        # Already here, because its address is told before the server takes over.
        listener.listen()
    except OSError as error:
        listener.close()
        elsewhere = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        raise Misconfigured(
            f"cannot listen on {host}:{settings.http_port} ({error.strerror or error})",
            "set CONTEXTD_HTTP_HOST to an address of this machine"
            if elsewhere
            else "stop what uses the port, or set CONTEXTD_HTTP_PORT to another",
        ) from error
    return listener


def _bind(listener: socket.socket, host: str, port: int, *, any_port: bool) -> None:
    try:
        listener.bind((host, port))
    except OSError as error:
        if not any_port or error.errno != errno.EADDRINUSE:
            raise
        listener.bind((host, 0))


def _address(listener: socket.socket, host: str) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"

"""Serving: HTTP until a signal, or stdio until the client leaves. Either way it ends in good order."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from mcp.server.stdio import stdio_server

from contextd.domain.errors import Misconfigured
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.http_app import HttpApp
from contextd.edge.mcp_library import Library
from contextd.edge.mcp_server import McpFace
from contextd.settings import Settings
from contextd.wiring import House, open_house

logger = logging.getLogger(__name__)

_CLOSE_CONNECTIONS_S: Final = 1


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


class _Server(uvicorn.Server):
    """Leaves the signals to us: calls in flight finish before connections are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_http(house: House, announce: Callable[[str], None]) -> None:
    """Listen until SIGTERM or SIGINT, then drain. Raises Misconfigured before anything is open."""
    settings = house.settings
    settings.check_serving(has_tokens=any(True for _ in house.vault))
    listener = _listen(settings)
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
                timeout_graceful_shutdown=_CLOSE_CONNECTIONS_S,
                limit_concurrency=None,
            )
        )
        async with app.running():
            ending = _on_signal(lambda: _drain(pipeline, server, settings.drain_s))
            announce(_address(listener, settings.http_host))
            try:
                await server.serve(sockets=[listener])
            finally:
                ending()
    logger.info("stopped")


async def serve_stdio(house: House) -> None:
    """Serve one client on standard input and output until it closes them, or a signal comes."""
    async with open_house(house):
        pipeline = pipeline_of(house)
        library = Library(house.registry, house.checkpoints, house.collections)
        server = McpFace(pipeline, library, "stdio").server()
        serving = asyncio.current_task()
        assert serving is not None

        async def stop() -> None:
            await pipeline.drain(house.settings.drain_s)
            serving.cancel()

        ending = _on_signal(stop)
        try:
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
        except asyncio.CancelledError:
            # Our own `stop`: the way out of a read that would wait forever.
            serving.uncancel()
        finally:
            ending()


async def _drain(pipeline: CallPipeline, server: uvicorn.Server, seconds: float) -> None:
    logger.info("stopping: calls in flight may finish within %g s", seconds)
    late = await pipeline.drain(seconds)
    if late:
        logger.warning("%d calls did not finish in time and were cut off", late)
    # One turn of the loop for the answers to be written before connections are closed.
    await asyncio.sleep(0.05)
    server.should_exit = True


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


def _listen(settings: Settings) -> socket.socket:
    host = settings.http_host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, settings.http_port))
    except OSError as error:
        listener.close()
        raise Misconfigured(
            f"cannot listen on {host}:{settings.http_port} ({error.strerror or error})",
            "stop what uses the port, or set CONTEXTD_HTTP_PORT to another",
        ) from error
    return listener


def _address(listener: socket.socket, host: str) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"

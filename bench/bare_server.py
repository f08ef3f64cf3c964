"""The yardstick: an echo tool on the bare SDK, served as contextd is: JSON, uvloop, httptools."""

import asyncio
import socket
import sys

import uvicorn
import uvloop
from mcp.server import MCPServer


async def echo(text: str) -> str:
    """Say it back."""
    # Async, as contextd's tools are: the SDK sends a plain function to a thread, and that hop would
    # make the yardstick dearer than it is.
    return text


async def serve() -> None:
    server = MCPServer("bare", log_level="WARNING")
    server.tool()(echo)
    if "--stdio" in sys.argv:
        await server.run_stdio_async()
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    app = server.streamable_http_app(json_response=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())

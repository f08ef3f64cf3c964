"""The only way out of a sandbox with hosts: an HTTP proxy of the daemon's, for what is named alone."""

import asyncio
import socket
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from contextd.adapters.sandbox.host_rules import HostRules

_HEAD_BYTES: Final = 65_536
_HEAD_S: Final = 10.0
_CONNECT_S: Final = 15.0
_IDLE_S: Final = 60.0
_MOST_CONNECTIONS: Final = 64
_MOST_BYTES: Final = 4 * 2**30
_MOST_REFUSED: Final = 32
_PIECE: Final = 65_536
_NOT_PASSED_ON: Final = (b"proxy-", b"connection:", b"host:", b"keep-alive:")


class FilteringProxy:
    """CONNECT, and requests for http:// addresses. Names are resolved here, redirects are passed back."""

    def __init__(self, rules: HostRules) -> None:
        self._rules = rules
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._bytes_left = _MOST_BYTES
        self._refused: dict[str, None] = {}

    @property
    def refused(self) -> tuple[str, ...]:
        return tuple(self._refused)

    async def serve(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_HEAD_BYTES)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) <= _MOST_CONNECTIONS:
                await self._answer(reader, writer)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head[:-4].split(b"\r\n")
        method, target, version = line.decode("ascii").split(" ")
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        host, port = (parts.hostname or "").rstrip("."), parts.port or (443 if tunnel else 80)
        if not tunnel and parts.scheme != "http":
            return await _say(writer, "400 Bad Request", "this proxy takes CONNECT and http:// addresses")
        upstream = await self._connected(host, port)
        if upstream is None:
            return await _say(writer, "403 Forbidden", f"{host}:{port} is not among the policy's hosts")
        if tunnel:
            writer.write(f"{version} 200 Connected\r\n\r\n".encode())
        else:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            kept = [field for field in fields if not field.lower().startswith(_NOT_PASSED_ON)]
            own = f"{method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close".encode()
            upstream[1].write(b"\r\n".join((own, *kept, b"", b"")))
        await self._relay((reader, writer), upstream)
        return None

    async def _connected(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """To an address that was looked at: it is not resolved again. None for what is not allowed."""
        if not self._rules.allow(host, port):
            self._refuse(host, port)
            return None
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_S):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [str(info[4][0]) for info in found]
            addresses = [each for each in addresses if self._rules.allow_address(host, each)]
            if not addresses:
                self._refuse(host, port)
                return None
            for address in addresses[:-1]:
                with suppress(OSError):
                    return await asyncio.open_connection(address, port)
            return await asyncio.open_connection(addresses[-1], port)

    def _refuse(self, host: str, port: int) -> None:
        if len(self._refused) < _MOST_REFUSED and host.isprintable():
            self._refused[f"{host[:253]}:{port}"] = None

    async def _relay(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Until both have said all. The answer's end is the end: what asks no more may still be told."""
        asking = asyncio.ensure_future(self._pass_on(client[0], upstream[1]))
        try:
            await self._pass_on(upstream[0], client[1])
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            upstream[1].close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            async with asyncio.timeout(_IDLE_S):
                piece = await reader.read(_PIECE)
            self._bytes_left -= len(piece)
            if not piece or self._bytes_left < 0:
                break
            writer.write(piece)
            async with asyncio.timeout(_IDLE_S):
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.write_eof()


async def _say(writer: asyncio.StreamWriter, status: str, words: str) -> None:
    body = f"contextd: {words}\n".encode(errors="replace")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    )
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()

"""A raw MCP client: one keep-alive connection, bytes in and bytes out, so that little of a time is ours."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

SESSIONS: Final = "2025-11-25"
SESSIONLESS: Final = "2026-07-28"

_META: Final = "io.modelcontextprotocol/"
_CLIENT: Final = {"name": "contextd-bench", "version": "1"}


class CallFailed(Exception):
    """An answer that is not a tool's good answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Wire:
    """HTTP/1.1 with `Content-Length` on both sides; anything else is refused."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> Reply:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        fields = (line.split(b":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in fields}
        if b"content-length" not in headers:
            raise CallFailed(f"an answer without Content-Length: {first!r}")
        body = await self._reader.readexactly(int(headers[b"content-length"]))
        return Reply(int(first.split(b" ", 2)[1]), headers, body)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Client:
    """Speaks one version of MCP: with a session until 2025-11-25, without one after."""

    def __init__(self, wire: Wire, authority: str, version: str) -> None:
        self._wire = wire
        self._version = version
        self._fixed = {
            "Host": authority,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self._asked = 0

    @classmethod
    async def connect(cls, url: str, version: str = SESSIONS) -> "Client":
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        client = cls(Wire(reader, writer), address.netloc, version)
        if version < SESSIONLESS:
            await client._handshake()
        return client

    def request(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The bytes of one call, to be made before the clock starts."""
        self._asked += 1
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        headers: dict[str, str] = {}
        if self._version >= SESSIONLESS:
            headers = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
            params["_meta"] = {
                f"{_META}protocolVersion": self._version,
                f"{_META}clientInfo": _CLIENT,
                f"{_META}clientCapabilities": {},
            }
        return self._post({"id": self._asked, "method": "tools/call", "params": params}, headers)

    async def send(self, request: bytes) -> dict[str, Any]:
        """A tool's result. Raises CallFailed for any error, of HTTP, JSON-RPC or the tool."""
        reply = await self._wire.ask(request)
        message: dict[str, Any] = json.loads(reply.body) if reply.status == 200 else {}
        result: dict[str, Any] | None = message.get("result")
        if result is None or result.get("isError"):
            raise CallFailed(f"{reply.status} {reply.body[:300]!r}")
        return result

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """A tool's structured answer."""
        result = await self.send(self.request(tool, arguments))
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def close(self) -> None:
        await self._wire.close()

    async def _handshake(self) -> None:
        params = {"protocolVersion": self._version, "capabilities": {}, "clientInfo": _CLIENT}
        opened = await self._wire.ask(self._post({"id": 0, "method": "initialize", "params": params}, {}))
        if opened.status != 200:
            raise CallFailed(f"initialize: {opened.status} {opened.body[:300]!r}")
        self._fixed["Mcp-Session-Id"] = opened.headers[b"mcp-session-id"].decode()
        await self._wire.ask(self._post({"method": "notifications/initialized"}, {}))

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        sent = {**self._fixed, "MCP-Protocol-Version": self._version, **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"POST /mcp HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def fetch(url: str, path: str) -> str:
    """A page, by a connection of its own."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    wire = Wire(reader, writer)
    reply = await wire.ask(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    await wire.close()
    return reply.body.decode()

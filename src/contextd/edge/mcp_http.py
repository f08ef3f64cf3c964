"""MCP's Streamable HTTP, as the contract has it, around the SDK's own transport.

What is ours: the Accept and session checks with their codes, JSON or SSE chosen by the call and
not by the server, events that only their own session can replay, and the version's header.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import (
    GET_STREAM_KEY,
    EventCallback,
    EventMessage,
    EventStore,
    StreamableHTTPServerTransport,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from contextd.domain.ports import Telemetry
from contextd.edge.error_map import INVALID_REQUEST, NOT_ACCEPTABLE
from contextd.edge.http_headers import headers_of
from contextd.edge.request_body import read_body, replay

RETRY_MS: Final = 1000
_MOST_EVENTS: Final = 256
_WATCH_AFTER_S: Final = 0.05
_MOST_EVENT_BYTES: Final = 4 * 1024 * 1024
_VERSION: Final = re.compile(rb'"protocolVersion"\s*:\s*"([0-9-]{10})"')

_answer_as_json: ContextVar[bool] = ContextVar("answer_as_json", default=False)
"""Whether this request is answered by one JSON body. Unset in a session's own tasks."""


@dataclass(frozen=True, slots=True)
class _Kept:
    event_id: str
    stream_id: str
    message: JSONRPCMessage | None
    size: int


class SessionEvents(EventStore):
    """What one session may replay. The SDK names no session to its event store, so each has its own:
    with a common one, a client that sent another's Last-Event-ID was given that client's results.

    Only streams that were opened are kept: a JSON answer has nothing to resume.
    """

    def __init__(self) -> None:
        self._open: set[str] = {GET_STREAM_KEY}
        self._events: deque[_Kept] = deque()
        self._bytes = 0
        self._count = 0

    def open(self, stream_id: str) -> None:
        self._open.add(stream_id)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        if stream_id not in self._open:
            return ""
        self._count += 1
        size = len(message.model_dump_json()) if message is not None else 0
        kept = _Kept(f"{self._count:x}", stream_id, message, size)
        self._events.append(kept)
        self._bytes += size
        while len(self._events) > _MOST_EVENTS or self._bytes > _MOST_EVENT_BYTES:
            self._bytes -= self._events.popleft().size
        return kept.event_id

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        events = list(self._events)
        last = next((kept for kept in events if kept.event_id == last_event_id), None)
        if last is None:
            return None
        for kept in events[events.index(last) + 1 :]:
            if kept.stream_id == last.stream_id and kept.message is not None:
                await send_callback(EventMessage(kept.message, kept.event_id))
        return last.stream_id


class SessionTransport(StreamableHTTPServerTransport):
    """One session. Chooses JSON or SSE request by request, which the SDK decides once a server."""

    def __init__(self, session_id: str, events: SessionEvents, idle_s: float) -> None:
        self._events = events
        super().__init__(session_id, event_store=events, retry_interval=RETRY_MS, idle_timeout=idle_s)

    @property
    def is_json_response_enabled(self) -> bool:
        return _answer_as_json.get()

    @is_json_response_enabled.setter
    def is_json_response_enabled(self, value: bool) -> None:
        """The SDK's constructor sets it; the request decides."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        # The session's tasks start inside its first request; they must not inherit its choice.
        _answer_as_json.set(False)
        async with super().connect() as streams:
            yield streams

    def _create_error_response(
        self,
        error_message: str,
        status_code: HTTPStatus,
        error_code: int = INVALID_REQUEST,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """The SDK repeats what was sent, with its parser's own words: say it in ours."""
        if error_message.startswith("Validation error"):
            error_message, error_code = "Invalid Request: send one JSON-RPC 2.0 message", INVALID_REQUEST
        elif error_message.startswith("Parse error"):
            error_message = "Parse error: the body is not JSON"
        return super()._create_error_response(error_message, status_code, error_code, headers)

    async def _mint_priming_event(self, stream_id: str, protocol_version: str) -> dict[str, Any] | None:
        self._events.open(stream_id)
        return await super()._mint_priming_event(stream_id, protocol_version)


class SessionManager(StreamableHTTPSessionManager):
    """Sessions with transports and events of their own, counted."""

    def __init__(self, server: Server[Any], idle_s: float, telemetry: Telemetry) -> None:
        super().__init__(server, session_idle_timeout=idle_s)
        self._telemetry = telemetry

    @property
    def json_response(self) -> bool:
        return _answer_as_json.get()

    @json_response.setter
    def json_response(self, value: bool) -> None:
        """The SDK's constructor sets it; the request decides."""

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        if self.max_sessions is not None and len(self._server_instances) >= self.max_sessions:
            return None
        assert self.session_idle_timeout is not None
        session_id = uuid4().hex
        transport = SessionTransport(session_id, SessionEvents(), self.session_idle_timeout)
        if requestor is not None:
            self._session_owners[session_id] = requestor
        self._server_instances[session_id] = transport
        self._telemetry.gauge("contextd_active_sessions", 1)
        return transport

    async def _discard_session(self, session_id: str, transport: StreamableHTTPServerTransport) -> None:
        if session_id in self._server_instances:
            self._telemetry.gauge("contextd_active_sessions", -1)
        await super()._discard_session(session_id, transport)

    def knows(self, session_id: str) -> bool:
        return session_id in self._server_instances


class McpEndpoint:
    """POST, GET and DELETE `/mcp`."""

    def __init__(self, manager: SessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        version = headers.get("mcp-protocol-version")
        has_sessions = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
        refused = _unacceptable(scope["method"], headers.get("accept", ""))
        if refused is None and has_sessions and scope["method"] in ("GET", "DELETE"):
            refused = self._without_session(headers)
        if refused is not None:
            await refused(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(headers, has_sessions, scope, receive, send)
        else:
            await self._manager.handle_request(scope, receive, send)

    async def _post(
        self, headers: dict[str, str], has_sessions: bool, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = await read_body(receive)
        if body is None:
            await _error(413, INVALID_REQUEST, "the request is larger than 4 MiB")(scope, receive, send)
            return
        opens = has_sessions and b'"initialize"' in body and "mcp-session-id" not in headers
        refused = self._without_session(headers) if has_sessions and not opens else None
        if refused is not None:
            await refused(scope, receive, send)
            return
        # A progress token asks for notifications on the way, which only SSE carries.
        as_json = b'"progressToken"' not in body
        _answer_as_json.set(as_json)
        answering = self._manager.handle_request(
            scope, replay(body, receive), _with_version(send) if opens else send
        )
        if as_json and not has_sessions:
            await _unless_client_leaves(answering, receive)
        else:
            await answering

    def _without_session(self, headers: dict[str, str]) -> JSONResponse | None:
        session = headers.get("mcp-session-id")
        if session is None:
            return _error(
                400,
                NOT_ACCEPTABLE,
                "Bad Request: no session; send initialize first, then its Mcp-Session-Id",
            )
        if not self._manager.knows(session):
            return _error(
                404, NOT_ACCEPTABLE, "Not Found: the session is unknown or has ended; send initialize again"
            )
        return None


async def _unless_client_leaves(answering: Awaitable[None], receive: Receive) -> None:
    """On the wire without sessions a client cancels by hanging up. A quick answer pays for a timer alone;
    the SDK watches too, but only where it may answer by SSE, which costs every call."""
    loop = asyncio.get_running_loop()
    watching: list[asyncio.Task[None]] = []
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            scope.cancel()

        timer = loop.call_later(_WATCH_AFTER_S, lambda: watching.append(loop.create_task(watch())))
        try:
            await answering
        finally:
            timer.cancel()
            for task in watching:
                task.cancel()


def _unacceptable(method: str, accept: str) -> JSONResponse | None:
    """POST takes both media types, GET event streams; a wildcard covers what it matches."""
    if method not in ("GET", "POST"):
        return None
    offered = {part.split(";")[0].strip().lower() for part in accept.split(",")}
    json_ok = bool(offered & {"application/json", "application/*", "*/*"})
    sse_ok = bool(offered & {"text/event-stream", "text/*", "*/*"})
    if method == "POST" and not (json_ok and sse_ok):
        need = "both application/json and text/event-stream"
    elif method == "GET" and not sse_ok:
        need = "text/event-stream"
    else:
        return None
    return _error(406, NOT_ACCEPTABLE, f"Not Acceptable: Client must accept {need}")


def _error(status: int, code: int, message: str) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status)


def _with_version(send: Send) -> Send:
    """Put the negotiated version, known only from the body, onto the head of the answer."""
    head: Message | None = None

    async def held(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start":
            head = message
            return
        if head is not None:
            version = _VERSION.search(message.get("body", b""))
            if version:
                head["headers"] = [*head["headers"], (b"mcp-protocol-version", version.group(1))]
            await send(head)
            head = None
        await send(message)

    return held

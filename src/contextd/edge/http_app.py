"""Everything that the daemon serves over HTTP, behind one gate."""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextd.adapters.log_lines import set_request_id
from contextd.adapters.telemetry import ObservedTelemetry
from contextd.domain.errors import WrongMethod
from contextd.edge.automation import Automation, not_found
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.error_map import body
from contextd.edge.guard import Guard
from contextd.edge.http_headers import read_headers
from contextd.edge.mcp_http import McpEndpoint, SessionManager
from contextd.edge.mcp_library import library_of
from contextd.edge.mcp_server import McpFace
from contextd.wiring import House

_ROUTES: Final = ("/mcp", "/api", "/metrics", "/health", "/ready")


class HttpApp:
    """An ASGI app: observed, guarded, then `/mcp` or a page. `running` opens the MCP sessions."""

    def __init__(self, house: House, pipeline: CallPipeline) -> None:
        library = library_of(house)
        self.server = McpFace(pipeline, library, "http").server(traced=house.telemetry.exports)
        self.sessions = SessionManager(self.server, house.settings.session_idle_s, house.telemetry)
        self._mcp = McpEndpoint(self.sessions)
        self._pages = _pages(house, Automation(pipeline, library))
        self._observer = Observer(Guard(self._route, house.settings, house.vault), house.telemetry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._observer(scope, receive, send)

    async def answered(self, seconds: float) -> None:
        """Wait until every POST has been answered to its last byte, or the time is over."""
        deadline = time.monotonic() + seconds
        while self._observer.posts and time.monotonic() < deadline:  # noqa: ASYNC110 - once, at the end
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.sessions.run():
            yield

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            await self._mcp(scope, receive, send)
        else:
            await self._pages(scope, receive, send)


class Observer:
    """Spans, counts and times each request. Clients that look for OAuth here are told: not found."""

    def __init__(self, app: ASGIApp, telemetry: ObservedTelemetry) -> None:
        self._app = app
        self._telemetry = telemetry
        self._process = secrets.token_hex(4)
        self._requests = itertools.count(1)
        self.posts = 0
        """How many are being answered now."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = read_headers(scope)
        scope["contextd.request_id"] = request_id = f"{self._process}{next(self._requests):08x}"
        set_request_id(request_id)
        if scope["path"].startswith("/.well-known/"):
            await not_found(scope["path"])(scope, receive, send)
            return
        route, method = _route_label(scope["path"]), _method_label(scope["method"])
        status = "none"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        started = time.monotonic()
        self.posts += method == "POST"
        self._telemetry.gauge("contextd_active_connections", 1)
        try:
            with self._telemetry.server_span(f"{method} {route}", headers, route=route):
                await self._app(scope, receive, watched)
        finally:
            self.posts -= method == "POST"
            self._telemetry.gauge("contextd_active_connections", -1)
            elapsed = time.monotonic() - started
            self._finished(method, route, status, elapsed)

    def _finished(self, method: str, route: str, status: str, seconds: float) -> None:
        self._telemetry.count("contextd_http_requests_total", method=method, route=route, status=status)
        self._telemetry.observe(
            "contextd_http_request_duration_seconds", seconds, method=method, route=route, status=status
        )


def _pages(house: House, automation: Automation) -> Starlette:
    async def health(request: Request) -> Response:
        """The process lives and its loop turns."""
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        """Calls can be served: degraded is ready, unhealthy is not."""
        report = await house.health.report()
        parts = {part.name: part.error or "ok" for part in report.parts}
        return JSONResponse({"status": report.state, **parts}, 503 if report.state == "unhealthy" else 200)

    async def metrics(request: Request) -> Response:
        body, kind = house.telemetry.render()
        return Response(body, media_type=kind)

    async def missing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            return not_found(request.url.path)
        fault = WrongMethod(f"{_method_label(request.method)} is not for this path")
        return JSONResponse(body(fault), error.status_code, error.headers)

    handlers: Any = {HTTPException: missing}
    return Starlette(
        routes=[
            Route("/health", health, methods=["GET"]),
            Route("/ready", ready, methods=["GET"]),
            Route("/metrics", metrics, methods=["GET"]),
            *automation.routes(),
        ],
        exception_handlers=handlers,
    )


def _route_label(path: str) -> str:
    """A few fixed words: labels must not grow with what callers send."""
    return next((route for route in _ROUTES if path == route or path.startswith(f"{route}/")), "other")


def _method_label(method: str) -> str:
    return method if method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT") else "other"

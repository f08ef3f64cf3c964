"""The gate before everything that is served over HTTP: Host, Origin, then who it is."""

import ipaddress
import math
import time
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from contextd.domain.callers import Principal
from contextd.domain.errors import Fault, Unauthorized, WrongHost, WrongOrigin
from contextd.domain.ports import TokenVault
from contextd.edge.error_map import as_jsonrpc, body, codes
from contextd.edge.http_headers import headers_of
from contextd.services.projects import project_at
from contextd.settings import Settings

ANONYMOUS: Final = Principal("anonymous")
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_LOOK_AGAIN_S: Final = 0.5
_PRINCIPAL: Final = "contextd.principal"


def principal_of(scope: Scope) -> Principal:
    principal: Principal = scope[_PRINCIPAL]
    return principal


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings, vault: TokenVault) -> None:
        self._app = app
        self._vault = vault
        self._allow_anonymous = settings.allow_anonymous
        self._any_address = not settings.is_loopback
        self._hosts = _LOOPBACK_NAMES | {settings.http_host.strip("[]"), *settings.allowed_hosts}
        self._origins = frozenset(settings.allowed_origins)
        self._looked_at = -math.inf
        self._had_tokens = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = headers_of(scope)
            host = headers.get("host", "")
            self._check_host(host)
            self._check_origin(headers.get("origin"), host)
            self._admit(scope, headers.get("authorization"))
        except Fault as fault:
            await _refusal(fault, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_host(self, host: str) -> None:
        """An address in the Host header cannot be a rebound name; a name must be one of ours."""
        name, is_address = _host_name(host)
        if name in self._hosts or host in self._hosts or (self._any_address and is_address):
            return
        raise WrongHost("the Host header is not one of this daemon's names")

    def _check_origin(self, origin: str | None, host: str) -> None:
        """Browsers name the page's origin; other clients send none. Our own pages may call us."""
        if origin is None or origin in self._origins:
            return
        name, place = _origin_parts(origin)
        if name not in _LOOPBACK_NAMES and (not place or place != host):
            raise WrongOrigin("a web page of another origin may not call this daemon")

    def _admit(self, scope: Scope, authorization: str | None) -> None:
        """A token that is presented must be good, whether or not one was needed."""
        if authorization is None:
            if not self._allow_anonymous and self._has_tokens():
                raise Unauthorized
            scope[_PRINCIPAL] = ANONYMOUS
            return
        kind, _, secret = authorization.partition(" ")
        token = self._vault.verify(secret.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise Unauthorized("the token is not known or was revoked")
        projects = None if token.projects is None else frozenset(project_at(p).key for p in token.projects)
        scope[_PRINCIPAL] = Principal(token.name, projects)
        # The SDK binds a session to the user that opened it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=token.name, scopes=[]))

    def _has_tokens(self) -> bool:
        """Looked up twice a second at the most: the first token that is ever made counts that much later.
        One that is revoked does not: what is presented is verified each time."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_AGAIN_S:
            self._had_tokens = any(True for _ in self._vault)
            self._looked_at = now
        return self._had_tokens


def _origin_parts(origin: str) -> tuple[str, str]:
    """Its host's name, and the host with the port; both empty for what is no web origin."""
    try:
        page = urlsplit(origin)
        name = page.hostname or ""
    except ValueError:
        return "", ""
    return (name, page.netloc) if page.scheme in ("http", "https") else ("", "")


@lru_cache(64)
def _host_name(host: str) -> tuple[str, bool]:
    """The name without its port, and whether it is an address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return "", False
    try:
        return str(ipaddress.ip_address(name)), True
    except ValueError:
        return name, False


def _refusal(fault: Fault, path: str) -> JSONResponse:
    """On MCP's paths a JSON-RPC error with no id, elsewhere the plain body."""
    headers = {"WWW-Authenticate": 'Bearer realm="contextd"'} if isinstance(fault, Unauthorized) else None
    is_mcp = path == "/mcp" or path.startswith("/mcp/")
    message = {"jsonrpc": "2.0", "id": None, "error": as_jsonrpc(fault)} if is_mcp else body(fault)
    return JSONResponse(message, codes(fault).http, headers)

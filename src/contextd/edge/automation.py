"""The HTTP face for automations: `POST /api/v1/tools/NAME`, its OpenAPI page, and the older paths."""

from typing import Annotated, Any, Final

from mcp_types import ListResourcesResult
from pydantic import Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from contextd import __version__
from contextd.domain.answers import Answer, as_json
from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, Fault, Gone, NotFound, TooLarge
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.error_map import as_jsonrpc, body, codes
from contextd.edge.guard import principal_of
from contextd.edge.mcp_library import Library
from contextd.edge.openapi import openapi, reference_page
from contextd.edge.request_body import parse_json, read_body
from contextd.tools.declaration import Input
from contextd.tools.validation import parse

_OLD_NAMES: Final = {"skill_save": "skill_create"}


class _Message(Input):
    """Only what JSON-RPC calls an id is repeated: anything else may not even be JSON."""

    id: str | int | None


class _ResourceAsk(Input):
    uri: Annotated[str, Field(min_length=1, max_length=512)]


class Automation:
    def __init__(self, pipeline: CallPipeline, library: Library) -> None:
        self._pipeline = pipeline
        self._library = library

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/tools", self._list, methods=["GET"]),
            Route("/api/v1/tools/{name}", self._call, methods=["POST"]),
            Route("/api/v1/openapi.json", self._openapi, methods=["GET"]),
            Route("/api", self._page, methods=["GET"]),
            Route("/mcp/sse", self._gone, methods=["GET"]),
            Route("/mcp/sse/{operation}", self._gone, methods=["GET"]),
            Route("/mcp/tools/list", self._list, methods=["GET"]),
            Route("/mcp/resources/list", self._resources, methods=["GET"]),
            Route("/mcp/resources/read", self._read_resource, methods=["POST"]),
            Route("/mcp/{noun}", self._legacy, methods=["POST"]),
            Route("/mcp/{noun}/{verb}", self._legacy, methods=["POST"]),
        ]

    async def _call(self, request: Request) -> Response:
        try:
            answer = await self._run(request, request.path_params["name"], await _arguments(request))
        except Fault as fault:
            return _failed(fault)
        envelope = {
            "data": answer.data,
            "refs": list(answer.refs),
            "tokens_used": answer.tokens_used,
            "has_more": answer.has_more,
            "truncated": answer.truncated,
            **({"warning": answer.warning} if answer.warning else {}),
        }
        return Response(as_json(envelope), media_type="application/json")

    async def _legacy(self, request: Request) -> Response:
        """The paths of the first contextd: plain arguments or a JSON-RPC message in, JSON-RPC out."""
        name = "_".join(request.path_params.values())
        id: Any = None
        try:
            sent = await _arguments(request)
            if isinstance(sent, dict) and sent.get("jsonrpc") == "2.0":
                id, sent = parse(_Message, {"id": sent.get("id")}).id, sent.get("params") or {}
            answer = await self._run(request, _OLD_NAMES.get(name, name), sent)
        except Fault as fault:
            message = {"jsonrpc": "2.0", "id": id, "error": as_jsonrpc(fault)}
            return JSONResponse(message, codes(fault).http)
        return JSONResponse({"jsonrpc": "2.0", "id": id, "result": {**answer.data, **answer.envelope()}})

    async def _run(self, request: Request, name: str, arguments: object) -> Answer:
        return await self._pipeline.call(name, arguments, _caller(request))

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"tools": list(self._pipeline.listing(_caller(request)))})

    async def _resources(self, request: Request) -> Response:
        try:
            found: ListResourcesResult = await self._library.resources(
                _caller(request), request.query_params.get("cursor")
            )
        except Fault as fault:
            return _failed(fault)
        return JSONResponse(found.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def _read_resource(self, request: Request) -> Response:
        try:
            asked = await _arguments(request)
            found = await self._library.read(parse(_ResourceAsk, asked).uri, _caller(request))
        except Fault as fault:
            return _failed(fault)
        return JSONResponse(found.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def _gone(self, request: Request) -> Response:
        fault = Gone("this stream is gone", "open GET /mcp with the session's Mcp-Session-Id")
        return JSONResponse(body(fault), 410, {"Link": '</mcp>; rel="alternate"'})

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(openapi(self._pipeline.registry, __version__))

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(reference_page(self._pipeline.registry, __version__))


async def _arguments(request: Request) -> Any:
    raw = await read_body(request.receive)
    if raw is None:
        raise TooLarge("body", "the request is larger than 4 MiB")
    try:
        return parse_json(raw)
    except (ValueError, RecursionError):
        raise BadFormat("body", "the request is not JSON", "send a JSON object of named fields") from None


def _caller(request: Request) -> Caller:
    return Caller(
        principal=principal_of(request.scope),
        transport="http",
        client=request.headers.get("user-agent"),
        request_id=request.scope.get("contextd.request_id", ""),
    )


def _failed(fault: Fault) -> JSONResponse:
    headers = {}
    if (wait := fault.details.get("retry_after_ms")) is not None:
        headers["Retry-After"] = str(-(-int(str(wait)) // 1000))
    return JSONResponse(body(fault), codes(fault).http, headers)


def not_found(path: str) -> JSONResponse:
    return _failed(
        NotFound("page", path[:256], "the daemon serves /mcp, /api, /health, /ready and /metrics")
    )

"""The one place where faults meet codes: JSON-RPC, HTTP, gRPC and exit status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from contextd.domain.errors import (
    Category,
    EmptyQuery,
    Fault,
    Gone,
    IndexingInProgress,
    NotAProject,
    NotIndexed,
    TooLarge,
    WrongHost,
    WrongMethod,
)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_ACCEPTABLE: Final = -32000
"""The transport's own complaint: wrong Accept, missing session."""


@dataclass(frozen=True, slots=True)
class Codes:
    jsonrpc: int
    http: int
    grpc: str
    exit: int


_BY_CATEGORY: Final[Mapping[Category, Codes]] = {
    "validation": Codes(INVALID_PARAMS, 400, "INVALID_ARGUMENT", 2),
    "not_found": Codes(INTERNAL_ERROR, 404, "NOT_FOUND", 1),
    "rate_limited": Codes(INTERNAL_ERROR, 429, "RESOURCE_EXHAUSTED", 1),
    "timeout": Codes(INTERNAL_ERROR, 504, "DEADLINE_EXCEEDED", 1),
    "unauthorized": Codes(INTERNAL_ERROR, 401, "UNAUTHENTICATED", 1),
    "forbidden": Codes(INTERNAL_ERROR, 403, "PERMISSION_DENIED", 1),
    "conflict": Codes(INTERNAL_ERROR, 409, "ABORTED", 1),
    "unavailable": Codes(INTERNAL_ERROR, 503, "UNAVAILABLE", 1),
    "cancelled": Codes(INTERNAL_ERROR, 499, "CANCELLED", 1),
    "internal": Codes(INTERNAL_ERROR, 500, "INTERNAL", 1),
}

_BY_FAULT: Final[Mapping[type[Fault], Codes]] = {
    TooLarge: Codes(INVALID_PARAMS, 413, "INVALID_ARGUMENT", 2),
    EmptyQuery: Codes(-32004, 400, "INVALID_ARGUMENT", 2),
    WrongHost: Codes(INTERNAL_ERROR, 421, "PERMISSION_DENIED", 1),
    WrongMethod: Codes(INVALID_REQUEST, 405, "INVALID_ARGUMENT", 2),
    Gone: Codes(INTERNAL_ERROR, 410, "NOT_FOUND", 1),
    NotAProject: Codes(-32001, 404, "NOT_FOUND", 1),
    IndexingInProgress: Codes(-32002, 409, "ABORTED", 1),
    NotIndexed: Codes(-32003, 404, "FAILED_PRECONDITION", 1),
}
"""Faults whose code is not their category's."""

SPEAKS_TOOL_ERRORS_SINCE: Final = "2025-11-25"
"""From this version on a tool's fault is a result with `isError`; before, a JSON-RPC error."""


def codes(fault: Fault | type[Fault]) -> Codes:
    kind = fault if isinstance(fault, type) else type(fault)
    return _BY_FAULT.get(kind) or _BY_CATEGORY[kind.category]


def body(fault: Fault) -> dict[str, Any]:
    """The same everywhere: category, stable id, message with the remedy, details."""
    return {
        "category": fault.category,
        "code": fault.id,
        "message": fault.message,
        "details": fault.details,
    }


def as_jsonrpc(fault: Fault) -> dict[str, Any]:
    return {"code": codes(fault).jsonrpc, "message": fault.message, "data": body(fault)}

"""A request's headers, read once for everybody."""

from typing import Final

from starlette.types import Scope

_KEY: Final = "contextd.headers"


def read_headers(scope: Scope) -> dict[str, str]:
    """By lower-case name, without the white space around a value, which is no part of it (RFC 9110, 5.5)
    but which httptools leaves at the end. The scope's own list is trimmed too: the newer wire compares
    header and body."""
    raw = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
    scope["headers"] = raw
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
    scope[_KEY] = headers
    return headers


def headers_of(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = scope[_KEY]
    return headers

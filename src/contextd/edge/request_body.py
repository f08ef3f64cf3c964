"""The body of a request, within its bound."""

import json
from typing import Any, Final

from starlette.types import Message, Receive

MOST_BYTES: Final = 4 * 1024 * 1024


async def read_body(receive: Receive) -> bytes | None:
    """The body, or None when it is too large. A client that leaves gives what it had sent."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            break
    return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, and then what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def parse_json(body: bytes) -> Any:
    """A request's JSON, {} when empty. Raises ValueError or RecursionError."""
    return json.loads(body) if body.strip() else {}

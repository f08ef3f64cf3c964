"""The few messages of contextd.v1 that the proxy sends and reads: protobuf's library is slow to load."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Fields = dict[int, list[bytes | int]]


def execute_request(tool: str, arguments: bytes) -> bytes:
    return _field(1, tool.encode()) + _field(2, arguments)


def schema_request(tool: str) -> bytes:
    return _field(1, tool.encode())


def read_schema(message: bytes) -> dict[str, Any]:
    """Raises Fault when it carries one."""
    fields = _fields(message)
    if 3 in fields:
        raise _fault(_fields(_first(fields, 3)))
    schema: dict[str, Any] = json.loads(_first(fields, 1))
    return schema


class Fault(Exception):
    """What the daemon refused or a tool failed with, as it told it."""

    def __init__(self, category: str, code: str, message: str, details: str = "{}") -> None:
        super().__init__(message)
        self.category = category
        self.code = code
        self.message = message
        self.details = details

    @property
    def body(self) -> str:
        head = json.dumps({"category": self.category, "code": self.code, "message": self.message})
        return f'{head[:-1]}, "details": {self.details}}}'


class Answer:
    """`data` stays the JSON that came: nothing is lost by reading and writing it again."""

    def __init__(
        self, data: str, refs: list[str], tokens_used: int, has_more: bool, truncated: bool, warning: str
    ) -> None:
        self.data = data
        self.refs = refs
        self.tokens_used = tokens_used
        self.has_more = has_more
        self.truncated = truncated
        self.warning = warning

    def envelope(self) -> str:
        beside: dict[str, Any] = {
            "refs": self.refs,
            "tokens_used": self.tokens_used,
            "has_more": self.has_more,
            "truncated": self.truncated,
        }
        if self.warning:
            beside["warning"] = self.warning
        rest = json.dumps(beside, ensure_ascii=False, separators=(",", ":"))
        return f'{{"data":{self.data},{rest[1:]}'


def read_reply(message: bytes) -> Answer:
    """Raises Fault when it carries one."""
    fields = _fields(message)
    if 7 in fields:
        raise _fault(_fields(_first(fields, 7)))
    return Answer(
        data=_first(fields, 1).decode() or "{}",
        refs=[ref.decode() for ref in fields.get(2, []) if isinstance(ref, bytes)],
        tokens_used=_number(fields, 3),
        has_more=bool(_number(fields, 4)),
        truncated=bool(_number(fields, 5)),
        warning=_first(fields, 6).decode(),
    )


def _fault(fields: Fields) -> Fault:
    category, code, message, details = (_first(fields, number).decode() for number in (1, 2, 3, 4))
    return Fault(category, code, message, details or "{}")


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _fields(message: bytes) -> Fields:
    """By number. Of the wire's types, the three that may be in these messages, now or later."""
    found: Fields = {}
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        value: bytes | int
        if key & 7 == 0:
            value, at = _read_varint(message, at)
        elif key & 7 == 2:
            size, at = _read_varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            width = 8 if key & 7 == 1 else 4
            value, at = message[at : at + width], at + width
        found.setdefault(key >> 3, []).append(value)
    return found


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return value, at


def _first(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[0]
    return value if isinstance(value, bytes) else b""


def _number(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[0]
    return value if isinstance(value, int) else 0

"""A line of the audit log: what it holds, and how it is chained to the one before."""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, Final, cast

from contextd.domain.auditing import AuditEntry
from contextd.domain.errors import Fault
from contextd.domain.ports import Scrubber
from contextd.domain.records import Json

GENESIS: Final = "0" * 64
"""What the first line of all is chained to."""
LONGEST_TEXT: Final = 500
LONGEST_NAME: Final = 200
_SHORT_NAME: Final = 8
_NAMES_KEPT: Final = 256
_MOST_ITEMS: Final = 50
_DEEPEST: Final = 6
_LARGEST: Final = 16_384
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""ASCII: such a line can be shown anywhere, and no text is one that cannot be written."""
_LENIENT: Final = json.JSONEncoder(separators=(",", ":"), default=str)
_NO_NUMBER: Final = re.compile(r"NaN|Infinity")
_LINE: Final = re.compile(
    rb'(\{"seq":([0-9]{1,15}),.*,"prev":"([0-9a-f]{64})"),"hash":"([0-9a-f]{64})"\}', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Tip:
    """The last line: what the next is chained to."""

    seq: int = 0
    hash: str = GENESIS


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was read. `whole` is False when its hash is not that of its text."""

    seq: int
    prev: str
    hash: str
    whole: bool

    @property
    def tip(self) -> Tip:
        return Tip(self.seq, self.hash)


def chained(content: str, tip: Tip) -> tuple[bytes, Tip]:
    """The line with this content after `tip`. Its hash is of everything that stands before it."""
    seq = tip.seq + 1
    text = f'{{"seq":{seq},{content},"prev":"{tip.hash}"'
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{text},"hash":"{digest}"}}\n'.encode(), Tip(seq, digest)


def read_line(raw: bytes) -> Line | None:
    """None when this is no line of a log. `raw` is without its line feed."""
    found = _LINE.fullmatch(raw)
    if found is None:
        return None
    text, seq, prev, digest = found.groups()
    whole = hashlib.sha256(text).hexdigest().encode() == digest
    return Line(int(seq), prev.decode(), digest.decode(), whole)


def fields_of(raw: bytes) -> dict[str, Any] | None:
    """What a line says, for who wants to read it; None when it is not JSON."""
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def note(at: datetime, mended: Mapping[str, Json]) -> str:
    """The content of a line that is of no call: what the log found amiss with itself, and went on from."""
    return _ENCODER.encode({"time": _time(at), "mended": dict(mended)})[1:-1]


class Scribe:
    """Turns entries into what may be written of them."""

    def __init__(self, key: bytes, scrubber: Scrubber) -> None:
        self._mac = hmac.new(key, digestmod=hashlib.sha256)
        self._scrubber = scrubber
        self._clean_name = lru_cache(_NAMES_KEPT)(self._name)

    def content(self, entry: AuditEntry) -> str:
        """Of the line, without its number and its chain."""
        given = _encoded(entry.input)
        raw_input, raw_output = given.encode(), entry.output.encode("utf-8", "surrogatepass")
        tool, server = entry.secrets_tool, entry.secrets_server
        # Put together by hand: every call pays for it, an encoder of all fields takes half as long again.
        return (
            f'"time":"{_time(entry.at)}","request_id":{self._named(entry.request_id)},'
            f'"trace_id":{_text(entry.trace_id)},"principal":{_text(entry.principal)},'
            f'"client":{self._named(entry.client)},"session":{self._named(entry.session)},'
            f'"branch":{_text(entry.branch)},"project":{_text(entry.project)},"tool":{_text(entry.tool)},'
            f'"input":{self._shown(entry.input, given)},"input_hash":"{self._keyed(raw_input)}",'
            f'"output_hash":"{self._keyed(raw_output)}","input_bytes":{len(raw_input)},'
            f'"output_bytes":{len(raw_output)},"tokens":{entry.tokens},'
            f'"secrets_tool":{_ENCODER.encode(dict(tool)) if tool else "{}"},'
            f'"secrets_server":{_ENCODER.encode(dict(server)) if server else "{}"},'
            f'"isolation":{_text(entry.isolation)},'
            f'"exit_code":{"null" if entry.exit_code is None else entry.exit_code},'
            f'"duration_ms":{entry.duration_ms:.3f},"outcome":{_text(entry.outcome)},'
            f'"error_id":{_text(entry.error_id)}'
        )

    def _named(self, name: str | None) -> str:
        """Too short to hold a secret, or looked at once: most come again with every call."""
        if name is None or len(name) < _SHORT_NAME:
            return _text(name)
        return _text(self._clean_name(name))

    def _name(self, name: str) -> str:
        """What a client calls itself or its session: it may be anything, so it is cleaned as well."""
        try:
            return self._scrubber.scrub(name).text[:LONGEST_NAME]
        except Fault:
            return "[not written: the scrubber failed]"

    def _keyed(self, data: bytes) -> str:
        mac = self._mac.copy()
        mac.update(data)
        return mac.hexdigest()

    def _shown(self, value: object, encoded: str) -> str:
        """Bounded first, so that scrubbing is: what is replaced by its hash needs none."""
        is_short = len(encoded) <= LONGEST_TEXT and not _NO_NUMBER.search(encoded)
        bounded = cast(Json, value) if is_short else self._bounded(value, _DEEPEST)
        try:
            clean, found = self._scrubber.scrub_json(bounded)
        except Fault:
            return '"[not written: the scrubber failed]"'
        if is_short and not found:
            return encoded
        shown = _ENCODER.encode(clean)
        return shown if len(shown) <= _LARGEST else _ENCODER.encode(self._stand_in("input", encoded))

    def _bounded(self, value: object, depth: int) -> Json:
        match value:
            case float() if not math.isfinite(value):
                return str(value)
            case None | bool() | int() | float():
                return value
            case str():
                return value if len(value) <= LONGEST_TEXT else self._stand_in("text", value)
            case dict() if depth:
                rows = list(value.items())[:_MOST_ITEMS]
                kept = {
                    str(self._bounded(str(key), 0)): self._bounded(each, depth - 1) for key, each in rows
                }
                return kept if len(value) <= _MOST_ITEMS else {**kept, "…": f"[{len(value)} fields]"}
            case list() if depth:
                items = [self._bounded(each, depth - 1) for each in value[:_MOST_ITEMS]]
                return items if len(value) <= _MOST_ITEMS else [*items, f"[{len(value)} items]"]
            case _:
                return self._stand_in("value", _encoded(value))

    def _stand_in(self, what: str, text: str) -> str:
        digest = self._keyed(text.encode("utf-8", "surrogatepass"))
        return f"[{what} of {len(text)} characters, hmac {digest}]"


def _text(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _encoded(value: object) -> str:
    """For hashing, and to be measured: anything at all has such a text."""
    try:
        return _LENIENT.encode(value)
    except (TypeError, ValueError, RecursionError):
        return '"[not JSON]"'


def _time(at: datetime) -> str:
    """The clock's, which is in UTC."""
    return f"{at.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"

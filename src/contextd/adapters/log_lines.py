"""Log lines: one JSON object or one short text a record, scrubbed, and never the cause of a failure."""

import json
import logging
import math
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from typing import Literal, TextIO

from contextd.domain.records import Json

LogFormat = Literal["json", "text"]

LONGEST_TEXT = 16_384
OVERLAP = 16_384
"""Longer than any secret with a shape, such as a private key."""
DEEPEST = 6

ROUTED = ("uvicorn", "uvicorn.error", "mcp", "starlette", "httpx", "httpx2", "opentelemetry")
QUIETER = {
    # Each tells of every request, at INFO or DEBUG.
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "httpcore": logging.INFO,
    "urllib3": logging.INFO,
    # Each tells that it starts and ends, which the daemon tells better.
    "uvicorn": logging.WARNING,
    "uvicorn.error": logging.WARNING,
    "mcp": logging.WARNING,
    # A collector that is down would be told of at every try; the failure of a batch is an ERROR.
    "opentelemetry": logging.ERROR,
}
COLOURS = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}

NOT_EXTRA = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""What logging itself puts on a record; the last is uvicorn's second copy of its message."""

UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line separators and changes of direction: they forge lines or hide text."""

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


def set_request_id(value: str | None) -> Token[str | None]:
    """Every line logged in this context carries it, until `request_id.reset(token)`."""
    return request_id.set(value)


def configure_logging(
    level: str,
    format: LogFormat,
    scrub: Callable[[str], str],
    trace_id: Callable[[], str | None],
    stream: TextIO | None = None,
) -> None:
    """Make one handler the only way out for every logger of the process. Raises ValueError for a level
    that does not exist."""
    handler = LineHandler(stream or sys.stderr, format, Fields(scrub, trace_id))
    root = logging.getLogger()
    root.setLevel(level.upper())
    root.handlers[:] = [handler]
    logging.captureWarnings(True)
    for name in ROUTED:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    for name, least in QUIETER.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    access = logging.getLogger("uvicorn.access")
    access.handlers.clear()
    access.propagate = False


class Fields:
    """A record as a mapping of clean values, ready to be written."""

    def __init__(self, scrub: Callable[[str], str], trace_id: Callable[[], str | None]) -> None:
        self._scrub = scrub
        self._trace_id = trace_id

    def of(self, record: logging.LogRecord) -> dict[str, Json]:
        fields: dict[str, Json] = {
            "time": _rfc3339(record.created),
            "level": record.levelname,
            "logger": record.name,
        }
        try:
            return _followed(fields, self._content(record))
        except Exception as error:  # noqa: BLE001 - a line never raises, and is never written unscrubbed
            fields["message"] = f"(text dropped: {type(error).__name__} while it was made safe to write)"
            return fields

    def _content(self, record: logging.LogRecord) -> dict[str, Json]:
        content: dict[str, Json] = {"message": self._clean(record.getMessage())}
        if (request := request_id.get()) is not None:
            content["request_id"] = self._clean(request)
        if (trace := self._trace_id()) is not None:
            content["trace_id"] = trace
        if (error := self._error(record)) is not None:
            content["error"] = error
        return _followed(content, self._extras(record))

    def _extras(self, record: logging.LogRecord) -> dict[str, Json]:
        extras = {key: value for key, value in vars(record).items() if key not in NOT_EXTRA}
        return {self._clean(key): self._json(key, value, DEEPEST) for key, value in extras.items()}

    def _error(self, record: logging.LogRecord) -> Json:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            # Scrubbed as one text: a private key spans lines.
            stack = self._clean("".join(traceback.format_exception(error)))
            return {"type": type(error).__qualname__, "stack": [*stack.splitlines()]}
        if record.stack_info:
            return {"type": None, "stack": [*self._clean(record.stack_info).splitlines()]}
        return None

    def _json(self, key: str, value: object, depth: int) -> Json:
        match value:
            case bool() | None:
                return value
            case int() if abs(value) <= sys.maxsize:
                return value
            case float():
                return value if math.isfinite(value) else str(value)
            case Mapping() if depth:
                return {self._clean(str(k)): self._json(str(k), v, depth - 1) for k, v in value.items()}
            case list() | tuple() | set() | frozenset() if depth:
                return [self._json(key, each, depth - 1) for each in value]
            case _:
                return self._named(key, str(value))

    def _named(self, key: str, text: str) -> str:
        """Scrubbed beside its name: some secrets are known by that alone, as in `password=...`."""
        return self._clean(f"{key}={text}").removeprefix(f"{key}=")

    def _clean(self, text: str) -> str:
        whole = len(text) <= LONGEST_TEXT + OVERLAP
        clean = self._scrub(_well_formed(text[: LONGEST_TEXT + OVERLAP]))
        if whole and len(clean) <= LONGEST_TEXT:
            return clean
        # A secret that the first cut split stands, unseen, at the very end: that much is not written.
        kept = clean[:LONGEST_TEXT] if whole else clean[:-OVERLAP][:LONGEST_TEXT]
        return f"{kept}... ({len(text)} characters)"


def _followed(first: dict[str, Json], rest: dict[str, Json]) -> dict[str, Json]:
    """In this order, and no later field takes an earlier one's name."""
    return first | rest | first


class LineHandler(logging.StreamHandler[TextIO]):
    def __init__(self, stream: TextIO, format: LogFormat, fields: Fields) -> None:
        super().__init__(stream)
        self._fields = fields
        self._line = _json_line if format == "json" else self._text_line
        self._coloured = stream.isatty()

    def format(self, record: logging.LogRecord) -> str:
        return self._line(self._fields.of(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Silent: the inherited one prints the raw record, and a broken stderr leaves nowhere to tell."""

    def _text_line(self, fields: Mapping[str, Json]) -> str:
        line = _text_line(fields, self._coloured)
        encoding = self.stream.encoding or "utf-8"
        return line.encode(encoding, "backslashreplace").decode(encoding)


def _json_line(fields: Mapping[str, Json]) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _text_line(fields: Mapping[str, Json], coloured: bool) -> str:
    rest = dict(fields)
    time, level, logger, message = (str(rest.pop(key)) for key in ("time", "level", "logger", "message"))
    stack = _stack(rest)
    tail = "".join(f" {_visible(key)}={_text_value(value)}" for key, value in rest.items())
    shown = f"{level:<8}"
    if coloured:
        shown = f"\x1b[{COLOURS.get(level, '0')}m{shown}\x1b[0m"
    line = f"{time[11:-1]} {shown} {_visible(logger)}: {_visible(message)}{tail}"
    return line + "".join(f"\n    {_visible(str(each))}" for each in stack)


def _stack(fields: dict[str, Json]) -> list[Json]:
    """Taken out of the fields: it is shown below the line."""
    match fields.get("error"):
        case {"stack": list(lines)}:
            del fields["error"]
            return lines
        case _:
            return []


def _text_value(value: Json) -> str:
    if isinstance(value, str) and value and not re.search(r'[\s"=]', value):
        return _visible(value)
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    return UNSEEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def _well_formed(text: str) -> str:
    """Lone surrogates are no text: the scrubber's engine and strict JSON readers refuse them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Spans, and the trace that a caller's headers name.

Without export, a span is one shared object that does nothing.
"""

from collections.abc import Mapping
from types import TracebackType

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    SpanKind,
    StatusCode,
    Tracer,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

Attribute = str | int | float | bool

ERROR_TYPE = "error.type"


class SilentSpan:
    def __enter__(self) -> "SilentSpan":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def set(self, key: str, value: Attribute) -> None:
        return None

    def fail(self, reason: str) -> None:
        return None


SILENT = SilentSpan()


class LiveSpan:
    """Current from entry to exit, once. An exception that leaves it is told by its type alone: its text may
    hold what a user wrote."""

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        attributes: Mapping[str, Attribute],
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Context | None = None,
    ) -> None:
        self._span = tracer.start_span(name, context=parent, kind=kind, attributes=attributes)
        self._failed = False

    def __enter__(self) -> "LiveSpan":
        self._token = attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self, error: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if error is not None and not self._failed:
            self.fail(error.__qualname__)
        detach(self._token)
        self._span.end()

    def set(self, key: str, value: Attribute) -> None:
        self._span.set_attribute(key, value)

    def fail(self, reason: str) -> None:
        self._failed = True
        self._span.set_attribute(ERROR_TYPE, reason)
        self._span.set_status(StatusCode.ERROR, reason)


def caller_context(headers: Mapping[str, str]) -> Context | None:
    """The trace that the caller is in, by its W3C `traceparent`; None when absent or malformed."""
    if "traceparent" not in headers:
        return None
    context = TraceContextTextMapPropagator().extract(headers)
    return context if get_current_span(context).get_span_context().is_valid else None


def current_trace_id() -> str | None:
    span = get_current_span().get_span_context()
    return format_trace_id(span.trace_id) if span.is_valid else None

"""The Telemetry port: metrics always, since they are cheap; traces when there is somewhere to send them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from opentelemetry.trace import NoOpTracer, SpanKind

from contextd.adapters.telemetry_metrics import PrometheusMetrics
from contextd.adapters.telemetry_traces import (
    SILENT,
    Attribute,
    LiveSpan,
    caller_context,
    current_trace_id,
)
from contextd.domain.ports import Span

if TYPE_CHECKING:
    from contextd.adapters.telemetry_otlp import OtlpExport

FLUSH_SECONDS = 5.0
PUSH_EVERY_SECONDS = 60.0


def make_telemetry(
    otlp_endpoint: str | None,
    version: str,
    scrub: Callable[[str], str],
    push_every: float = PUSH_EVERY_SECONDS,
) -> "ObservedTelemetry":
    """`otlp_endpoint` is the base, as in OTEL_EXPORTER_OTLP_ENDPOINT: `/v1/traces` is appended here.

    `scrub` sees every text of a span before it is sent.
    """
    metrics = PrometheusMetrics()
    metrics.record("gauge", "contextd_build_info", 1, {"version": version})
    if not otlp_endpoint:
        return ObservedTelemetry(metrics, None)
    from contextd.adapters.telemetry_otlp import OtlpExport

    return ObservedTelemetry(metrics, OtlpExport(otlp_endpoint, version, scrub, metrics, push_every))


class ObservedTelemetry:
    """Fills the Telemetry port, and has what only the edge needs: `server_span`, `render`, `close`."""

    def __init__(self, metrics: PrometheusMetrics, export: "OtlpExport | None") -> None:
        self._metrics = metrics
        self._export = export
        self._tracer = export.tracer() if export else None

    @property
    def exports(self) -> bool:
        """Whether spans go anywhere."""
        return self._export is not None

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[Span]:
        if self._tracer is None:
            return SILENT
        return LiveSpan(self._tracer, name, attributes)

    def server_span(
        self, name: str, headers: Mapping[str, str], /, **attributes: Attribute
    ) -> AbstractContextManager[Span]:
        """For one incoming request, in the caller's trace if its headers (in lower case) name one.

        The caller's trace id reaches the logs even when nothing is exported.
        """
        parent = caller_context(headers)
        if self._tracer is None and parent is None:
            return SILENT
        return LiveSpan(self._tracer or NoOpTracer(), name, attributes, SpanKind.SERVER, parent)

    def trace_id(self) -> str | None:
        return current_trace_id()

    def count(self, name: str, value: int = 1, **labels: str) -> None:
        self._metrics.record("counter", name, value, labels)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        self._metrics.record("histogram", name, seconds, labels)

    def gauge(self, name: str, change: int, **labels: str) -> None:
        """Up or down by `change`."""
        self._metrics.record("gauge", name, change, labels)

    def render(self) -> tuple[bytes, str]:
        """The body and the content type of `/metrics`."""
        return self._metrics.render()

    def close(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Send what is left, within `timeout` seconds. False when that was not long enough."""
        return self._export.close(timeout) if self._export else True

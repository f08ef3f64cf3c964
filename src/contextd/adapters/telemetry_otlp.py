"""Export over OTLP/HTTP. It imports the OpenTelemetry SDK, and is itself imported only for an endpoint."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event as Signal
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Status, Tracer, set_tracer_provider
from opentelemetry.util.types import Attributes, AttributeValue

from contextd.adapters.telemetry_metrics import Instrument, PrometheusMetrics, Reading

SCOPE = "contextd"

Scrub = Callable[[str], str]


class OtlpExport:
    """Sends spans in batches as they end, and what the registry holds every `push_every` seconds."""

    def __init__(
        self, endpoint: str, version: str, scrub: Scrub, metrics: PrometheusMetrics, push_every: float
    ) -> None:
        resource = Resource.create(
            {"service.name": SCOPE, "service.version": version, "service.instance.id": str(uuid.uuid4())}
        )
        base = endpoint.rstrip("/")
        self._spans = ScrubbedSpans(OTLPSpanExporter(f"{base}/v1/traces"), scrub)
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._spans))
        self._push = MetricsPush(
            OTLPMetricExporter(f"{base}/v1/metrics"), RegistryBridge(metrics, resource, version), push_every
        )
        self._closed = False
        # The MCP SDK opens its spans through the global API; the API takes a provider once a process.
        set_tracer_provider(self._provider)

    def tracer(self) -> Tracer:
        return self._provider.get_tracer(SCOPE)

    def close(self, timeout: float) -> bool:
        """Send what is left. False when the time ran out first; the rest is then given up."""
        if self._closed:
            return True
        self._closed = True
        deadline = time.monotonic() + timeout
        # The provider's own shutdown takes no timeout and may wait for thirty seconds.
        flush = Thread(target=self._provider.shutdown, name="contextd-span-flush", daemon=True)
        flush.start()
        pushed = self._push.close(deadline)
        flush.join(_remaining(deadline))
        if flush.is_alive():
            self._spans.shutdown()
        return pushed and not flush.is_alive()


class ScrubbedSpans(SpanExporter):
    """Spans of the MCP SDK carry exception text and names that a client chose. A scrubber that
    raises fails the batch: the processor logs it and nothing of it leaves."""

    def __init__(self, exporter: SpanExporter, scrub: Scrub) -> None:
        self._exporter = exporter
        self._scrub = scrub

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([self._scrubbed(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _scrubbed(self, span: ReadableSpan) -> ReadableSpan:
        description = span.status.description
        return ReadableSpan(
            name=self._scrub(span.name),
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=self._attributes(span.attributes),
            events=[
                Event(self._scrub(event.name), self._attributes(event.attributes), event.timestamp)
                for event in span.events
            ],
            links=span.links,
            kind=span.kind,
            status=Status(span.status.status_code, self._scrub(description) if description else None),
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _attributes(self, attributes: Attributes) -> dict[str, AttributeValue]:
        return {key: self._value(value) for key, value in (attributes or {}).items()}

    def _value(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, str):
            return self._scrub(value)
        if isinstance(value, Sequence):
            return [self._scrub(each) if isinstance(each, str) else each for each in value]
        return value


class RegistryBridge:
    """The registry's numbers in OpenTelemetry's words, so that nothing is counted twice."""

    def __init__(self, metrics: PrometheusMetrics, resource: Resource, version: str) -> None:
        self._metrics = metrics
        self._resource = resource
        self._scope = InstrumentationScope(SCOPE, version)
        self._since = time.time_ns()

    def read(self) -> MetricsData:
        scope = ScopeMetrics(self._scope, list(self._read(time.time_ns())), "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _read(self, now: int) -> Iterator[Metric]:
        for instrument, readings in self._metrics.read():
            if readings:
                unit = "s" if instrument.name.endswith("_seconds") else "1"
                yield Metric(instrument.name, instrument.help, unit, self._data(instrument, readings, now))

    def _data(
        self, instrument: Instrument, readings: Iterable[Reading], now: int
    ) -> Sum | Gauge | Histogram:
        match instrument.kind:
            case "counter":
                return Sum(
                    [self._number(each, now) for each in readings], AggregationTemporality.CUMULATIVE, True
                )
            case "gauge":
                return Gauge([self._number(each, now) for each in readings])
            case "histogram":
                return Histogram(
                    [self._histogram(each, instrument, now) for each in readings],
                    AggregationTemporality.CUMULATIVE,
                )

    def _number(self, reading: Reading, now: int) -> NumberDataPoint:
        return NumberDataPoint(_plain(reading.labels), self._since, now, reading.value)

    def _histogram(self, reading: Reading, instrument: Instrument, now: int) -> HistogramDataPoint:
        return HistogramDataPoint(
            attributes=_plain(reading.labels),
            start_time_unix_nano=self._since,
            time_unix_nano=now,
            count=sum(reading.buckets),
            sum=reading.value,
            bucket_counts=reading.buckets,
            explicit_bounds=instrument.buckets,
            min=None,  # type: ignore[arg-type]  # optional on the wire, and not kept by the registry
            max=None,  # type: ignore[arg-type]  # the same
        )


class MetricsPush:
    def __init__(self, exporter: OTLPMetricExporter, bridge: RegistryBridge, every: float) -> None:
        self._exporter = exporter
        self._bridge = bridge
        self._every = every
        self._stop = Signal()
        self._thread = Thread(target=self._run, name="contextd-metrics-push", daemon=True)
        self._thread.start()

    def close(self, deadline: float) -> bool:
        self._stop.set()
        self._thread.join(_remaining(deadline))
        self._exporter.shutdown()
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self._exporter.export(self._bridge.read())
        self._exporter.export(self._bridge.read())


def _plain(labels: Mapping[str, str]) -> dict[str, AttributeValue]:
    return dict(labels)


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())

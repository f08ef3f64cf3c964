"""Metrics: the table of what is measured, and a registry that counts it.

The registry is the one source of truth. `/metrics` renders it; OTLP export reads the same numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
    from prometheus_client.registry import Collector

Kind = Literal["counter", "histogram", "gauge"]

QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TO_HALF_AN_HOUR = (*QUICK, 30.0, 60.0, 120.0, 600.0, 1800.0)

MAX_SERIES = 1000
"""Of one instrument. Labels are fixed vocabulary; this is the wall behind that promise."""
OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class Instrument:
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


INSTRUMENTS: tuple[Instrument, ...] = (
    Instrument("contextd_build_info", "gauge", "Always 1; the label is the running version.", ("version",)),
    Instrument(
        "contextd_http_requests_total",
        "counter",
        "HTTP requests answered.",
        ("method", "route", "status"),
    ),
    Instrument(
        "contextd_http_request_duration_seconds",
        "histogram",
        "Time from a request's head to the end of its answer.",
        ("method", "route", "status"),
        TO_HALF_AN_HOUR,
    ),
    Instrument("contextd_active_connections", "gauge", "HTTP requests and streams under way."),
    Instrument("contextd_active_sessions", "gauge", "MCP sessions that are open."),
    Instrument(
        "contextd_tool_calls_total",
        "counter",
        "Tool calls by outcome: ok, or the id of the error.",
        ("tool", "outcome"),
    ),
    Instrument(
        "contextd_tool_call_duration_seconds",
        "histogram",
        "Time that a tool call took.",
        ("tool", "outcome"),
        TO_HALF_AN_HOUR,
    ),
    Instrument("contextd_rate_limited_total", "counter", "Calls refused by the rate limit.", ("tool",)),
    Instrument(
        "contextd_store_operation_duration_seconds",
        "histogram",
        "Time that an operation of the vector store took.",
        ("operation",),
        QUICK,
    ),
    Instrument(
        "contextd_embedding_duration_seconds",
        "histogram",
        "Time to embed one batch of texts.",
        ("purpose",),
        TO_HALF_AN_HOUR,
    ),
    Instrument(
        "contextd_embedding_cache_lookups_total",
        "counter",
        "Looks into the embedding cache: hit or miss.",
        ("result",),
    ),
    Instrument("contextd_audit_lost_total", "counter", "Calls that the audit log lost."),
    Instrument(
        "contextd_secrets_redacted_total",
        "counter",
        "Secrets redacted, by rule: by a tool in what it made, or by the server after it.",
        ("rule", "pass"),
    ),
    Instrument("contextd_files_indexed_total", "counter", "Files taken into code indexes."),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One series as it stands now."""

    labels: Mapping[str, str]
    value: float
    """Of a counter or gauge; of a histogram, the sum of what it observed."""
    buckets: tuple[int, ...] = ()
    """Of a histogram: how many fell in each bucket alone, the one without an upper bound last."""


class PrometheusMetrics:
    """Counts by the names of the table. A name, kind or label that is not there is a mistake and raises."""

    def __init__(self, instruments: tuple[Instrument, ...] = INSTRUMENTS) -> None:
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        self._instruments = {each.name: each for each in instruments}
        self._collectors = {each.name: _collector(each, registry) for each in instruments}
        self._page = _without_birth_times(registry)
        self._recorders: dict[tuple[object, ...], Callable[[float], None]] = {}
        self._series = dict.fromkeys(self._instruments, 0)

    def record(self, kind: Kind, name: str, value: float, labels: Mapping[str, str]) -> None:
        key = (kind, name, *labels.items())
        recorder = self._recorders.get(key)
        if recorder is None:
            recorder = self._recorder(kind, name, labels, key)
        recorder(value)

    def read(self) -> Iterator[tuple[Instrument, list[Reading]]]:
        for name, instrument in self._instruments.items():
            yield instrument, _readings(instrument, self._collectors[name])

    def render(self) -> tuple[bytes, str]:
        """The body and the content type of `/metrics`."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._page), CONTENT_TYPE_LATEST

    def _recorder(
        self, kind: Kind, name: str, labels: Mapping[str, str], key: tuple[object, ...]
    ) -> Callable[[float], None]:
        instrument = self._instruments[name]
        if instrument.kind != kind:
            raise ValueError(f"{name} is a {instrument.kind}, not a {kind}")
        if labels.keys() != set(instrument.labels):
            raise ValueError(f"{name} has the labels {instrument.labels}, not {tuple(labels)}")
        if self._series[name] >= MAX_SERIES:
            return self._child(instrument, dict.fromkeys(labels, OVERFLOW))
        self._series[name] += 1
        return self._recorders.setdefault(key, self._child(instrument, labels))

    def _child(self, instrument: Instrument, labels: Mapping[str, str]) -> Callable[[float], None]:
        from prometheus_client import Histogram

        collector = self._collectors[instrument.name]
        child = collector.labels(**labels) if labels else collector
        return child.observe if isinstance(child, Histogram) else child.inc


def _collector(instrument: Instrument, registry: "CollectorRegistry") -> "Counter | Gauge | Histogram":
    from prometheus_client import Counter, Gauge, Histogram

    name, text, labels = instrument.name, instrument.help, instrument.labels
    match instrument.kind:
        case "counter":
            return Counter(name, text, labels, registry=registry)
        case "gauge":
            return Gauge(name, text, labels, registry=registry)
        case "histogram":
            return Histogram(name, text, labels, registry=registry, buckets=instrument.buckets)


def _readings(instrument: Instrument, collector: "Counter | Gauge | Histogram") -> list[Reading]:
    """Prometheus gives one flat sample a bucket, each holding the ones below; a reading has them apart."""
    [family] = collector.collect()
    values: dict[tuple[str, ...], float] = {}
    below: dict[tuple[str, ...], list[int]] = {}
    for sample in family.samples:
        series = tuple(sample.labels[label] for label in instrument.labels)
        if sample.name.endswith("_bucket"):
            below.setdefault(series, [0]).append(int(sample.value))
        elif not sample.name.endswith(("_created", "_count")):
            values[series] = sample.value
    return [
        Reading(dict(zip(instrument.labels, series, strict=True)), value, _apart(below.get(series, [])))
        for series, value in values.items()
    ]


def _apart(below: list[int]) -> tuple[int, ...]:
    return tuple(upper - lower for lower, upper in pairwise(below))


def _without_birth_times(registry: "CollectorRegistry") -> "Collector":
    """Each series also has a `_created` sample, switched off for the whole process or not at all."""
    from prometheus_client.registry import Collector

    class Page(Collector):
        def collect(self) -> "Iterable[Metric]":
            for family in registry.collect():
                family.samples = [each for each in family.samples if not each.name.endswith("_created")]
                yield family

    return Page()

"""Export over OTLP, proved against a receiver on loopback: what arrives, scrubbed, and a bounded end."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from contextd.adapters.telemetry import ObservedTelemetry, make_telemetry
from contextd.adapters.telemetry_metrics import INSTRUMENTS
from contextd.domain.ports import Telemetry
from otlp_collector import WAIT, Collector

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01"}


def unscrubbed(text: str) -> str:
    return text


def without_hunter2(text: str) -> str:
    return text.replace("hunter2", "[REDACTED]")


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.close()


@pytest.fixture
def sent(collector: Collector) -> Iterator[ObservedTelemetry]:
    telemetry = make_telemetry(collector.endpoint, "1.2.3", without_hunter2)
    yield telemetry
    telemetry.close()


def attributes(pairs: Iterable[KeyValue]) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in pairs}


def record_each(telemetry: Telemetry) -> None:
    for each in INSTRUMENTS:
        labels = dict.fromkeys(each.labels, "x")
        match each.kind:
            case "counter":
                telemetry.count(each.name, 2, **labels)
            case "gauge":
                telemetry.gauge(each.name, 3, **labels)
            case "histogram":
                telemetry.observe(each.name, 0.02, **labels)


# --- spans over OTLP ---------------------------------------------------------------------


def test_nested_spans_share_the_trace_that_the_caller_named(
    collector: Collector, sent: ObservedTelemetry
) -> None:
    with sent.server_span("POST /mcp", HEADERS, method="POST") as request:
        with sent.span("tool", tool="status"), sent.span("store"):
            assert sent.trace_id() == TRACE
        request.set("status", 200)
    assert sent.trace_id() is None
    assert sent.close()

    spans = collector.spans()
    request_span, tool, store = spans["POST /mcp"], spans["tool"], spans["store"]
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert request_span.parent_span_id.hex() == CALLER
    assert request_span.kind == WireSpan.SPAN_KIND_SERVER
    assert tool.parent_span_id == request_span.span_id
    assert store.parent_span_id == tool.span_id
    assert attributes(tool.attributes) == {"tool": "status"}
    assert {pair.key: pair.value.int_value for pair in request_span.attributes}["status"] == 200


def test_the_resource_names_the_service_and_its_version(
    collector: Collector, sent: ObservedTelemetry
) -> None:
    with sent.span("any"):
        pass
    sent.close()
    resource = attributes(collector.traces()[0].resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["service.version"]) == ("contextd", "1.2.3")
    assert resource["service.instance.id"]


def test_a_base_endpoint_may_end_with_a_slash(collector: Collector) -> None:
    telemetry = make_telemetry(f"{collector.endpoint}/", "1", unscrubbed)
    with telemetry.span("any"):
        pass
    telemetry.close()
    assert {path for path, _ in collector.posts} == {"/v1/traces", "/v1/metrics"}


def test_an_exception_marks_the_span_by_type_and_keeps_its_text_home(
    collector: Collector, sent: ObservedTelemetry
) -> None:
    with pytest.raises(ValueError, match="what the user typed"), sent.span("tool"):
        raise ValueError("what the user typed")
    sent.close()
    span = collector.spans()["tool"]
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "ValueError")
    assert attributes(span.attributes) == {"error.type": "ValueError"}
    assert b"what the user typed" not in collector.text()


def test_a_reason_that_was_given_outlives_the_exception(
    collector: Collector, sent: ObservedTelemetry
) -> None:
    with pytest.raises(LookupError), sent.span("tool") as span:
        span.fail("NF_001")
        raise LookupError
    sent.close()
    assert collector.spans()["tool"].status.message == "NF_001"


@pytest.mark.anyio
async def test_tasks_side_by_side_keep_their_own_traces(sent: ObservedTelemetry) -> None:
    seen: dict[int, str | None] = {}
    entered = anyio.Event()

    async def request(number: int) -> None:
        with sent.server_span("request", {"traceparent": f"00-{number:032x}-{CALLER}-01"}):
            if number == 2:
                entered.set()
            await entered.wait()
            seen[number] = sent.trace_id()

    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request, 1)
            tasks.start_soon(request, 2)
    assert seen == {1: f"{1:032x}", 2: f"{2:032x}"}


# --- what leaves is scrubbed --------------------------------------------------------------


def test_spans_of_the_mcp_sdk_join_the_trace_and_are_scrubbed(collector: Collector) -> None:
    """In a process of its own: OpenTelemetry takes a global provider once."""
    script = f"""
import anyio, logging
from mcp import Client
from mcp.server.lowlevel import Server
from contextd.adapters.telemetry import make_telemetry

logging.disable()
async def list_tools(context, params):
    with telemetry.span("inside"):
        raise RuntimeError("the password is hunter2")

async def main():
    with telemetry.server_span("request", {HEADERS!r}):
        async with Client(server) as client:
            try:
                await client.list_tools()
            except Exception:
                pass

server = Server("probe", on_list_tools=list_tools)
telemetry = make_telemetry({collector.endpoint!r}, "1", lambda text: text.replace("hunter2", "[REDACTED]"))
anyio.run(main)
assert telemetry.close()
"""
    run_script(script)
    spans = collector.spans()
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    assert spans["inside"].parent_span_id == spans["tools/list"].span_id
    recorded = attributes(spans["tools/list"].events[0].attributes)
    assert recorded["exception.message"] == "the password is [REDACTED]"
    assert b"hunter2" not in collector.text()


def test_names_and_values_of_spans_are_scrubbed(collector: Collector, sent: ObservedTelemetry) -> None:
    with sent.span("tools/call hunter2", argument="hunter2") as span:
        span.set("later", "hunter2")
        span.fail("hunter2")
    sent.close()
    assert "tools/call [REDACTED]" in collector.spans()
    assert b"hunter2" not in collector.text()


def test_when_the_scrubber_fails_no_span_is_sent(collector: Collector) -> None:
    def broken(text: str) -> str:
        raise RuntimeError

    telemetry = make_telemetry(collector.endpoint, "1", broken)
    with telemetry.span("hunter2"):
        pass
    assert telemetry.close()
    assert collector.traces() == []


# --- metrics over OTLP --------------------------------------------------------------------


def test_metrics_arrive_with_the_values_that_the_page_shows(
    collector: Collector, sent: ObservedTelemetry
) -> None:
    record_each(sent)
    sent.close()
    metrics = collector.metrics()
    assert set(metrics) == {each.name for each in INSTRUMENTS}

    calls = metrics["contextd_tool_calls_total"].sum
    assert (calls.is_monotonic, calls.data_points[0].as_double) == (True, 2.0)
    assert attributes(calls.data_points[0].attributes) == {"tool": "x", "outcome": "x"}
    assert metrics["contextd_active_sessions"].gauge.data_points[0].as_double == 3.0

    duration = metrics["contextd_tool_call_duration_seconds"]
    [point] = duration.histogram.data_points
    assert (duration.unit, point.count, point.sum) == ("s", 1, 0.02)
    filled = list(point.bucket_counts).index(1)
    assert point.explicit_bounds[filled - 1] < 0.02 <= point.explicit_bounds[filled]
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1


def test_metrics_are_pushed_while_the_daemon_runs(collector: Collector) -> None:
    telemetry = make_telemetry(collector.endpoint, "1", unscrubbed, push_every=0.02)
    telemetry.count("contextd_rate_limited_total", tool="status")
    assert collector.wait(lambda: "contextd_rate_limited_total" in collector.metrics())
    telemetry.close()


# --- the end ------------------------------------------------------------------------------


def test_closing_is_bounded_when_the_collector_does_not_answer() -> None:
    release = threading.Event()

    class Mute(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            release.wait(WAIT)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mute)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    telemetry = make_telemetry(f"http://127.0.0.1:{server.server_port}", "1", unscrubbed)
    with telemetry.span("any"):
        pass
    started = time.monotonic()
    assert not telemetry.close(timeout=0.3)
    assert time.monotonic() - started < 2
    release.set()
    server.shutdown()
    serving.join(WAIT)
    server.server_close()


def test_closing_is_bounded_when_nobody_is_there(collector: Collector) -> None:
    telemetry = make_telemetry(collector.endpoint, "1", unscrubbed)
    collector.close()
    with telemetry.span("any"):
        pass
    started = time.monotonic()
    telemetry.close(timeout=0.3)
    assert time.monotonic() - started < 2


def test_closing_twice_is_harmless(sent: ObservedTelemetry) -> None:
    assert sent.close()
    assert sent.close()


def run_script(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

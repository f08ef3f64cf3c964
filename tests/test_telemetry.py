"""Metrics, and traces when nobody listens: the table, the counting, and the cost of being off."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from contextd.adapters.telemetry import ObservedTelemetry, make_telemetry
from contextd.adapters.telemetry_metrics import INSTRUMENTS, MAX_SERIES
from contextd.domain.ports import Telemetry

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
PAGE = Path(__file__).parent.parent / "docs" / "telemetry.md"
WAIT = 10.0


def unscrubbed(text: str) -> str:
    return text


@pytest.fixture
def quiet() -> ObservedTelemetry:
    return make_telemetry(None, "1.2.3", unscrubbed)


def samples(telemetry: ObservedTelemetry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    body, _ = telemetry.render()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def sample(telemetry: ObservedTelemetry, name: str, **labels: str) -> float:
    return samples(telemetry)[name, frozenset(labels.items())]


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


# --- the table of instruments ------------------------------------------------------------


def test_every_instrument_is_named_and_shaped_by_its_kind() -> None:
    assert len({each.name for each in INSTRUMENTS}) == len(INSTRUMENTS)
    for each in INSTRUMENTS:
        assert re.fullmatch(r"contextd(_[a-z]+)+", each.name)
        assert each.help.endswith(".")
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert each.name.endswith("_seconds") == (each.kind == "histogram")
        assert bool(each.buckets) == (each.kind == "histogram")
        assert list(each.buckets) == sorted(set(each.buckets))


def test_every_instrument_of_the_table_can_be_recorded_and_is_rendered(quiet: ObservedTelemetry) -> None:
    record_each(quiet)
    names = {name for name, _ in samples(quiet)}
    for each in INSTRUMENTS:
        assert (f"{each.name}_count" if each.kind == "histogram" else each.name) in names
    assert not [name for name in names if name.endswith("_created")]


def test_the_documentation_lists_the_instruments_of_the_table() -> None:
    rows = re.findall(
        r"^\| `(contextd_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert rows == [
        (each.name, each.kind, ", ".join(f"`{label}`" for label in each.labels) or "none", each.help)
        for each in INSTRUMENTS
    ]


# --- counting ----------------------------------------------------------------------------


def test_a_name_that_is_not_in_the_table_raises(quiet: ObservedTelemetry) -> None:
    with pytest.raises(KeyError):
        quiet.count("contextd_tool_cals_total", tool="status", outcome="ok")


def test_labels_other_than_the_tables_raise(quiet: ObservedTelemetry) -> None:
    for labels in (
        {},
        {"tool": "x"},
        {"tool": "x", "result": "ok"},
        {"tool": "x", "outcome": "ok", "z": "1"},
    ):
        with pytest.raises(ValueError, match="labels"):
            quiet.count("contextd_tool_calls_total", 1, **labels)


def test_a_histogram_is_not_counted_and_a_counter_is_not_observed(quiet: ObservedTelemetry) -> None:
    with pytest.raises(ValueError, match="histogram"):
        quiet.count("contextd_tool_call_duration_seconds", tool="x", outcome="ok")
    with pytest.raises(ValueError, match="counter"):
        quiet.observe("contextd_tool_calls_total", 0.1, tool="x", outcome="ok")


def test_counts_are_kept_apart_by_label_whatever_the_order_of_labels(quiet: ObservedTelemetry) -> None:
    quiet.count("contextd_tool_calls_total", tool="status", outcome="ok")
    quiet.count("contextd_tool_calls_total", 4, outcome="ok", tool="status")
    quiet.count("contextd_tool_calls_total", tool="ok", outcome="status")
    assert sample(quiet, "contextd_tool_calls_total", tool="status", outcome="ok") == 5
    assert sample(quiet, "contextd_tool_calls_total", tool="ok", outcome="status") == 1


def test_a_gauge_goes_up_and_down(quiet: ObservedTelemetry) -> None:
    quiet.gauge("contextd_active_connections", 3)
    quiet.gauge("contextd_active_connections", -2)
    assert sample(quiet, "contextd_active_connections") == 1


def test_an_observation_falls_in_the_buckets_that_hold_it(quiet: ObservedTelemetry) -> None:
    quiet.observe("contextd_store_operation_duration_seconds", 0.004, operation="search")
    quiet.observe("contextd_store_operation_duration_seconds", 60, operation="search")
    bucket = "contextd_store_operation_duration_seconds_bucket"
    assert sample(quiet, bucket, operation="search", le="0.0025") == 0
    assert sample(quiet, bucket, operation="search", le="0.005") == 1
    assert sample(quiet, bucket, operation="search", le="+Inf") == 2
    total = sample(quiet, "contextd_store_operation_duration_seconds_sum", operation="search")
    assert total == pytest.approx(60.004)


def test_counts_from_many_threads_are_all_there(quiet: ObservedTelemetry) -> None:
    def work() -> None:
        for _ in range(500):
            quiet.count("contextd_rate_limited_total", tool="status")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert sample(quiet, "contextd_rate_limited_total", tool="status") == 4000


def test_two_registries_share_nothing() -> None:
    one, other = make_telemetry(None, "1", unscrubbed), make_telemetry(None, "1", unscrubbed)
    one.gauge("contextd_active_sessions", 1)
    assert sample(other, "contextd_active_sessions") == 0


def test_the_page_tells_its_version_and_its_type(quiet: ObservedTelemetry) -> None:
    assert sample(quiet, "contextd_build_info", version="1.2.3") == 1
    _, content_type = quiet.render()
    assert content_type.startswith("text/plain; version=")


def test_labels_without_end_flow_into_one_series(quiet: ObservedTelemetry) -> None:
    for number in range(MAX_SERIES + 7):
        quiet.count("contextd_secrets_redacted_total", 1, **{"rule": f"rule-{number}", "pass": "tool"})
    quiet.count("contextd_secrets_redacted_total", 1, **{"rule": "rule-0", "pass": "tool"})
    counted = {key: value for key, value in samples(quiet).items() if "secrets" in key[0]}
    assert len(counted) == MAX_SERIES + 1
    assert sample(quiet, "contextd_secrets_redacted_total", **{"rule": "overflow", "pass": "overflow"}) == 7
    assert sample(quiet, "contextd_secrets_redacted_total", **{"rule": "rule-0", "pass": "tool"}) == 2


# --- nobody listens ----------------------------------------------------------------------


def test_without_an_endpoint_the_sdk_is_not_imported_and_no_thread_is_started() -> None:
    script = """
import sys, threading
from contextd.adapters.telemetry import make_telemetry
telemetry = make_telemetry(None, "1", str)
with telemetry.span("a", tool="b"), telemetry.server_span("c", {}):
    telemetry.count("contextd_tool_calls_total", tool="status", outcome="ok")
telemetry.render()
assert telemetry.close()
assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
assert threading.active_count() == 1
"""
    run_script(script)


def test_without_an_endpoint_a_span_is_one_shared_object_that_does_nothing(
    quiet: ObservedTelemetry,
) -> None:
    first, second = quiet.span("a", tool="b"), quiet.server_span("c", {})
    assert first is second
    with first as span:
        span.set("key", 1)
        span.fail("VAL_001")
        assert quiet.trace_id() is None
    with pytest.raises(ZeroDivisionError), quiet.span("d"):
        _ = 1 / 0


def test_without_an_endpoint_the_callers_trace_id_still_reaches_the_logs(quiet: ObservedTelemetry) -> None:
    with quiet.server_span("request", HEADERS) as request, quiet.span("inner"):
        request.set("http.route", "/mcp")
        assert quiet.trace_id() == TRACE
    assert quiet.trace_id() is None


def test_any_traceparent_is_read_or_ignored_and_never_an_error(quiet: ObservedTelemetry) -> None:
    @given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-fA-F]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"))
    def check(traceparent: str) -> None:
        with quiet.server_span("request", {"traceparent": traceparent}):
            seen = quiet.trace_id()
        assert seen is None or seen in traceparent

    check()


def run_script(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

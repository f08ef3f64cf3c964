"""One request, followed from HTTP to the store by its trace id."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from otlp_collector import Collector
from running import running_daemon

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADERS = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.close()


def test_a_call_over_mcp_is_one_trace_from_http_to_the_store(collector: Collector, tmp_path: Path) -> None:
    with running_daemon(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint) as daemon:
        session = daemon.session()
        params = {
            "name": "checkpoint_save",
            "arguments": {"summary": "traced", "project_path": "/srv/traced"},
        }
        assert session.rpc("tools/call", params, **HEADERS).status_code == 200
    spans = collector.spans(of_trace=TRACE)
    road = ["POST /mcp", "tools/call checkpoint_save", "tool", "embed", "store.put"]
    assert set(spans) == set(road)
    parents = {name: spans[name].parent_span_id for name in road}
    assert parents["tools/call checkpoint_save"] == spans["POST /mcp"].span_id
    assert parents["tool"] == spans["tools/call checkpoint_save"].span_id
    assert parents["store.put"] == parents["embed"] == spans["tool"].span_id
    assert b"traced" not in collector.text()


def test_the_callers_trace_is_in_the_log_of_a_failure(tmp_path: Path) -> None:
    settings = {"CONTEXTD_PLUGINS": "unruly_tools", "PYTHONPATH": str(Path(__file__).parent)}
    with running_daemon(tmp_path, CONTEXTD_LOG_FORMAT="json", **settings) as daemon:
        httpx2.post(f"{daemon.url}/api/v1/tools/crashes", json={}, headers=HEADERS)
    (line,) = [line for line in daemon.log if '"crashes failed"' in line]
    assert TRACE in line

"""The end of a daemon, and the absence of its model: calls finish, nothing is lost, nobody waits."""

import json
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from otlp_collector import Collector
from running import Daemon, Session, running_daemon, running_stdio

SHOP = "/tmp/shutdown/shop"
PROMISED_S = 5.0
WAIT = 30.0
NEVER = 60.0
SLOW = 1.5
DRAFT = {"summary": "the work stands here", "project_path": SHOP}


class StubModel:
    """An embedding server whose answers take as long as it is told. Words decide its vectors."""

    def __init__(self, seconds: float = 0.0, port: int = 0) -> None:
        self.asked = threading.Event()
        self._closed = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                stub.asked.set()
                stub._closed.wait(seconds)
                rows = [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
                body = json.dumps({"data": rows}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return None

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """A daemon that was cut off does not wait for its answer."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.settings = at_port(self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join(WAIT)
        self._server.server_close()


def vector_of(text: str) -> list[float]:
    """Fruit in one direction, all else in the other: meaning without a common word."""
    is_fruit = any(word in text for word in ("apple", "pear", "orchard"))
    return [1.0, 0.1] if is_fruit else [0.1, 1.0]


def at_port(port: int) -> dict[str, str]:
    return {
        "EMBEDDING_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "EMBEDDING_MODEL": "stub",
        "CONTEXTD_RATE_LIMIT": "off",
    }


@contextmanager
def model(seconds: float = 0.0, port: int = 0) -> Iterator[StubModel]:
    stub = StubModel(seconds, port)
    try:
        yield stub
    finally:
        stub.close()


# --- the doors by which a call may be in flight ---------------------------------------------


def by_automation(daemon: Daemon, session: Session) -> dict[str, Any]:
    answer = daemon.tool("checkpoint_save", **DRAFT)
    body: dict[str, Any] = answer.json()
    return body["data"] if answer.status_code == 200 else body


def by_json(daemon: Daemon, session: Session) -> dict[str, Any]:
    answer = session.rpc("tools/call", {"name": "checkpoint_save", "arguments": DRAFT})
    assert answer.headers["content-type"] == "application/json"
    content: dict[str, Any] = answer.json()["result"]["structuredContent"]
    return content


def by_sse(daemon: Daemon, session: Session) -> dict[str, Any]:
    asked = {"name": "checkpoint_save", "arguments": DRAFT, "_meta": {"progressToken": 1}}
    answer = session.rpc("tools/call", asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    last = [line for line in answer.text.splitlines() if line.startswith("data: {")][-1]
    content: dict[str, Any] = json.loads(last.removeprefix("data: "))["result"]["structuredContent"]
    return content


Door = Callable[[Daemon, Session], dict[str, Any]]
DOORS: list[Door] = [by_automation, by_json, by_sse]


@contextmanager
def in_flight(daemon: Daemon, stub: StubModel, door: Door) -> Iterator["Future[dict[str, Any]]"]:
    """A call that waits for the model."""
    session = daemon.session()
    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(door, daemon, session)
        assert stub.asked.wait(WAIT)
        yield calling


def end(daemon: Daemon, number: int = signal.SIGTERM) -> Callable[[], float]:
    """Sends the signal; the result waits for a clean exit and says how long it took."""
    daemon.process.send_signal(number)
    started = time.monotonic()

    def ended() -> float:
        assert daemon.process.wait(WAIT) == 0
        return time.monotonic() - started

    return ended


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_drain(daemon: Daemon) -> None:
    until(lambda: any("stopping" in line for line in daemon.log))


def check_closed(data_dir: Path) -> None:
    """Every file was folded up: nothing waits beside it to be recovered."""
    assert list(data_dir.rglob("*.db"))
    assert list(data_dir.rglob("*-wal")) == []
    assert list(data_dir.rglob("*-shm")) == []


def check_log(daemon: Daemon) -> None:
    assert [line for line in daemon.log if " ERROR " in line or "Traceback" in line] == []


def kept(data_dir: Path) -> list[str]:
    (file,) = (data_dir / "projects").glob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        return [id for (id,) in connection.execute("SELECT id FROM records")]


# --- calls in flight ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("door", "number"), [*((door, signal.SIGTERM) for door in DOORS), (by_sse, signal.SIGINT)]
)
def test_a_call_in_flight_is_answered_and_new_ones_are_refused(
    tmp_path: Path, door: Door, number: signal.Signals
) -> None:
    with model(SLOW) as stub, running_daemon(tmp_path, **stub.settings) as daemon:
        other = daemon.session()
        with in_flight(daemon, stub, door) as calling:
            ended = end(daemon, number)
            wait_for_drain(daemon)
            refused = daemon.tool("status")
            assert refused.status_code == 503
            assert refused.json()["category"] == "unavailable"
            assert refused.json()["code"] == "SRV_004"
            assert other.call("status")["result"]["structuredContent"] == refused.json()
            assert not calling.done()
            saved = calling.result(WAIT)
        assert ended() < PROMISED_S
    assert kept(tmp_path) == [saved["id"]]
    check_closed(tmp_path)
    check_log(daemon)


@pytest.mark.parametrize("door", DOORS)
def test_a_call_that_takes_too_long_is_cut_with_a_clean_error(tmp_path: Path, door: Door) -> None:
    with (
        model(NEVER) as stub,
        running_daemon(tmp_path, CONTEXTD_DRAIN_S="0.3", **stub.settings) as daemon,
        in_flight(daemon, stub, door) as calling,
    ):
        ended = end(daemon)
        cut = calling.result(WAIT)
        assert cut["category"] == "unavailable"
        assert cut["code"] == "SRV_004"
        assert ended() < PROMISED_S
    check_closed(tmp_path)
    check_log(daemon)


def test_the_worst_of_ends_still_comes_in_time(tmp_path: Path) -> None:
    """A call without an end, a stream that stays open, a collector that is away, the usual patience."""
    with (
        model(NEVER) as stub,
        running_daemon(
            tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", **stub.settings
        ) as daemon,
        open_stream(daemon) as lines,
        in_flight(daemon, stub, by_sse) as calling,
    ):
        ended = end(daemon)
        assert calling.result(WAIT)["category"] == "unavailable"
        assert list(lines) == []
        assert ended() < PROMISED_S
    check_closed(tmp_path)


# --- streams, telemetry, repetition ---------------------------------------------------------


@contextmanager
def open_stream(daemon: Daemon) -> Iterator[Iterator[str]]:
    """The stream of a session's notifications: its lines, and an end when the daemon ends it."""
    session = daemon.session()
    headers = {
        "Accept": "text/event-stream",
        "Mcp-Session-Id": session.id,
        "Mcp-Protocol-Version": session.version,
    }
    with httpx2.Client(timeout=WAIT) as client, client.stream("GET", daemon.mcp, headers=headers) as stream:
        assert stream.status_code == 200
        yield (line for line in stream.iter_lines() if line.startswith("data: {"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_open_stream_does_not_hold_the_end(tmp_path: Path, number: signal.Signals) -> None:
    with running_daemon(tmp_path) as daemon, open_stream(daemon) as lines:
        assert daemon.tool("status").status_code == 200
        ended = end(daemon, number)
        assert list(lines) == []
        assert ended() < PROMISED_S
    check_closed(tmp_path)
    check_log(daemon)


def test_a_client_that_keeps_its_connection_does_not_hold_the_end(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon, httpx2.Client(timeout=WAIT) as client:
        assert client.post(f"{daemon.url}/api/v1/tools/status", json={}).status_code == 200
        assert end(daemon)() < PROMISED_S
    check_log(daemon)


def test_a_second_signal_changes_nothing(tmp_path: Path) -> None:
    with (
        model(SLOW) as stub,
        running_daemon(tmp_path, **stub.settings) as daemon,
        in_flight(daemon, stub, by_json) as calling,
    ):
        ended = end(daemon, signal.SIGINT)
        wait_for_drain(daemon)
        daemon.process.send_signal(signal.SIGTERM)
        assert calling.result(WAIT)["id"]
        assert ended() < PROMISED_S
    check_log(daemon)


def test_spans_and_metrics_are_sent_before_the_end(tmp_path: Path) -> None:
    collector = Collector()
    try:
        with running_daemon(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint) as daemon:
            daemon.tool("status").raise_for_status()
            assert end(daemon)() < PROMISED_S
        assert "tool" in collector.spans()
        assert "contextd_tool_calls_total" in collector.metrics()
    finally:
        collector.close()
    check_log(daemon)


def test_what_was_counted_is_written_before_the_end(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as daemon:
        daemon.tool("status").raise_for_status()
        assert end(daemon)() < PROMISED_S
    with closing(sqlite3.connect(tmp_path / "analytics.db")) as connection:
        assert connection.execute("SELECT tool, outcome FROM events").fetchall() == [("status", "ok")]


# --- stdio ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stdio_server_ends_although_its_client_stays(tmp_path: Path, number: signal.Signals) -> None:
    with running_stdio(tmp_path) as client:
        assert client.call("status")["status"] == "healthy"
        client.process.send_signal(number)
        assert client.process.wait(PROMISED_S) == 0
    check_closed(tmp_path)


@pytest.mark.parametrize(("seconds", "drain"), [(SLOW, "3.5"), (NEVER, "0.3")])
def test_a_stdio_server_answers_what_is_in_flight(tmp_path: Path, seconds: float, drain: str) -> None:
    with (
        model(seconds) as stub,
        running_stdio(tmp_path, CONTEXTD_DRAIN_S=drain, **stub.settings) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        call = {"name": "checkpoint_save", "arguments": DRAFT}
        calling = pool.submit(client.ask, "tools/call", call)
        assert stub.asked.wait(WAIT)
        client.process.send_signal(signal.SIGTERM)
        result = calling.result(WAIT)["result"]
        assert client.process.wait(PROMISED_S) == 0
    if seconds == SLOW:
        assert kept(tmp_path) == [result["structuredContent"]["id"]]
    else:
        assert result["structuredContent"]["code"] == "SRV_004"
    check_closed(tmp_path)


def test_a_stdio_server_ends_when_its_client_leaves(tmp_path: Path) -> None:
    with running_stdio(tmp_path) as client:
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(PROMISED_S) == 0


# --- without a model --------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def search(daemon: Daemon, query: str) -> list[dict[str, Any]]:
    answer = daemon.tool("checkpoint_search", query=query, project_path=SHOP)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["data"]["results"]
    return results


def state(daemon: Daemon) -> str:
    return str(daemon.tool("status").json()["data"]["status"])


def test_without_its_model_the_daemon_goes_on_by_words_and_catches_up_when_it_is_back(
    tmp_path: Path,
) -> None:
    port = free_port()
    with running_daemon(tmp_path, **at_port(port)) as daemon:
        saved = daemon.tool("checkpoint_save", summary="the apple cake is baked", project_path=SHOP)
        assert saved.status_code == 200
        (found,) = search(daemon, "apple")
        assert found["id"] == saved.json()["data"]["id"]
        assert found["distance"] is None
        assert search(daemon, "orchard") == []
        assert state(daemon) == "degraded"
        told = daemon.tool("status").json()["data"]["services"]["embedding"]
        assert told["status"] == "unhealthy"
        assert "keyword" in told["error"]
        with model(port=port):
            until(lambda: search(daemon, "orchard") != [])
            (meant,) = search(daemon, "orchard")
            assert meant["id"] == found["id"]
            assert meant["distance"] < 0.1
            assert state(daemon) == "healthy"
    check_log(daemon)

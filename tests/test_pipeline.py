"""The road of a call: deadline, cancellation, progress, faults of every kind, events."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import JSON_AND_SSE, Daemon, running_daemon, structured

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(scope="module")
def unruly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = {"CONTEXTD_PLUGINS": "unruly_tools", "PYTHONPATH": str(Path(__file__).parent)}
    with running_daemon(tmp_path_factory.mktemp("unruly"), CONTEXTD_RATE_LIMIT="off", **settings) as daemon:
        yield daemon


def eventually(true: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


def test_a_plugins_tool_answers_beside_the_others(unruly: Daemon) -> None:
    assert structured(unruly.session().call("reports"))["text"] == "reported"


@pytest.mark.parametrize(
    ("tool", "category", "code", "status"),
    [
        ("too_slow", "timeout", -32603, 504),
        ("crashes", "internal", -32603, 500),
        ("conflicts", "conflict", -32603, 409),
    ],
)
def test_a_fault_is_the_same_at_every_door(
    unruly: Daemon, tool: str, category: str, code: int, status: int
) -> None:
    older = unruly.session("2025-06-18").call(tool, mark="hunter2")["error"]
    newer = unruly.session("2025-11-25").call(tool, mark="hunter2")["result"]
    plain = unruly.tool(tool, mark="hunter2")
    assert older["code"] == code
    assert newer["isError"] is True
    assert plain.status_code == status
    for body in (older["data"], newer["structuredContent"], plain.json()):
        assert body["category"] == category
        assert set(body) == {"category", "code", "message", "details"}
        assert body["message"].startswith(f"[{category}] ")
    assert older["message"] == newer["content"][0]["text"] == older["data"]["message"]
    assert "hunter2" not in json.dumps([older, newer]) + plain.text


def test_an_internal_fault_is_in_the_log_with_its_cause_and_not_in_the_answer(unruly: Daemon) -> None:
    answer = unruly.tool("crashes", mark="cause-4711")
    assert "cause-4711" not in answer.text
    request_id = answer.json()["details"]["request_id"]
    assert request_id == answer.headers["x-request-id"]
    assert eventually(lambda: any("cause-4711" in line for line in unruly.log))


def test_an_answer_is_scrubbed_on_the_way_out(unruly: Daemon) -> None:
    text = structured(unruly.session().call("leaks"))["text"]
    assert text.startswith("token [REDACTED:github")


def test_secrets_are_counted_apart_for_the_tool_and_for_the_server(unruly: Daemon) -> None:
    def counted(rule: str, by: str) -> float:
        families = text_string_to_metric_families(httpx2.get(f"{unruly.url}/metrics").text)
        samples = (each for family in families for each in family.samples)
        return sum(each.value for each in samples if each.labels == {"rule": rule, "pass": by})

    passes = [("jwt", "tool"), ("jwt", "server"), ("github-token", "tool"), ("github-token", "server")]
    before = [counted(*each) for each in passes]
    unruly.tool("leaks")
    assert [counted(*each) for each in passes] == [before[0] + 2, 0, 0, before[3] + 1]


def test_progress_comes_on_the_stream_before_the_answer(unruly: Daemon) -> None:
    session = unruly.session()
    asked = {"name": "reports", "arguments": {}, "_meta": {"progressToken": "p1"}}
    messages = _messages(session.rpc("tools/call", asked).text)
    assert [message.get("method") for message in messages] == ["notifications/progress"] * 3 + [None]
    assert [message["params"]["progress"] for message in messages[:3]] == [1, 2, 3]
    assert {message["params"]["progressToken"] for message in messages[:3]} == {"p1"}
    assert messages[-1]["result"]["structuredContent"]["text"] == "reported"


def test_progress_reaches_the_version_without_sessions_too(unruly: Daemon) -> None:
    params = {"name": "reports", "arguments": {}, "_meta": {**MODERN_META, "progressToken": 5}}
    answer = unruly.rpc(
        "tools/call", params, mcp_protocol_version="2026-07-28", mcp_method="tools/call", mcp_name="reports"
    )
    assert len(_messages(answer.text)) == 4


@pytest.mark.parametrize("token", [None, "t"])
def test_a_cancelled_notification_ends_the_call(unruly: Daemon, tmp_path: Path, token: str | None) -> None:
    session, mark = unruly.session(), str(tmp_path / "mark")
    params: dict[str, Any] = {"name": "waits", "arguments": {"mark": mark}}
    if token:
        params["_meta"] = {"progressToken": token}
    answers: list[str] = []
    caller = threading.Thread(target=lambda: answers.append(session.rpc("tools/call", params).text))
    caller.start()
    assert eventually(Path(f"{mark}.started").exists)
    assert session.notify("notifications/cancelled", {"requestId": 1}).status_code == 202
    caller.join(timeout=10)
    assert Path(f"{mark}.cancelled").exists()
    assert "-32800" in answers[0]
    assert structured(session.call("status"))["status"] == "healthy"


def test_a_client_that_leaves_cancels_its_call_on_the_newer_wire_alone(
    unruly: Daemon, tmp_path: Path
) -> None:
    older, newer = str(tmp_path / "older"), str(tmp_path / "newer")
    session = unruly.session()
    headers = JSON_AND_SSE | {"Mcp-Session-Id": session.id, "Mcp-Protocol-Version": session.version}
    _leave(unruly, {"name": "waits", "arguments": {"mark": older}}, headers, older)
    modern = JSON_AND_SSE | {
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "waits",
    }
    _leave(unruly, {"name": "waits", "arguments": {"mark": newer}, "_meta": MODERN_META}, modern, newer)
    assert eventually(Path(f"{newer}.cancelled").exists)
    assert not Path(f"{older}.cancelled").exists()
    session.notify("notifications/cancelled", {"requestId": 1})
    assert eventually(Path(f"{older}.cancelled").exists)


def test_what_ran_is_counted_and_what_was_refused_is_not(tmp_path: Path) -> None:
    settings = {"CONTEXTD_PLUGINS": "unruly_tools", "PYTHONPATH": str(Path(__file__).parent)}
    with running_daemon(tmp_path, CONTEXTD_RATE_LIMIT="1/2", **settings) as daemon:
        daemon.tool("checkpoint_save", summary="x", project_path="/srv/x")
        daemon.tool("checkpoint_search", query="x", project_path="/srv/x")
        daemon.tool("checkpoint_search", query="x", project_path="/srv/x")
        daemon.tool("checkpoint_list", limit=0)
        daemon.tool("conflicts")
        for _ in range(4):
            daemon.tool("status")
    with closing(sqlite3.connect(tmp_path / "analytics.db")) as events:
        counted = events.execute("SELECT tool, outcome, count(*) FROM events GROUP BY 1, 2").fetchall()
        cache = events.execute("SELECT sum(cache_hits), sum(cache_misses) FROM events").fetchone()
        columns = {row[1] for row in events.execute("PRAGMA table_info(events)")}
        tokens, took = events.execute("SELECT min(tokens_out), min(duration_ms) FROM events").fetchone()
    assert ("checkpoint_save", "ok", 1) in counted
    assert ("conflicts", "REC_002", 1) in counted
    assert ("status", "ok", 2) in counted
    assert not any(tool == "checkpoint_list" for tool, *_ in counted)
    assert cache == (1, 1)
    assert tokens >= 0
    assert took > 0
    assert not columns & {"arguments", "input", "output", "content"}


def test_a_plugin_that_does_not_load_is_told_by_name(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="no_such_plugin"),
        running_daemon(tmp_path, CONTEXTD_PLUGINS="no_such_plugin"),
    ):
        pass


def _messages(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line.strip()]


def _leave(daemon: Daemon, params: dict[str, Any], headers: dict[str, str], mark: str) -> None:
    """Send a call, and hang up once it has started."""
    address = urlsplit(daemon.url)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with closing(HTTPConnection(address.hostname or "", address.port, timeout=10)) as connection:
        connection.request("POST", "/mcp", json.dumps(body), headers)
        assert eventually(Path(f"{mark}.started").exists)

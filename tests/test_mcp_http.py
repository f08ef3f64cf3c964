"""Streamable HTTP on the wire: headers, status codes, sessions, streams."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from running import JSON_AND_SSE, Daemon, Session, initialize_params, structured

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"


@pytest.mark.parametrize("version", OLDER)
def test_initialize_gives_a_session_and_the_negotiated_version(daemon: Daemon, version: str) -> None:
    answer = daemon.rpc("initialize", initialize_params(version))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["mcp-session-id"]
    assert answer.headers["mcp-protocol-version"] == version
    result = answer.json()["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "contextd"
    assert {"tools", "resources", "prompts"} <= result["capabilities"].keys()


def test_an_unknown_version_is_answered_with_the_newest_of_its_generation(daemon: Daemon) -> None:
    answer = daemon.rpc("initialize", initialize_params("1999-01-01"))
    assert answer.json()["result"]["protocolVersion"] == "2025-11-25"
    assert answer.headers["mcp-protocol-version"] == "2025-11-25"


@pytest.mark.parametrize("version", OLDER)
def test_every_version_with_sessions_lists_and_calls_tools(daemon: Daemon, version: str) -> None:
    session = daemon.session(version)
    tools = session.rpc("tools/list").json()["result"]["tools"]
    assert "checkpoint_save" in {tool["name"] for tool in tools}
    result = session.call("status")["result"]
    assert json.loads(result["content"][0]["text"])["status"] == "healthy"
    assert ("structuredContent" in result) == (version >= "2025-06-18")


def test_the_version_without_sessions_needs_no_handshake(daemon: Daemon) -> None:
    answer = _modern(daemon, "tools/call", {"name": "status", "arguments": {}}, mcp_name="status")
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"]["structuredContent"]["status"] == "healthy"


@pytest.mark.parametrize(
    ("method", "accept"),
    [
        ("POST", "application/json"),
        ("POST", "text/event-stream"),
        ("POST", "text/html"),
        ("POST", ""),
        ("GET", "application/json"),
        ("GET", ""),
    ],
)
def test_a_client_that_accepts_too_little_gets_406(daemon: Daemon, method: str, accept: str) -> None:
    headers = {"Accept": accept, "Content-Type": "application/json"}
    answer = httpx2.request(
        method, daemon.mcp, headers=headers, content=b"{}" if method == "POST" else None
    )
    assert answer.status_code == 406
    assert answer.json()["error"]["code"] == -32000


@pytest.mark.parametrize(
    "accept", ["*/*", "application/*, text/*", "application/json;q=0.5,text/event-stream"]
)
def test_wildcards_and_weights_are_understood(daemon: Daemon, accept: str) -> None:
    assert daemon.rpc("initialize", initialize_params(), accept=accept).status_code == 200


def test_a_call_without_a_session_is_400_and_with_an_unknown_one_404(daemon: Daemon) -> None:
    for method in ("tools/list", "tools/call", "ping"):
        assert daemon.rpc(method).status_code == 400
        assert daemon.rpc(method).json()["error"]["code"] == -32000
        assert daemon.rpc(method, mcp_session_id="0" * 32).status_code == 404
    for verb in ("GET", "DELETE"):
        assert httpx2.request(verb, daemon.mcp, headers=JSON_AND_SSE).status_code == 400
        unknown = JSON_AND_SSE | {"Mcp-Session-Id": "nope"}
        assert httpx2.request(verb, daemon.mcp, headers=unknown).status_code == 404


def test_delete_ends_a_session(daemon: Daemon) -> None:
    session = daemon.session()
    headers = JSON_AND_SSE | {"Mcp-Session-Id": session.id}
    assert httpx2.delete(daemon.mcp, headers=headers).status_code in (200, 204)
    assert session.rpc("tools/list").status_code == 404
    assert httpx2.delete(daemon.mcp, headers=headers).status_code == 404


def test_other_methods_are_405(daemon: Daemon) -> None:
    for verb in ("PUT", "PATCH"):
        answer = httpx2.request(verb, daemon.mcp, headers=JSON_AND_SSE, content=b"{}")
        assert answer.status_code in (400, 404, 405)


def test_a_body_over_the_bound_is_413_and_a_broken_one_400(daemon: Daemon) -> None:
    session = daemon.session()
    headers = JSON_AND_SSE | {"Mcp-Session-Id": session.id}
    assert httpx2.post(daemon.mcp, headers=headers, content=b"x" * (4 * 2**20 + 1)).status_code == 413
    broken = httpx2.post(daemon.mcp, headers=headers, content=b"{not json")
    assert broken.status_code == 400
    assert broken.json()["error"]["code"] == -32700


def test_answers_are_json_unless_progress_is_asked_for(daemon: Daemon) -> None:
    session = daemon.session()
    plain = session.rpc("tools/call", {"name": "status", "arguments": {}})
    assert plain.headers["content-type"] == "application/json"
    asked = {"name": "status", "arguments": {}, "_meta": {"progressToken": 7}}
    streamed = session.rpc("tools/call", asked)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert "no-cache" in streamed.headers["cache-control"]
    assert _events(streamed.text)[-1]["result"]["structuredContent"]["status"] == "healthy"


def test_a_stream_is_replayed_to_the_session_that_owns_it(daemon: Daemon) -> None:
    session = daemon.session()
    first_id = _first_event_id(session)
    replayed = _replay(daemon, session, first_id)
    assert replayed[0]["result"]["structuredContent"]["status"] == "healthy"


def test_a_stream_is_never_replayed_to_another_session(daemon: Daemon) -> None:
    """With one event store for all, session B was given A's results for A's Last-Event-ID."""
    owner, other = daemon.session(), daemon.session()
    secret = structured(
        owner.call("checkpoint_save", summary="only the owner may see this", project_path="/tmp/leak")
    )
    asked = {
        "name": "checkpoint_restore",
        "arguments": {"id": secret["id"]},
        "_meta": {"progressToken": "p"},
    }
    streamed = owner.rpc("tools/call", asked)
    ids = [line.removeprefix("id: ") for line in streamed.text.splitlines() if line.startswith("id: ")]
    assert ids
    for event_id in {*ids, "0", "1", "2", "3"}:
        text = _replay_text(daemon, other, event_id)
        assert "only the owner" not in text


def test_a_session_belongs_to_the_token_that_opened_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    import subprocess

    from running import command, environment, running_daemon

    data_dir = tmp_path_factory.mktemp("owned")
    secrets = [
        subprocess.run(
            command("token", "create", "--name", name),
            env=environment(data_dir),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name in ("ann", "bob")
    ]
    with running_daemon(data_dir) as guarded:
        ann, bob = (f"Bearer {secret}" for secret in secrets)
        session = guarded.session(authorization=ann)
        assert session.rpc("tools/list").status_code == 200
        assert session.rpc("tools/list", authorization=bob).status_code == 404
        assert guarded.rpc("tools/list", mcp_session_id=session.id).status_code == 401


def test_sessions_do_not_share_their_rate_limit(tmp_path_factory: pytest.TempPathFactory) -> None:
    from running import running_daemon

    with running_daemon(tmp_path_factory.mktemp("limited"), CONTEXTD_RATE_LIMIT="1/3") as limited:
        greedy, modest = limited.session("2025-06-18"), limited.session("2025-06-18")
        answers = [greedy.call("status") for _ in range(6)]
        refused = [answer["error"] for answer in answers if "error" in answer]
        assert refused
        assert refused[0]["code"] == -32603
        assert "rate limit exceeded for tool: status" in refused[0]["message"]
        assert refused[0]["data"]["details"]["retry_after_ms"] > 0
        assert "result" in modest.call("status")
        plain = [limited.tool("status") for _ in range(6)]
        assert {answer.status_code for answer in plain} == {200, 429}
        assert next(a for a in plain if a.status_code == 429).headers["retry-after"] == "1"


def test_only_one_notification_stream_a_session(daemon: Daemon) -> None:
    session = daemon.session()
    headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session.id}
    with _open_stream(daemon, headers) as first:
        assert first.status_code == 200
        assert first.headers["content-type"].startswith("text/event-stream")
        assert httpx2.get(daemon.mcp, headers=headers).status_code == 409


def test_many_sessions_at_once_keep_their_answers_apart(daemon: Daemon) -> None:
    def work(number: int) -> bool:
        session = daemon.session()
        path = f"/tmp/apart/{number}"
        saved = structured(session.call("checkpoint_save", summary=f"work {number}", project_path=path))
        listed = structured(session.call("checkpoint_list", project_path=path))
        return [c["id"] for c in listed["checkpoints"]] == [saved["id"]]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(24)))


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("evil.example", None, 421),
        ("evil.example:8080", None, 421),
        ("", None, 421),
        (None, "http://evil.example", 403),
        (None, "null", 403),
        (None, "http://localhost.evil.example", 403),
        (None, "http://localhost:3000", 200),
        ("localhost", None, 200),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/api/v1/tools/status", "/metrics", "/health", "/api"])
def test_names_and_origins_from_elsewhere_are_refused_everywhere(
    daemon: Daemon, host: str | None, origin: str | None, status: int, path: str
) -> None:
    headers = dict(JSON_AND_SSE)
    if host is not None:
        headers["Host"] = host
    if origin is not None:
        headers["Origin"] = origin
    if path == "/mcp":
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params()}
        answer = httpx2.post(daemon.url + path, headers=headers, json=body)
    elif path.startswith("/api/v1"):
        answer = httpx2.post(daemon.url + path, headers=headers, json={})
    else:
        answer = httpx2.get(daemon.url + path, headers=headers)
    assert answer.status_code == status


def test_a_cancelled_call_ends_and_the_session_goes_on(daemon: Daemon) -> None:
    session = daemon.session()
    assert session.notify("notifications/cancelled", {"requestId": 99, "reason": "gone"}).status_code == 202
    assert structured(session.call("status"))["status"] == "healthy"


def test_unknown_methods_and_tools_are_protocol_errors_for_everyone(daemon: Daemon) -> None:
    for version in OLDER:
        session = daemon.session(version)
        assert session.rpc("no/such").json()["error"]["code"] == -32601
        assert session.call("no_such_tool")["error"]["code"] == -32602
    modern = _modern(
        daemon, "tools/call", {"name": "no_such_tool", "arguments": {}}, mcp_name="no_such_tool"
    )
    assert modern.json()["error"]["code"] == -32602


def _modern(daemon: Daemon, method: str, params: dict[str, Any], **headers: str) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    return daemon.rpc(
        method, {**params, "_meta": meta}, mcp_protocol_version=MODERN, mcp_method=method, **headers
    )


def _events(text: str) -> list[dict[str, Any]]:
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line.strip()]


def _first_event_id(session: Session) -> str:
    asked = {"name": "status", "arguments": {}, "_meta": {"progressToken": 1}}
    text = session.rpc("tools/call", asked).text
    return next(line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: "))


def _replay(daemon: Daemon, session: Session, event_id: str) -> list[dict[str, Any]]:
    return _events(_replay_text(daemon, session, event_id))


def _replay_text(daemon: Daemon, session: Session, event_id: str) -> str:
    """What a stream gives when it is resumed there, until its first message or for a second."""
    headers = {
        "Accept": "text/event-stream",
        "Mcp-Session-Id": session.id,
        "Mcp-Protocol-Version": session.version,
        "Last-Event-ID": event_id,
    }
    text = ""
    try:
        with httpx2.stream("GET", daemon.mcp, headers=headers, timeout=1) as stream:
            for line in stream.iter_lines():
                text += line + "\n"
                if line.startswith("data: {"):
                    break
    except httpx2.ReadTimeout:
        pass
    return text


@contextmanager
def _open_stream(daemon: Daemon, headers: dict[str, str]) -> Iterator[httpx2.Response]:
    with httpx2.Client(timeout=5) as client, client.stream("GET", daemon.mcp, headers=headers) as stream:
        yield stream

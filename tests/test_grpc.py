"""gRPC: the same answers and faults as at every other door, on a socket that is the owner's alone."""

import json
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from jsonschema import Draft202012Validator

from contextd import __version__
from contextd.domain.errors import catalogue
from contextd.edge.error_map import codes
from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.plugins import load_extensions
from grpc_calls import WAIT_S, Client, asked, body_of, client_of, socket_of
from running import KEYWORD_ONLY, Daemon, command, environment, running_daemon
from test_pipeline import eventually

ROOT = Path(__file__).parent.parent
TOOLS = {tool.name: tool for tool in load_extensions().tools}
UNRULY = {
    "CONTEXTD_PLUGINS": "unruly_tools",
    "PYTHONPATH": str(Path(__file__).parent),
    "CONTEXTD_RATE_LIMIT": "off",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(tmp_path_factory.mktemp("grpc"), **UNRULY) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def client(served: Daemon) -> Iterator[Client]:
    with client_of(served) as connected:
        yield connected


def over_http(daemon: Daemon, name: str, arguments: dict[str, Any]) -> object:
    """The data's fields, or the fault's code."""
    told = daemon.tool(name, **arguments).json()
    return set(told["data"]) if "data" in told else told["code"]


def over_grpc(client: Client, name: str, arguments: dict[str, Any]) -> object:
    try:
        return set(client.data(name, **arguments))
    except grpc.RpcError as error:
        return body_of(error)["code"]


@pytest.mark.parametrize("name", TOOLS)
def test_every_example_of_every_tool_ends_as_it_does_over_http(
    daemon: Daemon, client: Client, name: str
) -> None:
    """Two daemons, each of which sees it once: some things can only be made once."""
    for example in TOOLS[name].examples:
        arguments = dict(example.arguments)
        assert over_grpc(client, name, arguments) == over_http(daemon, name, arguments)


def test_an_answer_has_the_same_data_and_envelope_as_over_http(served: Daemon, client: Client) -> None:
    for number in range(30):
        client.execute(
            "checkpoint_save", summary=f"step {number} " + "word " * 60, project_path="/srv/same"
        )
    arguments = {"project_path": "/srv/same", "limit": 30, "token_budget": 300}
    reply = client.execute("checkpoint_list", **arguments)
    over_http = served.tool("checkpoint_list", **arguments).json()
    assert json.loads(reply.data)["total"] == over_http["data"]["total"] == 30
    assert reply.truncated is reply.has_more is over_http["truncated"] is True
    assert abs(reply.tokens_used - over_http["tokens_used"]) <= 5  # refs differ
    more = client.refs.GetRef(wire.GetRefRequest(ref=reply.refs[0], end_line=2), timeout=WAIT_S)
    assert json.loads(more.data)["end_line"] == 2


def test_numbers_stay_as_they_were_written(client: Client) -> None:
    exact = {"big": 2**53 + 1, "whole": 1, "half": 0.5}
    saved = client.data("checkpoint_save", summary="numbers", project_path="/srv/numbers", context=exact)
    assert client.data("checkpoint_restore", id=saved["id"])["context"] == exact


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("checkpoint_list", {"limit": 0}, grpc.StatusCode.INVALID_ARGUMENT, "VAL_004"),
        ("checkpoint_restore", {"id": "nope"}, grpc.StatusCode.NOT_FOUND, "REC_001"),
        ("no_such_tool", {}, grpc.StatusCode.NOT_FOUND, "TOOL_001"),
        ("search_code", {"path": "/tmp", "query": "x"}, grpc.StatusCode.FAILED_PRECONDITION, "IDX_003"),
        ("too_slow", {}, grpc.StatusCode.DEADLINE_EXCEEDED, "LIM_002"),
        ("conflicts", {}, grpc.StatusCode.ABORTED, "REC_002"),
        ("crashes", {"mark": "hunter2"}, grpc.StatusCode.INTERNAL, "SRV_500"),
    ],
)
def test_a_fault_has_its_status_and_its_body_beside_it(
    client: Client, tool: str, arguments: dict[str, Any], status: grpc.StatusCode, code: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client.execute(tool, **arguments)
    assert raised.value.code() is status
    told = body_of(raised.value)
    assert told["code"] == code
    assert told["message"] == raised.value.details()
    assert "hunter2" not in str(raised.value)


def test_every_fault_of_the_catalogue_has_a_status_that_grpc_knows() -> None:
    for fault in catalogue():
        assert codes(fault).grpc in grpc.StatusCode.__members__, fault.id


def test_who_asks_for_it_gets_a_fault_as_a_message(client: Client) -> None:
    inline = (("contextd-inline-faults", "1"),)
    reply = client.tools.Execute(asked("checkpoint_list", limit=0), metadata=inline, timeout=WAIT_S)
    assert (reply.fault.category, reply.fault.code) == ("validation", "VAL_004")
    assert json.loads(reply.fault.details)["field"] == "limit"
    missing = client.tools.GetSchema(wire.GetSchemaRequest(tool="nope"), metadata=inline, timeout=WAIT_S)
    assert missing.fault.code == "TOOL_001"


@pytest.mark.parametrize("sent", [b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_arguments_that_are_no_json_object_are_refused(client: Client, sent: bytes) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client.tools.Execute(wire.ExecuteRequest(tool="status", arguments=sent), timeout=WAIT_S)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_request_over_four_mebibytes_is_refused_and_one_below_is_read(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client.execute("checkpoint_save", summary="x" * 4 * 2**20, project_path="/srv/big")
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    with pytest.raises(grpc.RpcError) as raised:
        client.execute("checkpoint_save", summary="x" * 3 * 2**20, project_path="/srv/big")
    assert body_of(raised.value)["code"] == "VAL_003"


def test_a_stream_brings_progress_and_then_the_answer(client: Client) -> None:
    events = list(client.tools.ExecuteStream(asked("reports"), timeout=WAIT_S))
    assert [event.WhichOneof("event") for event in events] == ["progress"] * 3 + ["reply"]
    assert [(event.progress.done, event.progress.total) for event in events[:3]] == [(1, 3), (2, 3), (3, 3)]
    assert json.loads(events[-1].reply.data) == {"text": "reported"}


def test_a_fault_ends_a_stream_with_its_status(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(client.tools.ExecuteStream(asked("conflicts"), timeout=WAIT_S))
    assert raised.value.code() is grpc.StatusCode.ABORTED


@pytest.mark.parametrize("method", ["Execute", "ExecuteStream"])
def test_a_caller_that_cancels_ends_its_call(client: Client, tmp_path: Path, method: str) -> None:
    mark = tmp_path / "mark"
    ask = asked("waits", mark=str(mark))
    calls = {
        "Execute": lambda: client.tools.Execute.future(ask, timeout=WAIT_S),
        "ExecuteStream": lambda: client.tools.ExecuteStream(ask, timeout=WAIT_S),
    }
    call = calls[method]()
    assert eventually(Path(f"{mark}.started").exists)
    call.cancel()
    assert eventually(Path(f"{mark}.cancelled").exists)


def test_a_deadline_reaches_the_tool(client: Client, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(grpc.RpcError) as raised:
        client.tools.Execute(asked("waits", mark=str(mark)), timeout=0.5)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert eventually(Path(f"{mark}.cancelled").exists)


def test_tools_are_listed_and_told_whole(client: Client) -> None:
    listed = client.tools.ListTools(wire.ListToolsRequest(), timeout=WAIT_S).tools
    assert {tool.name for tool in listed} >= {name for name, tool in TOOLS.items() if not tool.lean_only}
    assert "inputSchema" in json.loads(listed[0].listing)
    told = client.tools.GetSchema(wire.GetSchemaRequest(tool="checkpoint_save"), timeout=WAIT_S)
    schema = json.loads(told.schema)
    Draft202012Validator(schema["input"]).validate(schema["examples"][0]["arguments"])
    assert told.tool_md.startswith("---\nname: checkpoint_save")


def test_management_tells_how_the_daemon_is(served: Daemon, client: Client) -> None:
    status = client.management.Status(wire.StatusRequest(), timeout=WAIT_S)
    assert (status.status, status.version, status.pid) == ("healthy", __version__, served.process.pid)
    assert {part.name for part in status.parts} >= {"store", "embedding"}


@pytest.mark.parametrize("service", ["", "contextd.v1.ToolService"])
def test_the_standard_health_check_answers(client: Client, service: str) -> None:
    answer = client.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=WAIT_S)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_rate_limits_hold_here_too(tmp_path: Path) -> None:
    with (
        running_daemon(tmp_path, CONTEXTD_RATE_LIMIT="1/2", **KEYWORD_ONLY) as limited,
        client_of(limited) as client,
        pytest.raises(grpc.RpcError) as raised,
    ):
        for _ in range(3):
            client.execute("status")
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert body_of(raised.value)["details"]["retry_after_ms"] > 0


def test_the_socket_is_the_owners_alone(served: Daemon) -> None:
    socket = socket_of(served.data_dir)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_a_socket_that_a_dead_daemon_left_is_replaced(tmp_path: Path) -> None:
    with running_daemon(tmp_path, **KEYWORD_ONLY) as first:
        first.process.kill()
        first.process.wait(timeout=10)
        assert socket_of(tmp_path).is_socket()
    with running_daemon(tmp_path, **KEYWORD_ONLY) as second, client_of(second) as client:
        assert client.data("status")["version"] == __version__
    assert not socket_of(tmp_path).exists()


def test_a_second_daemon_leaves_the_first_its_socket(tmp_path: Path) -> None:
    with (
        running_daemon(tmp_path, **KEYWORD_ONLY) as first,
        running_daemon(tmp_path, **KEYWORD_ONLY) as other,
    ):
        assert any(f"process {first.process.pid}" in line for line in other.log)
        other.stop()
        with client_of(first) as client:
            status = client.management.Status(wire.StatusRequest(), timeout=WAIT_S)
        assert status.pid == first.process.pid


def test_a_place_that_was_named_must_be_had(tmp_path: Path) -> None:
    taken = f"unix:{socket_of(tmp_path)}"
    with (
        running_daemon(tmp_path, **KEYWORD_ONLY),
        pytest.raises(AssertionError, match="another contextd"),
        running_daemon(tmp_path, CONTEXTD_GRPC=taken, **KEYWORD_ONLY),
    ):
        pass
    (tmp_path / "open").mkdir(mode=0o755)
    with (
        pytest.raises(AssertionError, match="open to others"),
        running_daemon(tmp_path, CONTEXTD_GRPC=f"unix:{tmp_path}/open/s", **KEYWORD_ONLY),
    ):
        pass
    with (
        pytest.raises(AssertionError, match="longer than"),
        running_daemon(tmp_path, CONTEXTD_GRPC=f"unix:{tmp_path}/{'x' * 120}", **KEYWORD_ONLY),
    ):
        pass


def test_the_doctor_names_who_serves(served: Daemon) -> None:
    shown = subprocess.run(
        command("doctor"),
        env=environment(served.data_dir, CONTEXTD_HTTP_PORT="0", **KEYWORD_ONLY),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f"is served by process {served.process.pid}" in shown.stdout


@pytest.mark.parametrize("place", ["nowhere", "unix:relative", "localhost:99999", "http://a:1"])
def test_a_place_that_is_none_is_told(tmp_path: Path, place: str) -> None:
    ran = subprocess.run(
        command("serve", "--port", "0"),
        env=environment(tmp_path, CONTEXTD_GRPC=place),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 2
    assert "CONTEXTD_GRPC is not usable" in ran.stderr


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with running_daemon(tmp_path, CONTEXTD_GRPC="off", **KEYWORD_ONLY):
        assert not socket_of(tmp_path).exists()


def test_a_daemon_that_is_told_to_stop_lets_a_call_finish_and_removes_its_socket(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    ended: list[str] = []

    def call(client: Client) -> None:
        try:
            client.execute("waits", mark=str(mark))
        except grpc.RpcError as error:
            ended.append(body_of(error)["code"])

    with running_daemon(tmp_path, CONTEXTD_DRAIN_S="0.3", **UNRULY) as daemon, client_of(daemon) as client:
        caller = threading.Thread(target=call, args=(client,))
        caller.start()
        assert eventually(Path(f"{mark}.started").exists)
        client.management.Shutdown(wire.ShutdownRequest(), timeout=WAIT_S)
        caller.join(timeout=WAIT_S)
        assert daemon.process.wait(timeout=WAIT_S) == 0
    assert ended == ["SRV_004"]
    assert not socket_of(tmp_path).exists()


def test_what_is_generated_is_current(tmp_path: Path) -> None:
    """`make proto` writes it."""
    source = "contextd/edge/grpc/contextd_v1.proto"
    outputs = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT / "src"), *outputs, source],
        check=True,
        timeout=60,
    )
    made = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(made) == 3
    for path in made:
        kept = ROOT / "src" / path.relative_to(tmp_path)
        assert path.read_text() == kept.read_text()

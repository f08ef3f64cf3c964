"""The official Python client against the real program: over HTTP and stdio, on each generation."""

import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import session as client_session
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from running import Daemon, command, environment, initialize_params, running_daemon

WITH_UNRULY_TOOLS = {"CONTEXTD_PLUGINS": "unruly_tools", "PYTHONPATH": str(Path(__file__).parent)}
MODERN = "2026-07-28"
TOOL_ERRORS_SINCE = "2025-11-25"
HALF_A_MINUTE = 30


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For the whole module, so that its clients can stay connected from test to test."""
    return "asyncio"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(
        tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off", **WITH_UNRULY_TOOLS
    ) as started:
        yield started


@pytest.fixture(scope="module", params=["2025-06-18", "2025-11-25", MODERN])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["http", "stdio"])
async def client(
    request: pytest.FixtureRequest, version: str, daemon: Daemon, anyio_backend: str
) -> AsyncIterator[Client]:
    """Connected by each transport, and offering no newer version than this."""
    transport = (
        streamable_http_client(daemon.mcp)
        if request.param == "http"
        else stdio_client(_mcp_command(daemon.data_dir))
    )
    mode = "auto" if version == MODERN else "legacy"
    with pytest.MonkeyPatch.context() as patch:
        # Left to itself the client offers the newest that it knows; older ones in the field cannot.
        patch.setattr(client_session, "LATEST_HANDSHAKE_VERSION", min(version, "2025-11-25"))
        # Nothing from its cache: each test asks the server.
        connection = Client(transport, mode=mode, read_timeout_seconds=HALF_A_MINUTE, cache=None)
        async with connection as connected:
            yield connected


def _mcp_command(data_dir: Path) -> StdioServerParameters:
    program, *arguments = command("mcp")
    settings = environment(data_dir, CONTEXTD_RATE_LIMIT="off", **WITH_UNRULY_TOOLS)
    return StdioServerParameters(command=program, args=arguments, env=settings)


# --- what each generation sees ----------------------------------------------------------


@pytest.mark.anyio
async def test_a_client_learns_who_answers_and_what_there_is(client: Client, version: str) -> None:
    assert client.protocol_version == version
    assert client.server_info is not None
    assert client.server_info.name == "contextd"
    assert "checkpoint_save" in (client.instructions or "")
    can = client.server_capabilities
    assert can.tools and can.resources and can.prompts and can.completions
    tools = (await client.list_tools()).tools
    assert {"checkpoint_save", "checkpoint_search", "checkpoint_restore", "status"} <= {
        tool.name for tool in tools
    }
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.description
        assert tool.annotations is not None


@pytest.mark.anyio
async def test_what_was_saved_is_found_and_restored(client: Client, tmp_path: Path) -> None:
    schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

    async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
        return _valid(await client.call_tool(name, arguments), schemas[name])

    saved = await call(
        "checkpoint_save",
        summary="The parser reads nested blocks",
        description="Recursion was replaced by a stack",
        project_path=str(tmp_path),
        tags=["parser"],
    )
    found = await call("checkpoint_search", query="nested blocks", project_path=str(tmp_path))
    assert [hit["id"] for hit in found["results"]] == [saved["id"]]
    restored = await call("checkpoint_restore", id=saved["id"])
    assert restored["description"] == "Recursion was replaced by a stack"
    listed = await call("checkpoint_list", project_path=str(tmp_path))
    assert listed["total"] == 1


@pytest.mark.anyio
async def test_a_tools_fault_reaches_the_client_in_the_form_of_its_generation(client: Client) -> None:
    """Until 2025-06-18 as a JSON-RPC error, later as a result that the model can read."""
    for arguments, category, code in (
        ({"id": "cp_unknown"}, "not_found", -32603),
        ({"id": 7}, "validation", -32602),
        ({}, "validation", -32602),
    ):
        if client.protocol_version < TOOL_ERRORS_SINCE:
            with pytest.raises(MCPError) as raised:
                await client.call_tool("checkpoint_restore", arguments)
            assert raised.value.error.code == code
            body, message = raised.value.error.data, raised.value.error.message
        else:
            result = await client.call_tool("checkpoint_restore", arguments)
            assert result.is_error
            body, message = result.structured_content, _text(result)
        assert body["category"] == category
        assert body["message"] == message
        assert message.startswith(f"[{category}] ")
    assert not (await client.call_tool("status", {})).is_error


@pytest.mark.anyio
async def test_a_fault_is_valid_by_the_output_schema_of_every_tool(client: Client) -> None:
    """Some clients hold failed calls against it, and would show their own complaint instead."""
    fault = {"category": "not_found", "code": "REC_001", "message": "gone: look again", "details": {}}
    for tool in (await client.list_tools()).tools:
        assert tool.output_schema is not None
        validator = Draft202012Validator(tool.output_schema)
        assert validator.is_valid(fault), tool.name
        assert not validator.is_valid({}), tool.name


@pytest.mark.anyio
async def test_a_tool_that_does_not_exist_is_a_protocol_error(client: Client) -> None:
    with pytest.raises(MCPError) as unknown:
        await client.call_tool("no_such_tool", {})
    assert unknown.value.error.code == -32602


@pytest.mark.anyio
async def test_checkpoints_and_tool_pages_can_be_read_as_resources(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    saved = daemon.tool(
        "checkpoint_save", summary="Readable as a resource", project_path=str(tmp_path)
    ).json()["data"]
    templates = (await client.list_resource_templates()).resource_templates
    assert {t.uri_template for t in templates} == {
        "contextd://checkpoints/{id}",
        "contextd://memories/{id}",
        "contextd://refs/{ref}",
        "contextd://skills/{id}",
        "contextd://tools/{name}",
    }
    first = (await client.list_resources()).resources[0]
    assert first.uri == f"contextd://checkpoints/{saved['id']}"
    assert json.loads(_contents(await client.read_resource(first.uri)))["id"] == saved["id"]
    page = _contents(await client.read_resource("contextd://tools/checkpoint_save"))
    assert "name: checkpoint_save" in page
    assert "Use: " in page
    with pytest.raises(MCPError) as missing:
        await client.read_resource("contextd://checkpoints/cp_unknown")
    assert missing.value.error.code == (-32602 if client.protocol_version >= MODERN else -32002)


@pytest.mark.anyio
async def test_prompts_are_offered_filled_in_and_completed(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    daemon.tool("checkpoint_save", summary="Half of the prompts", project_path=str(tmp_path))
    assert {p.name for p in (await client.list_prompts()).prompts} == {
        "resume-work",
        "diagnose-error",
        "end-of-session",
    }
    prompt = await client.get_prompt("resume-work", {"project_path": str(tmp_path)})
    content = prompt.messages[0].content
    assert isinstance(content, types.TextContent)
    assert "Half of the prompts" in content.text
    completed = await client.complete(
        types.PromptReference(name="resume-work"),
        {"name": "project_path", "value": str(tmp_path.parent)},
    )
    assert str(tmp_path) in completed.completion.values
    with pytest.raises(MCPError) as unknown:
        await client.get_prompt("no-such-prompt", {})
    assert unknown.value.error.code == -32602


@pytest.mark.anyio
async def test_progress_is_told_to_who_asks_for_it_before_the_answer_comes(client: Client) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    assert not (await client.call_tool("reports", {}, progress_callback=told)).is_error
    assert heard == [(step, 3, f"step {step}") for step in (1, 2, 3)]
    assert not (await client.call_tool("reports", {})).is_error
    assert len(heard) == 3


@pytest.mark.anyio
async def test_calls_made_at_once_get_their_own_answers(client: Client) -> None:

    async def search(query: str) -> None:
        answer = await client.call_tool("checkpoint_search", {"query": query})
        assert answer.structured_content["query"] == query

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(search, f"question {number}")


@pytest.mark.anyio
async def test_a_long_list_of_resources_comes_in_pages(
    client: Client, daemon: Daemon, tmp_path: Path
) -> None:
    while daemon.tool("checkpoint_list", limit=1).json()["data"]["total"] <= 50:
        daemon.tool("checkpoint_save", summary="One of many", project_path=str(tmp_path))
    first = await client.list_resources()
    assert first.next_cursor is not None
    second = await client.list_resources(cursor=first.next_cursor)
    uris = [resource.uri for resource in (*first.resources, *second.resources)]
    assert len(uris) == len(set(uris))
    assert len(first.resources) == 50
    with pytest.raises(MCPError) as wrong:
        await client.list_resources(cursor="not a cursor")
    assert wrong.value.error.code == -32602


# --- one data folder, many servers -------------------------------------------------------


@pytest.mark.anyio
async def test_servers_on_one_data_folder_see_what_the_others_write(daemon: Daemon, tmp_path: Path) -> None:
    def servers() -> list[AbstractAsyncContextManager[Client]]:
        return [
            Client(stdio_client(_mcp_command(daemon.data_dir)), read_timeout_seconds=HALF_A_MINUTE),
            Client(stdio_client(_mcp_command(daemon.data_dir)), read_timeout_seconds=HALF_A_MINUTE),
            Client(daemon.mcp, read_timeout_seconds=HALF_A_MINUTE),
        ]

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(server) for server in servers()]
        saved = set()
        for number, writer in enumerate(clients):
            arguments = {"summary": f"Written by {number}", "project_path": str(tmp_path)}
            answer = await writer.call_tool("checkpoint_save", arguments)
            saved.add(answer.structured_content["id"])
            for reader in clients:
                assert await _listed(reader, tmp_path) == saved
                found = await reader.call_tool(
                    "checkpoint_search", {"query": f"written by {number}", "project_path": str(tmp_path)}
                )
                assert answer.structured_content["id"] in {
                    hit["id"] for hit in found.structured_content["results"]
                }


@pytest.mark.anyio
async def test_servers_on_one_data_folder_write_at_the_same_time(daemon: Daemon, tmp_path: Path) -> None:
    async with (
        Client(stdio_client(_mcp_command(daemon.data_dir))) as one,
        Client(stdio_client(_mcp_command(daemon.data_dir))) as other,
        Client(daemon.mcp) as third,
        anyio.create_task_group() as tasks,
    ):

        async def write(client: Client, name: str) -> None:
            for number in range(10):
                arguments = {"summary": f"{name} {number}", "project_path": str(tmp_path)}
                assert not (await client.call_tool("checkpoint_save", arguments)).is_error

        for client, name in ((one, "one"), (other, "other"), (third, "third")):
            tasks.start_soon(write, client, name)
    listed = daemon.tool("checkpoint_list", project_path=str(tmp_path), limit=100).json()["data"]
    assert listed["total"] == 30


# --- stdio as a process ------------------------------------------------------------------


@dataclass
class StdioServer:
    """`contextd mcp`, spoken to by hand: every line of its standard output is looked at."""

    process: subprocess.Popen[str]

    def ask(self, id: int, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.tell(method, params, id=id)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == id:
                return message
        raise AssertionError("it ended without an answer")

    def tell(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
        self._input.write(json.dumps(message) + "\n")
        self._input.flush()

    def write(self, line: str) -> None:
        self._input.write(line + "\n")
        self._input.flush()

    def end(self) -> tuple[int, str]:
        """Close its input; its exit status and what else it wrote."""
        rest, _ = self.process.communicate(timeout=5)
        return self.process.returncode, rest

    @property
    def _input(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin


@pytest.fixture
def start_stdio(tmp_path: Path) -> Iterator[Callable[..., StdioServer]]:
    with ExitStack() as stack:

        def start(*arguments: str, **settings: str) -> StdioServer:
            process = stack.enter_context(
                subprocess.Popen(
                    command(*arguments),
                    env=environment(tmp_path / "data", **settings),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            stack.callback(process.kill)
            server = StdioServer(process)
            opened = server.ask(1, "initialize", initialize_params())
            assert opened["result"]["serverInfo"]["name"] == "contextd"
            server.tell("notifications/initialized")
            return server

        yield start


@pytest.mark.parametrize("arguments", [("mcp",), ("--mcp",)])
def test_standard_output_carries_messages_only_and_ends_with_the_input(
    start_stdio: Callable[..., StdioServer], arguments: tuple[str, ...], tmp_path: Path
) -> None:
    server = start_stdio(*arguments, CONTEXTD_LOG_LEVEL="debug")
    saved = server.ask(
        2,
        "tools/call",
        {
            "name": "checkpoint_save",
            "arguments": {"summary": "By hand", "project_path": str(tmp_path)},
        },
    )
    assert saved["result"]["structuredContent"]["summary"] == "By hand"
    assert server.ask(3, "no/such/method")["error"]["code"] == -32601
    assert server.end() == (0, "")


def test_a_line_that_is_no_message_does_not_end_the_server(
    start_stdio: Callable[..., StdioServer],
) -> None:
    server = start_stdio("mcp")
    for line in ("this is not JSON", '{"jsonrpc": "2.0"}', "[]", "", "null", "\x7f"):
        server.write(line)
    assert "tools" in server.ask(2, "tools/list")["result"]
    assert server.end() == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_stdio_server_although_its_client_is_silent(
    start_stdio: Callable[..., StdioServer], number: signal.Signals
) -> None:
    server = start_stdio("mcp")
    server.process.send_signal(number)
    assert server.process.wait(timeout=5) == 0
    assert server.process.stdout is not None
    assert server.process.stdout.read() == ""


@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_a_call_under_way_does_not_keep_a_stdio_server_from_ending(
    start_stdio: Callable[..., StdioServer], tmp_path: Path, how: str
) -> None:
    server = start_stdio("mcp", CONTEXTD_DRAIN_S="0.2", **WITH_UNRULY_TOOLS)
    mark = tmp_path / "call"
    server.tell("tools/call", {"name": "waits", "arguments": {"mark": str(mark)}}, id=2)
    _wait_for(mark.with_suffix(".started"))
    if how == "signal":
        server.process.terminate()
        assert server.process.wait(timeout=5) == 0
    else:
        assert server.end()[0] == 0
    assert mark.with_suffix(".cancelled").exists()


# --- reading answers ---------------------------------------------------------------------


def _valid(result: types.CallToolResult, schema: dict[str, Any] | None) -> dict[str, Any]:
    """The structured answer, after it was held against the tool's schema and its text."""
    assert schema is not None
    assert not result.is_error
    content: dict[str, Any] = result.structured_content
    Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(content)
    assert json.loads(_text(result)) == content
    return content


def _text(result: types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, types.TextContent)
    return content.text


def _contents(result: types.ReadResourceResult) -> str:
    content = result.contents[0]
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def _listed(client: Client, project: Path) -> set[str]:
    answer = await client.call_tool("checkpoint_list", {"project_path": str(project)})
    return {checkpoint["id"] for checkpoint in answer.structured_content["checkpoints"]}


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} did not appear"
        time.sleep(0.01)

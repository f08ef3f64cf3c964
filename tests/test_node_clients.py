"""Agents' own clients, as npm installs them, connected over HTTP and stdio as docs/clients.md has it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from node import npm
from running import Daemon, command, environment, running_daemon

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

DOCUMENT = Path(__file__).parent.parent / "docs" / "clients.md"
ADDRESS = "http://127.0.0.1:8080/mcp"
CLIENT_S = 60
WITH_UNRULY_TOOLS = {"CONTEXTD_PLUGINS": "unruly_tools", "PYTHONPATH": str(Path(__file__).parent)}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(
        tmp_path_factory.mktemp("data"), CONTEXTD_RATE_LIMIT="off", **WITH_UNRULY_TOOLS
    ) as started:
        yield started


@dataclass(frozen=True)
class Guarded:
    """A daemon that wants a token, and one that it takes."""

    mcp: str
    token: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    data_dir = tmp_path_factory.mktemp("guarded")
    made = subprocess.run(
        command("token", "create", "--name", "agent"),
        env=environment(data_dir),
        capture_output=True,
        text=True,
        check=True,
    )
    with running_daemon(data_dir) as started:
        yield Guarded(started.mcp, made.stdout.strip())


@dataclass(frozen=True)
class Desk:
    """Where one client works: a home and a project of its own, and the servers to reach."""

    home: Path
    daemon: Daemon
    guarded: Guarded
    programs: tuple[Path, ...] = ()

    @property
    def project(self) -> Path:
        folder = self.home / "project"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def environment(self) -> dict[str, str]:
        clean = npm.environment(self.home, CONTEXTD_TOKEN=self.guarded.token)
        folders = [str(self._starter()), *map(str, self.programs), clean["PATH"]]
        return {**clean, "PATH": os.pathsep.join(folders)}

    def run(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CLIENT_S,
            check=False,
        )
        said = _COLOUR.sub("", done.stdout + done.stderr)
        assert done.returncode == 0, said
        return said

    def _starter(self) -> Path:
        """A folder with `contextd` in it, its data here: some clients pass no environment on."""
        folder = self.home / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        settings = environment(self.home / "data", CONTEXTD_RATE_LIMIT="off", **WITH_UNRULY_TOOLS)
        lines = [f"export {name}='{value}'" for name, value in settings.items()]
        starter = folder / "contextd"
        starter.write_text("\n".join(["#!/bin/sh", *lines, f'exec {sys.executable} -m contextd "$@"', ""]))
        starter.chmod(0o755)
        return folder


@pytest.fixture
def desk(tmp_path: Path, daemon: Daemon, guarded: Guarded) -> Desk:
    return Desk(tmp_path, daemon, guarded)


# --- the official SDK --------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_typescript_sdk_saves_finds_fails_and_reads(desk: Desk, transport: str) -> None:
    seen = _typescript(desk, transport)
    assert seen["server"]["name"] == "contextd"
    assert {"checkpoint_save", "checkpoint_search", "status"} <= set(seen["tools"])
    saved = seen["saved"]["id"]
    assert [hit["id"] for hit in seen["found"]["results"]] == [saved]
    assert seen["restored"]["summary"] == "Saved from Node"
    assert seen["progressed"]["text"] == "reported"
    # This client drops what comes in the same read as the answer.
    assert seen["progress"] == ["step 1", "step 2", "step 3"][: len(seen["progress"])]
    assert seen["failed"]["isError"] is True
    assert seen["failed"]["category"] == "not_found"
    assert seen["unknownTool"]["code"] == -32602
    assert f"contextd://checkpoints/{saved}" in seen["resources"]
    assert seen["page"].startswith("---\nname: status\n")
    assert seen["missing"]["code"] == -32002
    assert seen["prompts"] == ["resume-work", "diagnose-error", "end-of-session"]
    assert "Saved from Node" in seen["prompt"][0]["content"]["text"]


def _typescript(desk: Desk, transport: str) -> dict[str, Any]:
    # Modules are looked for from the script upwards, so it stands beside its packages.
    script = desk.home / "client.mjs"
    script.write_text((Path(npm.__file__).with_name("client.mjs")).read_text())
    (desk.home / "node_modules").symlink_to(npm.installed("@modelcontextprotocol/sdk"))
    target = [desk.daemon.mcp] if transport == "http" else ["contextd", "mcp"]
    said = desk.run("node", script, desk.project, transport, *target)
    seen: dict[str, Any] = json.loads(said.splitlines()[-1])
    return seen


# --- agents, as docs/clients.md connects them --------------------------------------------


@dataclass(frozen=True)
class Agent:
    """How it is called in the document, where it comes from, and how it says that it is connected."""

    name: str
    package: str
    program: str
    connected: Callable[[Desk], bool]
    settings: str = ""


def _lists(program: str, sign: str) -> Callable[[Desk], bool]:
    return lambda desk: bool(re.search(sign, desk.run(program, "mcp", "list"), re.MULTILINE))


def _codex_has_tools(desk: Desk) -> bool:
    """It has no command that connects, but the server that editors start it as has a request for it."""
    asked = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "mcpServerStatus/list", "params": {}},
    ]
    with subprocess.Popen(
        ["codex", "app-server"],
        cwd=desk.project,
        env=desk.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(message) + "\n" for message in asked))
        server.stdin.flush()
        answer = next(found for found in map(json.loads, server.stdout) if found.get("id") == 1)
        server.stdin.close()
        server.wait(timeout=CLIENT_S)
    (found,) = answer["result"]["data"]
    return found["name"] == "contextd" and "checkpoint_save" in found["tools"]


AGENTS = (
    Agent(
        "Claude Code",
        "@anthropic-ai/claude-code",
        "claude",
        _lists("claude", r"^contextd: .* - ✔ Connected$"),
    ),
    Agent("Codex", "@openai/codex", "codex", _codex_has_tools),
    Agent(
        "opencode",
        "opencode-ai",
        "opencode",
        _lists("opencode", r"✓ contextd\s+connected"),
        "opencode.json",
    ),
    Agent("Gemini CLI", "@google/gemini-cli", "gemini", _lists("gemini", r"^✓ contextd: .* - Connected$")),
)


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.program)
def agent(request: pytest.FixtureRequest) -> Agent:
    found: Agent = request.param
    npm.installed(found.package)
    return found


@pytest.mark.parametrize("way", ["HTTP", "stdio", "With a token"])
def test_an_agent_connects_as_the_document_says(agent: Agent, way: str, desk: Desk) -> None:
    desk = _at_work(desk, agent)
    _follow(
        desk, agent, _documented(agent.name, way), desk.guarded.mcp if "token" in way else desk.daemon.mcp
    )
    assert agent.connected(desk)


def test_an_agent_without_the_token_that_is_wanted_does_not_connect(agent: Agent, desk: Desk) -> None:
    desk = _at_work(desk, agent)
    _follow(desk, agent, _documented(agent.name, "HTTP"), desk.guarded.mcp)
    assert not agent.connected(desk)


def test_the_document_names_the_versions_that_are_tested() -> None:
    text = DOCUMENT.read_text()
    for agent in AGENTS:
        section = text.split(f"\n## {agent.name}\n")[1]
        assert section.lstrip().startswith(f"Verified: {npm.version(agent.package)}.")
    for package in ("@modelcontextprotocol/sdk", "@modelcontextprotocol/conformance"):
        assert f"`{package}` {npm.version(package)}" in text


def _at_work(desk: Desk, agent: Agent) -> Desk:
    trusted = desk.home / ".gemini" / "trustedFolders.json"
    trusted.parent.mkdir(parents=True)
    trusted.write_text(json.dumps({str(desk.project): "TRUST_FOLDER"}))
    return replace(desk, programs=(npm.installed(agent.package) / ".bin",))


def _documented(client: str, way: str) -> str:
    """The block of the document, without its fences."""
    section = DOCUMENT.read_text().split(f"\n## {client}\n")[1].split("\n## ")[0]
    part = section.split(f"\n### {way}\n")[1]
    return part.split("```")[1].split("\n", 1)[1]


def _follow(desk: Desk, agent: Agent, block: str, address: str) -> None:
    assert block.count(ADDRESS) <= 1
    block = block.replace(ADDRESS, address)
    if agent.settings:
        (desk.project / agent.settings).write_text(block)
    else:
        desk.run("sh", "-e", "-c", block)

"""A daemon of the tests' own: a real process on a free port, with a folder of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

JSON_AND_SSE = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_ADDRESS = re.compile(r"listening on (http://\S+)")


def environment(data_dir: Path, **settings: str) -> dict[str, str]:
    """Only what a daemon needs: a developer's own settings must not leak into the tests."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {
        **kept,
        "CONTEXTD_DATA_DIR": str(data_dir),
        "CONTEXTD_CONFIG": str(data_dir / "config.toml"),
        "PYTHONWARNINGS": "error",
        **settings,
    }


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "contextd", *arguments]


@dataclass
class Daemon:
    process: subprocess.Popen[str]
    url: str
    data_dir: Path
    log: list[str] = field(default_factory=list)

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def rpc(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        sent = JSON_AND_SSE | {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.post(self.mcp, json=message, headers=sent, timeout=30)

    def session(self, version: str = "2025-11-25", **headers: str) -> "Session":
        opened = self.rpc("initialize", initialize_params(version), **headers)
        assert opened.status_code == 200, opened.text
        session = Session(self, opened.headers["mcp-session-id"], version, headers)
        session.notify("notifications/initialized")
        return session

    def tool(self, name: str, /, **arguments: Any) -> httpx2.Response:
        """By the automation API: the shortest way to a tool."""
        return httpx2.post(f"{self.url}/api/v1/tools/{name}", json=arguments, timeout=30)

    def stop(self, number: int = signal.SIGTERM) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(timeout=20)


@dataclass
class Session:
    """A client of the older wire, with its session kept."""

    daemon: Daemon
    id: str
    version: str
    headers: dict[str, str]

    def rpc(self, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx2.Response:
        return self.daemon.rpc(method, params, **{**self.headers, **self._own(), **headers})

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answered = self.rpc("tools/call", {"name": tool, "arguments": arguments})
        message: dict[str, Any] = answered.json()
        return message

    def notify(self, method: str, params: dict[str, Any] | None = None) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        sent = JSON_AND_SSE | {k.replace("_", "-"): v for k, v in {**self.headers, **self._own()}.items()}
        return httpx2.post(self.daemon.mcp, json=message, headers=sent, timeout=30)

    def _own(self) -> dict[str, str]:
        return {"mcp_session_id": self.id, "mcp_protocol_version": self.version}


def initialize_params(version: str = "2025-11-25") -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def structured(message: dict[str, Any]) -> dict[str, Any]:
    """A tool's answer, which must be one."""
    result = message["result"]
    assert not result.get("isError"), result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    content: dict[str, Any] = result["structuredContent"]
    return content


@contextmanager
def running_daemon(data_dir: Path, *arguments: str, **settings: str) -> Iterator[Daemon]:
    """Start, wait until it listens, and end it whatever happened."""
    process = subprocess.Popen(
        command("serve", "--port", "0", *arguments),
        env=environment(data_dir, **settings),
        stderr=subprocess.PIPE,
        text=True,
    )
    log: list[str] = []
    try:
        url = _wait_for_address(process, log)
    except AssertionError:
        assert process.stderr is not None
        process.stderr.close()
        raise
    reader = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
    reader.start()
    try:
        yield Daemon(process, url, data_dir, log)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)
        reader.join(timeout=5)
        assert process.stderr is not None
        process.stderr.close()


def _wait_for_address(process: subprocess.Popen[str], log: list[str]) -> str:
    """The daemon says where it listens as soon as it does; its end ends the wait too."""
    assert process.stderr is not None
    for line in process.stderr:
        log.append(line)
        if found := _ADDRESS.search(line):
            return found.group(1)
    process.wait(timeout=5)
    raise AssertionError("the daemon did not start:\n" + "".join(log))


KEYWORD_ONLY = {"EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1", "EMBEDDING_MODEL": "none"}
"""Settings for a daemon that needs no model: nobody listens there, and saving goes on without."""


@dataclass
class Stdio:
    """A client of `contextd mcp`, one call after the other."""

    process: subprocess.Popen[str]
    asked: int = 0

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.asked += 1
        self.tell({"id": self.asked, "method": method, "params": params})
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self.asked:
                return message
        raise AssertionError("the server ended without an answer")

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return structured(self.ask("tools/call", {"name": tool, "arguments": arguments}))


@contextmanager
def running_stdio(data_dir: Path, **settings: str) -> Iterator[Stdio]:
    """Start, shake hands, and end it whatever happened. Its log goes where pytest's goes."""
    process = subprocess.Popen(
        command("mcp"),
        env=environment(data_dir, **{"CONTEXTD_LOG_LEVEL": "error", **settings}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    client = Stdio(process)
    try:
        client.ask("initialize", initialize_params())
        client.tell({"method": "notifications/initialized"})
        yield client
    finally:
        process.kill()
        process.wait(timeout=15)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

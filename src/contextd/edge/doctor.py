"""Is this machine fit for contextd, and if not, what to do."""

import shutil
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from contextd.adapters.sandbox import PolicyFile
from contextd.domain.errors import Fault
from contextd.domain.ports import Store
from contextd.domain.sandboxing import Sandbox
from contextd.services.embedding import Embeddings
from contextd.settings import Settings
from contextd.wiring import build

State = Literal["ok", "warn", "fail"]

_CLIENTS: Final = {
    "claude": "claude mcp add --transport http contextd {url}",
    "codex": "codex mcp add contextd --url {url}",
    "gemini": "gemini mcp add --transport http contextd {url}",
    "opencode": "add it under `mcp` in opencode.json (see the README)",
    "cursor": "add it to .cursor/mcp.json (see the README)",
    "code": "add it to .vscode/mcp.json (see the README)",
}


@dataclass(frozen=True, slots=True)
class Finding:
    state: State
    what: str
    says: str
    remedy: str = ""


async def examine(settings: Settings) -> list[Finding]:
    return [
        _python(),
        _folder(settings.data_dir),
        _sqlite(),
        *await _house(settings),
        _port(settings),
        _grpc(settings),
        *_clients(settings),
    ]


def _python() -> Finding:
    """pip refuses an older one; shown because it is the first thing that anybody asks."""
    return Finding("ok", "python", f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")


def _folder(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(
            "fail", "data", f"{folder}: {error.strerror}", "set CONTEXTD_DATA_DIR to a folder of yours"
        )
    if free < 200 * 2**20:
        return Finding("warn", "data", f"{folder}: {free // 2**20} MiB free", "make room on that disk")
    return Finding("ok", "data", f"{folder} ({free // 2**30} GiB free)")


def _sqlite() -> Finding:
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5 (a, tokenize = 'porter unicode61')")
    except sqlite3.Error:
        return Finding(
            "fail", "sqlite", f"{sqlite3.sqlite_version} lacks FTS5", "use a Python whose SQLite has FTS5"
        )
    return Finding("ok", "sqlite", f"{sqlite3.sqlite_version} with FTS5")


async def _house(settings: Settings) -> list[Finding]:
    """The store answers and the model embeds: the real ones, as the settings name them."""
    try:
        house = build(settings)
    except Fault as fault:
        return [Finding("fail", "settings", fault.problem, fault.remedy)]
    try:
        return [
            await _store(house.store),
            await _model(house.embeddings),
            await _sandbox(house.sandbox),
            _policies(house.policies),
        ]
    finally:
        await house.sandbox.close()
        await house.embeddings.close()
        await house.store.close()


async def _store(store: Store) -> Finding:
    try:
        await store.check()
        drawers = await store.drawers()
    except Fault as fault:
        return Finding("fail", "store", fault.problem, fault.remedy)
    return Finding("ok", "store", f"{sum(bool(drawer.project.path) for drawer in drawers)} projects")


async def _model(embeddings: Embeddings) -> Finding:
    if await embeddings.document("is the model there") is None:
        return Finding(
            "warn",
            "model",
            f"{embeddings.down}; searching by keyword alone",
            "check EMBEDDING_BASE_URL, or reinstall contextd for the shipped model",
        )
    return Finding("ok", "model", embeddings.model())


async def _sandbox(sandbox: Sandbox) -> Finding:
    """As commands will find it: tried, not guessed."""
    try:
        level = await sandbox.level()
    except Fault as fault:
        return Finding("warn", "sandbox", fault.problem, fault.remedy)
    if level == "off":
        return Finding("warn", "sandbox", "off: commands run without one", "unset CONTEXTD_SANDBOX")
    if level == "landlock":
        return Finding("warn", "sandbox", "landlock, the lesser one", "docs/sandbox.md says what helps")
    return Finding("ok", "sandbox", level)


def _policies(policies: PolicyFile) -> Finding:
    try:
        return Finding("ok", "policies", policies.origin(""))
    except Fault as fault:
        return Finding("fail", "policies", fault.problem, fault.remedy)


def _port(settings: Settings) -> Finding:
    host, port = settings.http_host.strip("[]"), settings.http_port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return Finding(
                "warn",
                "port",
                f"{host}:{port} is taken ({error.strerror})",
                "fine if that is contextd itself; else set CONTEXTD_HTTP_PORT",
            )
    return Finding("ok", "port", f"{host}:{port} is free")


def _grpc(settings: Settings) -> Finding:
    from contextd.edge.grpc_sockets import holder, problem_with

    path = settings.data_dir / "run" / "contextd.sock"
    if "auto" not in settings.grpc:
        return Finding("ok", "grpc", ", ".join(settings.grpc) or "off")
    if problem := problem_with(path):
        return Finding("warn", "grpc", problem, "set CONTEXTD_GRPC to unix: and a shorter path")
    served = holder(path)
    return Finding("ok", "grpc", f"unix:{path} {f'is served by process {served}' if served else 'is free'}")


def _clients(settings: Settings) -> Iterator[Finding]:
    url = f"http://{settings.http_host}:{settings.http_port}/mcp"
    found = [name for name in _CLIENTS if shutil.which(name)]
    for name in found:
        yield Finding("ok", "client", name, _CLIENTS[name].format(url=url))
    if not found:
        yield Finding(
            "warn", "client", "no coding agent was found on PATH", "the README shows how to connect each"
        )

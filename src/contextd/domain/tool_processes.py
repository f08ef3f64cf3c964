"""Tools that are processes of their own: what a plugin asks for, what it offers, and how it is called."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from contextd.domain.sandboxing import Level


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a plugin says of itself before anything of it runs: its plugin.toml."""

    name: str
    version: str
    command: tuple[str, ...]
    """The program and its arguments, started in the plugin's folder."""
    description: str = ""
    readable: tuple[str, ...] = ()
    """Absolute paths that it wants to read, besides its own folder and the system's programs."""
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    """Names of variables that it wants to be passed on."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the process describes it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    timeout_s: float
    read_only: bool


@dataclass(frozen=True, slots=True)
class Installed:
    """A plugin that somebody looked at and said yes to."""

    manifest: Manifest
    tools: tuple[OfferedTool, ...]
    folder: str
    """Where its files are."""
    source: str
    """Where they came from."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of a call: `data` as JSON, or why not."""

    data: bytes
    failure: str
    level: Level


class ToolHost(Protocol):
    """Starts tool processes when they are called, and ends those that nobody calls."""

    async def execute(self, plugin: str, tool: str, arguments: bytes, timeout_s: float) -> Executed:
        """Raises NoSuchPlugin, ToolProcessDown, ToolProcessFailed, ToolProcessMisspoke, SandboxUnavailable
        and TimeoutError.
        """

    async def close(self) -> None: ...

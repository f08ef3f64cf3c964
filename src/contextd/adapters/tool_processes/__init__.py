"""Plugins as processes of their own: fetched, looked at, started in the sandbox, and kept going."""

from contextd.adapters.tool_processes.host import SandboxedToolHost

__all__ = ["SandboxedToolHost"]

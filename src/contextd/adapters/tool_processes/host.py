"""Every installed plugin's process, each with somebody who looks after it."""

import asyncio
from collections.abc import Sequence

from contextd.adapters.tool_processes.process import ToolProcess, start_process
from contextd.adapters.tool_processes.supervision import Pace, Supervisor
from contextd.domain.errors import NoSuchPlugin, ToolProcessMisspoke
from contextd.domain.sandboxing import Sandbox
from contextd.domain.tool_processes import Executed, Installed, OfferedTool


class SandboxedToolHost:
    """Fills the port ToolHost. Nothing is started before it is called."""

    def __init__(self, sandbox: Sandbox, installed: Sequence[Installed], pace: Pace | None = None) -> None:
        pace = pace or Pace()
        self.supervisors = {
            each.manifest.name: Supervisor(each.manifest.name, _Starter(sandbox, each, pace), pace)
            for each in installed
        }

    async def execute(self, plugin: str, tool: str, arguments: bytes, timeout_s: float) -> Executed:
        supervisor = self.supervisors.get(plugin)
        if supervisor is None:
            raise NoSuchPlugin
        return await supervisor.execute(tool, arguments, timeout_s)

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self.supervisors.values()))


class _Starter:
    def __init__(self, sandbox: Sandbox, installed: Installed, pace: Pace) -> None:
        self._sandbox = sandbox
        self._installed = installed
        self._handshake_s = pace.handshake_s

    async def __call__(self) -> ToolProcess:
        """One that offers what it offered when somebody said yes to it, and nothing else."""
        known = self._installed
        process = await start_process(self._sandbox, known.manifest, known.folder, self._handshake_s)
        try:
            self._check(await process.describe())
        except BaseException:
            await process.end()
            raise
        return process

    def _check(self, tools: tuple[OfferedTool, ...]) -> None:
        if tools != self._installed.tools:
            raise ToolProcessMisspoke(
                f"the plugin {self._installed.manifest.name} offers other tools than when it was installed",
                "remove it, and install it again after a look at it",
            )

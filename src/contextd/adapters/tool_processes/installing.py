"""A plugin on its way in: fetched, asked what it offers, and shown before anybody says yes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contextd.adapters.tool_processes.installed import InstalledPlugins
from contextd.adapters.tool_processes.manifest import read_manifest
from contextd.adapters.tool_processes.process import describe_apart
from contextd.adapters.tool_processes.sources import Source
from contextd.domain.sandboxing import Sandbox
from contextd.domain.tool_processes import Installed


@asynccontextmanager
async def fetched(plugins: InstalledPlugins, sandbox: Sandbox, source: Source) -> AsyncIterator[Installed]:
    """What it would be, for `InstalledPlugins.take_in`; otherwise it is gone at the end.

    Raises NotInstallable, ToolProcessDown, ToolProcessMisspoke and SandboxUnavailable.
    """
    with plugins.aside() as files:
        await asyncio.to_thread(source.fetch, files)
        manifest = read_manifest(files)
        tools = await describe_apart(sandbox, manifest, str(files))
        yield Installed(manifest, tools, str(files), source.told)

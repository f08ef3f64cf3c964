"""A way out for one cell: a port in its own network namespace, behind which the daemon's proxy listens."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox import listener_helper
from contextd.adapters.sandbox.cell import Cell
from contextd.adapters.sandbox.descriptors import readable
from contextd.adapters.sandbox.filtering_proxy import FilteringProxy
from contextd.adapters.sandbox.host_rules import HostRules
from contextd.domain.errors import SandboxUnavailable

PORT: Final = 3_128
_HELPER_S: Final = 10.0
_NAMES: Final = ("http_proxy", "https_proxy", "all_proxy")
_DIRECTLY: Final = {"no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"}


async def open_gate(cell: Cell, inside: int, hosts: Sequence[str]) -> None:
    """`inside` is a process of the cell. Raises SandboxUnavailable."""
    proxy = FilteringProxy(HostRules.of(hosts))
    cell.at_end.append(proxy.close)
    cell.refused = lambda: proxy.refused
    await proxy.serve(await _listener(inside))
    address = f"http://127.0.0.1:{PORT}"
    names = {name: address for each in _NAMES for name in (each, each.upper())}
    cell.environment = {**cell.environment, **names, **_DIRECTLY}


async def _listener(inside: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            helper = _helper(inside, theirs.fileno())
        descriptors: list[int] = []
        try:
            async with asyncio.timeout(_HELPER_S):
                await readable(ours.fileno())
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except TimeoutError:
            pass
        finally:
            helper.kill()
            await asyncio.to_thread(helper.wait)
    if not descriptors:
        raise SandboxUnavailable("the sandbox's network could not be opened for the policy's hosts")
    return socket.socket(fileno=descriptors[0])


def _helper(inside: int, channel: int) -> subprocess.Popen[bytes]:
    program = Path(listener_helper.__file__).read_text(encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, str(inside), str(channel), str(PORT)],
        pass_fds=(channel,),
        env={},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

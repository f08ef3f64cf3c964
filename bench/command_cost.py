"""What safe_bash costs: `true` over MCP beside a plain subprocess, and what 200 calls leave behind."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from processes import Server, contextd, data_folder
from report import Check, Section, Table
from sizes import Sizes
from wire import Client

_IN_A_ROW: Final = 200
_TARGET_MS: Final = 10.0
_SETTLED_S: Final = 1.0
"""Until the sandbox for the next command is there: it is meant to stay."""
_COMMANDS: Final = {"true": "true", "200 lines": "seq 200", "a failure": "ls /nowhere"}


async def measure(sizes: Sizes) -> Section:
    with (
        data_folder() as folder,
        tempfile.TemporaryDirectory(prefix="contextd-bench-project-") as project,
        contextd(folder) as server,
    ):
        client = await Client.connect(server.url)
        times = await _turns(client, project, sizes.calls)
        await asyncio.sleep(_SETTLED_S)
        before = _left_by(server)
        level = ""
        for _ in range(_IN_A_ROW):
            answer = await client.call("safe_bash", command="true", project_path=project)
            level = answer["isolation"]
        await asyncio.sleep(_SETTLED_S)
        after = _left_by(server)
        await client.close()
    return _section(times, before, after, level, sizes)


async def _turns(client: Client, project: str, calls: int) -> dict[tuple[str, str], list[float]]:
    """Each command in a subprocess, then by safe_bash; the first call, which makes a sandbox, apart."""
    times: dict[tuple[str, str], list[float]] = {}
    started = time.perf_counter()
    await client.call("safe_bash", command="true", project_path=project)
    times["the first", "safe_bash"] = [time.perf_counter() - started]
    for _ in range(calls):
        for name, command in _COMMANDS.items():
            times.setdefault((name, "plain"), []).append(_plainly(command, project))
            request = client.request("safe_bash", {"command": command, "project_path": project})
            started = time.perf_counter()
            await client.send(request)
            times.setdefault((name, "safe_bash"), []).append(time.perf_counter() - started)
    return times


def _plainly(command: str, project: str) -> float:
    started = time.perf_counter()
    subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, check=False)
    return time.perf_counter() - started


def _left_by(server: Server) -> dict[str, int]:
    return {
        "processes": len(_below(server.pid)),
        "descriptors": server.open_files(),
        "temporary files": len(list(Path(tempfile.gettempdir()).iterdir())),
    }


def _below(pid: int) -> list[int]:
    """Processes that it started, and those started."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found[1:]


def _section(
    times: dict[tuple[str, str], list[float]],
    before: dict[str, int],
    after: dict[str, int],
    level: str,
    sizes: Sizes,
) -> Section:
    def median(name: str, way: str) -> float:
        return statistics.median(times[name, way]) * 1000

    added = median("true", "safe_bash") - median("true", "plain")
    rows = tuple(
        (
            name,
            f"{median(name, 'plain'):.1f}",
            f"{median(name, 'safe_bash'):.1f}",
            f"{median(name, 'safe_bash') - median(name, 'plain'):+.1f}",
        )
        for name in _COMMANDS
    )
    left = tuple((what, str(before[what]), str(after[what])) for what in before)
    grew = [what for what in before if after[what] > before[what]]
    return Section(
        "safe_bash",
        "Wall time in milliseconds of a command by `bash -c` in a plain subprocess and by safe_bash over"
        f" MCP, in turns: medians of {sizes.calls} each, isolation {level}. The first call of a project"
        f" makes its sandbox and took {median('the first', 'safe_bash'):.0f} ms.",
        (
            Table(("command", "plain", "safe_bash", "more"), rows),
            Table((f"after {_IN_A_ROW} calls in a row", "before", "after"), left),
        ),
        (
            Check(
                "safe_bash `true` over MCP, over a plain subprocess, p50",
                f"at most {_TARGET_MS:g} ms",
                f"{added:.1f} ms",
                added <= _TARGET_MS,
            ),
            Check(
                f"left behind by {_IN_A_ROW} calls in a row",
                "no process, no descriptor, no temporary file",
                ", ".join(f"{what}: {after[what] - before[what]} more" for what in grew) or "nothing",
                not grew,
            ),
        ),
    )

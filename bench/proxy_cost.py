"""A tool as a program: its whole time, beside Python that does nothing and beside gRPC's own client."""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from contextd.edge.tool_folders import ToolFolders, write_launcher
from contextd.plugins import load_extensions
from figures import Ratio
from processes import contextd, data_folder, environment
from report import Check, Section, Table
from sizes import Sizes

_MOST_MS: Final = 60.0
_EACH_ROUND: Final = 10
_CLIENT: Final = """
import grpc, sys
from contextd.edge.grpc import contextd_v1_pb2 as wire, contextd_v1_pb2_grpc as stubs
with grpc.insecure_channel(sys.argv[1]) as channel:
    print(stubs.ToolServiceStub(channel).Execute(wire.ExecuteRequest(tool=sys.argv[2])).data)
"""
"""What a user of the library writes."""


def measure(sizes: Sizes) -> Section:
    tool, words = "safe_bash", ["--command", "true"]
    # The project is apart: no command may run where contextd keeps its own.
    with data_folder() as folder, data_folder() as project, contextd(folder):
        launcher = write_launcher(folder / "bin" / "contextd-proxy", sys.executable, folder, None)
        tools = {each.name: each for each in load_extensions().tools}
        ToolFolders(folder / "tools").install([tools[tool]], launcher)
        place = f"unix:{folder}/run/contextd.sock"
        commands = {
            "proxy": [str(folder / "tools" / tool / tool), *words],
            "nothing": [sys.executable, "-IS", "-c", "pass"],
            "client": [sys.executable, "-c", _CLIENT, place, "status"],
        }
        took = _in_turns(commands, folder, project, sizes.rounds)
    whole = statistics.median(took["proxy"]) * 1000
    return Section(
        "contextd-proxy",
        f"From spawn to end, with a daemon that runs: `{tool} {' '.join(words)}` as an"
        " installed tool, an interpreter that does nothing (`python -IS -c pass`), and a script that asks"
        f" for `status` with grpcio. Medians of {_EACH_ROUND} each in {sizes.rounds} rounds, in turns.",
        (
            Table(
                ("", "median ms", "to Python alone"),
                (
                    ("contextd-proxy", f"{whole:.1f}", str(Ratio.of(took["proxy"], took["nothing"]))),
                    ("python -IS -c pass", f"{statistics.median(took['nothing']) * 1000:.1f}", "1"),
                    (
                        "a client with grpcio",
                        f"{statistics.median(took['client']) * 1000:.1f}",
                        str(Ratio.of(took["client"], took["nothing"])),
                    ),
                ),
            ),
        ),
        (
            Check(
                f"`{tool}` through contextd-proxy, in all",
                f"at most {_MOST_MS:g} ms",
                f"{whole:.1f} ms",
                whole <= _MOST_MS,
            ),
        ),
    )


def _in_turns(
    commands: dict[str, list[str]], folder: Path, project: Path, rounds: int
) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            took[name].append(
                statistics.median(_time(command, folder, project) for _ in range(_EACH_ROUND))
            )
    return took


def _time(command: list[str], folder: Path, project: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        command,
        cwd=project,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=30,
    )
    return time.perf_counter() - started

"""How soon a server that an agent starts over stdio answers it, and what the time goes into."""

import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Final

from processes import data_folder, environment
from report import Check, Section, Table
from sizes import Sizes

_MOST_S: Final = 1.0
_HERE: Final = Path(__file__).parent
_CONTEXTD: Final = [sys.executable, "-m", "contextd", "mcp"]
_BARE: Final = [sys.executable, str(_HERE / "bare_server.py"), "--stdio"]
_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "contextd-bench", "version": "1"},
    },
}
_IMPORTED: Final = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)
_MOST_PACKAGES: Final = 10


def measure(sizes: Sizes) -> Section:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(sizes.starts):
        ours.append(_start(_CONTEXTD))
        bare.append(_start(_BARE))
    median = statistics.median(ours)
    return Section(
        "Start over stdio",
        f"Seconds from spawning the process to its answer to `initialize`; {sizes.starts} starts each, in"
        " turns. The imports are of one more start under `-X importtime`, which itself costs some time:"
        " milliseconds that each package's own modules took.",
        (
            Table(
                ("", "median s", "range s"),
                (("contextd mcp", *_shown(ours)), ("an echo tool on the bare SDK", *_shown(bare))),
            ),
            Table(("package", "import ms"), tuple(_imports())),
        ),
        (
            Check(
                "`contextd mcp` from spawn to `initialize`",
                f"under {_MOST_S:g} s",
                f"{median:.2f} s",
                median < _MOST_S,
            ),
        ),
    )


def _start(command: list[str]) -> float:
    with data_folder() as folder:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(folder),
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(_INITIALIZE) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            took = time.perf_counter() - started
            assert "protocolVersion" in answer, answer
            process.communicate(timeout=15)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(timeout=5)
    return took


def _imports() -> list[tuple[str, str]]:
    """Own time of modules, added up by the package that they belong to."""
    with data_folder() as folder:
        ended = subprocess.run(
            [sys.executable, "-X", "importtime", *_CONTEXTD[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(folder),
            timeout=30,
            check=True,
        )
    spent: Counter[str] = Counter()
    for micros, module in _IMPORTED.findall(ended.stderr):
        package = module.partition(".")[0]
        spent["standard library" if package in sys.stdlib_module_names else package] += int(micros)
    return [(package, f"{micros / 1000:.0f}") for package, micros in spent.most_common(_MOST_PACKAGES)]


def _shown(seconds: list[float]) -> tuple[str, str]:
    return f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f} to {max(seconds):.2f}"

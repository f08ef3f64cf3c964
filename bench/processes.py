"""Servers of a bench's own: started on a free port, watched through /proc, ended whatever happens."""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_ADDRESS: Final = re.compile(r"listening on (http://\S+)")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")

UNLIMITED: Final = {"CONTEXTD_RATE_LIMIT": "1000000/1000000"}
"""The limiter works on every call, and refuses none."""


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self, kind: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{kind}:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found.group(1)) / 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Only what a server needs: nobody's own settings may change a measurement."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    own = {"CONTEXTD_DATA_DIR": str(folder), "CONTEXTD_CONFIG": str(folder / "none.toml")}
    return {**kept, **own, "PYTHONPATH": str(_HERE), **settings}


@contextmanager
def data_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contextd-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def contextd(folder: Path, **settings: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "contextd", "serve", "--port", "0"]
    with _running(command, environment(folder, **UNLIMITED | settings)) as server:
        yield server


@contextmanager
def bare_sdk() -> Iterator[Server]:
    with (
        data_folder() as folder,
        _running([sys.executable, str(_HERE / "bare_server.py")], environment(folder)) as server,
    ):
        yield server


@contextmanager
def _running(command: list[str], env: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    drained: threading.Thread | None = None
    try:
        server = Server(_address(process), process.pid)
        # A full pipe would stop a server that logs.
        drained = threading.Thread(target=process.stderr.read, daemon=True)
        drained.start()
        yield server
    finally:
        _end(process)
        if drained is not None:
            drained.join(timeout=5)
        process.stderr.close()


def _address(process: subprocess.Popen[str]) -> str:
    """A server says where it listens; its end ends the wait too."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if found := _ADDRESS.search(line):
            return found.group(1)
    raise RuntimeError("the server did not start:\n" + "".join(lines))


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=5)

"""The text that turns a waiting shell into the command: its limits, its folder, its environment."""

import math
import os
import re
import resource
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.adapters.sandbox.cell import SHELL, Ends
from contextd.domain.sandboxing import Job, Limits

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN: Final = frozenset(("BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"))
"""Which bash sets itself, whatever is given, and refuses to be told."""
_NO_FOLDER: Final = 126


def script(job: Job, limits: Limits, environment: Mapping[str, str], ends: Ends) -> bytes:
    lines = [
        *_limits(limits, job.timeout_s),
        f"cd -- {shlex.quote(job.cwd)} || exit {_NO_FOLDER}",
        *(f"export {name}={shlex.quote(value)}" for name, value in environment.items() if _settable(name)),
        ends.closing,
        f"exec {SHELL} -c {shlex.quote(job.command)}",
    ]
    return "\n".join(lines).encode(errors="surrogateescape")


def _settable(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in _SHELLS_OWN


def _limits(limits: Limits, timeout_s: float) -> Iterator[str]:
    """Soft and hard. DATA and not AS: what is reserved and not used, as by V8 or Go, would count for AS."""
    seconds = math.ceil(timeout_s * (os.cpu_count() or 1)) + 1
    yield "ulimit -c 0"
    for option, kind, unit, wanted in (
        ("d", resource.RLIMIT_DATA, 1_024, limits.memory_mb * 2**20),
        ("f", resource.RLIMIT_FSIZE, 1_024, limits.file_mb * 2**20),
        ("n", resource.RLIMIT_NOFILE, 1, limits.open_files),
        ("u", resource.RLIMIT_NPROC, 1, limits.processes),
        ("t", resource.RLIMIT_CPU, 1, seconds),
    ):
        yield f"ulimit -{option} {_within_hard(kind, wanted) // unit}"


def _within_hard(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)

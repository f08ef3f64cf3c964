"""What a plugin's process gets: its command, and a policy that is no wider than its manifest."""

import shlex
import sys
from pathlib import Path
from typing import Final

from contextd.domain.sandboxing import Job, Limits, Policy
from contextd.domain.tool_processes import Manifest

PYTHON: Final = "{python}"
"""In a command: the interpreter that runs contextd, with the kit and what it needs."""
_DAYS_S: Final = 30 * 86_400.0
"""Sooner or later even one that is always busy starts anew."""
_UNBOUNDED_MB: Final = 1 << 30
"""Who listens counts for itself."""
LIMITS: Final = Limits(
    timeout_s=_DAYS_S,
    memory_mb=2_048,
    processes=256,
    file_mb=256,
    open_files=1_024,
    output_mb=_UNBOUNDED_MB,
)


def job_of(manifest: Manifest, folder: str, scratch: str, env: dict[str, str]) -> Job:
    command = [sys.executable if word == PYTHON else word for word in manifest.command]
    given = {**env, **(_python_env() if PYTHON in manifest.command else {})}
    return Job(f"exec {shlex.join(command)}", scratch, folder, _DAYS_S, given, own=True)


def policy_of(manifest: Manifest, folder: str) -> Policy:
    """Its own folder to read, its scratch folder to write, and what it was granted."""
    interpreter = _python_folders() if PYTHON in manifest.command else ()
    return Policy(
        writable=(".",),
        readable=(folder, *interpreter, *manifest.readable),
        protected=(),
        hosts=manifest.hosts,
        environment=("LANG", "LC_*", "TZ", *manifest.environment),
        limits=LIMITS,
    )


def _python_folders() -> tuple[str, ...]:
    """The installation, and of the places where packages lie those of contextd and of gRPC."""
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, str(_package()), str(_libraries()))))


def _python_env() -> dict[str, str]:
    places = dict.fromkeys((str(_package().parent), str(_libraries())))
    return {"PYTHONPATH": ":".join(places), "PYTHONDONTWRITEBYTECODE": "1"}


def _package() -> Path:
    import contextd

    return Path(contextd.__file__).resolve().parent


def _libraries() -> Path:
    import grpc

    return Path(grpc.__file__).resolve().parent.parent

"""Trying a case, outside or in a sandbox, and what came of it."""

import os
import pty
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final

from escapes import scripts
from escapes.case import ESCAPED, Case
from escapes.ground import Ground, User
from escapes.outliving import HOLDING, until

_LONGEST_S: Final = 60.0
_KEPT_BYTES: Final = 64 * 2**20

_IN_TERMINAL: Final = '"$@"; IFS= read -r -t 1 typed; echo "$typed"'
"""A shell that starts the sandbox, and then takes the next line that was typed into its terminal."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    name: str
    command: tuple[str, ...] = ()
    """What stands before the command that is to be kept apart; `{project}` and `{home}` are filled in.
    Nothing is outside."""
    environment: Mapping[str, str] = field(default_factory=dict)


OUTSIDE: Final = Sandbox("outside")


@dataclass(frozen=True, slots=True)
class Attempt:
    ran: bool
    """Whether the script began."""
    worked: bool
    said: str
    """The last line of what it complained of."""


def attempt(case: Case, sandbox: Sandbox, user: User) -> Attempt:
    amounts = case.inside if sandbox.command else case.outside
    with Ground(user) as ground:
        if case.arrange:
            case.arrange(ground)
        script = scripts.write(case, ground, amounts)
        ground.own()
        prefix = [part.format(project=ground.project, home=ground.home) for part in sandbox.command]
        environment = ground.environment | dict(sandbox.environment)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
            _run(case, ground, [*prefix, "/bin/bash", script], environment, output, complaints)
            ground.printed = output.seek(0, os.SEEK_END)
            said = _text(output)
            worked = case.damage(ground) if case.damage else (ground.secret in said or ESCAPED in said)
            return Attempt(
                ran=(ground.project / scripts.STARTED).exists(),
                worked=worked,
                said=_last_line(_text(complaints)) or _last_line(said),
            )


def _run(
    case: Case,
    ground: Ground,
    command: list[str],
    environment: Mapping[str, str],
    output: IO[bytes],
    complaints: IO[bytes],
) -> None:
    """To files and not to pipes: what an attack leaves running would hold a pipe open."""
    if case.way == "terminal":
        _run_in_terminal(ground, command, environment, output)
        return
    left_open = _left_open(ground) if case.way == "descriptor" else ()
    process = subprocess.Popen(
        command,
        cwd=ground.project,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=complaints,
        pass_fds=left_open,
        start_new_session=True,
        **ground.identity,
    )
    for descriptor in left_open:
        os.close(descriptor)
    if case.way in ("terminated", "killed") and until((ground.project / HOLDING).exists, 30):
        process.send_signal(signal.SIGTERM if case.way == "terminated" else signal.SIGKILL)
    _end(process)


def _run_in_terminal(
    ground: Ground, command: list[str], environment: Mapping[str, str], output: IO[bytes]
) -> None:
    """A terminal has one reader: this one, which shows what a person would see."""
    screen, terminal = pty.openpty()
    os.fchown(terminal, ground.user.uid, -1)
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", "/bin/bash", "-c", _IN_TERMINAL, "shell", *command],
        cwd=ground.project,
        env=dict(environment),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        **ground.identity,
    )
    os.close(terminal)
    with os.fdopen(screen, "rb", buffering=0) as shown, suppress(OSError):
        # A terminal that everyone has left answers with an error and not with an end.
        while part := shown.read(4096):
            output.write(part)
    _end(process)


def _left_open(ground: Ground) -> tuple[int, int]:
    """What a careless caller passes on: a file, and the folder that everything is in."""
    return os.open(ground.canary, os.O_RDONLY), os.open("/", os.O_RDONLY | os.O_DIRECTORY)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_KEPT_BYTES).decode(errors="replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""

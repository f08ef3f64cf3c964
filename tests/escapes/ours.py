"""Our own sandbox as the suite sees it: a command before a command, like any other."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import contextd
from escapes.attempts import Sandbox
from escapes.case import Case
from escapes.ground import PYTHON, User
from escapes.resident import CLIENT, resident

RUNGS: Final = ("bubblewrap", "landlock")


class Ours:
    """`contextd sandbox run` where an attack is on the process that starts the sandbox, or on its secrets.
    For the others one process stays for each rung and user, and runs them all, as the daemon does."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._residents: dict[tuple[str, User], str] = {}

    def sandbox(self, rung: str, user: User, case: Case) -> Sandbox:
        python, environment = _python(user), _environment(rung)
        command: tuple[str, ...] = (
            python,
            "-m",
            "contextd",
            "sandbox",
            "run",
            "--project",
            "{project}",
            "--",
        )
        if case.way == "plain" and case.kind != "secrets":
            if (rung, user) not in self._residents:
                waiting = self._held.enter_context(resident(python, user, environment))
                self._residents[rung, user] = waiting
            command = (PYTHON, "-I", "-S", CLIENT, self._residents[rung, user], "{project}")
        return Sandbox(named(rung), command, environment)


def named(rung: str) -> str:
    return f"contextd, {rung}"


@contextmanager
def ours() -> Iterator[Ours]:
    with ExitStack() as held:
        yield Ours(held)


def _environment(rung: str) -> dict[str, str]:
    here = (Path(contextd.__file__).parent.parent, Path(__file__).parent.parent)
    packages = [*map(str, here), *(path for path in sys.path if "-packages" in path)]
    return {
        "CONTEXTD_SANDBOX": rung,
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _python(user: User) -> str:
    """Ours; for a user who cannot reach it, the system's, which is hoped to be of the same version."""
    path = Path(sys.executable).resolve()
    reachable = all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))
    return sys.executable if reachable or user.uid == os.getuid() else PYTHON

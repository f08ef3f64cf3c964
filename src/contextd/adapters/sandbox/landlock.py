"""The second rung, where namespaces are not to be had: Landlock, the filter without sockets, limits.

It cannot hide that a file is there, and it cannot make read-only what lies in a writable folder: what is
protected is compared afterwards and put back. It is for an ordinary user alone.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox import landlock_helper
from contextd.adapters.sandbox.cell import Cell, Ends, Opening, open_cell
from contextd.adapters.sandbox.keepsakes import keep
from contextd.adapters.sandbox.layout import Layout
from contextd.adapters.sandbox.scratch import remove_tree, tasks_of
from contextd.adapters.sandbox.seccomp import machine, seccomp_filter
from contextd.domain.errors import SandboxUnavailable

_READABLE: Final = (
    *(
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/proc",
        "/etc/alternatives",
        "/etc/ld.so.cache",
    ),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd"),
    *("/etc/group", "/etc/services", "/etc/protocols", "/etc/terminfo", "/etc/python3", "/etc/perl"),
)
_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_SYSTEM_PYTHON: Final = "/usr/bin/python3"
_TOLD: Final = {"USER": "sandbox", "LOGNAME": "sandbox", "GIT_CONFIG_NOSYSTEM": "1"}
"""git gives up over a file of settings that is there and may not be read."""


class Landlock:
    level: Final = "landlock"
    takes_root: Final = False

    def guard(self, layout: Layout) -> Callable[[], tuple[str, ...]]:
        return keep(layout)

    async def start(self, layout: Layout) -> Cell:
        _check(layout)
        scratch = tempfile.mkdtemp(prefix="contextd-scratch-")
        alive, held = os.pipe()
        try:
            if layout.owner:
                os.chown(scratch, layout.owner.uid, layout.owner.gid)

            def argv(opening: Opening, ends: Ends, tell: int) -> list[str]:
                opening.theirs.append(os.dup(alive))
                plan = _plan(layout, scratch, ends, opening.theirs[-1], tell)
                return [_python(layout), "-I", "-S", "-c", _program(), str(opening.content(plan))]

            cell = await open_cell(argv, layout.owner, lambda told, program: program)
        except BaseException:
            os.close(held)
            remove_tree(scratch)
            raise
        finally:
            os.close(alive)
        cell.stop = signal.SIGTERM
        cell.others = tasks_of(layout.owner.uid if layout.owner else os.getuid())
        cell.environment = {"HOME": scratch, "TMPDIR": scratch, **_TOLD}
        cell.at_end += [lambda: os.close(held), lambda: remove_tree(scratch)]
        return cell


def _check(layout: Layout) -> None:
    """Raises SandboxUnavailable for what this rung cannot keep apart."""
    if landlock_helper.version() < 1:
        raise SandboxUnavailable("this kernel has no Landlock")
    if os.geteuid() == 0 and not layout.owner:
        raise SandboxUnavailable(
            "landlock does not hold for root",
            "run contextd as an ordinary user, or give the project's folder to one",
        )
    if layout.hidden:
        raise SandboxUnavailable(
            "landlock cannot hide contextd's own files in this project",
            "set CONTEXTD_DATA_DIR and CONTEXTD_POLICIES to places outside the project",
        )
    if layout.hosts:
        raise SandboxUnavailable(
            "landlock has no network, and the policy names hosts", "take hosts out of the policy"
        )


def _plan(layout: Layout, scratch: str, ends: Ends, alive: int, tell: int) -> bytes:
    plan = {
        "read": [*_READABLE, *layout.readable],
        "write": [*_DEVICES, *layout.writable, scratch],
        "filter": seccomp_filter(
            machine(), sockets=False, truncates=landlock_helper.version() >= 3, apart=False
        ).hex(),
        "shell": ends.waiting,
        "alive": alive,
        "close": [alive, tell],
    }
    return json.dumps(plan).encode()


def _python(layout: Layout) -> str:
    """The daemon's own may lie where the project's owner cannot reach it."""
    foreign = layout.owner is not None or not os.access(sys.executable, os.X_OK)
    return _SYSTEM_PYTHON if foreign and Path(_SYSTEM_PYTHON).exists() else sys.executable


def _program() -> str:
    return Path(landlock_helper.__file__).read_text(encoding="utf-8")

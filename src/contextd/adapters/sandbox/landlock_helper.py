"""The program that stands around a command on the Landlock rung. Run by itself: `python -I -S -c <this>`.

It reads its plan from a descriptor and forks: the child gives up all that the plan does not grant and
becomes the shell; the parent waits, and ends everything that the command started, however it was started.
"""

import ctypes
import json
import os
import select
import signal
import struct
import sys
from typing import Any, Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READS: Final = _EXECUTE | _READ_FILE | _READ_DIR
_KNOWN_SINCE: Final = ((1, 0x1FFF), (2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV))
"""Which rights a version of Landlock brought."""
_NETWORK, _SCOPES = 3, 3
_SET_PDEATHSIG, _SET_SECCOMP, _SUBREAPER, _NO_NEW_PRIVS = 1, 22, 36, 38
_FILTER_MODE: Final = 2
_FAILED: Final = 125


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Of the kernel's Landlock; 0 or less where there is none."""
    return int(_libc().syscall(_CREATE_RULESET, None, 0, 1))


def main(plan: dict[str, Any]) -> int:
    _prctl(_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        try:
            _become(plan)
        except OSError as error:
            os.write(2, f"landlock: {error}\n".encode())
        os._exit(_FAILED)
    return _watch(child, plan)


def _become(plan: dict[str, Any]) -> None:
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    _prctl(_NO_NEW_PRIVS, 1)
    _restrict(plan["read"], plan["write"])
    _filter(bytes.fromhex(plan["filter"]))
    for descriptor in plan["close"]:
        os.close(descriptor)
    os.execve(plan["shell"][0], plan["shell"], {})


def _restrict(read: list[str], write: list[str]) -> None:
    abi = version()
    handled = 0
    for since, rights in _KNOWN_SINCE:
        handled |= rights if abi >= since else 0
    attributes = struct.pack("<QQQ", handled, _NETWORK, _SCOPES)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    for path in read:
        _grant(ruleset, path, _READS & handled)
    for path in write:
        _grant(ruleset, path, handled)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rule = struct.pack("<Qi", rights if os.path.isdir(path) else rights & _OF_FILES, opened)
    _call(_ADD_RULE, ruleset, 1, rule, 0)
    os.close(opened)


def _filter(program: bytes) -> None:
    kept = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept))
    _prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.c_char_p(head))


def _prctl(option: int, *values: Any) -> None:
    if _libc().prctl(option, *values, *(0,) * (4 - len(values))):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _call(number: int, *values: Any) -> int:
    result = int(_libc().syscall(number, *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _watch(child: int, plan: dict[str, Any]) -> int:
    """Until the child has exited, somebody says stop, or the daemon is gone: then nothing may be left."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    kept = {told, tell, plan["alive"]}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                pass
    status = None
    while status is None:
        ready, _, _ = select.select([told, plan["alive"]], [], [], 1.0)
        if plan["alive"] in ready or (told in ready and signal.SIGTERM in os.read(told, 64)):
            break
        status = _reap(child)
    _end_all()
    return _FAILED if status is None else _code(status)


def _reap(child: int) -> int | None:
    """The child's status, if it has exited; orphans that came to us are taken in as well."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _end_all() -> None:
    """Whoever loses its parent becomes our child: so there is an end to it."""
    while True:
        for pid in _descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, new = [], [os.getpid()]
    while new:
        new = [child for pid in new for child in children.get(pid, ())]
        found += new
    return found


def _code(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        read_plan = json.load(file)
    os._exit(main(read_plan))

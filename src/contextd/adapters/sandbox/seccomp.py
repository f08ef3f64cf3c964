"""The filter on system calls, assembled for the kernel: a table in, bytes out."""

import errno
import functools
import platform
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from contextd.adapters.sandbox.syscalls import (
    CLONE,
    CLONE3,
    IOCTL,
    MODE_CALLS,
    NAMES_A_PROCESS,
    OPENAT2,
    PERSONALITY,
    REFUSED,
    SHARED,
    SOCKET,
    SOCKETPAIR,
    TRUNCATE,
    Call,
    Machine,
    ModeCall,
)
from contextd.domain.errors import SandboxUnavailable

AF_UNIX: Final = 1
FAMILIES: Final = (AF_UNIX, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6. Others, AF_VSOCK first of all, reach past a network namespace."""
_AF_NETLINK: Final = 16

_AUDIT_ARCH: Final[dict[Machine, int]] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32: Final = 0x40000000

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

_NUMBER_AT: Final = 0
_ARCH_AT: Final = 4
_ARGUMENTS_AT: Final = 16

_NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_TERMINAL_INPUT: Final = (0x5412, 0x541C, 0x5423)
"""TIOCSTI, TIOCLINUX and TIOCSETD."""
_LENDS_RIGHTS: Final = 0o6000
_MAKES_FILE: Final = 0x400040
"""O_CREAT and the bit of O_TMPFILE."""
_PERSONALITIES: Final = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux, its 32-bit and old-version faces, and the question which one it is."""

Instruction = tuple[int, int, int, int]


def machine() -> Machine:
    """This machine's, if there is a filter for it. Raises SandboxUnavailable."""
    match platform.machine():
        case "x86_64" | "AMD64":
            return "x86_64"
        case "aarch64" | "arm64":
            return "aarch64"
        case other:
            raise SandboxUnavailable(f"there is no system call filter for {other} processors")


@functools.cache
def seccomp_filter(
    machine: Machine, *, sockets: bool = True, truncates: bool = True, apart: bool = True
) -> bytes:
    """What is not refused is allowed.

    Without `sockets` no socket can be made but a pair of AF_UNIX; without `truncates` no file can be cut by
    its path, which Landlock did not see before its third version. Not `apart` is without namespaces, in
    sight of other processes.
    """
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    program += _when(CLONE3, machine, [_refusal(errno.ENOSYS)])
    program += _when(
        CLONE, machine, [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refusal(), _allow()]
    )
    program += _when(SOCKET, machine, _socket() if sockets else [_refusal(errno.EAFNOSUPPORT)])
    program += _when(SOCKETPAIR, machine, _only(0, (AF_UNIX,), errno.EAFNOSUPPORT))
    program += _when(IOCTL, machine, _none_of(1, _TERMINAL_INPUT))
    program += _when(PERSONALITY, machine, _only(0, _PERSONALITIES))
    program += [] if apart else _of_others(machine)
    program += _when(OPENAT2, machine, [_refusal(errno.ENOSYS)])
    for each in MODE_CALLS:
        program += _when(each.call, machine, _mode(each))
    for call in REFUSED if truncates else (*REFUSED, TRUNCATE):
        program += _when(call, machine, [_refusal()])
    program.append(_allow())
    return b"".join(struct.pack("<HBBI", *each) for each in program)


def _of_others(machine: Machine) -> list[Instruction]:
    program = [each for call, place in NAMES_A_PROCESS for each in _when(call, machine, _only(place, (0,)))]
    return program + [each for call in SHARED for each in _when(call, machine, [_refusal()])]


def _when(call: Call, machine: Machine, then: Sequence[Instruction]) -> list[Instruction]:
    number = call.number(machine)
    return [] if number is None else [(_EQUAL, 0, len(then), number), *then]


def _argument(index: int) -> Instruction:
    """Its lower half: all that is looked at here are ints, of which the kernel takes no more."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)


def _refusal(error: int = errno.EPERM) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


def _only(index: int, values: Iterable[int], error: int = errno.EPERM) -> list[Instruction]:
    allowed = [each for value in values for each in ((_EQUAL, 0, 1, value), _allow())]
    return [_argument(index), *allowed, _refusal(error)]


def _none_of(index: int, values: Iterable[int]) -> list[Instruction]:
    refused = [each for value in values for each in ((_EQUAL, 0, 1, value), _refusal())]
    return [_argument(index), *refused, _allow()]


def _mode(each: ModeCall) -> list[Instruction]:
    looked = [_argument(each.mode), (_ANY_BIT, 0, 1, _LENDS_RIGHTS), _refusal(), _allow()]
    if each.flags is None:
        return looked
    return [_argument(each.flags), (_ANY_BIT, 1, 0, _MAKES_FILE), _allow(), *looked]


def _socket() -> list[Instruction]:
    """Of AF_NETLINK only routes, which is how programs list the interfaces of their own namespace."""
    routes = [(_EQUAL, 0, 3, _AF_NETLINK), _argument(2), (_EQUAL, 0, 1, 0), _allow()]
    families = [each for family in FAMILIES for each in ((_EQUAL, 0, 1, family), _allow())]
    return [_argument(0), *families, *routes, _refusal(errno.EAFNOSUPPORT)]

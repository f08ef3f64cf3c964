"""The filter on system calls: the table is sound, its program says the same, and the kernel obeys."""

import errno
import json
import platform
import struct
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from contextd.adapters.sandbox.seccomp import machine, seccomp_filter
from contextd.adapters.sandbox.syscalls import (
    EXAMINED,
    NAMES_A_PROCESS,
    REFUSED,
    SHARED,
    TRUNCATE,
    Call,
    Machine,
)
from sandboxes import STANDS, ground_at, place

__all__ = ["place"]

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
KILLED, ALLOWED, REFUSED_WITH = 0x80000000, 0x7FFF0000, 0x00050000
MACHINES: tuple[Machine, ...] = get_args(Machine)
SOMETIMES = (TRUNCATE, *SHARED, *(call for call, _ in NAMES_A_PROCESS))
"""Refused on one of the rungs."""
EVERYDAY = {"x86_64": (0, 1, 2, 9, 57, 59, 257), "aarch64": (63, 64, 56, 222, 221)}
"""read, write, open, mmap, fork, execve, openat: of those that a machine has."""

ATTEMPTS = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
results = []
for number, *values in json.load(sys.stdin):
    ctypes.set_errno(0)
    result = libc.syscall(number, *values, *(0,) * (6 - len(values)))
    results.append(ctypes.get_errno() if result < 0 else 0)
print(json.dumps(results))
"""


def verdict(
    program: bytes, number: int, *arguments: int, machine: Machine = "x86_64", arch: int | None = None
) -> int:
    """What the program returns: a machine of six instructions, as in the kernel."""
    words = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<iIQ6Q", number, ARCHITECTURES[machine] if arch is None else arch, 0, *words)
    value, at = 0, 0
    while True:
        code, yes, no, operand = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            value = struct.unpack_from("<I", data, operand)[0]
            continue
        holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
        at += yes if holds else no


@pytest.mark.parametrize("call", [*REFUSED, *EXAMINED, *SOMETIMES], ids=lambda call: call.name)
def test_every_row_has_its_reason_and_a_number_somewhere(call: Call) -> None:
    assert len(call.why) > 5
    assert call.x86_64 is not None
    assert [each.name for each in (*REFUSED, *EXAMINED)].count(call.name) <= 1


@pytest.mark.parametrize("name", MACHINES)
def test_no_number_stands_for_two_calls(name: Machine) -> None:
    numbers = [
        call.number(name) for call in (*REFUSED, *EXAMINED, *SOMETIMES) if call.number(name) is not None
    ]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", MACHINES)
def test_what_the_table_refuses_is_refused_and_everyday_calls_are_not(name: Machine) -> None:
    program = seccomp_filter(name)
    for call in REFUSED:
        if (number := call.number(name)) is not None:
            assert verdict(program, number, machine=name) == REFUSED_WITH | errno.EPERM, call.name
    for number in EVERYDAY[name]:
        assert verdict(program, number, machine=name) == ALLOWED, number


@pytest.mark.parametrize("name", MACHINES)
def test_another_architecture_is_killed(name: Machine) -> None:
    assert verdict(seccomp_filter(name), 1, arch=0x40000003) == KILLED


def test_the_x32_face_of_a_processor_is_killed() -> None:
    assert verdict(seccomp_filter("x86_64"), 0x40000000 | 39) == KILLED


def test_without_sockets_only_a_pair_is_left() -> None:
    program = seccomp_filter("x86_64", sockets=False)
    for family in range(46):
        assert verdict(program, 41, family, 1, 0) == REFUSED_WITH | errno.EAFNOSUPPORT
    assert verdict(program, 53, 1, 1, 0) == ALLOWED


def test_old_landlock_gets_a_filter_that_cuts_no_files() -> None:
    assert verdict(seccomp_filter("x86_64", truncates=False), 76) == REFUSED_WITH | errno.EPERM
    assert verdict(seccomp_filter("x86_64"), 76) == ALLOWED


@pytest.mark.parametrize("name", MACHINES)
def test_without_namespaces_other_processes_are_left_alone(name: Machine) -> None:
    program = seccomp_filter(name, apart=False)
    for call, process in NAMES_A_PROCESS:
        number = call.number(name)
        assert number is not None
        assert verdict(program, number, *(7,) * process, 0, machine=name) == ALLOWED
        assert verdict(program, number, *(7,) * process, 99, machine=name) == REFUSED_WITH | errno.EPERM
    for call in SHARED:
        assert verdict(program, call.number(name) or 0, machine=name) == REFUSED_WITH | errno.EPERM


@pytest.mark.parametrize("stand", STANDS)
def test_the_kernel_refuses_what_the_table_refuses(stand: str, place: Path) -> None:
    ground = ground_at(stand, place)
    calls = [(call.name, call.number(machine())) for call in REFUSED]
    numbers = [(name, number) for name, number in calls if number is not None]
    asked = json.dumps([[number] for _, number in numbers]).encode()
    ran = ground.run(f"/usr/bin/python3 -c '{ATTEMPTS}'", stdin=asked)
    refused = dict(zip((name for name, _ in numbers), json.loads(ran.stdout), strict=True))
    assert refused == dict.fromkeys(refused, errno.EPERM), ran.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
def test_arguments_are_looked_at(place: Path) -> None:
    new_user, sigchld = 0x10000000, 17
    attempts = [
        (56, new_user | sigchld),
        (435, 0, 0),
        (41, 40, 1, 0),
        (41, 17, 3, 0),
        (41, 38, 5, 0),
        (41, 16, 3, 0),
        (41, 16, 3, 9),
        (41, 2, 1, 0),
        (53, 2, 1, 0),
        (16, 0, 0x5412, 0),
        (135, 0x40000),
        (91, 9999, 0o4755),
        (91, 9999, 0o755),
        (257, -100, 0, 0o100, 0o4755),
        (257, -100, 0, 0, 0o4755),
        (437, -100, 0, 0, 0),
        (135, 0xFFFFFFFF),
    ]
    ran = ground_at(STANDS[0], place).run(
        f"/usr/bin/python3 -c '{ATTEMPTS}'", stdin=json.dumps(attempts).encode()
    )
    no, family = errno.EPERM, errno.EAFNOSUPPORT
    unseen, made = errno.ENOSYS, errno.EFAULT
    expected = [no, unseen, family, family, family, 0, family, 0, family, no, no]
    expected += [no, errno.EBADF, no, made, unseen, 0]
    assert json.loads(ran.stdout) == expected, ran.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86_64")
def test_a_call_by_the_old_interrupt_kills_the_process(place: Path) -> None:
    """mov eax, 20 (getpid of 32 bits); int 0x80; ret. Outside it runs."""
    attack = (
        "import ctypes, mmap\n"
        "code = mmap.mmap(-1, 4096, prot=7)\n"
        "code.write(bytes.fromhex('b814000000cd80c3'))\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())\n"
    )
    outside = subprocess.run([sys.executable, "-c", attack], capture_output=True, check=False)
    if outside.returncode:
        pytest.skip("this kernel has no 32-bit calls")
    ran = ground_at(STANDS[0], place).run(f'/usr/bin/python3 -c "{attack}"')
    assert ran.finished.exit_code == 128 + 31

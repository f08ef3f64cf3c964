"""What the scripts of attacks share: how they begin, and how Python asks the kernel without a library."""

import re
from collections.abc import Mapping
from typing import Final

from escapes.case import ESCAPED, Case
from escapes.ground import PYTHON, Ground

STARTED: Final = "started"
"""A file in the project that says that the script ran at all: a sandbox that runs nothing stops nothing."""

_NAMED: Final = re.compile(r"@([a-z0-9_]+)@")

_PREAMBLE: Final = f"""\
import ctypes, glob, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = dict(
    x86_64=dict(clone3=435, add_key=248, keyctl=250, userfaultfd=323, bpf=321, perf_event_open=298,
                io_uring_setup=425, kexec_load=246, init_module=175, pidfd_open=434, pidfd_getfd=438,
                fsopen=430, pivot_root=155, syslog=103, fanotify_init=300, fchmodat2=452, openat2=437),
    aarch64=dict(clone3=435, add_key=217, keyctl=219, userfaultfd=282, bpf=280, perf_event_open=241,
                 io_uring_setup=425, kexec_load=104, init_module=105, pidfd_open=434, pidfd_getfd=438,
                 fsopen=430, pivot_root=41, syslog=116, fanotify_init=262, fchmodat2=452, openat2=437),
)[os.uname().machine]

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def kernel(name, *arguments):
    plain = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    return checked(libc.syscall(NUMBERS[name], *plain))

def escaped():
    print("{ESCAPED}", flush=True)

def reaches(name, *arguments):
    '''Whether the kernel looked at the arguments at all: they are such that it can do nothing with them.'''
    try:
        kernel(name, *arguments)
    except PermissionError:
        raise
    except OSError as error:
        if error.errno == 38:
            raise
    escaped()

"""


def write(case: Case, ground: Ground, amounts: Mapping[str, str]) -> str:
    """Puts the script into the project; returns its path."""
    text = _NAMED.sub(lambda found: _value(found[1], ground, amounts), case.script)
    start = f": > {ground.project}/{STARTED}\n"
    if case.language == "python":
        (ground.project / "attack.py").write_text(_PREAMBLE + text)
        text = f"exec {PYTHON} -I -S {ground.project}/attack.py\n"
    path = ground.project / "attack.sh"
    path.write_text(start + text)
    return str(path)


def _value(name: str, ground: Ground, amounts: Mapping[str, str]) -> str:
    return amounts[name] if name in amounts else str(getattr(ground, name))

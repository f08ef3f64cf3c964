"""Asking the kernel for more than a command needs, and its devices and switches.

Switches are opened for writing and closed again, and nothing is written. Calls that would do harm are made
with arguments that the kernel refuses once it has looked whether the caller may.
"""

import os
import shutil
from typing import Final

from escapes.case import Case
from escapes.ground import Ground


def _call(script: str) -> str:
    return f"{script}\nescaped()"


def _switch(*paths: str) -> str:
    return f"""
found = [path for pattern in {paths!r} for path in glob.glob(pattern) if os.path.isfile(path)]
for path in found:
    try:
        os.close(os.open(path, os.O_WRONLY))
        escaped()
    except OSError as error:
        print(error, file=sys.stderr)
if not found:
    print("no such file", file=sys.stderr)
"""


def _machine_code(code: str) -> str:
    """Asks for the own process id by another door of the kernel."""
    return f"""
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("{code}"))
door = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
if door() == os.getpid():
    escaped()
"""


def _with_program_of_root(ground: Ground) -> None:
    """A program in the project that runs as root, and a file that only root may read."""
    raised, hidden = ground.project / "raised", ground.project / "hidden"
    shutil.copy("/usr/bin/cat", raised)
    raised.chmod(0o4755)
    hidden.write_text(ground.secret)
    hidden.chmod(0o600)
    if os.getuid() == 0:
        ground.of_root |= {raised, hidden}


KERNEL: Final = (
    Case(
        "mounts",
        "kernel",
        _call("""
os.makedirs("@project@/mounted", exist_ok=True)
checked(libc.mount(b"none", b"@project@/mounted", b"tmpfs", 0, None))
libc.umount2(b"@project@/mounted", 2)
"""),
        "python",
    ),
    Case(
        "mounts in a namespace of its own",
        "kernel",
        _call("""
user_and_mounts = 0x10020000
checked(libc.unshare(user_and_mounts))
os.makedirs("@project@/mounted", exist_ok=True)
checked(libc.mount(b"none", b"@project@/mounted", b"tmpfs", 0, None))
"""),
        "python",
    ),
    Case("mounts by the newer calls", "kernel", _call('kernel("fsopen", b"tmpfs", 0)'), "python"),
    Case("makes a user namespace", "kernel", _call("checked(libc.unshare(0x10000000))"), "python"),
    Case(
        "makes a user namespace by clone3",
        "kernel",
        """
arguments = ctypes.create_string_buffer(struct.pack("<QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
child = kernel("clone3", arguments, 64)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
escaped()
""",
        "python",
    ),
    Case("makes a network namespace", "kernel", _call("checked(libc.unshare(0x40000000))"), "python"),
    Case(
        "changes the root folder",
        "kernel",
        _call('os.makedirs("@project@/cage", exist_ok=True)\nos.chroot("@project@/cage")'),
        "python",
    ),
    Case(
        "adds a key",
        "kernel",
        _call('kernel("add_key", b"user", b"contextd-escapes", b"x", 1, -2)'),
        "python",
    ),
    Case("handles page faults (userfaultfd)", "kernel", _call('kernel("userfaultfd", 1)'), "python"),
    Case(
        "makes a BPF map",
        "kernel",
        _call('kernel("bpf", 0, ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 4, 1), 128), 128)'),
        "python",
    ),
    Case(
        "counts events (perf)",
        "kernel",
        _call("""
event = ctypes.create_string_buffer(struct.pack("<IIQQQQQ", 1, 112, 0, 0, 0, 0, 0b1100001), 112)
kernel("perf_event_open", event, 0, -1, -1, 0)
"""),
        "python",
    ),
    Case(
        "makes an io_uring",
        "kernel",
        _call('kernel("io_uring_setup", 2, ctypes.create_string_buffer(120))'),
        "python",
    ),
    Case("watches files by fanotify", "kernel", _call('kernel("fanotify_init", 0x200, 0)'), "python"),
    Case("calls the kernel as a 32-bit program", "kernel", _machine_code("b814000000cd80c3"), "python"),
    Case("calls the kernel as an x32 program", "kernel", _machine_code("b8270000400f05c3"), "python"),
    Case("loads another kernel (kexec)", "kernel", 'reaches("kexec_load", 0, 0, None, 0xdead)', "python"),
    Case("loads a module", "kernel", 'reaches("init_module", None, 0, None)', "python"),
    Case("reaches I/O ports", "kernel", _call("checked(libc.iopl(3))"), "python"),
    Case(
        "reads the kernel's log",
        "kernel",
        _call('kernel("syslog", 3, ctypes.create_string_buffer(4096), 4096)'),
        "python",
    ),
    Case("sets core_pattern", "kernel", _switch("/proc/sys/kernel/core_pattern"), "python"),
    Case(
        "sets other switches of the kernel",
        "kernel",
        _switch("/proc/sys/kernel/[pr]*", "/proc/sys/vm/d*", "/proc/sys/vm/overcommit*"),
        "python",
    ),
    Case("presses the system's keys (sysrq-trigger)", "kernel", _switch("/proc/sysrq-trigger"), "python"),
    Case(
        "writes to /sys",
        "kernel",
        _switch("/sys/kernel/[a-z]*", "/sys/power/*", "/sys/kernel/mm/*/*"),
        "python",
    ),
    Case(
        "has a program run by release_agent",
        "kernel",
        _switch("/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/*/release_agent"),
        "python",
    ),
    Case(
        "leaves its control group",
        "kernel",
        _switch("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/*/cgroup.procs"),
        "python",
    ),
    Case(
        "reads the disk by a device of its own",
        "kernel",
        "mknod disk b @disk@ && head -c 1 disk > /dev/null && echo ESCAPED",
    ),
    Case(
        "opens devices of the machine",
        "kernel",
        """
for path in ("/dev/kvm", "/dev/fuse", "/dev/kmsg", "/dev/mem", "/dev/vsock", "/dev/loop-control",
             "/dev/userfaultfd", "/dev/net/tun", "/dev/vda", "/dev/sda", "/dev/nvme0n1"):
    try:
        os.close(os.open(path, os.O_RDONLY))
        escaped()
    except OSError as error:
        print(error, file=sys.stderr)
""",
        "python",
    ),
    Case(
        "becomes root by a program of root's",
        "kernel",
        "@project@/raised @project@/hidden",
        arrange=_with_program_of_root,
        only="ordinary",
    ),
)

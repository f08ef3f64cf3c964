"""The calls to the kernel that no command of a project needs, and why each is refused."""

from dataclasses import dataclass
from typing import Final, Literal

Machine = Literal["x86_64", "aarch64"]


@dataclass(frozen=True, slots=True)
class Call:
    """A system call; `x86_64` and `aarch64` are its numbers there, None where there is none."""

    name: str
    x86_64: int | None
    aarch64: int | None
    why: str

    def number(self, machine: Machine) -> int | None:
        return self.x86_64 if machine == "x86_64" else self.aarch64


_OTHERS: Final = "reads or drives other processes"
_MOUNTS: Final = "changes what is mounted, and with it what can be reached"
_SPACES: Final = "enters or makes namespaces, where it would have capabilities"
_KEYS: Final = "the kernel's keyrings are not kept apart by namespaces"
_RINGS: Final = "does file and socket calls that this filter never sees"
_KERNEL: Final = "loads code into the kernel or replaces it"
_CLOCK: Final = "sets the machine's clock"
_MACHINE: Final = "administers the whole machine"
_OLD: Final = "old, unused, and a source of kernel bugs"
_HARDWARE: Final = "reaches the processor's ports or tables"

REFUSED: Final = (
    Call("ptrace", 101, 117, _OTHERS),
    Call("process_vm_readv", 310, 270, _OTHERS),
    Call("process_vm_writev", 311, 271, _OTHERS),
    Call("process_madvise", 440, 440, _OTHERS),
    Call("pidfd_getfd", 438, 438, _OTHERS),
    Call("kcmp", 312, 272, _OTHERS),
    Call("migrate_pages", 256, 238, _OTHERS),
    Call("move_pages", 279, 239, _OTHERS),
    Call("mount", 165, 40, _MOUNTS),
    Call("umount2", 166, 39, _MOUNTS),
    Call("move_mount", 429, 429, _MOUNTS),
    Call("open_tree", 428, 428, _MOUNTS),
    Call("open_tree_attr", 467, 467, _MOUNTS),
    Call("fsopen", 430, 430, _MOUNTS),
    Call("fsconfig", 431, 431, _MOUNTS),
    Call("fsmount", 432, 432, _MOUNTS),
    Call("fspick", 433, 433, _MOUNTS),
    Call("mount_setattr", 442, 442, _MOUNTS),
    Call("pivot_root", 155, 41, _MOUNTS),
    Call("chroot", 161, 51, _MOUNTS),
    Call("open_by_handle_at", 304, 265, "opens files by number, past every path"),
    Call("unshare", 272, 97, _SPACES),
    Call("setns", 308, 268, _SPACES),
    Call("add_key", 248, 217, _KEYS),
    Call("request_key", 249, 218, _KEYS),
    Call("keyctl", 250, 219, _KEYS),
    Call("io_uring_setup", 425, 425, _RINGS),
    Call("io_uring_enter", 426, 426, _RINGS),
    Call("io_uring_register", 427, 427, _RINGS),
    Call("userfaultfd", 323, 282, "holds the kernel still in the middle of a call; used by exploits alone"),
    Call("bpf", 321, 280, "runs code in the kernel"),
    Call("perf_event_open", 298, 241, "measures other processes and the kernel"),
    Call("fanotify_init", 300, 262, "watches files of the whole machine"),
    Call("kexec_load", 246, 104, _KERNEL),
    Call("kexec_file_load", 320, 294, _KERNEL),
    Call("init_module", 175, 105, _KERNEL),
    Call("finit_module", 313, 273, _KERNEL),
    Call("delete_module", 176, 106, _KERNEL),
    Call("create_module", 174, None, _OLD),
    Call("query_module", 178, None, _OLD),
    Call("get_kernel_syms", 177, None, _OLD),
    Call("settimeofday", 164, 170, _CLOCK),
    Call("clock_settime", 227, 112, _CLOCK),
    Call("adjtimex", 159, 171, _CLOCK),
    Call("clock_adjtime", 305, 266, _CLOCK),
    Call("acct", 163, 89, _MACHINE),
    Call("swapon", 167, 224, _MACHINE),
    Call("swapoff", 168, 225, _MACHINE),
    Call("reboot", 169, 142, _MACHINE),
    Call("quotactl", 179, 60, _MACHINE),
    Call("quotactl_fd", 443, 443, _MACHINE),
    Call("syslog", 103, 116, _MACHINE),
    Call("sethostname", 170, 161, _MACHINE),
    Call("setdomainname", 171, 162, _MACHINE),
    Call("vhangup", 153, 58, _MACHINE),
    Call("lookup_dcookie", 212, 18, _OLD),
    Call("nfsservctl", 180, 42, _OLD),
    Call("uselib", 134, None, _OLD),
    Call("ustat", 136, None, _OLD),
    Call("sysfs", 139, None, _OLD),
    Call("_sysctl", 156, None, _OLD),
    Call("iopl", 172, None, _HARDWARE),
    Call("ioperm", 173, None, _HARDWARE),
    Call("modify_ldt", 154, None, _HARDWARE),
)
"""Refused whatever their arguments."""

CLONE: Final = Call(
    "clone", 56, 220, "makes namespaces when asked to; without them it is how programs fork"
)
CLONE3: Final = Call("clone3", 435, 435, "a filter cannot see its flags; without it libraries use clone")
SOCKET: Final = Call("socket", 41, 198, "only families that the network namespace keeps apart")
SOCKETPAIR: Final = Call("socketpair", 53, 199, "only AF_UNIX")
IOCTL: Final = Call("ioctl", 16, 29, "types into a terminal on behalf of whoever sits there")
PERSONALITY: Final = Call("personality", 135, 92, "turns off defences such as random addresses")

_PRIVILEGE: Final = "makes a program that runs as its owner, for whoever finds it outside"
OPENAT2: Final = Call("openat2", 437, 437, f"a filter cannot see its mode, which {_PRIVILEGE}")


@dataclass(frozen=True, slots=True)
class ModeCall:
    """Gives a file its mode, by its argument `mode`; where it has `flags`, when these say so."""

    call: Call
    mode: int
    flags: int | None = None


MODE_CALLS: Final = (
    ModeCall(Call("chmod", 90, None, _PRIVILEGE), 1),
    ModeCall(Call("fchmod", 91, 52, _PRIVILEGE), 1),
    ModeCall(Call("fchmodat", 268, 53, _PRIVILEGE), 2),
    ModeCall(Call("fchmodat2", 452, 452, _PRIVILEGE), 2),
    ModeCall(Call("creat", 85, None, _PRIVILEGE), 1),
    ModeCall(Call("mknod", 133, None, _PRIVILEGE), 1),
    ModeCall(Call("mknodat", 259, 33, _PRIVILEGE), 2),
    ModeCall(Call("open", 2, None, _PRIVILEGE), 2, 1),
    ModeCall(Call("openat", 257, 56, _PRIVILEGE), 3, 2),
)
"""Refused when the mode has a bit that lends the owner's or the group's rights."""

TRUNCATE: Final = Call("truncate", 76, 45, "cuts files that Landlock keeps from being written")
_AT_OTHERS: Final = "changes how another process runs, where no namespace hides the others"
_SHARED: Final = "memory and messages that, without a namespace, are those of the whole machine"

NAMES_A_PROCESS: Final = (
    (Call("prlimit64", 302, 261, _AT_OTHERS), 0),
    (Call("setpriority", 141, 140, _AT_OTHERS), 1),
    (Call("ioprio_set", 251, 30, _AT_OTHERS), 1),
    (Call("sched_setaffinity", 203, 122, _AT_OTHERS), 0),
    (Call("sched_setscheduler", 144, 119, _AT_OTHERS), 0),
    (Call("sched_setparam", 142, 118, _AT_OTHERS), 0),
    (Call("sched_setattr", 314, 274, _AT_OTHERS), 0),
)
"""Each with the place of the process; 0 is oneself."""
SHARED: Final = (
    Call("shmget", 29, 194, _SHARED),
    Call("shmat", 30, 196, _SHARED),
    Call("shmctl", 31, 195, _SHARED),
    Call("semget", 64, 190, _SHARED),
    Call("semop", 65, 193, _SHARED),
    Call("semtimedop", 220, 192, _SHARED),
    Call("semctl", 66, 191, _SHARED),
    Call("msgget", 68, 186, _SHARED),
    Call("msgsnd", 69, 189, _SHARED),
    Call("msgrcv", 70, 188, _SHARED),
    Call("msgctl", 71, 187, _SHARED),
    Call("mq_open", 240, 180, _SHARED),
    Call("mq_unlink", 241, 181, _SHARED),
)
EXAMINED: Final = (
    *(CLONE, CLONE3, SOCKET, SOCKETPAIR, IOCTL, PERSONALITY, OPENAT2),
    *(each.call for each in MODE_CALLS),
)
"""Refused for some of their arguments."""

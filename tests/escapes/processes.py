"""Meddling with processes and terminals outside, and staying when the call is over."""

from typing import Final

from escapes.case import Case
from escapes.ground import Ground
from escapes.outliving import HOLDER, HOLDING, outlives

_WAITS: Final = f"while [ ! -e @project@/{HOLDING} ]; do :; done"


def _victim_died(ground: Ground) -> bool:
    return not ground.victim_lives


PROCESSES: Final = (
    Case("kills a process outside", "processes", "kill -9 @victim@; sleep 0.3", damage=_victim_died),
    Case(
        "traces a process outside",
        "processes",
        """
attach, detach = 16, 17
checked(libc.ptrace(attach, @victim@, None, None))
os.waitpid(@victim@, 0)
libc.ptrace(detach, @victim@, None, None)
escaped()
""",
        "python",
    ),
    Case(
        "reads memory of a process outside",
        "processes",
        """
text = ctypes.create_string_buffer(64)
here = (ctypes.c_void_p * 2)(ctypes.addressof(text), 64)
there = (ctypes.c_void_p * 2)(@address@, 64)
checked(libc.process_vm_readv(@victim@, here, 1, there, 1, 0))
print(text.value)
""",
        "python",
    ),
    Case(
        "reads memory by /proc/*/mem",
        "processes",
        """
for path in glob.glob("/proc/[0-9]*/mem"):
    try:
        with open(path, "rb", buffering=0) as memory:
            memory.seek(@address@)
            print(memory.read(64))
    except OSError as error:
        print(error, file=sys.stderr)
""",
        "python",
    ),
    Case(
        "opens files of a process outside",
        "processes",
        ": @victim@; cat $(find /proc/[0-9]*/fd -lname '*/canary.txt' 2>/dev/null) < /dev/null",
    ),
    Case(
        "takes a descriptor of a process outside",
        "processes",
        """
there = kernel("pidfd_open", @victim@, 0)
for number in range(3, 9):
    try:
        print(os.pread(kernel("pidfd_getfd", there, number, 0), 99, 0))
    except OSError as error:
        print(error, file=sys.stderr)
""",
        "python",
    ),
    Case(
        "changes the limits of a process outside",
        "processes",
        """
import resource
resource.prlimit(@victim@, resource.RLIMIT_CORE, (0, 0))
escaped()
""",
        "python",
    ),
    Case(
        "slows a process outside",
        "processes",
        """
os.setpriority(os.PRIO_PROCESS, @victim@, 19)
escaped()
""",
        "python",
    ),
    Case(
        "ties a process outside to one processor",
        "processes",
        """
os.sched_setaffinity(@victim@, {min(os.sched_getaffinity(0))})
escaped()
""",
        "python",
    ),
    Case(
        "enters the namespaces of a process outside",
        "processes",
        """
# Asked of a namespace that it may be in already: the kernel's answer is what counts.
checked(libc.setns(os.open("/proc/@victim@/ns/net", os.O_RDONLY), 0))
escaped()
""",
        "python",
    ),
    Case(
        "leaves a process in the background",
        "processes",
        f"{HOLDER} & {_WAITS}",
        damage=outlives,
    ),
    Case(
        "leaves a daemon, twice forked",
        "processes",
        f"(setsid nohup {HOLDER} > /dev/null 2>&1 < /dev/null &); {_WAITS}",
        damage=outlives,
    ),
    Case(
        "leaves a daemon when its caller is terminated",
        "processes",
        f"(trap '' TERM INT HUP; setsid nohup {HOLDER} > /dev/null 2>&1 < /dev/null &); {_WAITS}; sleep 10",
        way="terminated",
        damage=outlives,
    ),
    Case(
        "leaves a daemon when its caller is killed",
        "processes",
        f"(trap '' TERM INT HUP; setsid nohup {HOLDER} > /dev/null 2>&1 < /dev/null &); {_WAITS}; sleep 10",
        way="killed",
        damage=outlives,
    ),
    Case(
        "types into the terminal (TIOCSTI)",
        "processes",
        """
import fcntl
places = [0, 1, 2]
try:
    places.append(os.open("/dev/tty", os.O_RDWR))
except OSError:
    pass
for place in places:
    try:
        for letter in b"ESCAPED\\n":
            fcntl.ioctl(place, 0x5412, bytes([letter]))
        break
    except OSError as error:
        print(error)
""",
        "python",
        way="terminal",
    ),
    Case(
        "reads the screen of a console",
        "processes",
        "for it in /dev/vcs1 /dev/vcsa1 /dev/tty1; do head -c 0 $it && [ -c $it ] && echo ESCAPED; done",
    ),
)

"""Using up what the machine has. Each attack is bounded, and what it takes it gives back."""

from typing import Final

from escapes.case import Case

_CHILDREN: Final = """
children = []
try:
    for _ in range(@count@):
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
        children.append(child)
    escaped()
finally:
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
"""

_MEMORY: Final = """
import mmap
taken = mmap.mmap(-1, @megabytes@ * 2**20, mmap.{sort})
for page in range(0, len(taken), 4096):
    taken[page] = 1
escaped()
"""

_MEMORY_OF_MANY: Final = """
import mmap
parts = []
for _ in range(6):
    came, told = os.pipe()
    child = os.fork()
    if child == 0:
        taken = mmap.mmap(-1, @megabytes@ * 2**20, mmap.MAP_PRIVATE)
        for page in range(0, len(taken), 4096):
            taken[page] = 1
        os.write(told, b"x")
        time.sleep(20)
        os._exit(0)
    os.close(told)
    parts.append((child, came))
held = sum(os.read(came, 1) == b"x" for _, came in parts)
# One that said so and was killed for another's sake holds nothing any more: all must be there at once.
alive = [child for child, _ in parts if os.waitpid(child, os.WNOHANG)[0] == 0]
for child in alive:
    os.kill(child, 9)
    os.waitpid(child, 0)
if held == len(alive) == len(parts):
    escaped()
"""

_FILES: Final = """
held = 0
try:
    for number in range(@count@):
        opened = os.open("/dev/null", os.O_RDONLY)
        held += 1
    escaped()
except OSError as error:
    print(error, file=sys.stderr)
"""


def _filling(folder: str) -> str:
    """Blocks and not holes: what is allocated is really taken."""
    return f"""
made = []
try:
    for number in range(6):
        path = "{folder}/contextd-escapes-%d-%d" % (os.getpid(), number)
        opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL)
        made.append(path)
        os.posix_fallocate(opened, 0, @megabytes@ * 2**20)
    escaped()
finally:
    for path in made:
        os.unlink(path)
"""


def _memory(name: str, sort: str) -> Case:
    return Case(
        name,
        "limits",
        _MEMORY.format(sort=sort),
        "python",
        outside={"megabytes": "200"},
        inside={"megabytes": "6000"},
    )


LIMITS: Final = (
    Case(
        "starts 1500 processes",
        "limits",
        _CHILDREN,
        "python",
        outside={"count": "200"},
        inside={"count": "1500"},
    ),
    _memory("takes 6 GB of memory", "MAP_PRIVATE"),
    _memory("takes 6 GB of memory that can be shared", "MAP_SHARED"),
    Case(
        "takes 6 GB of memory in six processes",
        "limits",
        _MEMORY_OF_MANY,
        "python",
        outside={"megabytes": "30"},
        inside={"megabytes": "1000"},
    ),
    Case(
        "makes a file of 20 GB",
        "limits",
        "truncate -s 20G large && [ $(stat -c %s large) -gt 20000000000 ] && echo ESCAPED; rm -f large",
    ),
    Case(
        "fills /tmp with 6 GB",
        "limits",
        _filling("/tmp"),
        "python",
        outside={"megabytes": "10"},
        inside={"megabytes": "1000"},
    ),
    Case(
        "fills /dev/shm with 6 GB",
        "limits",
        _filling("/dev/shm"),
        "python",
        outside={"megabytes": "10"},
        inside={"megabytes": "1000"},
    ),
    Case(
        "opens 5000 files",
        "limits",
        "import resource\nmost = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n" + _FILES,
        "python",
        outside={"count": "5000"},
        inside={"count": "5000"},
    ),
    Case(
        "prints 48 MB",
        "limits",
        "head -c 48M /dev/zero | tr '\\0' x",
        damage=lambda ground: ground.printed > 32 * 2**20,
    ),
)

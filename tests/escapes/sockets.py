"""Reaching a service: over the network, by sockets, and by what processes of one machine share."""

from typing import Final

from escapes.case import Case


def _connects(family: str, address: str) -> str:
    return f"""
connection = socket.socket(socket.{family})
connection.settimeout(5)
connection.connect({address})
print(connection.recv(99).decode())
"""


def _opens(socket: str) -> str:
    return f"socket.socket({socket})\nescaped()"


SOCKETS: Final = (
    Case("connects by TCP", "sockets", _connects("AF_INET", '("127.0.0.1", @tcp@)'), "python"),
    Case("connects by TCP over IPv6", "sockets", _connects("AF_INET6", '("::1", @tcp6@)'), "python"),
    Case(
        "asks by UDP",
        "sockets",
        """
connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connection.settimeout(3)
connection.sendto(b"?", ("127.0.0.1", @udp@))
print(connection.recv(99).decode())
""",
        "python",
    ),
    Case("connects to an abstract socket", "sockets", _connects("AF_UNIX", r'"\0@abstract@"'), "python"),
    Case("connects to a socket by its path", "sockets", _connects("AF_UNIX", '"@agent@"'), "python"),
    Case(
        "connects to a socket by /proc/*/root",
        "sockets",
        """
for root in glob.glob("/proc/[0-9]*/root"):
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(root + "@agent@")
        print(connection.recv(99).decode())
        break
    except OSError:
        pass
""",
        "python",
    ),
    Case("makes a socket to the hypervisor", "sockets", _opens("40, socket.SOCK_STREAM"), "python"),
    Case(
        "makes a socket that sees all packets",
        "sockets",
        _opens("socket.AF_PACKET, socket.SOCK_RAW"),
        "python",
    ),
    Case("makes a raw socket", "sockets", _opens("socket.AF_INET, socket.SOCK_RAW, 1"), "python"),
    Case(
        "makes a socket to the kernel's ciphers",
        "sockets",
        _opens("socket.AF_ALG, socket.SOCK_SEQPACKET"),
        "python",
    ),
    Case(
        "listens where the host sees it",
        "sockets",
        """
listener = socket.create_server(("127.0.0.1", 0))
socket.socket().connect(listener.getsockname())
with open("/proc/net/tcp") as table:
    there = table.read()
# The port of the canary is in the table of the host's network, and in no other.
if f":{@tcp@:04X} " in there:
    escaped()
""",
        "python",
    ),
    Case("reads a file in /dev/shm", "sockets", "cat @shared_file@"),
    Case(
        "maps shared memory of System V",
        "sockets",
        """
libc.shmat.restype = ctypes.c_void_p
mapped = libc.shmat(@segment@, None, 0o10000)
if mapped is None or mapped == 2**64 - 1:
    checked(-1)
print(ctypes.string_at(mapped, 64))
""",
        "python",
    ),
    Case(
        "takes a message from a queue",
        "sockets",
        """
queue = checked(libc.mq_open(b"@queue@", os.O_RDONLY | os.O_NONBLOCK))
message = ctypes.create_string_buffer(8192)
checked(libc.mq_receive(queue, message, 8192, None))
print(message.value)
""",
        "python",
    ),
    Case(
        "reads a key of the user's keyring",
        "sockets",
        """
text = ctypes.create_string_buffer(99)
read = 11
kernel("keyctl", read, @key@, text, 99)
print(text.value)
""",
        "python",
    ),
)

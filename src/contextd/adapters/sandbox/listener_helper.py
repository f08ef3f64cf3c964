"""The program that opens a port inside a sandbox's network and hands it out. Run by itself, in one thread.

`python -I -S -c <this> PID SOCKET PORT`: it joins the network namespace of PID, by way of the user
namespace that owns it, listens on 127.0.0.1 and sends the listening socket back.
"""

import array
import ctypes
import fcntl
import os
import socket
import sys
from typing import Final

_OWNER_OF: Final = 0xB701
_USER, _NETWORK = 0x10000000, 0x40000000


def main(pid: str, channel: int, port: int) -> None:
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    _join(fcntl.ioctl(network, _OWNER_OF), _USER)
    _join(network, _NETWORK)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    with socket.socket(fileno=channel) as back:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))
        back.sendmsg([b"."], [rights])


def _join(namespace: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, kind):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

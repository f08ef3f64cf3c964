"""What attacks aim at: listeners, a process, shared memory, a key. Each holds a secret."""

import ctypes
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Identity(TypedDict, total=False):
    """Who a process is to be, as subprocess takes it."""

    user: int
    group: int
    extra_groups: list[int]


def identity(uid: int, gid: int) -> Identity:
    return {} if os.getuid() == uid else {"user": uid, "group": gid, "extra_groups": []}


@contextmanager
def _serving(bound: socket.socket, secret: str) -> Iterator[None]:
    """Tells the secret to whoever comes."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                if bound.type == socket.SOCK_DGRAM:
                    asked, sender = bound.recvfrom(64)
                    if not asked:
                        return
                    bound.sendto(secret.encode(), sender)
                    continue
                caller, _ = bound.accept()
                with caller:
                    caller.sendall(secret.encode())

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield
    finally:
        with suppress(OSError):
            bound.shutdown(socket.SHUT_RDWR)
        bound.close()
        server.join(timeout=5)


@contextmanager
def tcp(host: str, secret: str) -> Iterator[int]:
    with socket.create_server(
        (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    ) as bound:
        port: int = bound.getsockname()[1]
        with _serving(bound, secret):
            yield port


@contextmanager
def udp(secret: str) -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        with _serving(bound, secret):
            yield port


@contextmanager
def unix(name: str, secret: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(name)
        bound.listen()
        with _serving(bound, secret):
            yield


@dataclass(frozen=True, slots=True)
class Victim:
    """A process of the same user, outside; its memory, arguments, environment and files hold the secret."""

    process: subprocess.Popen[str]
    address: int


_VICTIM: Final = """
import ctypes, sys
held = ctypes.create_string_buffer(sys.argv[1].encode())
opened = open(sys.argv[2])
print(ctypes.addressof(held), flush=True)
sys.stdin.read()
"""


@contextmanager
def victim(python: str, secret: str, file: Path, who: Identity) -> Iterator[Victim]:
    process = subprocess.Popen(
        [python, "-I", "-S", "-c", _VICTIM, secret, str(file)],
        env={"SERVICE_TOKEN": secret},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **who,
    )
    with process:
        assert process.stdout is not None
        try:
            yield Victim(process, int(process.stdout.readline()))
        finally:
            process.kill()


@contextmanager
def file_in(folder: str, secret: str, uid: int) -> Iterator[str]:
    descriptor, path = tempfile.mkstemp(prefix="contextd-escapes-", dir=folder)
    try:
        os.write(descriptor, secret.encode())
        os.fchown(descriptor, uid, -1)
        yield path
    finally:
        os.close(descriptor)
        Path(path).unlink()


@contextmanager
def segment(secret: str, uid: int) -> Iterator[int]:
    """Shared memory of System V, which anyone with its number and rights may map."""
    private, create, remove = 0, 0o1666, 0
    number = _LIBC.shmget(private, 4096, create)
    assert number >= 0, os.strerror(ctypes.get_errno())
    try:
        _LIBC.shmat.restype = ctypes.c_void_p
        mapped = _LIBC.shmat(number, None, 0)
        ctypes.memmove(mapped, secret.encode(), len(secret))
        _LIBC.shmdt(ctypes.c_void_p(mapped))
        yield number
    finally:
        _LIBC.shmctl(number, remove, None)


@contextmanager
def queue(secret: str) -> Iterator[str]:
    """A POSIX message queue with one message."""
    name = f"/contextd-escapes-{secret[-12:]}"
    before = os.umask(0)
    opened = _LIBC.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    os.umask(before)
    assert opened >= 0, os.strerror(ctypes.get_errno())
    try:
        _LIBC.mq_send(opened, secret.encode(), len(secret), 0)
        yield name
    finally:
        os.close(opened)
        _LIBC.mq_unlink(name.encode())


_KEY_HOLDER: Final = """
import ctypes, sys
call = ctypes.CDLL(None).syscall
secret = sys.argv[1].encode()
held = call({add_key}, b"user", secret[-12:], secret, len(secret), -4)
call({keyctl}, 15, held, 120)
print(held, flush=True)
sys.stdin.read()
call({keyctl}, 9, held, -4)
"""


@contextmanager
def key(python: str, secret: str, who: Identity) -> Iterator[int]:
    """In the keyring of the user; it is forgotten after two minutes whatever happens."""
    numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
    code = _KEY_HOLDER.format(add_key=numbers[0], keyctl=numbers[1])
    process = subprocess.Popen(
        [python, "-I", "-S", "-c", code, secret],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **who,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


def handle(file: Path) -> str:
    """As name_to_handle_at(2) gives it: the bytes of its struct, in hex."""
    held = ctypes.create_string_buffer((128).to_bytes(4, "little"), 136)
    mount = ctypes.c_int()
    here = -100
    if _LIBC.name_to_handle_at(here, str(file).encode(), held, ctypes.byref(mount), 0) != 0:
        return ""
    return held.raw.hex()

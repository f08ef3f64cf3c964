"""Where the daemon is, and a socket to it. The same names as the daemon's own settings."""

from __future__ import annotations

import os
import socket
import sys

_CONNECT_S = 5.0


class Unreachable(Exception):
    """Nobody answers there; the message says what to do."""


class Place:
    """A unix socket of this machine, or a host and port that are reached with a certificate."""

    def __init__(self, address: str, data_dir: str) -> None:
        self.address = address
        self.data_dir = data_dir

    @property
    def is_local(self) -> bool:
        return self.address.startswith("unix:")

    def connect(self) -> socket.socket:
        """Raises ConnectionError or FileNotFoundError when nobody listens, Unreachable for all else."""
        if self.is_local:
            return _unix(self.address.removeprefix("unix:"))
        return _tls(self.address)


def find_place(data_dir: str | None = None, address: str | None = None) -> Place:
    """The environment over what was written at installation over the platform's folder."""
    folder = os.environ.get("CONTEXTD_DATA_DIR")
    if folder:
        data_dir, address = os.path.abspath(os.path.expanduser(folder)), None
    data_dir = data_dir or _user_data()
    named = [name.strip() for name in os.environ.get("CONTEXTD_GRPC", "").split(",") if name.strip()]
    if named == ["off"]:
        raise Unreachable("gRPC is switched off: unset CONTEXTD_GRPC")
    address = named[0] if named and named[0] != "auto" else None if named else address
    return Place(address or f"unix:{data_dir}/run/contextd.sock", data_dir)


def _user_data() -> str:
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return f"{home}/Library/Application Support/contextd"
    return f"{os.environ.get('XDG_DATA_HOME') or f'{home}/.local/share'}/contextd"


def _unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except (ConnectionError, FileNotFoundError):
        sock.close()
        raise
    except OSError as error:
        sock.close()
        raise Unreachable(f"cannot connect to {path} ({error}): set CONTEXTD_GRPC") from None
    return sock


def _tls(address: str) -> socket.socket:
    import ssl

    folder = os.environ.get("CONTEXTD_CERT")
    if not folder:
        raise Unreachable(
            "CONTEXTD_GRPC names a host: set CONTEXTD_CERT to the folder that 'contextd cert issue' wrote"
        )
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
        context.load_cert_chain(f"{folder}/client.pem", f"{folder}/client.key")
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, int(port)), timeout=_CONNECT_S)
        secure = context.wrap_socket(plain, server_hostname=host)
        secure.settimeout(None)
    except (OSError, ValueError) as error:
        raise Unreachable(
            f"cannot reach {address} ({error}): check the address and CONTEXTD_CERT"
        ) from None
    return secure

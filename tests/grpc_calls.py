"""A real gRPC client of a daemon of the tests' own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc

from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.edge.grpc import contextd_v1_pb2_grpc as stubs
from running import Daemon

WAIT_S = 30.0


def socket_of(data_dir: Path) -> Path:
    return data_dir / "run" / "contextd.sock"


@contextmanager
def client_of(daemon: Daemon) -> Iterator["Client"]:
    with grpc.insecure_channel(f"unix:{socket_of(daemon.data_dir)}") as channel:
        yield Client(channel)


@contextmanager
def client_at(address: str, certificate: Path | None, root: Path) -> Iterator["Client"]:
    """Over TLS, with the files that `contextd cert issue` wrote, or without."""
    shown: tuple[bytes | None, bytes | None] = (None, None)
    if certificate is not None:
        shown = ((certificate / "client.key").read_bytes(), (certificate / "client.pem").read_bytes())
    credentials = grpc.ssl_channel_credentials((root / "ca.pem").read_bytes(), *shown)
    with grpc.secure_channel(address, credentials) as channel:
        yield Client(channel)


class Client:
    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.tools = stubs.ToolServiceStub(channel)
        self.refs = stubs.RefServiceStub(channel)
        self.management = stubs.ManagementServiceStub(channel)
        self.health: Any = health_pb2_grpc.HealthStub(channel)

    def execute(self, tool: str, /, **arguments: Any) -> wire.ExecuteReply:
        reply: wire.ExecuteReply = self.tools.Execute(asked(tool, **arguments), timeout=WAIT_S)
        return reply

    def data(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.execute(tool, **arguments).data)
        return data


def asked(tool: str, /, **arguments: Any) -> wire.ExecuteRequest:
    return wire.ExecuteRequest(tool=tool, arguments=json.dumps(arguments).encode())


def body_of(error: grpc.RpcError) -> dict[str, Any]:
    """The fault, from the trailing metadata."""
    (told,) = [each.value for each in error.trailing_metadata() if each.key == "contextd-fault-bin"]
    body: dict[str, Any] = json.loads(told)
    return body

"""The proxy's own HTTP/2 against another's: the h2 library plays a server that does what servers may do."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, PingAckReceived, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from contextd.proxy.http2 import Broken, Connection

WAIT_S = 10.0
HEAD = [(":status", "200"), ("content-type", "application/grpc")]
OK = [("grpc-status", "0")]


class Peer:
    """Answers one call after the other, as `answer` says; keeps what it got."""

    def __init__(self, sock: socket.socket, answer: Callable[["Peer", int], None], window: int) -> None:
        self.sock = sock
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.answer = answer
        self.bodies: dict[int, bytes] = {}
        self.headers: dict[int, dict[str, str]] = {}
        self.pings = 0

    def run(self) -> None:
        # What the client still says after a farewell is h2's complaint, and no matter here.
        with suppress(ConnectionError, ProtocolError):
            self.flush()
            while data := self.sock.recv(65_536):
                for event in self.h2.receive_data(data):
                    self.take(event)
                self.flush()

    def take(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            assert event.stream_id is not None
            self.headers[event.stream_id] = {str(name): str(value) for name, value in event.headers or ()}
            self.bodies[event.stream_id] = b""
        elif isinstance(event, DataReceived):
            assert event.stream_id is not None
            self.bodies[event.stream_id] += event.data or b""
            self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        elif isinstance(event, PingAckReceived):
            self.pings += 1
        elif isinstance(event, StreamEnded):
            assert event.stream_id is not None
            self.answer(self, event.stream_id)

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())


def prefixed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


@contextmanager
def peer(answer: Callable[[Peer, int], None], window: int = 65_535) -> Iterator[tuple[Peer, Connection]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(WAIT_S)
    server = Peer(theirs, answer, window)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server, Connection(ours)
    finally:
        ours.close()
        thread.join(WAIT_S)
        theirs.close()
        assert not thread.is_alive()


def echo(server: Peer, stream: int) -> None:
    server.h2.send_headers(stream, HEAD)
    server.h2.send_data(stream, server.bodies[stream][:16_000])
    server.h2.send_headers(stream, OK, end_stream=True)


def test_one_call_after_the_other_is_answered() -> None:
    with peer(echo) as (server, connection):
        for number in (1, 2):
            reply = connection.call("/a/B", b"hello %d" % number, {"x": "y" * 200})
            assert reply.messages == [b"hello %d" % number]
    assert server.headers[1][":path"] == "/a/B"
    assert server.headers[1]["te"] == "trailers"
    assert server.headers[3]["x"] == "y" * 200


@pytest.mark.parametrize("window", [1_000, 65_535, 1_000_000])
def test_a_large_message_waits_for_room(window: int) -> None:
    def count(server: Peer, stream: int) -> None:
        server.h2.send_headers(stream, HEAD)
        server.h2.send_data(stream, prefixed(str(len(server.bodies[stream])).encode()))
        server.h2.send_headers(stream, OK, end_stream=True)

    with peer(count, window) as (server, connection):
        assert connection.call("/a/B", b"x" * 300_000, {}).messages == [b"300005"]
    assert server.bodies[1].endswith(b"x" * 300_000)


def test_what_comes_between_is_answered_or_passed_over() -> None:
    def busy(server: Peer, stream: int) -> None:
        server.h2.ping(b"12345678")
        server.h2.update_settings({SettingCodes.MAX_FRAME_SIZE: 32_768})
        server.h2.send_headers(stream, HEAD)
        server.h2.send_data(stream, prefixed(b"first")[:4], pad_length=7)
        server.h2.send_data(stream, prefixed(b"first")[4:] + prefixed(b"second"))
        long_trailers = [*OK, *((f"x-{number}", "v" * 500) for number in range(60))]
        server.h2.send_headers(stream, long_trailers, end_stream=True)

    with peer(busy) as (server, connection):
        assert connection.call("/a/B", b"", {}).messages == [b"first", b"second"]
        connection.call("/a/B", b"", {})
    assert server.pings >= 1


def test_an_answer_without_a_message_is_one_too() -> None:
    """h2 writes its headers in Huffman's code, which is not read: that there is no message says enough."""

    def refuse(server: Peer, stream: int) -> None:
        fields = [*HEAD, ("grpc-status", "5"), ("grpc-message", "there is none")]
        server.h2.send_headers(stream, fields, end_stream=True)

    with peer(refuse) as (_, connection):
        reply = connection.call("/a/B", b"", {})
    assert reply.messages == []


def test_a_reset_and_a_farewell_are_told() -> None:
    def reset(server: Peer, stream: int) -> None:
        server.h2.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)

    def leave(server: Peer, stream: int) -> None:
        server.h2.close_connection(last_stream_id=0)

    def hang_up(server: Peer, stream: int) -> None:
        server.sock.shutdown(socket.SHUT_RDWR)

    for misbehave, says in ((reset, "reset"), (leave, "stopping"), (hang_up, "closed")):
        with peer(misbehave) as (_, connection), pytest.raises(Broken, match=says):
            connection.call("/a/B", b"x", {})


def test_another_protocol_is_no_answer() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        theirs.shutdown(socket.SHUT_WR)
        ours.settimeout(WAIT_S)
        with pytest.raises(Broken):
            Connection(ours).call("/a/B", b"x", {})

"""As much of HTTP/2 as one gRPC call needs, on a socket that is connected."""

import struct

TYPE_CHECKING = False
"""As typing has it, which is not imported: it would cost a tenth of the whole start."""
if TYPE_CHECKING:
    import socket

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM = 0x1
_ACK = 0x1
_END_HEADERS = 0x4
_PADDED = 0x8
_PRIORITY = 0x20
_TABLE_SIZE, _PUSH, _INITIAL_WINDOW, _FRAME_SIZE = 1, 2, 4, 5
_FIRST_WINDOW = 65_535
_LARGEST_WINDOW = 2**31 - 1
_OPENING = struct.pack(">HIHIHI", _TABLE_SIZE, 0, _PUSH, 0, _INITIAL_WINDOW, _LARGEST_WINDOW)
"""No table: so every header that comes back is spelled out. Windows that no answer fills."""


class Broken(Exception):
    """The other side left, or does not speak HTTP/2."""


class Reply:
    """Whole messages, and the trailers as far as they are plain text."""

    def __init__(self, messages: list[bytes], trailers: dict[str, str]) -> None:
        self.messages = messages
        self.trailers = trailers


class Connection:
    """One call after the other. Not thread safe."""

    def __init__(self, sock: "socket.socket") -> None:
        self._sock = sock
        self._unread = b""
        self._stream = -1
        self._frame_size = 16_384
        self._first_window = _FIRST_WINDOW
        self._window = _FIRST_WINDOW  # of the connection
        self._stream_window = _FIRST_WINDOW
        self._body = bytearray()
        self._block = b""
        self._ended = False
        grow = struct.pack(">I", _LARGEST_WINDOW - _FIRST_WINDOW)
        self._outgoing = _PREFACE + _frame(_SETTINGS, 0, 0, _OPENING) + _frame(_WINDOW, 0, 0, grow)

    def call(self, path: str, message: bytes, metadata: dict[str, str]) -> Reply:
        """Send one message and read all that is answered. Raises Broken, OSError."""
        self._stream += 2
        self._stream_window = self._first_window
        self._body, self._block, self._ended = bytearray(), b"", False
        self._outgoing += _frame(_HEADERS, _END_HEADERS, self._stream, _headers(path, metadata))
        self._send_body(struct.pack(">BI", 0, len(message)) + message)
        while not self._ended:
            self._read_frame()
        return Reply(_messages(bytes(self._body)), _plain(self._block))

    def _send_body(self, body: bytes) -> None:
        """In frames, as the other side makes room."""
        view = memoryview(body)
        while not self._ended:
            # A window may be below nothing: settings that come later make it smaller.
            size = max(0, min(len(view), self._frame_size, self._window, self._stream_window))
            part, view = view[:size], view[size:]
            if size:
                self._window -= size
                self._stream_window -= size
                last = 0 if len(view) else _END_STREAM
                self._outgoing += _frame(_DATA, last, self._stream, bytes(part))
            self._flush()
            if len(view) == 0:
                return
            if min(self._window, self._stream_window) <= 0:
                self._read_frame()

    def _flush(self) -> None:
        sent, self._outgoing = self._outgoing, b""
        try:
            self._sock.sendall(sent)
        except ConnectionError:
            raise Broken("the daemon closed the connection") from None

    def _read_frame(self) -> None:
        head = self._exactly(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & _LARGEST_WINDOW
        self._take(kind, flags, stream, self._exactly(size))
        if self._outgoing:
            self._flush()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            self._settle(payload)
        elif kind == _PING and not flags & _ACK:
            self._outgoing += _frame(_PING, _ACK, 0, payload)
        elif kind == _WINDOW:
            self._grow(stream, int.from_bytes(payload, "big") & _LARGEST_WINDOW)
        elif kind == _GOAWAY and int.from_bytes(payload[:4], "big") < self._stream:
            raise Broken("the daemon is stopping")
        elif stream == self._stream:
            self._take_stream(kind, flags, payload)

    def _take_stream(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == _RESET:
            raise Broken(f"the call was reset ({int.from_bytes(payload, 'big')})")
        if kind == _DATA:
            self._body += _unpadded(flags, payload)
        elif kind == _HEADERS:
            payload = _unpadded(flags, payload)
            self._block = payload[5:] if flags & _PRIORITY else payload
        elif kind == _CONTINUATION:
            self._block += payload
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            self._ended = True

    def _settle(self, payload: bytes) -> None:
        for key, value in struct.iter_unpack(">HI", payload):
            if key == _INITIAL_WINDOW:
                self._stream_window += value - self._first_window
                self._first_window = value
            elif key == _FRAME_SIZE:
                self._frame_size = value
        self._outgoing += _frame(_SETTINGS, _ACK, 0, b"")

    def _grow(self, stream: int, by: int) -> None:
        if stream == 0:
            self._window += by
        elif stream == self._stream:
            self._stream_window += by

    def _exactly(self, size: int) -> bytes:
        parts = [self._unread]
        have = len(self._unread)
        while have < size:
            try:
                more = self._sock.recv(max(65_536, size - have))
            except ConnectionError:
                more = b""
            if not more:
                raise Broken("the daemon closed the connection")
            parts.append(more)
            have += len(more)
        read = b"".join(parts)
        self._unread = read[size:]
        return read[:size]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def _unpadded(flags: int, payload: bytes) -> bytes:
    return payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload


def _messages(body: bytes) -> list[bytes]:
    found = []
    while len(body) >= 5:
        size = int.from_bytes(body[1:5], "big")
        found.append(body[5 : 5 + size])
        body = body[5 + size :]
    return found


def _headers(path: str, metadata: dict[str, str]) -> bytes:
    """Each spelled out, none kept: HPACK without its tables."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
        **metadata,
    }
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in fields.items())


def _string(text: str) -> bytes:
    raw = text.encode()
    return _integer(len(raw), 7) + raw


def _integer(value: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    out, value = [most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _plain(block: bytes) -> dict[str, str]:
    """The headers that are spelled out without compression, as grpc-status and grpc-message are."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0x80:
                _, at = _read_integer(block, at, 7)
            elif first & 0xE0 == 0x20:
                _, at = _read_integer(block, at, 5)
            else:
                index, at = _read_integer(block, at, 6 if first & 0x40 else 4)
                name, at = ("", at) if index else _read_string(block, at)
                found[name], at = _read_string(block, at)
    except IndexError:
        return found
    return found


def _read_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value, at, shift = block[at] & most, at + 1, 0
    if value < most:
        return value, at
    while True:
        value += (block[at] & 127) << shift
        shift += 7
        at += 1
        if block[at - 1] < 128:
            return value, at


def _read_string(block: bytes, at: int) -> tuple[str, int]:
    """Empty for one in Huffman's code: what matters here is never sent so by gRPC's servers."""
    is_coded = block[at] & 0x80
    size, at = _read_integer(block, at, 7)
    raw = block[at : at + size]
    return "" if is_coded else raw.decode("utf-8", "replace"), at + size

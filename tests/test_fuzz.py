"""Messages that no client should send, each made from its number: a failure can be sent again."""

import http.client
import json
import random
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contextd.plugins import load_extensions
from running import (
    JSON_AND_SSE,
    KEYWORD_ONLY,
    Daemon,
    command,
    environment,
    initialize_params,
    running_daemon,
)

MESSAGES = 10_000
LINES = 1_000
THREADS = 4
SEED = "contextd"
MODERN = "2026-07-28"

MARK = "zq7sentinel"
"""Stands in values only: a refusal must not repeat it."""

LEAK = re.compile(
    r"Traceback|File \\?\"|site-packages|pydantic|/contextd/\w+/|\b[A-Z]\w+(?:Error|Exception)\b|\w+_type=",
    re.ASCII,
)
"""What tells of the inside: a stack, a library, a class of exception."""

EVENT = re.compile(rb"^data: (\{.*)$", re.MULTILINE)
NAMED = re.compile(r'"Unknown tool: [^"]*"|"details": {"what": [^}]*}(, "uri": "[^"]*")?')


@dataclass(frozen=True)
class Sent:
    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    raw: bytes | None = None
    """Sent instead, as it is, on a connection of its own."""


@dataclass(frozen=True)
class Got:
    status: int
    body: bytes

    @property
    def is_result(self) -> bool:
        """An answer may hold what was asked for; a refusal must not."""
        try:
            message = json.loads(self.body)
        except ValueError:
            return self.status == 200
        if not isinstance(message, dict):
            return False
        if self.status == 200 and "jsonrpc" not in message:
            return True
        return "result" in message and not (message["result"] or {}).get("isError")


# --- what is sent -------------------------------------------------------------------------


def proper_messages() -> list[dict[str, Any]]:
    calls = [
        {"name": tool.name, "arguments": dict(example.arguments)}
        for tool in load_extensions().tools
        for example in tool.examples
        # What runs commands and writes files is not called at random on somebody's machine.
        if tool.toolset != "safe"
    ]
    asked: list[tuple[str, Any]] = [
        ("initialize", initialize_params()),
        ("ping", {}),
        ("tools/list", {}),
        *(("tools/call", call) for call in calls),
        ("tools/call", {"name": "checkpoint_restore", "arguments": {"id": "cp-aaaaaaaaaaaa-bbbb"}}),
        ("resources/list", {"cursor": "50"}),
        ("resources/read", {"uri": "contextd://tools/status"}),
        ("resources/read", {"uri": "contextd://checkpoints/cp-aaaaaaaaaaaa-bbbb"}),
        ("resources/templates/list", {}),
        ("resources/subscribe", {"uri": "contextd://tools/status"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "resume-work", "arguments": {"project_path": "/tmp/a"}}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "resume-work"},
                "argument": {"name": "id", "value": "c"},
            },
        ),
        ("logging/setLevel", {"level": "debug"}),
        ("server/discover", {}),
        ("sampling/createMessage", {}),
    ]
    told = [
        ("notifications/initialized", {}),
        ("notifications/cancelled", {"requestId": 1, "reason": MARK}),
        ("notifications/progress", {"progressToken": 1, "progress": 0.5}),
        ("notifications/roots/list_changed", {}),
    ]
    return [
        *({"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in asked),
        *({"jsonrpc": "2.0", "method": method, "params": params} for method, params in told),
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": MARK}},
    ]


PROPER = proper_messages()
CALLS = [message["params"] for message in PROPER if message.get("method") == "tools/call"]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    -(2**80),
    1e308,
    float("inf"),
    float("nan"),
    "",
    MARK,
    MARK * 500,
    "\x00",
    "\ud800",
    "\u202e\U0001f680",
    "../../etc/passwd",
    "%s%n{0}${jndi:x}",
    "' OR 1=1 --",
    [],
    [MARK],
    {},
    {f"{MARK}!": MARK},
    {"_meta": {"progressToken": MARK}},
]


def random_json(dice: random.Random, depth: int = 4) -> Any:
    kind = dice.randrange(6 if depth else 4)
    if kind < 4:
        return deepcopy(dice.choice(ODD))
    if kind == 4:
        return [random_json(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {
        dice.choice(["id", "name", "params", "a"]): random_json(dice, depth - 1)
        for _ in range(dice.randrange(4))
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(dice: random.Random, message: dict[str, Any]) -> dict[str, Any]:
    """A copy with one to three places put elsewhere, replaced, removed or added to."""
    copy = deepcopy(message)
    deeper = dice.random() < 0.7
    for _ in range(dice.randint(1, 3)):
        found = list(places(copy))
        if not found:
            break
        # What is wrong inside the params gets further than what is no message at all.
        inside = [way for way in found if len(way) > 1 and way[0] == "params"]
        *way, last = dice.choice(inside if deeper and inside else found)
        holder: Any = copy
        for key in way:
            holder = holder[key]
        match dice.randrange(4):
            case 0:
                del holder[last]
            case 1 if isinstance(holder, dict):
                holder[dice.choice(["extra", "_meta", "jsonrpc", "id", "method"])] = random_json(dice, 2)
            case _:
                holder[last] = random_json(dice)
    return copy


def with_meta(message: dict[str, Any]) -> dict[str, Any]:
    """As the wire without sessions wants it, where it still can be."""
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    }
    return {**message, "params": {**params, "_meta": meta}}


Body = Callable[[random.Random, bytes], bytes]
"""From a proper message to one that is not."""


def cut(dice: random.Random, whole: bytes) -> bytes:
    return whole[: dice.randrange(len(whole))]


def struck(dice: random.Random, whole: bytes) -> bytes:
    at = dice.randrange(len(whole))
    return whole[:at] + dice.randbytes(dice.randint(1, 4)) + whole[at + 1 :]


def batched(dice: random.Random, whole: bytes) -> bytes:
    return b"[" + b",".join([whole] * dice.randrange(4)) + b"]"


def endless(dice: random.Random, whole: bytes) -> bytes:
    return whole[:-1] + b',"x":' + dice.choice([b"[", b'{"a":']) * dice.choice([50, 200, 5_000, 50_000])


def deepened(dice: random.Random, whole: bytes) -> bytes:
    depth = dice.choice([50, 150, 1_000])
    return whole.replace(b'"params": {', b'"params": {"deep": ' + b"[" * depth + b"]" * depth + b", ", 1)


def with_odd_id(dice: random.Random, whole: bytes) -> bytes:
    id = dice.choice(ODD_IDS)
    return re.sub(rb'"id": \d+', lambda _: b'"id": ' + id, whole)


def noise(dice: random.Random, whole: bytes) -> bytes:
    return dice.choice([dice.randbytes(dice.randrange(200)), json.dumps(random_json(dice)).encode()])


def in_another_form(dice: random.Random, whole: bytes) -> bytes:
    return dice.choice([whole.decode().encode("utf-16"), b"\xef\xbb\xbf" + whole, whole * 2, b"", b" \n"])


BODIES: list[Body] = [cut, struck, batched, endless, deepened, with_odd_id, noise, in_another_form]
ODD_IDS = [
    *(b"9" * 400, b"-0", b"1.0", b"1e400", b"NaN", b'"\\ud800"', b"null", b"true"),
    *(b"[]", b"{}", b'""', b"1" * 5_000),
]


def body_of(dice: random.Random, proper: dict[str, Any], modern: bool) -> bytes:
    """Mostly JSON-RPC with something wrong in it; the rest is not even that."""
    if dice.random() < 0.5:
        wrong = changed(dice, proper)
        return json.dumps(with_meta(wrong) if modern else wrong).encode()
    whole = with_meta(proper) if modern else proper
    if dice.random() < 0.2:
        return json.dumps(changed(dice, whole)).encode()
    return dice.choice(BODIES)(dice, json.dumps(whole).encode())


def message(number: int, session: str) -> Sent:
    """One request out of all that can go wrong, always the same for a number."""
    dice = random.Random(f"{SEED}-{number}")
    proper = dice.choice(PROPER)
    modern = dice.random() < 0.4
    headers = dict(JSON_AND_SSE)
    if modern:
        headers |= modern_headers(proper)
    elif dice.random() < 0.7:
        headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
    sent = Sent(number, "POST", "/mcp", headers, body_of(dice, proper, modern))
    return dice.choice(REQUESTS)(dice, sent) if dice.random() < 0.5 else sent


def modern_headers(proper: dict[str, Any]) -> dict[str, str]:
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": proper.get("method", "")}
    name = proper.get("params", {}).get("name") or proper.get("params", {}).get("uri")
    return {**headers, "Mcp-Name": name} if name else headers


def with_odd_headers(dice: random.Random, sent: Sent) -> Sent:
    odd = dict(sent.headers)
    for name in dice.sample(list(ODD_HEADERS), dice.randint(1, 3)):
        if dice.random() < 0.2:
            odd.pop(name, None)
        else:
            odd[name] = dice.choice(ODD_HEADERS[name])
    return replace(sent, headers=odd)


def to_automation(dice: random.Random, sent: Sent) -> Sent:
    return replace(sent, path=f"/api/v1/tools/{tool_name(dice)}", body=arguments(dice))


def to_an_older_path(dice: random.Random, sent: Sent) -> Sent:
    return replace(sent, path=f"/mcp/{tool_name(dice).replace('_', '/', 1)}", body=arguments(dice))


def to_an_odd_path(dice: random.Random, sent: Sent) -> Sent:
    method = dice.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"])
    return replace(
        sent, method=method, path=dice.choice(ODD_PATHS), body=sent.body if method == "POST" else b""
    )


def hardly_http(dice: random.Random, sent: Sent) -> Sent:
    return replace(sent, raw=dice.choice([dice.randbytes(300), *GARBAGE]))


REQUESTS = [
    with_odd_headers,
    with_odd_headers,
    to_automation,
    to_an_older_path,
    to_an_odd_path,
    hardly_http,
]


def tool_name(dice: random.Random) -> str:
    if dice.random() < 0.8:
        return str(dice.choice(CALLS)["name"])
    return dice.choice(["no_such", "%00", "%ed%a0%80", "..", "a" * 999])


def arguments(dice: random.Random) -> bytes:
    given = dice.choice(CALLS)["arguments"]
    if dice.random() < 0.2:
        return body_of(dice, dice.choice(PROPER), False)
    wrapped = (
        {"jsonrpc": "2.0", "id": random_json(dice, 1), "params": given} if dice.random() < 0.3 else given
    )
    return json.dumps(changed(dice, wrapped)).encode()


ODD_PATHS = [
    "/",
    "/mcp/resources/read",
    "/mcp/resources/list?cursor=x",
    "/mcp/tools/list",
    "/mcp/sse/1",
    "/mcp",
    "/mcp/",
    "/mcp/a/b/c",
    "//",
    "/..",
    "/%2e%2e/etc",
    "/%00",
    "/%ff%fe",
    "/api/v1/tools/",
    "/health?" + "a" * 9_000,
]
ODD_HEADERS = {
    "Content-Type": ["text/plain", "", "application/json; charset=utf-16", "multipart/form-data", "\xff"],
    "Accept": [
        "",
        "*/*",
        "text/html",
        "application/json",
        "a/b;q=z,,,",
        "application/json, text/event-stream;q=0",
    ],
    "Mcp-Session-Id": ["", "nope", "0" * 32, "../x", "\xe9", "a" * 5_000],
    "Mcp-Protocol-Version": [
        "",
        "1999-01-01",
        "2024-11-05",
        MODERN,
        "9" * 100,
        "\xe9",
        "2025-11-25,2025-06-18",
    ],
    "Mcp-Method": ["", "tools/call", "\xff"],
    "Mcp-Name": ["status", "=?base64?zzz?=", "\xff"],
    "Last-Event-ID": ["0", "-1", "\xe9", "a" * 1_000],
    "Origin": ["null", "http://[", "http://evil.example", "\xff", "http://localhost:1"],
    "Host": ["[", "evil.example", "localhost:99999", "[::1", "@", "127.0.0.1:x"],
    "Authorization": ["Bearer ", f"Bearer {MARK}", f"Basic {MARK}", "\xff"],
    "Traceparent": ["00-zz-zz-00", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 2_000],
    "Content-Encoding": ["gzip", "br", "identity"],
    "Expect": ["100-continue", "200-ok"],
    "Upgrade": ["websocket", "h2c"],
    "X-Forwarded-For": ["1.2.3.4, \xff"],
}


GARBAGE = [
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /mcp\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /\xff\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 100_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


# --- how it is sent -----------------------------------------------------------------------


class Sender:
    """A client that keeps its connection, and its session, until either is lost."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._address = daemon.url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self._address, timeout=20)
        self._session = daemon.session().id

    def send(self, number: int) -> tuple[Sent, Got | None]:
        sent = message(number, self._session)
        if sent.raw is not None:
            return sent, self._send_raw(sent.raw)
        got = self._exchange(sent)
        if (sent.path, got.status) == ("/mcp", 404) and sent.headers.get("Mcp-Session-Id") == self._session:
            self._session = self._daemon.session().id
        return sent, got

    def _exchange(self, sent: Sent) -> Got:
        try:
            self._connection.request(sent.method, sent.path, sent.body, sent.headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # The daemon had closed a connection that it no longer trusted.
            self._connection.close()
            self._connection.request(sent.method, sent.path, sent.body, sent.headers)
            answer = self._connection.getresponse()
        if "event-stream" not in answer.headers.get("content-type", ""):
            return Got(answer.status, answer.read())
        if sent.method == "POST":
            return Got(answer.status, EVENT.findall(answer.read())[-1])
        self._connection.close()
        return Got(answer.status, b"a stream without an end")

    def _send_raw(self, raw: bytes) -> Got | None:
        """None when the daemon closed the connection without a word, as it may."""
        connection = http.client.HTTPConnection(self._address, timeout=20)
        connection.connect()
        try:
            connection.sock.sendall(raw)
            connection.sock.shutdown(socket.SHUT_WR)
            text = b"".join(iter(lambda: connection.sock.recv(65536), b""))
        except (ConnectionResetError, BrokenPipeError):
            return None
        finally:
            connection.close()
        found = re.match(rb"HTTP/1\.\d (\d{3})", text)
        return Got(int(found.group(1)), text) if found else None

    def close(self) -> None:
        self._connection.close()


def complaint(sent: Sent, got: Got | None) -> str | None:
    """Why an answer is not acceptable."""
    if got is None:
        return None
    text = got.body.decode("utf-8", "replace")
    if got.status >= 500:
        return f"status {got.status}: {text[:300]}"
    if got.is_result:
        return None
    told = without_names(text)
    if (found := LEAK.search(told)) is not None:
        return f"it tells of the inside ({found.group()}): {told[:300]}"
    return f"it repeats a value: {told[:300]}" if MARK in told else None


def without_names(text: str) -> str:
    """A message's id must come back; a method, a tool or a record that does not exist may be named."""
    try:
        message = json.loads(text)
    except ValueError:
        return text
    if isinstance(message, dict):
        message = {**message, "id": None}
        if isinstance(error := message.get("error"), dict) and error.get("code") == -32601:
            message["error"] = {**error, "data": None}
    return NAMED.sub("", json.dumps(message))


def stacks(log: list[str]) -> list[str]:
    """Lines of the log that tell of something unforeseen, each with what follows it."""
    return [
        "".join(log[at : at + 40])
        for at, line in enumerate(log)
        if " ERROR " in line or " CRITICAL " in line or line.startswith("Traceback")
    ]


def test_ten_thousand_messages_over_http_are_each_answered_without_a_crash(tmp_path: Path) -> None:
    with running_daemon(tmp_path, CONTEXTD_RATE_LIMIT="off", **KEYWORD_ONLY) as daemon:
        with ThreadPoolExecutor(THREADS) as pool:
            found = pool.map(lambda lane: _send_lane(daemon, lane), range(THREADS))
            complaints = [each for lane in found for each in lane]
        assert complaints == []
        assert daemon.tool("status").json()["data"]["status"] in ("healthy", "degraded")
        assert daemon.session().call("status")["result"]["isError"] is False
        assert daemon.stop() == 0
    assert stacks(daemon.log) == []


def _send_lane(daemon: Daemon, lane: int) -> list[str]:
    sender = Sender(daemon)
    complaints = []
    for number in range(lane, MESSAGES, THREADS):
        sent, got = sender.send(number)
        if (wrong := complaint(sent, got)) is not None:
            complaints.append(f"{number} {sent.method} {sent.path[:80]} {sent.body[:200]!r} {wrong}")
    sender.close()
    return complaints


def test_a_thousand_lines_over_stdio_are_survived(tmp_path: Path) -> None:
    server = subprocess.Popen(
        command("mcp"),
        env=environment(tmp_path, CONTEXTD_RATE_LIMIT="off", **KEYWORD_ONLY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    answers: list[bytes] = []
    log: list[str] = []
    answered = threading.Event()

    def read() -> None:
        for line in server.stdout or ():
            answers.append(line)
            if b'"id":"last"' in line:
                answered.set()

    readers = [
        threading.Thread(target=read),
        threading.Thread(target=lambda: log.extend(line.decode() for line in server.stderr or ())),
    ]
    for reader in readers:
        reader.start()
    try:
        assert server.stdin is not None
        for line in _lines():
            server.stdin.write(line.replace(b"\n", b" ") + b"\n")
        server.stdin.flush()
        assert answered.wait(60)
        server.stdin.close()
        assert server.wait(timeout=20) == 0
    finally:
        server.kill()
        for reader in readers:
            reader.join(timeout=10)
        for stream in (server.stdout, server.stderr):
            assert stream is not None
            stream.close()
    _check_lines(answers)
    assert stacks(log) == []


def _lines() -> Iterator[bytes]:
    opening = {"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": initialize_params()}
    yield json.dumps(opening).encode()
    yield json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    for number in range(LINES):
        dice = random.Random(f"{SEED}-stdio-{number}")
        yield body_of(dice, dice.choice(PROPER), False)
    last = {
        "jsonrpc": "2.0",
        "id": "last",
        "method": "tools/call",
        "params": {"name": "status", "arguments": {}},
    }
    yield json.dumps(last).encode()


def _check_lines(lines: list[bytes]) -> None:
    messages = [json.loads(line) for line in lines]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    (last,) = (message for message in messages if message.get("id") == "last")
    assert last["result"]["structuredContent"]["status"] in ("healthy", "degraded")
    complaints = [complaint(Sent(0, "", "", {}, b""), Got(200, line)) for line in lines]
    assert [each for each in complaints if each] == []


def test_a_number_always_makes_the_same_message() -> None:
    assert [message(number, "s") for number in range(500)] == [
        message(number, "s") for number in range(500)
    ]

"""Fingerprints: the same for one error on every machine and every day, another for another error."""

import csv
import importlib.util
import json
import re
import sys
import time
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.domain.ecosystems import KNOWN
from contextd.domain.fingerprints import ErrorText, essence, mask, read_error, same_type, string_similarity
from contextd.domain.stack_frames import Frame, frames_overlap, parse_frames

Row = dict[str, Any]


def _rows() -> list[Row]:
    path = Path(__file__).parent / "data" / "error_messages.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def read() -> list[tuple[Row, ErrorText]]:
    return [(row, read_error(row["message"], row.get("stack_trace", ""))) for row in _rows()]


# --- the committed set ----------------------------------------------------------------


def test_the_set_is_large_and_says_nothing_twice() -> None:
    rows = _rows()
    assert len(rows) >= 300
    assert len({json.dumps(row, sort_keys=True) for row in rows}) == len(rows)
    assert len({row["group"] for row in rows}) >= 100


def test_errors_that_differ_in_volatile_parts_share_a_fingerprint(
    read: list[tuple[Row, ErrorText]],
) -> None:
    same = [
        a.fingerprint == b.fingerprint
        for (row, a), (other, b) in combinations(read, 2)
        if row["group"] == other["group"]
    ]
    assert len(same) >= 300
    assert sum(same) / len(same) >= 0.95


def test_unrelated_errors_have_fingerprints_of_their_own(read: list[tuple[Row, ErrorText]]) -> None:
    different = [
        a.fingerprint != b.fingerprint
        for (row, a), (other, b) in combinations(read, 2)
        if row["group"] != other["group"]
    ]
    assert sum(different) / len(different) >= 0.99


def test_ecosystems_are_told_apart(read: list[tuple[Row, ErrorText]]) -> None:
    labelled = [(row["ecosystem"], error.ecosystem) for row, error in read if row["ecosystem"]]
    assert {ecosystem for ecosystem, _ in labelled} <= KNOWN
    assert sum(true == found for true, found in labelled) / len(labelled) >= 0.95


def test_a_fingerprint_is_sixteen_hex_digits(read: list[tuple[Row, ErrorText]]) -> None:
    assert all(re.fullmatch(r"[0-9a-f]{16}", error.fingerprint) for _, error in read)


# --- what stands before a line --------------------------------------------------------

TIMES = (
    "2024-05-03T11:20:41Z ", "2024-05-03T11:20:41.123456789Z ", "2024-05-03 11:20:41,123 ",
    "2024/05/03 11:20:41 ", "[2024-05-03 11:20:41] ", "[2024-05-03T11:20:41.123+0200] ", "May  3 11:20:41 ",
    "11:20:41.123 ", "1714735241.123 ", "[Fri May 03 11:20:41.123456 2024] ", "[   12.345678] ",
    "03/May/2024:11:20:41 +0000 ", "Fri, 03 May 2024 11:20:41 GMT ",
)  # fmt: skip
LEVELS = (
    "ERROR ", "FATAL ", "CRITICAL ", "WARN ", "INFO ", "E ", "[ERROR] ", "[error] ", "[error]: ",
    "ERROR | ", "ERROR - ", "ERROR\t", "level=error ", 'level="error" ', "ERROR:root:", "ERROR:app.db:",
    "time=2024-05-03T11:20:41Z level=error ",
)  # fmt: skip
LOGGERS = (
    "2024-05-03T11:20:41Z ERROR ",
    "2024-05-03 11:20:41 [ERROR] ",
    "ERROR 2024-05-03 11:20:41 ",
    "2024-05-03 11:20:41 E ",
    "2024-05-03 11:20:41 [error    ] ",
    "[2024-05-03 11:20:41 +0000] [17] [ERROR] ",
    "2024-05-03 11:20:41,123 - app.db - ERROR - ",
    "2024-05-03 11:20:41.123 | ERROR    | app.db:connect:41 - ",
    "2024-05-03 11:20:41.123 [main] ERROR com.acme.OrderService - ",
    "2024-05-03 11:20:41.123 ERROR [http-nio-8080-exec-1] com.acme.OrderService - ",
    "2024-05-03T11:20:41.123Z ERROR 4711 --- [main] c.acme.orders.OrderService       : ",
    "2024-05-03T11:20:41.123Z\tERROR\tdb/pool.go:41\t",
    "2024-05-03T11:20:41.123456Z ERROR shop::db: ",
    "[2024-05-03T11:20:41Z ERROR shop::db] ",
    "E, [2024-05-03T11:20:41.123456 #4711] ERROR -- : ",
    "[2024-05-03 11:20:41,123: ERROR/MainProcess] ",
    "E0503 11:20:41.123456   17 pool.go:41] ",
    "2024/05/03 11:20:41 [error] 17#17: *42 ",
    "05-03 11:20:41.123  1234  5678 E AndroidRuntime: ",
)
CONTAINERS = (
    "web_1  | ", "web-1  | ", "web-1 | ", "shop-api-1  | ", "db  | ", "web.1.x8k2jq9w0e1r@node1    | ",
    "11:20:41 web.1  | ", "0|api  | ", "web_1  | ERROR ", "web_1  | 2024-05-03T11:20:41Z ERROR ",
    "\x1b[36mweb_1  |\x1b[0m ", "[pod/api-7d8b49557f-x2x9q/api] ", "api-7d8b49557f-x2x9q api ",
    "[pod/api-7d8b49557f-x2x9q/api] 2024-05-03T11:20:41Z ERROR ",
    "2024-05-03T11:20:41.123456789Z stderr F ",
)  # fmt: skip
SYSTEMS = (
    "May  3 11:20:41 web1 api[4711]: ", "May  3 11:20:41 web1 kernel: ",
    "<34>1 2024-05-03T11:20:41.123Z web1 api 4711 ID47 - ",
    "2024-05-03T11:20:41+00:00 web1 api[4711]: ERROR ",
    "2024-05-03T11:20:41.123456+00:00 app[web.1]: ", "May  3 11:20:41 web1 kernel: [   12.345678] ",
)  # fmt: skip
BUILDS = (
    "##[error]", "::error::", "::error file=app.js,line=1::", "2024-05-03T11:20:41.1234567Z ##[error]",
    "build\tRun tests\t2024-05-03T11:20:41.1234567Z ", "#12 3.412 ", "[CI/build]   | ", "web:build: ",
    "@acme/web:test: ", "packages/web build: ", "2024-05-03T11:20:41.123456Z 01E ", "[0] ",
    "section_start:1714735241:test[collapsed=true]",
)  # fmt: skip
HEADS = (*TIMES, *LEVELS, *LOGGERS, *CONTAINERS, *SYSTEMS, *BUILDS)


def _kept(head: str, rows: list[tuple[Row, ErrorText]], *, on_every_line: bool) -> float:
    def headed(message: str) -> str:
        return head + message.replace("\n", f"\n{head}") if on_every_line else head + message

    same = [
        read_error(headed(row["message"]), row.get("stack_trace", "")).fingerprint == error.fingerprint
        for row, error in rows
    ]
    return sum(same) / len(same)


@pytest.mark.parametrize("head", HEADS)
def test_an_error_is_the_same_in_every_log(head: str, read: list[tuple[Row, ErrorText]]) -> None:
    assert _kept(head, read, on_every_line=False) >= 0.99
    assert _kept(head, read, on_every_line=True) >= 0.95


@pytest.mark.parametrize("label", ["Error: ", "error: ", "ERROR: ", "npm ERR! "])
def test_a_label_before_the_first_line_seldom_makes_another_error(
    label: str, read: list[tuple[Row, ErrorText]]
) -> None:
    """Seldom, not never: a label says which of many lines matters."""
    assert _kept(label, read, on_every_line=False) >= 0.85


@given(st.lists(st.sampled_from(HEADS[:2] + CONTAINERS + SYSTEMS + LOGGERS[:3]), max_size=2).map("".join))
@settings(max_examples=100, deadline=None)
def test_heads_may_stand_before_heads(heads: str) -> None:
    told = "Error: ENOSPC: System limit for number of file watchers reached, watch '/srv/app'"
    assert read_error(heads + told).fingerprint == read_error(told).fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ERROR timeout - giving up", "ERROR disk - giving up"),
        ("ERROR Connection: refused", "ERROR Permission: refused"),
        ("ERROR worker: cannot start", "ERROR mailer: cannot start"),
        ("ERROR 1064 (42000): x", "ERROR 1146 (42000): x"),
        ("2024-05-03 11:20:41 ERROR ValueError: bad", "2024-05-03 11:20:41 ERROR KeyError: bad"),
        ("2024-05-03 11:20:41 ENOSPC: out of it", "2024-05-03 11:20:41 EMFILE: out of it"),
        ("2024-05-03 11:20:41 error[E0382]: x", "2024-05-03 11:20:41 error[E0499]: x"),
        ("May  3 11:20:41 connection failed: timeout", "May  3 11:20:41 login failed: timeout"),
        ("[vite] Internal server error", "[nodemon] Internal server error"),
        ("args[0]: invalid value", "opts[0]: invalid value"),
        ("disk | is full", "queue | is full"),
        ("ERROR com.acme.StockError: none left", "ERROR com.acme.PriceError: none left"),
        ("ERROR ", "FATAL "),
    ],
)
def test_what_only_looks_like_a_head_still_tells_errors_apart(one: str, other: str) -> None:
    assert read_error(one).fingerprint != read_error(other).fingerprint


def test_of_many_lines_the_one_that_the_log_calls_an_error_counts() -> None:
    log = "INFO could not find a cache, so making one\nERROR disk is full\n  on sda1\nINFO stopped\n"
    assert read_error(log).fingerprint == read_error("disk is full").fingerprint


def test_a_trace_is_read_through_the_heads_of_its_lines() -> None:
    logged = read_error("".join(f"web_1  | {line}\n" for line in TRACEBACK.splitlines()))
    assert (logged.error_type, logged.ecosystem) == ("KeyError", "python")
    assert logged.frames == read_error(TRACEBACK).frames


# --- masking --------------------------------------------------------------------------

MASKED = [
    ("paths", "cannot open /var/lib/app/data.db", "cannot open <*>"),
    ("paths of Windows", r"cannot open C:\Users\kim\data.db here", "cannot open <*> here"),
    ("file and line", "main.go:12:5: undefined: foo", "<*>: undefined: foo"),
    ("addresses", "fault at 0x7ffd0c2f5e30", "fault at <*>"),
    ("uuids", "job 4a1b2c3d-11ee-4f5a-9b0c-1d2e3f4a5b6c failed", "job <*> failed"),
    ("hex ids", "container 3f1c2b9d8e7a is gone", "container <*> is gone"),
    ("pods", "pod api-7d8b49557f-x2x9q evicted", "pod <*> evicted"),
    ("commits", "bad object 9fceb02d0ae598e95dc970b74767f19372d61af8", "bad object <*>"),
    ("numbers", "expected 3 but got -4.5", "expected <*> but got <*>"),
    ("times", "since 2024-03-11T09:41:07.113Z and Mon Jan 12 03:04:05 2026", "since <*> and <*>"),
    ("a clock", "at 09:41:07 PM it stopped", "at <*> it stopped"),
    ("durations", "took 12 ms, then 3.5 seconds", "took <*>, then <*>"),
    ("sizes", "allocated 2.00 GiB of 16 GB", "allocated <*> of <*>"),
    ("quoted values", "key \"a b\" or 'c' or `d`", "key <*> or <*> or <*>"),
    ("curly quotes", "cannot find \u2018x\u2019 or \u201cy\u201d", "cannot find <*> or <*>"),
    ("apostrophes", "can't open, doesn't exist", "can't open, doesn't exist"),
    ("hosts and ports", "connect to db.example.com:5432 or localhost", "connect to <*> or <*>"),
    ("IP addresses", "from 10.0.0.1 to fe80::1ff:fe23:4567:890a", "from <*> to <*>"),
    ("network cards", "from aa:bb:cc:dd:ee:ff", "from <*>"),
    ("URLs", "GET https://api.example.com/v1/x?y=1 failed", "GET <*> failed"),
    ("email", "mail to ann@example.com bounced", "mail to <*> bounced"),
    ("versions", "requires v1.2.3-rc1 or ^18.0.0", "requires <*> or <*>"),
    ("pins", "requirement pandas==0.24.1 not met", "requirement <*> not met"),
    ("pairs", "retry=3 user=root code=ENOENT", "retry=<*> user=<*> code=ENOENT"),
    ("names after a noun", "session of user alice closed", "session of user <*> closed"),
    ("no name after a noun", "host is down, user not found", "host is down, user not found"),
    ("states", "moved from RUNNING to FAILED", "moved from <*> to <*>"),
    ("packages of a type", "java.lang.NullPointerException: x", "NullPointerException: x"),
    ("codes", "error TS2345: no", "error TS2345: no"),
    ("exit codes", "exit code 137.", "exit code 137."),
    ("secrets that were scrubbed", "token [REDACTED:github:1a2b3c] is bad", "token <*> is bad"),
    ("other scripts", "连接3次失败", "连接<*>次失败"),
    ("slashes between words", "i/o and/or read/write", "i/o and/or read/write"),
    ("nothing, quoted", "'NoneType' has no attribute 'x'", "NoneType has no attribute <*>"),
]


@pytest.mark.parametrize(("text", "masked"), [row[1:] for row in MASKED], ids=[row[0] for row in MASKED])
def test_what_changes_from_run_to_run_becomes_a_hole(text: str, masked: str) -> None:
    assert mask(text) == masked


_PIECES = (
    "' \" ` < > <*> * : / \\ . a A 1 12 = == ( ) [ ] { } \n 0x1f é user host: for from process error ERROR"
    " code TS2345 Jan 2024-01-02 12:34 A::b true http://x [REDACTED: 5 ms None x.y"
    " XError \u2018 \u201d @ -l ~"
).split(" ")
pieces = st.lists(st.sampled_from([*_PIECES, " "]), max_size=60).map("".join)


@given(st.one_of(st.text(max_size=300), pieces))
@settings(max_examples=400, deadline=None)
def test_masking_twice_is_masking_once(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@given(st.one_of(st.text(max_size=300), pieces), st.one_of(st.text(max_size=300), pieces))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_read(message: str, trace: str) -> None:
    error = read_error(message, trace)
    assert len(error.fingerprint) == 16
    assert error == read_error(message, trace)
    assert isinstance(essence(message), str)


HOSTILE = (
    "a", "'a ", '"', '"a\\', "`a'", "a.", "/a", "a:", "1 ", "1", "af:", "a=", "((", "at ", 'File "',
    "xErro", "ERROR: ", " ", "\n", "\n\tat ", "user ", "for a from ", "12:34:", "2024-01-", "Jan 1 ",
    "http://", "\\", "<*", "{", '[{"a":', "thread 'x' panicked at ", "é1", "#1 0x1 in a", "A::", "a@",
    "a.b(\n\t/x.go:1\n", "\u201ca", "a==", "[REDACTED:", "a:1:in `b': ", "x.py:12 0x12f failed ",
    "2024-05-03 11:20:41 ", "ERROR ", "[main] ", "web_1  | ", "a-", "a  ", "x: ", "a/", "a\t",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_no_longer_than_other_text(piece: str) -> None:
    """A quadratic step would take minutes at this length; the bound leaves room for a busy machine."""
    text = (piece * 60_000)[:60_000]
    started = time.perf_counter()
    mask(text)
    read_error(text[:10_000], text[:50_000])
    assert time.perf_counter() - started < 8


# --- reading an error -----------------------------------------------------------------

TRACEBACK = """Traceback (most recent call last):
  File "/srv/app/jobs.py", line 12, in sync
    raise ValueError("x")
ValueError: bad row 7

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in <module>
    sync()
KeyError: 'orders'
"""


def test_the_last_exception_of_a_traceback_is_the_error() -> None:
    error = read_error(TRACEBACK)
    assert (error.error_type, error.masked, error.ecosystem) == ("KeyError", "KeyError: <*>", "python")
    assert error.fingerprint == read_error("KeyError: 'sku'").fingerprint


def test_an_error_is_the_same_with_its_trace_and_without() -> None:
    alone = read_error("ValueError: bad row 7")
    assert alone.fingerprint == read_error("ValueError: bad row 9", TRACEBACK).fingerprint


def test_a_message_that_says_nothing_is_read_by_its_trace() -> None:
    error = read_error("'orders'", TRACEBACK)
    assert error.fingerprint == read_error("KeyError: 'sku'").fingerprint
    assert error.error_type == "KeyError"


def test_the_type_may_stand_in_the_trace_alone() -> None:
    assert read_error("something broke", TRACEBACK).error_type == "KeyError"
    assert read_error("something broke", TRACEBACK).fingerprint == read_error("something broke").fingerprint


def test_values_alone_are_still_told_apart() -> None:
    fingerprints = {read_error(text).fingerprint for text in ("'alpha'", "'beta'", "17", "18", "", "  ")}
    assert len(fingerprints) == 5


@pytest.mark.parametrize(
    ("message", "error_type"),
    [
        ("java.lang.IllegalStateException: closed", "IllegalStateException"),
        ("Unhandled exception. System.IO.IOException: disk full", "IOException"),
        ("app.rb:3:in `go': undefined method `x' for nil (NoMethodError)", "NoMethodError"),
        ("ActiveRecord::RecordNotFound (Couldn't find User):", "RecordNotFound"),
        ("psycopg2.errors.UndefinedTable: relation does not exist", "UndefinedTable"),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
            "bad_alloc",
        ),
        ("panic: runtime error: index out of range [5] with length 3", "panic"),
        ("thread 'main' panicked at src/main.rs:3:5:\nboom", "panic"),
        ("error[E0382]: borrow of moved value: `s`", "E0382"),
        ("src/a.ts(1,2): error TS2304: Cannot find name 'x'.", "TS2304"),
        ("Error: ENOENT: no such file or directory, open 'x'", "ENOENT"),
        ("Error [ERR_REQUIRE_ESM]: require() of ES Module", "ERR_REQUIRE_ESM"),
        ("ORA-00942: table or view does not exist", "ORA-00942"),
        ("==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1", "heap-use-after-free"),
        ("Error from server (Forbidden): pods is forbidden", "Forbidden"),
        ("An error occurred (AccessDenied) when calling the PutObject operation: no", "AccessDenied"),
        ("an IOException occurred", None),
        ("connection refused", None),
    ],
)
def test_the_type_is_named_without_its_package(message: str, error_type: str | None) -> None:
    assert read_error(message).error_type == error_type


@pytest.mark.parametrize(
    ("wrapped", "plain"),
    [
        ("2024-02-02 03:11:09.221 UTC [4411] ERROR:  deadlock detected", "ERROR:  deadlock detected"),
        ("2024-01-01 10:00:00 ERROR [main] api.Server - disk is full", "disk is full"),
        ("##[error]Process completed with exit code 1.", "Error: Process completed with exit code 1."),
        ("zsh: command not found: kubectl", "bash: kubectl: command not found"),
        (
            "\x1b[31mfatal: refusing to merge unrelated histories\x1b[0m",
            "fatal: refusing to merge unrelated histories",
        ),
        (
            'level=error caller=a.go:1 msg="append failed" err="out of order"',
            'msg="append failed" err="out of order"',
        ),
        (
            '#12 3.412 npm ERR! Missing script: "x"\nERROR: failed to solve: process "npm"',
            'npm error Missing script: "y"',
        ),
        (
            "make: *** [Makefile:3: all] Error 1\nmain.c:2:1: error: expected ';' before 'x'",
            "a.c:9:9: error: expected ';' before 'y'",
        ),
        (
            "CMake Error at a.txt:1 (find_package):\n\n  Could not find Foo",
            "CMake Error at b.txt:7 (find_package):\n  Could not find Foo",
        ),
    ],
)
def test_labels_and_wrappings_do_not_count(wrapped: str, plain: str) -> None:
    assert read_error(wrapped).fingerprint == read_error(plain).fingerprint


def test_a_body_in_json_is_read_by_its_telling_values() -> None:
    first = read_error('{"error": {"code": "rate_limited", "message": "Slow down"}, "id": "r-1"}')
    again = read_error('{"id": "r-2", "error": {"message": "Slow down", "code": "rate_limited"}}')
    other = read_error('{"error": {"code": "forbidden", "message": "No"}, "id": "r-1"}')
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert read_error('{"error": ').fingerprint
    assert read_error("{" + '"a":{' * 5_000).fingerprint
    assert read_error('{"id": 7}').fingerprint


def test_types_are_compared_without_their_packages() -> None:
    assert same_type("java.net.ConnectException", "connectexception")
    assert same_type("Errno::ENOENT", "ENOENT")
    assert not same_type(None, None)
    assert not same_type("KeyError", None)


def test_essence_keeps_names_and_drops_what_changes() -> None:
    text = "No module named 'yaml' in /usr/lib/python3/site.py at 0x7f3c2a, pid 4412"
    assert essence(text) == "No module named yaml in site.py at pid"


# --- strings --------------------------------------------------------------------------


@given(pieces, pieces)
@settings(deadline=None)
def test_string_similarity_is_a_share_and_has_no_direction(a: str, b: str) -> None:
    assert 0 <= string_similarity(a, b) <= 1
    assert string_similarity(a, b) == pytest.approx(string_similarity(b, a))
    assert string_similarity(a, a) == 1


def test_the_nearer_string_scores_higher() -> None:
    asked = mask("dial tcp 10.0.0.1:80: connect: connection refused")
    near = string_similarity(asked, mask("dial tcp 10.0.0.9:443: connect: connection reset"))
    far = string_similarity(asked, mask("no space left on device"))
    assert 1 > near > 0.5 > far
    assert string_similarity("connection was refused", "refused was connection") < 1


# --- frames ---------------------------------------------------------------------------

FRAMES = [
    (
        "go",
        "goroutine 1 [running]:\nx.com/cart.(*Service).Total(0x0, {0x1})\n\t/x/cart/service.go:118 +0x2d",
        Frame("cart.(*Service).Total", "cart/service.go", 118),
    ),
    (
        "go, created by",
        "created by net/http.(*Server).Serve in goroutine 1\n\t/go/src/net/http/server.go:3086 +0x4db",
        Frame("http.(*Server).Serve", "http/server.go", 3086),
    ),
    ("python", '  File "/srv/web/views.py", line 203, in detail', Frame("detail", "web/views.py", 203)),
    ("javascript", "    at List (/app/src/List.jsx:12:18)", Frame("List", "src/List.jsx", 12)),
    ("javascript, bare", "    at async file:///app/src/run.mjs:3:1", Frame("", "src/run.mjs", 3)),
    ("javascript, Windows", r"  at f (C:\p\routes\users.js:31:25)", Frame("f", "routes/users.js", 31)),
    ("javascript, Firefox", "go@https://x.example/js/app.js:9:2", Frame("go", "js/app.js", 9)),
    ("node itself", "    at Server.listen (node:net:1463:16)", Frame("Server.listen", "node:net", 1463)),
    ("java", "\tat com.acme.App.main(App.java:9)", Frame("com.acme.App.main", "App.java", 9)),
    ("java, native", "\tat java.base/x.Y.z(Native Method)", Frame("x.Y.z", "Native Method", None)),
    ("kotlin", "\tat io.shop.Cart.add(Cart.kt:20)", Frame("io.shop.Cart.add", "Cart.kt", 20)),
    (
        "rust",
        "   4: shop::cart::total::h0123456789abcdef\n             at ./src/cart.rs:14:5",
        Frame("shop::cart::total", "src/cart.rs", 14),
    ),
    (
        "c, gdb",
        "#1  0x0000555 in list_push (l=0x0, v=3) at src/list.c:22",
        Frame("list_push", "src/list.c", 22),
    ),
    (
        "c, sanitizer",
        "    #0 0x4f6b2b in Node::next() /src/list.cpp:40:12",
        Frame("Node::next", "src/list.cpp", 40),
    ),
    ("c, library", "    #1 0x7f in run (/lib/x/libc.so.6+0x29d8f)", Frame("run", "x/libc.so.6", None)),
    (
        "csharp",
        r"   at Acme.Cart.Get(Int32 id) in C:\src\Web\Cart.cs:line 41",
        Frame("Acme.Cart.Get", "Web/Cart.cs", 41),
    ),
    ("csharp, without a place", "   at Acme.Cart.Get(Int32 id)", Frame("Acme.Cart.Get", "", None)),
    ("ruby", "\tfrom app/users.rb:9:in `show'", Frame("show", "app/users.rb", 9)),
    ("ruby 3.4", "lib/a.rb:2:in 'Cart#add'", Frame("Cart#add", "lib/a.rb", 2)),
    (
        "php",
        "#0 /var/www/html/index.php(9): App\\Shop->render()",
        Frame("App\\Shop->render", "html/index.php", 9),
    ),
    (
        "dart",
        "#0      Home.build (package:shop/home.dart:41:22)",
        Frame("Home.build", "package:shop/home.dart", 41),
    ),
]


@pytest.mark.parametrize(("trace", "frame"), [row[1:] for row in FRAMES], ids=[row[0] for row in FRAMES])
def test_a_frame_is_read_in_every_language(trace: str, frame: Frame) -> None:
    assert parse_frames(trace) == (frame,)


@pytest.mark.parametrize("text", ["", "at noon", "meet me @ home", "File not found", "see #12", "a from b"])
def test_prose_has_no_frames(text: str) -> None:
    assert parse_frames(text) == ()


def test_a_trace_of_thousands_of_frames_is_read_in_part() -> None:
    assert len(parse_frames('  File "a.py", line 1, in f\n' * 5_000)) == 200


def test_overlap_counts_own_code_and_neither_lines_nor_the_runtime() -> None:
    here = [Frame("shop.total", "cart.py", 10), Frame("shop.add", "cart.py", 20)]
    moved = [Frame("shop.total", "cart.py", 99), Frame("shop.pay", "pay.py", 1)]
    runtime = [Frame("runtime.main", "runtime/proc.go", 250)]
    assert frames_overlap(here, here) == 1
    assert frames_overlap(here, moved) == 0.5
    assert frames_overlap(runtime, runtime) == 0
    assert frames_overlap([*here, *runtime], [moved[1], *runtime]) == 0
    assert frames_overlap([], here) == 0


def test_an_entry_point_counts_when_there_is_nothing_else() -> None:
    main = Frame("main.main", "api/main.go", 17)
    own = Frame("main.load", "api/load.go", 3)
    assert frames_overlap([main], [main]) == 1
    assert frames_overlap([main, own], [main, Frame("main.save", "api/save.go", 3)]) == 0


# --- the bench ------------------------------------------------------------------------


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = Path(__file__).parent.parent / "bench"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("error_grouping", folder / "error_grouping.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "error_grouping", module)
    spec.loader.exec_module(module)
    return module


def test_grouping_accuracy_counts_whole_groups_alone(bench: ModuleType) -> None:
    assert bench.accuracy("aabbc", [1, 1, 2, 2, 3]) == 1
    assert bench.accuracy("aabb", [1, 1, 2, 3]) == 0.5
    assert bench.accuracy("aabb", [1, 1, 1, 1]) == 0


def test_the_bench_reads_the_loghub_format(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "Own_structured.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["LineId", "Content", "EventId", "EventTemplate"])
        writer.writerow([1, "Connection closed by 10.0.0.1", "E1", "Connection closed by <*>"])
        writer.writerow([2, "Connection closed by 10.0.0.2", "E1", "Connection closed by <*>"])
        writer.writerow([3, "disk sda1 is full", "E2", "disk <*> is full"])
    (tmp_path / "Own_templates.csv").write_text("EventId,EventTemplate\nE1,x\n")
    monkeypatch.setattr(sys, "argv", ["error_grouping.py", str(tmp_path)])
    assert bench.main() == 0
    assert "| Own | 3 | 2 | 2 | 1.000 |" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["error_grouping.py", str(tmp_path / "Own_templates.csv")])
    assert bench.main() == 1
    monkeypatch.setattr(sys, "argv", ["error_grouping.py"])
    assert bench.main() == 2

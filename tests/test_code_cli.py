"""`contextd index`, `search` and `watch`, as a person uses them."""

import json
import os
import pty
import queue
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.adapters.log_lines import UNSEEN
from contextd.edge.cli import run
from contextd.edge.cli.code_output import Emphasis, Hits, change_line, files_lines, indexed_lines
from contextd.edge.cli.terminal import clipped, json_text, visible
from running import command, environment

WAIT = 60.0

STORE = """\
package store

// Ledger keeps what was paid.
type Ledger struct {
\trows []Row
}

type Row struct{ Amount int }

// RecordPayment writes one payment down, so that a refund finds it later.
func (l *Ledger) RecordPayment(amount int) error {
\tif amount <= 0 {
\t\treturn errNothing
\t}
\trow := Row{Amount: amount}
\tl.rows = append(l.rows, row)
\treturn nil
}
"""
TESTS = """\
package store

import "testing"

func TestRecordPayment(t *testing.T) {
\tnew(Ledger).RecordPayment(1)
}
"""
MAIN = """\
package main

// Greeting says hello.
func Greeting() string { return "hello" }
"""
BROKEN = "package main\n\nfunc Broken( {\n"
HOSTILE = (
    'package main\n\n// Owned \x1b]0;title\x07 turns \u202eback.\nfunc Owned() { println("\x1b[2J") }\n'
)
HOSTILE_NAME = "own\x1b[31med.go"


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Shop:
    """A project, with the data folder that it is indexed in."""

    root: Path
    data_dir: Path

    def run(self, *arguments: str, cwd: Path | None = None, **settings: str) -> Ran:
        """In this process, which has its imports behind it. The process's own log stays as it is."""
        environ = environment(self.data_dir, **settings)
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(StringIO()) as out,
            redirect_stderr(StringIO()) as err,
        ):
            for name in os.environ.keys() - environ.keys():
                patch.delenv(name)
            for name, value in environ.items():
                patch.setenv(name, value)
            patch.chdir(cwd or self.root)
            patch.setattr("contextd.edge.cli.start.configure_logging", lambda *_: None)
            status = run(list(arguments))
        return Ran(status, out.getvalue(), err.getvalue())

    def found(self, *arguments: str) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = json.loads(self.run("search", "--json", *arguments).stdout)[
            "results"
        ]
        return results


def write_project(root: Path) -> None:
    (root / "store").mkdir(parents=True)
    (root / "go.mod").write_text("module example.com/shop\n\ngo 1.22\n")
    (root / "main.go").write_text(MAIN)
    (root / "store" / "ledger.go").write_text(STORE)
    (root / "store" / "ledger_test.go").write_text(TESTS)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    made = Shop(folder / "shop", folder / "data")
    write_project(made.root)
    (made.root / "broken.go").write_text(BROKEN)
    (made.root / HOSTILE_NAME).write_text(HOSTILE)
    ran = made.run("index")
    assert ran.returncode == 0, ran.stderr
    return made


@pytest.fixture
def fresh(tmp_path: Path) -> Shop:
    """A project that is not indexed."""
    made = Shop(tmp_path / "shop", tmp_path / "data")
    write_project(made.root)
    return made


def at_a_terminal(
    shop: Shop, *arguments: str, columns: int = 80, interrupted_at: str | None = None, **settings: str
) -> tuple[int, str]:
    """Status, and what a terminal of this width is sent from both streams. Ctrl-C is pressed when it shows
    this text: a terminal sends it to everybody in the foreground."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments),
        cwd=shop.root,
        env=environment(shop.data_dir, TERM="xterm-256color", COLUMNS=str(columns), **settings),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    sent = b""
    try:
        deadline = time.monotonic() + WAIT
        with suppress(OSError):  # Linux says so when the other side is closed
            while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                if not (part := os.read(ours, 65536)):
                    break
                sent += part
                if interrupted_at is not None and interrupted_at.encode() in sent:
                    interrupted_at = None
                    os.killpg(process.pid, signal.SIGINT)
        return process.wait(timeout=WAIT), sent.decode()
    finally:
        process.kill()
        process.wait(timeout=WAIT)
        os.close(ours)


# --- index ------------------------------------------------------------------------------


def test_indexing_tells_in_a_few_lines_what_it_did(fresh: Shop) -> None:
    (fresh.root / "broken.go").write_text(BROKEN)
    (fresh.root / "logo.png").write_bytes(b"\x89PNG")
    ran = fresh.run("index")
    assert ran.returncode == 0
    assert ran.stderr == ""
    told = ran.stdout.splitlines()
    assert re.fullmatch(r"5 files indexed in [\d.]+ m?s", told[0])
    assert re.fullmatch(r"  found      \d+ symbols, \d+ chunks", told[1])
    assert "  left out   1 (1 unsupported)" in told
    assert any(re.fullmatch(r"  index      [\d.]+ MB", line) for line in told)
    assert "  problems   in 1 file; what could be read is indexed" in told
    assert re.match(r"    broken\.go:3  \S", told[-1])


def test_the_json_of_an_index_run_is_the_tools_answer(fresh: Shop) -> None:
    answer = json.loads(fresh.run("index", "--json", "--no-tests", str(fresh.root)).stdout)
    assert answer["success"] is True
    assert answer["statistics"]["files_indexed"] == 3
    assert answer["statistics"]["skipped"]["tests"] == 1
    again = json.loads(fresh.run("index", "--json", "--force", "--vendor").stdout)
    assert again["statistics"]["files_indexed"] == 4


def test_globs_choose_the_files(fresh: Shop) -> None:
    (fresh.root / "notes.py").write_text("courier = 'comes on Mondays'\n")
    (fresh.root / "draft.py").write_text("courier = 'may come on Sundays'\n")
    ran = fresh.run("index", "--include", "*.py", "--exclude", "draft*", "--max-file-size", "1000")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("1 file in the index")
    assert "not included" in ran.stdout
    assert "1 excluded" in ran.stdout
    assert [hit["file"]["path"] for hit in fresh.found("courier")] == ["notes.py"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["index", "--include", "*.md", "--force"], 2, "--vendor are about code"),
        (["index", "nowhere"], 2, "does not exist"),
        (["index", "--include", "../*"], 2, "must be a glob"),
        (["index", "--max-file-size", "0"], 2, "max_file_size"),
        (["index", "empty"], 1, "no source file"),
        (["watch", "nowhere"], 2, "does not exist"),
        (["search"], 2, "QUERY"),
        (["search", " "], 2, "query must not be empty"),
        (["search", "x", "-n", "0"], 2, "limit"),
        (["search", "x", "--type", "gadget"], 2, "symbol_types"),
        (["search", "x", "--ddd", "gadget"], 2, "ddd_patterns"),
        (["search", "x", "--min-relevance", "7"], 2, "min_relevance"),
        (["search", "x", "--mode", "psychic"], 2, "psychic"),
        (["search", "x", "--path", "nowhere"], 2, "does not exist"),
    ],
)
def test_mistakes_are_told_on_standard_error_with_a_status(
    shop: Shop, arguments: list[str], status: int, says: str
) -> None:
    (shop.root.parent / "aside" / "empty").mkdir(parents=True, exist_ok=True)
    ran = shop.run(*arguments, cwd=shop.root.parent / "aside")
    assert ran.returncode == status
    assert says in ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr


def test_a_terminal_shows_a_bar_and_takes_it_away_again(fresh: Shop) -> None:
    status, sent = at_a_terminal(fresh, "index", columns=60)
    assert status == 0
    assert "looking for files" in sent
    assert "100%" in sent
    bar, _, after = sent.rpartition("\r\x1b[K")
    assert all(len(click.unstyle(frame)) < 60 for frame in bar.split("\r"))
    assert "files indexed" in after


def test_no_more_than_ten_problems_are_listed() -> None:
    errors = [{"file": f"f{at}.go", "line": at, "error": "a comma is missing"} for at in range(12)]
    shown = list(files_lines({"files_indexed": 12, "skipped": {}, "errors": errors}, 1.25))
    assert shown[0].endswith("in 1.2 s")
    assert sum("a comma is missing" in line for line in shown) == 10
    assert shown[-1].strip() == "and 2 more: --json lists them"


def test_what_is_left_out_is_told_by_reason_with_the_most_frequent_first() -> None:
    statistics = {
        "files_indexed": 1234,
        "files_removed": 2,
        "files_failed": 0,
        "symbols_extracted": 1,
        "chunks_created": 45678,
        "duration_seconds": 0.34,
        "index_size_mb": 12.34,
        "skipped": {"unchanged": 7, "ignored": 2, "too_large": 1100},
    }
    shown = [click.unstyle(line) for line in indexed_lines({"statistics": statistics, "errors": []})]
    assert shown == [
        "1,234 files indexed in 340 ms",
        "  found      1 symbol, 45,678 chunks",
        "  unchanged  7",
        "  removed    2",
        "  left out   1,102 (1,100 too large, 2 ignored)",
        "  index      12.3 MB",
    ]
    statistics |= {"files_indexed": 0, "files_removed": 0}
    unchanged = [click.unstyle(line) for line in indexed_lines({"statistics": statistics, "errors": []})]
    assert unchanged[:2] == ["no file changed in 340 ms", "  unchanged  7"]


# --- search -----------------------------------------------------------------------------


def test_a_hit_is_a_heading_and_numbered_lines(shop: Shop) -> None:
    ran = shop.run("search", "RecordPayment", "--type", "method")
    assert ran.returncode == 0
    assert ran.stderr == ""
    lines = ran.stdout.splitlines()
    assert re.fullmatch(r"store/ledger\.go:10  Ledger\.RecordPayment  method  [01]\.\d\d", lines[0])
    assert lines[1] == "  10 │ // RecordPayment writes one payment down, so that a refund finds it later."
    assert lines[4] == "  13 │         return errNothing"
    assert lines[8] == "  17 │     return nil"
    assert lines[9] == "     │ … 1 more line"
    assert lines[10] == ""
    assert re.fullmatch(r"(1 of )?\d+ results? in \d+ ms", lines[-1])
    whole = shop.run("search", "RecordPayment", "--type", "method", "--full").stdout
    assert "  18 │ }" in whole
    assert "more line" not in whole


def test_words_without_quotes_are_one_query(shop: Shop) -> None:
    ran = shop.run("search", "write", "payments", "down", "--json", "-n", "1")
    answer = json.loads(ran.stdout)
    assert answer["query"] == "write payments down"
    assert answer["results"][0]["symbol"]["name"] == "RecordPayment"
    assert answer["statistics"]["returned_results"] == 1


def test_each_option_narrows_the_search(shop: Shop) -> None:
    everything = shop.found("payment ledger hello")
    assert {hit["file"]["path"] for hit in everything} > {"main.go", "store/ledger.go"}
    assert {
        hit["symbol"]["kind"] for hit in shop.found("payment", "--type", "struct", "--type", "type")
    } == {"struct"}
    assert {hit["file"]["path"] for hit in shop.found("payment", "--file", "*_test.go")} == {
        "store/ledger_test.go"
    }
    assert {hit["file"]["package"] for hit in shop.found("payment", "--package", "main")} == {"main"}
    assert all(hit["symbol"]["ddd_patterns"] for hit in shop.found("payment", "--ddd", "entity"))
    kept = shop.found("RecordPayment", "--mode", "keyword", "--min-relevance", "0.9")
    assert {hit["symbol"]["name"] for hit in kept} == {"RecordPayment"}


def test_nothing_found_is_status_1(shop: Shop) -> None:
    ran = shop.run("search", "--mode", "keyword", "zeppelin")
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith("nothing found: 0 results")
    as_json = shop.run("search", "--mode", "keyword", "--json", "zeppelin")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["results"] == []


def test_a_project_that_is_not_indexed_says_how_to_index_it(fresh: Shop) -> None:
    ran = fresh.run("search", "payment")
    assert ran.returncode == 2
    assert f"contextd index {fresh.root}" in ran.stderr
    as_json = fresh.run("search", "payment", "--json")
    assert as_json.returncode == 2
    assert json.loads(as_json.stdout)["code"] == "IDX_003"


def test_paths_can_be_opened_from_where_one_stands(shop: Shop) -> None:
    inside = shop.run("search", "RecordPayment", "-n", "1", cwd=shop.root / "store")
    assert inside.stdout.startswith("ledger.go:10  ")
    outside = shop.run("search", "RecordPayment", "-n", "1", "--path", "shop/store", cwd=shop.root.parent)
    assert outside.stdout.startswith("shop/store/ledger.go:10  ")
    away = shop.run("search", "RecordPayment", "-n", "1", "--path", str(shop.root), cwd=shop.data_dir)
    assert away.stdout.startswith(f"{shop.root}/store/ledger.go:10  ")


def test_a_terminal_gets_colours_and_lines_that_fit(shop: Shop) -> None:
    status, sent = at_a_terminal(shop, "search", "record a payment", "--type", "method", columns=50)
    assert status == 0
    assert "\x1b[31m\x1b[1mRecordPayment\x1b[0m" not in sent  # the query is two words, each on its own
    assert "\x1b[31m\x1b[1mRecord\x1b[0m\x1b[31m\x1b[1mPayment\x1b[0m" in sent
    shown = click.unstyle(sent).splitlines()
    assert all(len(line) <= 50 for line in shown if "│" in line)
    assert shown[1].endswith("…")


def test_who_asks_for_no_colours_gets_none(shop: Shop) -> None:
    status, sent = at_a_terminal(shop, "search", "record a payment", NO_COLOR="1")
    assert status == 0
    assert "\x1b" not in sent
    assert "RecordPayment" in sent


@pytest.mark.parametrize(
    "arguments", [["search", "Owned"], ["search", "Owned", "--json"], ["index", "--force"]]
)
def test_nothing_that_steers_the_terminal_comes_through(shop: Shop, arguments: list[str]) -> None:
    """Whole lines of a terminal, for without one click takes escape sequences out."""
    status, sent = at_a_terminal(shop, *arguments, columns=200)
    assert status == 0
    ours = re.sub(r"\x1b\[(?:[0-9;]*m|K)|[\r\n]", "", sent)
    assert not UNSEEN.search(ours)
    if arguments == ["search", "Owned"]:
        assert r"own\x1b[31med.go:3" in ours
        assert r"Owned" in ours
        assert r"\x1b]0;title\x07 turns \u202eback." in ours
        assert "\x1b[2J" not in sent


def test_completion_knows_kinds_and_patterns(shop: Shop) -> None:
    def completed(words: str) -> str:
        settings = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        environ = environment(shop.data_dir, _CONTEXTD_COMPLETE="bash_complete", **settings)
        return subprocess.check_output(command(), env=environ, text=True, timeout=WAIT)

    assert completed("contextd search x --type me") == "plain,method\n"
    assert completed("contextd search x --ddd agg") == "plain,aggregate\n"


def hit(content: str, start: int, end: int, **about: Any) -> dict[str, Any]:
    symbol = {"name": "Long", "kind": "function", "container": "", "signature": "func Long()"}
    return {
        "relevance_score": 0.5,
        "symbol": {**symbol, "ddd_patterns": [{"pattern": "value_object", "evidence": []}]},
        "file": {"path": "a/b.go", "start_line": start, "end_line": end, "test": True, "generated": False},
        "content": content,
        "stale": True,
        **about,
    }


def shown(*hits: dict[str, Any], query: str = "long") -> list[str]:
    statistics = {"total_results": len(hits), "returned_results": len(hits), "search_duration_ms": 1.6}
    lines = Hits(query, ".", "", full=True).lines({"results": list(hits), "statistics": statistics})
    return [click.unstyle(line) for line in lines]


def test_a_repeated_signature_has_no_line_number() -> None:
    later = hit("func Long() …\n\tstep()\r\n}", 99, 100)
    assert shown(later) == [
        "a/b.go:99  Long  function  0.50  value object  test  changed since",
        "      │ func Long() …",
        "   99 │     step()",
        "  100 │ }",
        "",
        "1 result in 2 ms",
    ]


def test_lines_outside_of_symbols_are_not_named_twice() -> None:
    symbol = {"name": "b.go", "kind": "section", "container": "", "signature": "", "ddd_patterns": []}
    assert shown(hit("x", 1, 1, symbol=symbol, stale=False))[0] == "a/b.go:1  section  0.50  test"


@pytest.mark.parametrize(
    ("query", "text", "strong"),
    [
        ("parse file", "func ParseFile(path)", ["Parse", "File"]),
        ("ParseFile", "x := ParseFile(path)", ["ParseFile"]),
        ("parseFile", "x := parse_file(file)", ["parse_file", "file"]),
        ("panics", "panic(err) // it panicked", ["panic", "panic"]),
        ("recovered", "Recovery recovers", ["Recover", "recovers"]),
        ("the form", "there is the Form, in format", ["Form", "form"]),
        ('"read all"', "ReadAll reads", ["Read", "All", "reads"]),
        ("ΟΔΟΣ", "İstanbul οδός", []),
    ],
)
def test_the_words_of_the_query_stand_out(query: str, text: str, strong: list[str]) -> None:
    marked = Emphasis(query).on(text)
    assert re.findall(r"\x1b\[31m\x1b\[1m(.*?)\x1b\[0m", marked) == strong
    assert click.unstyle(marked) == text


@given(st.text(max_size=30), st.text(max_size=60))
def test_emphasis_changes_no_letter(query: str, text: str) -> None:
    text = visible(text)
    assert click.unstyle(Emphasis(query).on(text)) == text


@given(st.text())
def test_what_is_shown_holds_nothing_unseen(text: str) -> None:
    assert not UNSEEN.search(visible(text))
    shown_as_json = json_text({"x": text})
    assert not UNSEEN.search(shown_as_json)
    assert json.loads(shown_as_json) == {"x": text}


@given(st.text(alphabet="ab世e\u0301", max_size=40), st.integers(2, 30))
def test_a_clipped_line_fits(text: str, columns: int) -> None:
    def width(line: str) -> int:
        return sum(2 if char == "世" else 0 if char == "\u0301" else 1 for char in line)

    short = clipped(text, columns)
    assert width(short) <= columns
    assert short == text if width(text) <= columns else short.endswith("…") and text.startswith(short[:-1])


# --- being interrupted, and watching ----------------------------------------------------


class Running:
    """A command under way, whose lines are waited for, but not for ever."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, pattern: str) -> str:
        """The next line that holds the pattern."""
        deadline = time.monotonic() + WAIT
        while (line := self._lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            if re.search(pattern, line):
                return line
        raise AssertionError(f"it ended without a line like {pattern}")

    def event(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.until(f'"event": "{name}"'))
        return found

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self.status()

    def status(self) -> int:
        return self._process.wait(timeout=WAIT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(timeout=WAIT)
        self._reader.join(timeout=WAIT)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def running(shop: Shop, *arguments: str, cwd: Path | None = None) -> Iterator[Running]:
    process = subprocess.Popen(
        command(*arguments),
        cwd=cwd or shop.root,
        env=environment(shop.data_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    started = Running(process)
    try:
        yield started
    finally:
        started.close()


def test_an_interrupted_run_leaves_the_index_as_it_was(fresh: Shop) -> None:
    assert fresh.run("index").returncode == 0
    for number in range(140):
        functions = [f"func Interrupted{number}x{at}() int {{ return {at} }}" for at in range(150)]
        (fresh.root / f"f{number}.go").write_text("package main\n\n" + "\n".join(functions) + "\n")
    status, sent = at_a_terminal(fresh, "index", interrupted_at="looking for files")
    assert status == 130
    assert "stopped: the index stands as it was" in sent
    assert "Traceback" not in sent
    assert fresh.run("search", "--mode", "keyword", "Interrupted7x7", "--json").returncode == 1
    assert fresh.run("search", "RecordPayment").returncode == 0


def test_watching_tells_of_each_change_until_it_is_stopped(fresh: Shop) -> None:
    with running(fresh, "watch") as watch:
        watch.until(r"^4 files indexed in")
        assert str(fresh.root) in watch.until("^watching")
        (fresh.root / "main.go").write_text(MAIN.replace("Greeting", "Farewell"))
        assert re.fullmatch(r"\d\d:\d\d:\d\d  1 changed  \d+ ms  main\.go", watch.until("changed"))
        assert fresh.found("Farewell")[0]["symbol"]["name"] == "Farewell"
        (fresh.root / "main.go").unlink()
        assert re.fullmatch(r"\d\d:\d\d:\d\d  1 removed  \d+ ms  main\.go", watch.until("removed"))
        assert watch.interrupt() == 0
        watch.until("stopped")


def test_watching_goes_on_as_the_project_was_indexed(fresh: Shop) -> None:
    fresh.run("index", "--no-tests")
    with running(fresh, "watch", "--json", cwd=fresh.root / "store") as watch:
        indexed = watch.event("indexed")
        assert indexed["statistics"]["skipped"]["tests"] == 1
        assert watch.event("watching")["path"] == str(fresh.root)
        (fresh.root / "store" / "new_test.go").write_text(TESTS)
        (fresh.root / "store" / "new.go").write_text("package store\n\nfunc New() {}\n")
        (fresh.root / "main.go").rename(fresh.root / "moved.go")
        changed: set[str] = set()
        removed: set[str] = set()
        while not (changed >= {"store/new.go", "moved.go"} and removed == {"main.go"}):
            event = watch.event("changed")
            assert event["duration_ms"] > 0
            changed |= set(event["changed"])
            removed |= set(event["removed"])
        assert changed == {"store/new.go", "moved.go"}
        assert watch.interrupt() == 0


def test_watching_ends_with_the_folder(fresh: Shop) -> None:
    with running(fresh, "watch", str(fresh.root), cwd=fresh.root.parent) as watch:
        watch.until("^watching")
        shutil.rmtree(fresh.root)
        watch.until("does not exist|cannot be read")
        assert watch.status() == 2


def test_a_line_of_changes_names_the_first_of_them() -> None:
    line = change_line("12:00:01", ["a.go", "b\x1b.go"], ["c.go", "d.go", "e.go"], 12.3)
    assert click.unstyle(line) == r"12:00:01  2 changed, 3 removed  12 ms  a.go, b\x1b.go, c.go and 2 more"

"""`kill -9` at any moment: what was acknowledged is kept, and every file still opens."""

import json
import os
import random
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import httpx2
import pytest

from running import KEYWORD_ONLY, Daemon, Stdio, command, environment, running_daemon, running_stdio

CRASHES = int(os.environ.get("CONTEXTD_TEST_CRASHES", "6"))
WRITERS = 4
PROJECTS = ["/tmp/crash/one", "/tmp/crash/two", "/tmp/crash/three"]
WAIT = 30.0
SETTINGS = {"CONTEXTD_RATE_LIMIT": "off", **KEYWORD_ONLY}

Acknowledged = dict[str, str]
"""What a client was told is kept: id to summary."""


def draft(dice: random.Random, writer: int) -> dict[str, Any]:
    """Now and then a long one, so that the log of a file is also killed while it is folded in."""
    summary = f"writer {writer} saved {''.join(dice.choices(ascii_lowercase, k=16))}"
    return {
        "summary": summary,
        "description": describe(summary),
        "content": "lorem ipsum " * (10_000 if dice.random() < 0.1 else 10),
        "project_path": dice.choice(PROJECTS),
        "tags": ["crash"],
    }


def describe(summary: str) -> str:
    return f"{summary}, and this tells whether the whole of it was kept"


def save_until_killed(daemon: Daemon, writer: int, seed: str, first: threading.Event) -> Acknowledged:
    dice = random.Random(f"{seed}-{writer}")
    acknowledged: Acknowledged = {}
    with httpx2.Client(base_url=daemon.url, timeout=WAIT) as client:
        while True:
            arguments = draft(dice, writer)
            try:
                answer = client.post("/api/v1/tools/checkpoint_save", json=arguments)
            except httpx2.TransportError:
                return acknowledged
            assert answer.status_code == 200, answer.text
            acknowledged[answer.json()["data"]["id"]] = arguments["summary"]
            first.set()


def crash_under_load(daemon: Daemon, seed: str, after_s: float) -> Acknowledged:
    first = threading.Event()
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(save_until_killed, daemon, n, seed, first) for n in range(WRITERS)]
        assert first.wait(WAIT)
        timer = threading.Timer(after_s, daemon.process.kill)
        timer.start()
        daemon.process.wait(WAIT)
        timer.join()
        return {id: summary for writer in writers for id, summary in writer.result(WAIT).items()}


# --- what must hold afterwards --------------------------------------------------------------


def check_restorable(daemon: Daemon, acknowledged: Acknowledged) -> None:
    with httpx2.Client(base_url=daemon.url, timeout=WAIT) as client:
        for id, summary in acknowledged.items():
            answer = client.post("/api/v1/tools/checkpoint_restore", json={"id": id})
            assert answer.status_code == 200, f"{summary} was acknowledged and is gone: {answer.text}"
            assert answer.json()["data"]["summary"] == summary


def check_listed(daemon: Daemon, acknowledged: Acknowledged) -> None:
    """All that was acknowledged is there. What was not may be there too, but whole."""
    listed = {record["id"]: record for record in every_checkpoint(daemon)}
    assert acknowledged.keys() <= listed.keys()
    for record in listed.values():
        assert record["description"] == describe(record["summary"])


def every_checkpoint(daemon: Daemon) -> Iterator[dict[str, Any]]:
    with httpx2.Client(base_url=daemon.url, timeout=WAIT) as client:
        offset, total = 0, 1
        while offset < total:
            asked = {"limit": 100, "offset": offset, "token_budget": 32_768}
            page = client.post("/api/v1/tools/checkpoint_list", json=asked).json()["data"]
            yield from page["checkpoints"]
            offset, total = offset + 100, page["total"]


def check_searchable(daemon: Daemon, acknowledged: Acknowledged) -> None:
    id, summary = next(reversed(acknowledged.items()))
    found = daemon.tool("checkpoint_search", query=summary.split()[-1]).json()["data"]["results"]
    assert [hit["id"] for hit in found] == [id]


def check_files(data_dir: Path) -> None:
    files = list(data_dir.rglob("*.db"))
    assert files
    for file in files:
        with closing(sqlite3.connect(file, timeout=WAIT)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], file.name
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == [], file.name


def check_all(daemon: Daemon, acknowledged: Acknowledged) -> None:
    check_restorable(daemon, acknowledged)
    check_listed(daemon, acknowledged)
    check_files(daemon.data_dir)
    check_searchable(daemon, acknowledged)


# --- a daemon ----------------------------------------------------------------------------


@pytest.mark.timeout(60 + 10 * CRASHES)
def test_a_daemon_killed_under_load_has_kept_all_it_acknowledged(tmp_path: Path) -> None:
    everything: Acknowledged = {}
    latest: Acknowledged = {}
    dice = random.Random()
    for number in range(CRASHES):
        with running_daemon(tmp_path, **SETTINGS) as daemon:
            check_restorable(daemon, latest)
            latest = crash_under_load(daemon, f"crash {number}", dice.uniform(0.05, 0.4))
            everything |= latest
        check_files(tmp_path)
    with running_daemon(tmp_path, **SETTINGS) as daemon:
        check_all(daemon, everything)
    assert len(everything) >= CRASHES


# --- a server on standard input and output ----------------------------------------------------


def save_over_stdio(client: Stdio, seed: str, after_s: float) -> Acknowledged:
    """Sends without waiting for answers, and kills it that long after the first of them."""
    dice = random.Random(seed)
    drafts = [draft(dice, 0) for _ in range(60)]
    acknowledged: Acknowledged = {}
    timer = threading.Timer(after_s, client.process.kill)

    def send() -> None:
        for number, arguments in enumerate(drafts):
            call = {"name": "checkpoint_save", "arguments": arguments}
            try:
                client.tell({"id": number, "method": "tools/call", "params": call})
            except BrokenPipeError:
                return

    sender = threading.Thread(target=send)
    sender.start()
    for line in client.process.stdout or ():
        if not line.endswith("\n"):
            break
        message = json.loads(line)
        acknowledged[message["result"]["structuredContent"]["id"]] = drafts[message["id"]]["summary"]
        if len(acknowledged) == 1:
            timer.start()
        if len(acknowledged) == len(drafts):
            break
    client.process.kill()
    sender.join(WAIT)
    timer.cancel()
    return acknowledged


def test_a_stdio_server_killed_while_it_writes_has_kept_all_it_acknowledged(tmp_path: Path) -> None:
    everything: Acknowledged = {}
    dice = random.Random()
    for number in range(max(2, CRASHES // 5)):
        with running_stdio(tmp_path, **SETTINGS) as server:
            everything |= save_over_stdio(server, f"stdio {number}", dice.uniform(0.0, 0.1))
        check_files(tmp_path)
    with running_daemon(tmp_path, **SETTINGS) as daemon:
        check_all(daemon, everything)


# --- the command line -------------------------------------------------------------------------


def call_and_kill(data_dir: Path, number: int, after_s: float) -> Acknowledged:
    arguments = draft(random.Random(f"call {number}"), number)
    process = subprocess.Popen(
        command("call", "checkpoint_save", "--json", json.dumps(arguments)),
        env=environment(data_dir),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    timer = threading.Timer(after_s, process.kill)
    timer.start()
    answer, _ = process.communicate(timeout=WAIT)
    timer.cancel()
    return {json.loads(answer)["id"]: arguments["summary"]} if answer.endswith("\n") else {}


def test_calls_killed_while_they_write_have_kept_what_they_printed(tmp_path: Path) -> None:
    dice = random.Random()
    moments = [*(dice.uniform(0.5, 1.5) for _ in range(3)), WAIT]
    with ThreadPoolExecutor(2) as pool:
        printed = pool.map(lambda job: call_and_kill(tmp_path, *job), enumerate(moments))
        everything = {id: summary for each in printed for id, summary in each.items()}
    check_files(tmp_path)
    with running_daemon(tmp_path, **SETTINGS) as daemon:
        check_all(daemon, everything)

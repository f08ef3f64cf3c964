"""The audit: one line for each call, whatever came of it, and never what must not be written."""

import asyncio
import csv
import io
import json
import shutil
import signal
import stat
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit_tools import Runs, runs
from contextd.adapters.audit_proof import prove_log
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import AuditUnavailable, Conflict, Fault, OutOfRange, UnknownTool
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.plugins import load_extensions
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import KEYWORD_ONLY, command, environment, running_daemon, running_stdio

pytestmark = pytest.mark.anyio
TOKEN = "ghp_" + "a1B2" * 9
FIELDS = (
    "seq time request_id trace_id principal client session branch project tool input input_hash output_hash"
    " input_bytes output_bytes tokens secrets_tool secrets_server isolation exit_code duration_ms outcome"
    " error_id prev hash"
).split()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """With a safe tool beside the others."""
    async with open_house(safe_house(tmp_path)) as opened:
        yield opened


def safe_house(data_dir: Path, **more: Any) -> House:
    extensions = load_extensions(("audit_tools", "unruly_tools"))
    return build(Settings(data_dir=data_dir, rate_limit=RateLimit(on=False), **more), extensions)


def runner_of(house: House) -> Runs:
    service = house.services[Runs]
    assert isinstance(service, Runs)
    return service


def lines(data_dir: Path) -> list[dict[str, Any]]:
    files = sorted((data_dir / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


async def closed(house: House) -> list[dict[str, Any]]:
    await house.audit.close()
    return lines(house.settings.data_dir)


async def test_a_call_is_one_line_with_every_field(house: House, pipeline: CallPipeline) -> None:
    caller = Caller(Principal("ci"), "http", session="s-1", client="claude", request_id="r-1")
    answer = await pipeline.call("checkpoint_list", {"project_path": "/srv/shop", "limit": 3}, caller)
    (line,) = await closed(house)
    assert list(line) == FIELDS
    told = {"principal": "ci", "client": "claude", "session": "s-1", "request_id": "r-1"}
    assert told.items() <= line.items()
    assert line["project"] == "/srv/shop"
    assert (line["tool"], line["outcome"], line["error_id"]) == ("checkpoint_list", "ok", None)
    assert line["input"] == {"project_path": "/srv/shop", "limit": 3}
    assert line["output_bytes"] == len(answer.text.encode())
    assert line["tokens"] == answer.tokens_used
    assert prove_log(house.settings.data_dir / "audit").breach is None


async def test_what_is_secret_or_long_is_not_written(house: House, pipeline: CallPipeline) -> None:
    content = "all is well " * 200
    arguments = {"summary": f"Use {TOKEN}", "content": content, "project_path": "/srv/shop"}
    answer = await pipeline.call("checkpoint_save", arguments, Caller())
    await pipeline.call("checkpoint_restore", {"id": answer.data["id"], "level": "full"}, Caller())
    await pipeline.call("leaks", {}, Caller())
    saved, restored, leaked = await closed(house)
    assert saved["input"]["summary"].startswith("Use [REDACTED:github-token:")
    assert saved["input"]["content"].startswith(f"[text of {len(content)} characters, hmac ")
    assert leaked["secrets_server"] == {"github-token": 1}
    text = (house.settings.data_dir / "audit").glob("*.jsonl").__next__().read_text()
    assert TOKEN not in text
    assert "all is well" not in text
    assert restored["output_bytes"] > len(content)


async def test_what_a_client_calls_itself_is_cleaned_too(house: House, pipeline: CallPipeline) -> None:
    caller = Caller(client=f"agent {TOKEN}", session="s" * 9_000, request_id="7")
    await pipeline.call("reports", {}, caller)
    (line,) = await closed(house)
    assert line["client"].startswith("agent [REDACTED:github-token:")
    assert len(line["session"]) == 200
    assert line["request_id"] == "7"


async def test_a_log_that_is_taken_away_while_it_is_written_is_begun_again(
    house: House, pipeline: CallPipeline
) -> None:
    await pipeline.call("runs", {"command": "make"}, Caller())
    await house.audit.close()
    shutil.rmtree(house.settings.data_dir / "audit")
    await pipeline.call("runs", {"command": "make"}, Caller())
    noted, ran = lines(house.settings.data_dir)
    assert (noted["mended"], ran["tool"]) == ({"fault": "the seal is missing"}, "runs")
    assert prove_log(house.settings.data_dir / "audit").breach is not None


async def test_the_hashes_are_keyed_and_tell_the_same_from_another(
    house: House, pipeline: CallPipeline, tmp_path: Path
) -> None:
    for text in ("one", "one", "two"):
        await pipeline.call("reports", {"mark": text}, Caller())
    first, again, other = await closed(house)
    assert first["input_hash"] == again["input_hash"] != other["input_hash"]
    assert first["output_hash"] == other["output_hash"]
    async with open_house(safe_house(tmp_path / "elsewhere")) as elsewhere:
        await pipeline_of(elsewhere).call("reports", {"mark": "one"}, Caller())
        (there,) = await closed(elsewhere)
    assert there["input_hash"] != first["input_hash"]


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "error"),
    [
        ("checkpoint_list", {"limit": 10_000}, "refused", OutOfRange.id),
        ("no_such_tool", {}, "refused", UnknownTool.id),
        ("crashes", {}, "failed", "SRV_500"),
        ("conflicts", {}, "failed", Conflict.id),
        ("call_tool", {"name": "no_such_tool"}, "refused", "VAL_005"),
    ],
)
async def test_a_call_that_fails_is_written_too(
    house: House, pipeline: CallPipeline, tool: str, arguments: dict[str, Any], outcome: str, error: str
) -> None:
    with pytest.raises(Fault) as raised:
        await pipeline.call(tool, arguments, Caller())
    (line,) = await closed(house)
    assert (line["tool"], line["outcome"], line["error_id"]) == (tool, outcome, error)
    assert raised.value.id == error
    assert line["output_bytes"] > 0


async def test_a_cancelled_call_and_one_by_another_name_are_written(
    house: House, pipeline: CallPipeline
) -> None:
    task = asyncio.create_task(pipeline.call("holds", {"command": "wait"}, Caller()))
    async with asyncio.timeout(10):
        await runner_of(house).held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await pipeline.call("call_tool", {"name": "reports", "arguments": {"mark": "x"}}, Caller())
    cancelled, named = await closed(house)
    assert (cancelled["tool"], cancelled["outcome"]) == ("holds", "cancelled")
    assert (named["tool"], named["input"]) == ("reports", {"mark": "x"})


async def test_odd_input_is_written_as_far_as_it_can_be(house: House, pipeline: CallPipeline) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    odd: list[Any] = [{"limit": float("nan")}, {"tags": ["\ud800"] * 900}, {"x": deep}, {"a" * 9_000: 1}, 7]
    for arguments in odd:
        with pytest.raises(Fault):
            await pipeline.call("checkpoint_list", arguments, Caller())
    written = await closed(house)
    assert len(written) == len(odd)
    assert max(len(json.dumps(line)) for line in written) < 20_000
    assert prove_log(house.settings.data_dir / "audit").breach is None


# --- safe tools -------------------------------------------------------------------------


async def test_a_safe_call_is_on_disk_when_it_is_answered(house: House, pipeline: CallPipeline) -> None:
    await pipeline.call("runs", {"command": "make"}, Caller())
    (line,) = lines(house.settings.data_dir)
    assert (line["isolation"], line["exit_code"]) == ("bubblewrap", 3)
    assert line["secrets_tool"] == {"github-token": 2}


async def test_switched_off_safe_calls_are_written_all_the_same(tmp_path: Path) -> None:
    async with open_house(safe_house(tmp_path, audit=False)) as house:
        pipeline = pipeline_of(house)
        await pipeline.call("reports", {}, Caller())
        await pipeline.call("runs", {"command": "make"}, Caller())
        with pytest.raises(UnknownTool):
            await pipeline.call("no_such_tool", {}, Caller())
    assert [line["tool"] for line in lines(tmp_path)] == ["runs"]


async def test_without_an_audit_safe_tools_do_not_run_and_others_do(
    house: House, pipeline: CallPipeline
) -> None:
    """The folder's place is taken by a file: as good as a disk that is full, for any user."""
    folder = house.settings.data_dir / "audit"
    folder.touch()
    with pytest.raises(AuditUnavailable):
        await pipeline.call("runs", {"command": "make"}, Caller())
    runner = runner_of(house)
    assert runner.count == 0
    assert (await pipeline.call("reports", {}, Caller())).data["text"] == "reported"
    await house.audit.close()
    metrics = house.telemetry.render()[0].decode()
    assert "contextd_audit_lost_total 2.0" in metrics
    folder.unlink()
    await pipeline.call("runs", {"command": "make"}, Caller())
    lost, ran = lines(house.settings.data_dir)
    assert lost["mended"] == {"lost": 2}
    assert (ran["tool"], runner.count) == ("runs", 1)
    assert prove_log(folder).breach is None


async def test_an_answer_that_cannot_be_written_down_is_withheld(
    house: House, pipeline: CallPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails between the start of a call and its end."""
    await pipeline.call("runs", {"command": "make"}, Caller())
    folder = house.settings.data_dir / "audit"

    async def takes_the_log_away(service: Runs, ask: Any, caller: Caller) -> Any:
        folder.rename(folder.with_name("away"))
        folder.touch()
        return await runs.run(service, ask, caller)

    monkeypatch.setitem(pipeline.registry._tools, "runs", replace(runs, run=takes_the_log_away))
    with pytest.raises(AuditUnavailable):
        await pipeline.call("runs", {"command": "make"}, Caller())
    with pytest.raises(AuditUnavailable):
        await pipeline.call("runs", {"command": "make"}, Caller())
    assert runner_of(house).count == 2


# --- processes and the command line -----------------------------------------------------


def contextd(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(data_dir, **KEYWORD_ONLY),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_process_of_a_data_folder_writes_to_one_log(tmp_path: Path) -> None:
    with (
        running_daemon(tmp_path, **KEYWORD_ONLY) as daemon,
        running_stdio(tmp_path, **KEYWORD_ONLY) as stdio,
    ):
        for _ in range(3):
            daemon.tool("status")
            stdio.call("status")
        assert contextd(tmp_path, "call", "status").returncode == 0
        assert daemon.stop(signal.SIGTERM) == 0
    assert contextd(tmp_path, "audit", "verify").returncode == 0
    assert len(lines(tmp_path)) == 7
    assert {"cli", "test"} < {line["client"] for line in lines(tmp_path)}
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    for file in [*(tmp_path / "audit").iterdir(), tmp_path / "audit.key"]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a log of a few calls."""
    data_dir = tmp_path_factory.mktemp("used")

    async def use() -> None:
        async with open_house(safe_house(data_dir)) as house:
            pipeline = pipeline_of(house)
            await pipeline.call("checkpoint_list", {"project_path": "/srv/shop"}, Caller())
            await pipeline.call("runs", {"command": "echo \x1b[2J"}, Caller())
            await pipeline.call("reports", {"mark": "=1+1"}, Caller())

    asyncio.run(use())
    return data_dir


def test_the_tail_is_for_people(used: Path) -> None:
    shown = contextd(used, "audit", "tail", "-n", "2").stdout.splitlines()
    assert shown[0].split() == ["SEQ", "TIME", "(UTC)", "OUTCOME", "MS", "TOOL", "CALL"]
    assert [line.split()[0] for line in shown[1:]] == ["2", "3"]
    assert "exit 3" in shown[1]
    assert "bubblewrap" in shown[1]
    assert "2 secrets removed" in shown[1]
    assert "\x1b" not in shown[1]
    of_tool = contextd(used, "audit", "tail", "--tool", "reports").stdout.splitlines()
    assert [line.split()[0] for line in of_tool[1:]] == ["3"]
    of_project = contextd(used, "audit", "tail", "--project", "/srv/shop").stdout.splitlines()
    assert [line.split()[0] for line in of_project[1:]] == ["1"]


def test_following_shows_what_is_called_next(used: Path) -> None:
    with subprocess.Popen(
        [*command("audit", "tail", "-n", "0", "-f", "--tool", "status")],
        env={**environment(used, **KEYWORD_ONLY), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("    SEQ")
        contextd(used, "call", "status")
        assert "status" in follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        assert follower.wait(timeout=20) == 0


def test_verify_names_the_line_that_was_changed(used: Path, tmp_path: Path) -> None:
    whole = contextd(used, "audit", "verify")
    assert (whole.returncode, whole.stdout.startswith("whole: ")) == (0, True)
    (file,) = (used / "audit").glob("*.jsonl")
    copy = tmp_path / "copy.jsonl"
    copy.write_text(file.read_text().replace('"exit_code":3', '"exit_code":0'))
    found = contextd(used, "audit", "verify", str(copy))
    assert found.returncode == 1
    assert found.stdout == f"{copy}:2: was changed: its hash is not that of its text (seq 2)\n"
    by_folder = contextd(used, "audit", "verify", str(used))
    assert by_folder.returncode == 0


def test_an_export_is_the_lines_themselves_or_a_table(used: Path, tmp_path: Path) -> None:
    exported = contextd(used, "audit", "export", "--since", "1h")
    copy = tmp_path / "exported.jsonl"
    copy.write_text(exported.stdout)
    assert contextd(used, "audit", "verify", str(copy)).returncode == 0
    assert contextd(used, "audit", "export", "--until", "2001-01-01").stdout == ""
    rows = list(csv.DictReader(io.StringIO(contextd(used, "audit", "export", "--format", "csv").stdout)))
    assert list(rows[0]) == FIELDS
    assert [row["tool"] for row in rows[:3]] == ["checkpoint_list", "runs", "reports"]
    wrong = contextd(used, "audit", "export", "--since", "yesterday")
    assert wrong.returncode == 2
    assert "--since" in wrong.stderr

"""The audit's chain: whatever is done to the files is found, at its line; crashes are no tampering."""

import asyncio
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_appender import audit_log, entry
from contextd.adapters.audit_proof import Breach, Verdict, prove_file, prove_log

pytestmark = pytest.mark.anyio
LINES = (4, 3, 3)
"""How many each file of the log has."""
KILLS = int(os.environ.get("CONTEXTD_TEST_CRASHES", "6"))
APPENDER = Path(__file__).with_name("audit_appender.py")


async def written(data_dir: Path, count: int, name: str = "call") -> None:
    log = audit_log(data_dir)
    for number in range(count):
        await log.append(entry(f"{name}-{number}"), durable=number % 2 == 0)
    await log.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of several files. Days end when this test says so."""
    data_dir = tmp_path_factory.mktemp("whole")
    for number, lines in enumerate(LINES):
        asyncio.run(written(data_dir, lines, f"day{number}"))
        for file in (data_dir / "audit").glob("*.jsonl"):
            if not file.name.startswith("2000"):
                file.rename(file.with_name(f"2000-01-0{number + 1}-000.jsonl"))
    assert prove_log(data_dir / "audit") == Verdict(sum(LINES), len(LINES))
    return data_dir


@contextmanager
def copied(whole: Path) -> Iterator[Path]:
    copy = whole.with_name(f"copy-{random.randrange(10**9)}")
    shutil.copytree(whole, copy)
    try:
        yield copy / "audit"
    finally:
        shutil.rmtree(copy)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def breach(folder: Path) -> tuple[str, int]:
    found = prove_log(folder).breach
    assert found is not None
    return found.path.name, found.line


def test_a_log_that_nobody_touched_is_whole(whole: Path) -> None:
    with copied(whole) as folder:
        verdict = prove_log(folder)
        assert (verdict.breach, verdict.notes) == (None, ())
        for file, lines in zip(files(folder), LINES, strict=True):
            assert prove_file(file).lines == lines
            assert prove_file(file).breach is None


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_single_byte_that_is_changed_is_found_at_its_line(whole: Path, data: st.DataObject) -> None:
    with copied(whole) as folder:
        file = data.draw(st.sampled_from(files(folder)))
        text = bytearray(file.read_bytes())
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] ^= data.draw(st.integers(1, 255))
        line = file.read_bytes()[:at].count(b"\n") + 1
        file.write_bytes(text)
        assert breach(folder) == (file.name, line)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_line_that_is_changed_and_given_a_fitting_hash_is_found_at_the_next(
    whole: Path, data: st.DataObject
) -> None:
    with copied(whole) as folder:
        file = files(folder)[0]
        lines = file.read_bytes().splitlines(keepends=True)
        at = data.draw(st.integers(0, LINES[0] - 2))
        text = lines[at].replace(b'"tool":"echo"', b'"tool":"ohce"').rpartition(b',"hash"')[0]
        lines[at] = text + f',"hash":"{hashlib.sha256(text).hexdigest()}"}}\n'.encode()
        file.write_bytes(b"".join(lines))
        assert breach(folder) == (file.name, at + 2)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_line_that_is_taken_out_is_found_where_it_stood(whole: Path, data: st.DataObject) -> None:
    with copied(whole) as folder:
        number = data.draw(st.integers(0, len(LINES) - 1))
        file = files(folder)[number]
        at = data.draw(st.integers(0, LINES[number] - 1))
        lines = file.read_bytes().splitlines(keepends=True)
        del lines[at]
        file.write_bytes(b"".join(lines))
        is_end = at == LINES[number] - 1
        if is_end and number < len(LINES) - 1:
            assert breach(folder) == (files(folder)[number + 1].name, 1)
        else:
            assert breach(folder) == (file.name, at + 1)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_lines_that_are_swapped_or_repeated_are_found(whole: Path, data: st.DataObject) -> None:
    with copied(whole) as folder:
        number = data.draw(st.integers(0, len(LINES) - 1))
        file = files(folder)[number]
        lines = file.read_bytes().splitlines(keepends=True)
        first = data.draw(st.integers(0, LINES[number] - 2))
        second = data.draw(st.integers(first + 1, LINES[number] - 1))
        if data.draw(st.booleans()):
            lines[first], lines[second] = lines[second], lines[first]
            file.write_bytes(b"".join(lines))
            assert breach(folder) == (file.name, first + 1)
        else:
            lines.insert(second, lines[first])
            file.write_bytes(b"".join(lines))
            assert breach(folder) == (file.name, second + 1)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_end_that_is_cut_off_anywhere_is_found(whole: Path, data: st.DataObject) -> None:
    with copied(whole) as folder:
        file = files(folder)[-1]
        text = file.read_bytes()
        at = data.draw(st.integers(0, len(text) - 1))
        file.write_bytes(text[:at])
        assert breach(folder) == (file.name, text[:at].count(b"\n") + 1)


def test_a_file_that_is_taken_away_is_found(whole: Path) -> None:
    names = [file.name for file in files(whole / "audit")]
    after = [(names[1], 1), (names[2], 1), (names[1], LINES[1] + 1)]
    for gone, expected in zip(names, after, strict=True):
        with copied(whole) as folder:
            (folder / gone).unlink()
            assert breach(folder) == expected


def test_a_log_without_its_seal_or_files_or_key_is_found(whole: Path) -> None:
    with copied(whole) as folder:
        (folder / "seal.json").unlink()
        assert breach(folder) == ("audit", 0)
    with copied(whole) as folder:
        seal = json.loads((folder / "seal.json").read_text())
        (folder / "seal.json").write_text(json.dumps({**seal, "seq": seal["seq"] - 1}))
        assert breach(folder) == ("seal.json", 1)
    with copied(whole) as folder:
        for file in files(folder):
            file.unlink()
        assert breach(folder) == ("audit", 0)
    with copied(whole) as folder:
        shutil.rmtree(folder)
        assert breach(folder) == ("audit", 0)
        folder.mkdir()
    with copied(whole) as folder:
        (folder.parent / "audit.key").unlink()
        assert breach(folder) == ("audit", 0)
        for file in files(folder):
            file.unlink()
        assert breach(folder) == ("audit", 0)


def test_a_file_that_is_put_there_is_found(whole: Path) -> None:
    with copied(whole) as folder:
        shutil.copy(files(folder)[0], folder / "2000-01-01-001.jsonl")
        assert breach(folder) == ("2000-01-01-001.jsonl", 1)
    with copied(whole) as folder:
        shutil.copy(files(folder)[0], folder / "more.jsonl")
        assert breach(folder) == ("more.jsonl", 1)


def test_a_log_that_was_never_written_is_not_broken(tmp_path: Path) -> None:
    assert prove_log(tmp_path / "audit").breach is None


@pytest.mark.parametrize("damage", ["cut", "seal", "all", "files and key"])
async def test_writing_goes_on_after_damage_and_does_not_hide_it(tmp_path: Path, damage: str) -> None:
    await written(tmp_path, 5)
    folder = tmp_path / "audit"
    (file,) = files(folder)
    match damage:
        case "cut":
            file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
        case "seal":
            (folder / "seal.json").unlink()
        case "all":
            shutil.rmtree(folder)
        case "files and key":
            file.unlink()
            (tmp_path / "audit.key").unlink()
    assert prove_log(folder).breach is not None
    await written(tmp_path, 4, "later")
    assert breach(folder) == (file.name, {"cut": 4, "seal": 6}.get(damage, 1))
    assert files(folder)[0].read_bytes().count(b"later-") == 4


async def test_a_running_log_notices_that_its_end_is_cut_off(tmp_path: Path) -> None:
    log = audit_log(tmp_path)
    for number in range(4):
        await log.append(entry(str(number)), durable=True)
    (file,) = files(tmp_path / "audit")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    await log.append(entry("later"), durable=True)
    await log.close()
    found = prove_log(tmp_path / "audit").breach
    assert found == Breach(file, 3, "2 lines are missing before it: seq 5 follows 2")


# --- crashes ----------------------------------------------------------------------------


async def test_a_torn_last_line_is_mended_and_is_no_tampering(tmp_path: Path) -> None:
    await written(tmp_path, 3)
    folder = tmp_path / "audit"
    (file,) = files(folder)
    with file.open("ab") as opened:
        opened.write(b'{"seq":4,"time":"2026-')
    verdict = prove_log(folder)
    assert verdict.breach is None
    assert "torn line" in verdict.notes[0]
    await written(tmp_path, 2, "later")
    verdict = prove_log(folder)
    assert (verdict.breach, verdict.lines) == (None, 6)
    assert verdict.notes == (f"{file.name}:4 follows a torn line of 22 bytes, as a crash leaves it",)


async def test_a_seal_that_lags_behind_is_no_tampering(tmp_path: Path) -> None:
    await written(tmp_path, 3)
    folder = tmp_path / "audit"
    old = (folder / "seal.json").read_bytes()
    await written(tmp_path, 2, "more")
    (folder / "seal.json").write_bytes(old)
    verdict = prove_log(folder)
    assert verdict.breach is None
    assert verdict.notes == ("the last 2 lines are not sealed: a process ended before it could",)
    await written(tmp_path, 1, "later")
    assert prove_log(folder).breach is None
    assert "follows 2 lines that a process left unsealed" in prove_log(folder).notes[0]


async def test_a_file_that_a_crash_left_empty_is_filled(tmp_path: Path) -> None:
    await written(tmp_path, 3)
    folder = tmp_path / "audit"
    (file,) = files(folder)
    (folder / f"{file.name[:10]}-001.jsonl").touch()
    assert prove_log(folder).breach is None
    await written(tmp_path, 2, "later")
    assert prove_log(folder) == Verdict(5, 2)


async def test_a_full_file_has_a_successor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextd.adapters.audit_folder.LARGEST_FILE", 1_000)
    log = audit_log(tmp_path)
    for number in range(6):
        await log.append(entry(str(number)), durable=True)
    await log.close()
    assert [file.name[10:] for file in files(tmp_path / "audit")] == [f"-00{n}.jsonl" for n in range(3)]
    assert prove_log(tmp_path / "audit") == Verdict(6, 3)


def test_many_processes_append_to_one_chain(tmp_path: Path) -> None:
    appenders = [start(tmp_path, f"p{number}", 40) for number in range(4)]
    acknowledged = [line for appender in appenders for line in appender.communicate(timeout=60)[0].split()]
    assert [appender.returncode for appender in appenders] == [0] * 4
    assert len(acknowledged) == 4 * 20
    assert prove_log(tmp_path / "audit") == Verdict(160, 1)
    for appender in range(4):
        own = [id for id in ids(tmp_path / "audit") if id.startswith(f"p{appender}-")]
        assert own == [f"p{appender}-{number}" for number in range(40)]


def test_processes_that_are_killed_leave_a_log_that_is_whole(tmp_path: Path) -> None:
    """At any moment, several times over, while another goes on writing."""
    dice = random.Random(7)
    steady = start(tmp_path, "steady", 1_000_000)
    try:
        for number in range(KILLS):
            victim = start(tmp_path, f"victim{number}", 1_000_000)
            assert victim.stdout is not None
            seen = [victim.stdout.readline().strip() for _ in range(dice.randrange(1, 60))]
            victim.kill()
            seen += victim.communicate(timeout=30)[0].split()
            verdict = prove_log(tmp_path / "audit")
            assert verdict.breach is None, verdict
            assert set(seen) <= set(ids(tmp_path / "audit"))
    finally:
        steady.kill()
        steady.communicate(timeout=30)
    verdict = prove_log(tmp_path / "audit")
    assert verdict.breach is None, verdict
    final = start(tmp_path, "final", 4)
    final.communicate(timeout=30)
    assert prove_log(tmp_path / "audit").breach is None


def start(data_dir: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(APPENDER), str(data_dir), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def ids(folder: Path) -> list[str]:
    """Of every call, in the order of the log. A line that is being written is not one yet."""
    lines = [line for file in files(folder) for line in file.read_bytes().split(b"\n")[:-1]]
    return [fields["request_id"] for fields in map(json.loads, lines) if "request_id" in fields]

"""`contextd scrub`: pipes and files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GITHUB = "ghp_" + "a1B2" * 9
TOML = '[[rules]]\nid = "badge"\nregex = "badge-[a-z0-9]{12}"\nkeywords = ["badge-"]\n'


def scrub(
    tmp_path: Path, *arguments: str | Path, given: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "contextd", "scrub", *map(str, arguments)],
        input=given,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "CONTEXTD_DATA_DIR": str(tmp_path / "data"), **environment},
        check=False,
        timeout=60,
    )


def test_a_pipe_comes_out_without_its_secrets_and_otherwise_byte_for_byte(tmp_path: Path) -> None:
    noise = b"\xff\xfe caf\xc3\xa9 \x00 line\r\n" * 5_000
    done = scrub(tmp_path, "--stats", given=noise + f"token {GITHUB}\n".encode() + noise)
    assert done.returncode == 0
    assert done.stdout.startswith(noise + b"token [REDACTED:github-token:")
    assert done.stdout.endswith(b"]\n" + noise)
    assert done.stderr.split() == [b"1", b"github-token"]


def test_what_comes_by_the_pipe_leaves_before_its_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "contextd", "scrub"]
    environment = {"PATH": os.environ["PATH"], "CONTEXTD_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"a line of text\n" * 5_000)
        running.stdin.flush()
        assert running.stdout.readline() == b"a line of text\n"
        running.stdin.close()
        assert running.stdout.read().count(b"\n") == 4_999


def test_a_reader_that_leaves_is_no_failure_to_talk_about(tmp_path: Path) -> None:
    line = f"yes 'a line of text' | {sys.executable} -m contextd scrub | head -1"
    environment = {"PATH": os.environ["PATH"], "CONTEXTD_DATA_DIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", line], capture_output=True, env=environment, check=True, timeout=60)
    assert done.stdout == b"a line of text\n"
    assert done.stderr == b""


def test_files_are_printed_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "one").write_text(f"{GITHUB}\n")
    (tmp_path / "two").write_text("two\n")
    first, second = scrub(tmp_path, tmp_path / "one", tmp_path / "two").stdout.splitlines()
    assert first.startswith(b"[REDACTED:")
    assert second == b"two"


def test_in_place_keeps_the_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    file, clean, link = folder / "log", folder / "clean", folder / "link"
    file.write_bytes(f"\xff {GITHUB}\r\n".encode("latin-1"))
    file.chmod(0o640)
    clean.write_text("clean")
    link.symlink_to(file)
    before = clean.stat()
    assert scrub(tmp_path, "--in-place", link, clean).returncode == 0
    assert file.read_bytes().startswith(b"\xff [REDACTED:github-token:")
    assert file.read_bytes().endswith(b"]\r\n")
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert (clean.stat().st_ino, clean.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sorted(path.name for path in folder.iterdir()) == ["clean", "link", "log"]


def test_check_names_places_and_rules_and_no_value(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text(f"a\nb\ntoken={GITHUB}\nc\n{GITHUB}\n")
    done = scrub(tmp_path, "--check", file)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [f"{file}:3:github-token", f"{file}:5:github-token"]
    assert scrub(tmp_path, "--check", given=b"nothing\n").returncode == 0
    assert scrub(tmp_path, "--check", given=GITHUB.encode()).stdout == b"-:1:github-token\n"


def test_more_rules_come_by_an_option_or_a_setting(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text(TOML)
    given = b"badge-k7qz2mxv9rtb\n"
    assert scrub(tmp_path, given=given).stdout == given
    assert b"gitleaks-badge" in scrub(tmp_path, "--rules", tmp_path / "more.toml", given=given).stdout
    named = scrub(tmp_path, given=given, CONTEXTD_SCRUB_RULES=str(tmp_path / "more.toml"))
    assert b"gitleaks-badge" in named.stdout


def test_values_of_the_environment_are_removed(tmp_path: Path) -> None:
    secret = "k7Qz2mXv9RtB4w"
    done = scrub(tmp_path, given=f"it is {secret.encode().hex()}\n".encode(), ACME_PASSWORD=secret)
    assert done.stdout.startswith(b"it is [REDACTED:")


@pytest.mark.parametrize("arguments", [("--in-place",), ("--in-place", "--check", __file__), ("/none",)])
def test_wrong_usage_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert scrub(tmp_path, *arguments).returncode == 2


def test_rules_that_cannot_be_used_stop_everything(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text('[[rules]]\nid = "odd"\nregex = "("\n')
    done = scrub(tmp_path, "--rules", tmp_path / "odd.toml", given=GITHUB.encode())
    assert done.returncode != 0
    assert done.stdout == b""
    assert b"rule odd" in done.stderr

"""The command line, as a person uses it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from contextd import __version__
from contextd.domain.errors import Misconfigured
from contextd.tools.registry import Registry
from running import command, environment


def contextd(
    data_dir: Path, *arguments: str, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(data_dir, **settings),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_reads_well_and_names_every_command(tmp_path: Path) -> None:
    for flag in ("--help", "-h"):
        shown = contextd(tmp_path, flag)
        assert shown.returncode == 0
        for name in (
            "serve",
            "stop",
            "mcp",
            "call",
            "tools",
            "config",
            "doctor",
            "skill",
            "token",
            "audit",
            "hook",
            "cert",
            "completion",
            "version",
        ):
            assert f"\n  {name}" in shown.stdout


@pytest.mark.parametrize(
    "name",
    [
        *("serve", "mcp", "call", "tools", "config", "doctor", "skill", "token", "audit", "hook", "cert"),
        *("sandbox", "scrub", "completion"),
    ],
)
def test_each_command_explains_itself(tmp_path: Path, name: str) -> None:
    shown = contextd(tmp_path, name, "--help")
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) > 4


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert contextd(tmp_path, "version").stdout.strip() == __version__
    assert __version__ in contextd(tmp_path, "--version").stdout


def test_a_call_prints_json_and_reads_json(tmp_path: Path) -> None:
    saved = contextd(
        tmp_path,
        "call",
        "checkpoint_save",
        "summary=42 things",
        "project_path=/srv/a",
        'tags=["x"]',
        "context={}",
    )
    assert saved.returncode == 0, saved.stderr
    answer = json.loads(saved.stdout)
    listed = contextd(tmp_path, "call", "checkpoint_list", "--json", "-", stdin='{"limit": 1}')
    assert json.loads(listed.stdout)["checkpoints"][0]["id"] == answer["id"]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["call", "checkpoint_list", "limit=0"], 2, "limit is out of range"),
        (["call", "checkpoint_restore", "id=nope"], 1, "checkpoint not found"),
        (["call", "nope"], 1, "unknown tool"),
        (["call", "status", "novalue"], 2, "novalue=VALUE"),
        (["call", "status", "--json", "{"], 2, "not JSON"),
        (["call", "status", "--json", "[]"], 2, "JSON object"),
        (["nope"], 2, "No such command"),
        (["serve", "--port", "x"], 2, "not a valid integer"),
        (["serve", "--port", "99999"], 2, "use a port from 0 to 65535"),
        (["serve", "--port", "-5"], 2, "use a port from 0 to 65535"),
        (["serve", "--host", ""], 2, "--host is not usable"),
        (["serve", "--host", "http://localhost"], 2, "without a port"),
        (["serve", "--toolsets", "bogus"], 2, "no toolset named bogus"),
        (["mcp", "--toolsets", "errors,bogus"], 2, "checkpoints, errors, skills"),
        (["completion", "tcsh"], 2, "tcsh"),
    ],
)
def test_mistakes_are_told_on_standard_error_with_a_status(
    tmp_path: Path, arguments: list[str], status: int, says: str
) -> None:
    ran = contextd(tmp_path, *arguments)
    assert ran.returncode == status
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr


def test_settings_that_cannot_work_are_told_before_anything_starts(tmp_path: Path) -> None:
    ran = contextd(tmp_path, "serve", CONTEXTD_HTTP_PORT="eighty")
    assert ran.returncode == 2
    assert "CONTEXTD_HTTP_PORT" in ran.stderr
    ran = contextd(tmp_path, "call", "status", CONTEXTD_STORE="mongo:")
    assert ran.returncode == 2
    assert "sqlite" in ran.stderr
    ran = contextd(tmp_path, "call", "status", EMBEDDING_BASE_URL="http://127.0.0.1:9/v1")
    assert ran.returncode == 2
    assert "EMBEDDING_MODEL" in ran.stderr


def test_config_shows_each_value_and_its_origin(tmp_path: Path) -> None:
    shown = contextd(tmp_path, "config", CONTEXTD_LOG_LEVEL="debug", EMBEDDING_API_KEY="hunter2-hunter2")
    assert "CONTEXTD_LOG_LEVEL" in shown.stdout
    assert "<- environment CONTEXTD_LOG_LEVEL" in shown.stdout
    assert "hunter2" not in shown.stdout
    rows = json.loads(contextd(tmp_path, "config", "--json").stdout)
    assert {row["env"] for row in rows} >= {"CONTEXTD_DATA_DIR", "QDRANT_URI", "EMBEDDING_BASE_URL"}
    warned = contextd(tmp_path, "config", SERVER_PORT="9090")
    assert "use CONTEXTD_HTTP_PORT" in warned.stderr


def test_the_doctor_finds_what_is_well_and_what_is_not(tmp_path: Path) -> None:
    well = contextd(tmp_path, "doctor", CONTEXTD_HTTP_PORT="0")
    assert well.returncode == 0, well.stdout
    for what in ("python", "data", "sqlite", "store", "model", "sandbox", "port", "grpc", "client"):
        assert what in well.stdout
    (tmp_path / "file").write_text("")
    ill = contextd(tmp_path / "file", "doctor", CONTEXTD_CONFIG=str(tmp_path / "none.toml"))
    assert ill.returncode == 1
    assert "FAIL" in ill.stdout
    assert "CONTEXTD_DATA_DIR" in ill.stdout
    away = contextd(tmp_path, "doctor", EMBEDDING_BASE_URL="http://127.0.0.1:9/v1", EMBEDDING_MODEL="m")
    assert "searching by keyword" in away.stdout


def test_tools_are_listed_with_their_cost(tmp_path: Path) -> None:
    assert "checkpoint_save" in contextd(tmp_path, "tools").stdout
    assert {tool["name"] for tool in json.loads(contextd(tmp_path, "tools", "--json").stdout)} >= {"status"}
    assert contextd(tmp_path, "tools", "--tokens").stdout.rstrip().endswith("in all")


def test_the_json_of_the_tools_is_what_an_agent_is_told(tmp_path: Path) -> None:
    told = contextd(tmp_path, "tools", "--json", CONTEXTD_TOOLSETS="errors")
    names = {tool["name"] for tool in json.loads(told.stdout)}
    assert "troubleshoot" in names
    assert "checkpoint_save" not in names
    assert (
        "checkpoint_save" not in contextd(tmp_path, "tools", "--tokens", CONTEXTD_TOOLSETS="errors").stdout
    )
    assert "checkpoint_save" in contextd(tmp_path, "tools", CONTEXTD_TOOLSETS="errors").stdout


@pytest.mark.parametrize("arguments", [["mcp"], ["tools", "--json"], ["call", "status"]])
def test_an_unknown_toolset_is_refused_with_the_known_ones(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(Misconfigured, match="no toolset named bogus"):
        Registry((), ("errors", "bogus"))
    ran = contextd(tmp_path, *arguments, CONTEXTD_TOOLSETS="bogus")
    assert ran.returncode == 2
    assert "no toolset named bogus" in ran.stderr
    assert "all, checkpoints, errors" in ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(tmp_path: Path, shell: str) -> None:
    assert "_CONTEXTD_COMPLETE" in contextd(tmp_path, "completion", shell).stdout


def test_completion_knows_commands_and_tools(tmp_path: Path) -> None:
    def completed(words: str) -> str:
        settings = {
            "_CONTEXTD_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        return contextd(tmp_path, **settings).stdout

    assert "plain,doctor" in completed("contextd do")
    assert "plain,checkpoint_restore" in completed("contextd call checkpoint_re")


def test_colours_are_for_terminals_alone(tmp_path: Path) -> None:
    assert "\x1b[" not in contextd(tmp_path, "config", CONTEXTD_LOG_LEVEL="debug").stdout
    ours, theirs = pty.openpty()
    try:
        environ = environment(tmp_path, CONTEXTD_LOG_LEVEL="debug", TERM="xterm-256color")
        subprocess.run(command("config"), env=environ, stdout=theirs, check=True, timeout=60)
        assert b"\x1b[" in os.read(ours, 65536)
    finally:
        os.close(ours)
        os.close(theirs)


def test_the_package_runs_as_a_module_and_as_a_program(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "contextd"
    ran = subprocess.run(
        [program, "version"], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert ran.stdout == contextd(tmp_path, "version").stdout

"""Claude Code itself, with contextd's hooks installed and a model that says what the test wrote down."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from node import npm
from running import command
from scripted_model import ScriptedModel, scripted_model

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text(f"the token is {TOKEN}\n")
    (folder / ".env").write_text(f"GITHUB_TOKEN={TOKEN}\n")
    return folder


def at_work(project: Path, model: ScriptedModel, *install: str) -> str:
    """One turn of the client. What it told the model of the tool's call is returned."""
    home = project.parent
    environment = npm.environment(
        home,
        CONTEXTD_DATA_DIR=str(home / "data"),
        ANTHROPIC_BASE_URL=model.url,
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
    )
    subprocess.run(
        command("hook", "install", "--project", *install),
        cwd=project,
        env=environment,
        check=True,
        timeout=60,
    )
    client = npm.installed("@anthropic-ai/claude-code") / ".bin" / "claude"
    done = subprocess.run(
        [str(client), "-p", "go", "--allowedTools", "Bash,Read,Write", "--model", "scripted"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = model.results
    return text_of(result)


def text_of(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else json.dumps(content)


def test_a_dangerous_command_does_not_run_and_the_model_is_told_why(project: Path) -> None:
    with scripted_model("Bash", command="rm -rf ../project/notes.txt ..", description="tidy") as model:
        told = at_work(project, model)
    assert "removes folders" in told
    assert model.results[0]["is_error"] is True
    assert (project / "notes.txt").exists()


def test_steering_sends_the_model_to_the_safe_tool(project: Path) -> None:
    with scripted_model("Bash", command="touch ran", description="try") as model:
        told = at_work(project, model, "--mode", "steer")
    assert "mcp__contextd__safe_bash" in told
    assert not (project / "ran").exists()


def test_an_ordinary_command_runs(project: Path) -> None:
    with scripted_model("Bash", command="touch ran && echo fine", description="try") as model:
        assert "fine" in at_work(project, model)
    assert (project / "ran").exists()


def test_a_file_of_secrets_is_not_read(project: Path) -> None:
    with scripted_model("Read", file_path=str(project / ".env")) as model:
        told = at_work(project, model)
    assert "mcp__contextd__safe_read" in told
    assert TOKEN not in "".join(model.seen)


@pytest.mark.parametrize("tool", ["Bash", "Read"])
def test_a_secret_in_the_output_does_not_reach_the_model(project: Path, tool: str) -> None:
    notes = project / "notes.txt"
    given = {"Bash": {"command": "cat notes.txt", "description": "look"}, "Read": {"file_path": str(notes)}}
    with scripted_model(tool, **given[tool]) as model:
        told = at_work(project, model)
    assert "[REDACTED:github-token:" in told
    assert TOKEN not in "".join(model.seen)

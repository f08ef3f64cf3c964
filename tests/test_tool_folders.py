"""`contextd tools install`: folders that are complete, current, and removed without a trace."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from contextd.domain.errors import Conflict, catalogue
from contextd.edge.tool_folders import ToolFolders
from contextd.edge.tool_md import tool_md
from contextd.edge.tool_schema import tool_schema
from contextd.plugins import load_extensions
from contextd.services.front_matter import read
from running import command, environment

TOOLS = {tool.name: tool for tool in load_extensions().tools}
LAUNCHER = Path("/opt/contextd/bin/contextd-proxy")


def contextd(data_dir: Path, *arguments: str, cwd: Path, status: int = 0) -> str:
    ran = subprocess.run(
        command(*arguments),
        env=environment(data_dir),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    return ran.stderr


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_a_tool_is_a_folder_of_three_files(tmp_path: Path) -> None:
    contextd(tmp_path / "data", "tools", "install", "status", cwd=tmp_path)
    folder = tmp_path / ".claude/tools/status"
    assert {path.name for path in folder.iterdir()} == {"schema.json", "TOOL.md", "status"}
    assert (folder / "TOOL.md").read_text() == tool_md(TOOLS["status"])
    assert (folder / "status").readlink() == tmp_path / "data/bin/contextd-proxy"
    assert os.access(folder / "status", os.X_OK)


def test_all_tools_or_those_of_a_toolset_are_installed(tmp_path: Path) -> None:
    contextd(tmp_path, "tools", "install", "--dir", "all", cwd=tmp_path)
    listed = {name for name, tool in TOOLS.items() if not tool.lean_only}
    assert {path.name for path in (tmp_path / "all").iterdir() if path.is_dir()} == listed
    contextd(tmp_path, "tools", "install", "--dir", "some", "--toolsets", "checkpoints", cwd=tmp_path)
    some = {path.name for path in (tmp_path / "some").iterdir() if path.is_dir()}
    assert some == {name for name, tool in TOOLS.items() if tool.toolset == "checkpoints"}


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_complete_and_its_examples_are_valid(name: str) -> None:
    schema = json.loads(json.dumps(tool_schema(TOOLS[name])))
    for part in ("input", "output"):
        Draft202012Validator.check_schema(schema[part])
        assert schema[part]["$schema"].endswith("2020-12/schema")
    for example in schema["examples"]:
        Draft202012Validator(schema["input"]).validate(example["arguments"])
    assert set(schema["errors"]) <= {fault.id for fault in catalogue()}
    assert {"VAL_001", "LIM_001", "LIM_002", "SRV_500"} <= set(schema["errors"])
    head, _ = read(tool_md(TOOLS[name]))
    assert schema["schema"] == head["schema"]
    assert isinstance(schema["annotations"], dict)


def test_installing_again_changes_nothing(tmp_path: Path) -> None:
    folders = ToolFolders(tmp_path)
    first = folders.install([TOOLS["status"], TOOLS["checkpoint_save"]], LAUNCHER)
    before = files(tmp_path)
    assert len(first) == 6
    assert ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER) == []
    assert files(tmp_path) == before


def test_what_an_older_contextd_wrote_is_brought_up_to_date(tmp_path: Path) -> None:
    ToolFolders(tmp_path).install([TOOLS["status"]], Path("/old/contextd-proxy"))
    changed = ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER)
    assert changed == [tmp_path / "status/status"]
    assert (tmp_path / "status/status").readlink() == LAUNCHER


@pytest.mark.parametrize("path", ["status/TOOL.md", "status/status"])
def test_a_file_of_somebody_else_is_not_overwritten_unless_told_to(tmp_path: Path, path: str) -> None:
    (tmp_path / "status").mkdir()
    (tmp_path / path).write_text("mine")
    with pytest.raises(Conflict, match="--force"):
        ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER)
    assert files(tmp_path) == {path: "mine"}
    ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER, force=True)
    assert files(tmp_path)[path] != "mine"


def test_a_file_that_was_changed_since_is_somebody_elses(tmp_path: Path) -> None:
    ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER)
    (tmp_path / "status/TOOL.md").write_text("improved")
    with pytest.raises(Conflict):
        ToolFolders(tmp_path).install([TOOLS["status"]], LAUNCHER)
    removed, left = ToolFolders(tmp_path).uninstall()
    assert left == [tmp_path / "status/TOOL.md"]
    assert len(removed) == 2
    assert (tmp_path / "status/TOOL.md").read_text() == "improved"


def test_uninstalling_leaves_what_was_there_before(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/tools"
    (folder / "status").mkdir(parents=True)
    (folder / "status/notes.txt").write_text("mine")
    contextd(tmp_path / "data", "tools", "install", "status", "checkpoint_save", cwd=tmp_path)
    contextd(tmp_path / "data", "tools", "uninstall", "checkpoint_save", cwd=tmp_path)
    assert not (folder / "checkpoint_save").exists()
    assert (folder / "status/status").is_symlink()
    assert "3 files removed" in contextd(tmp_path / "data", "tools", "uninstall", cwd=tmp_path)
    assert files(folder) == {"status/notes.txt": "mine"}


def test_notes_that_were_tampered_with_remove_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    folder = tmp_path / "tools"
    ToolFolders(folder).install([TOOLS["status"]], LAUNCHER)
    notes = json.loads((folder / ".contextd.json").read_text())
    mark = next(iter(notes.values()))
    (folder / ".contextd.json").write_text(json.dumps({**notes, "../precious": mark, "/etc/x": mark}))
    ToolFolders(folder).uninstall()
    assert (tmp_path / "precious").exists()


def test_a_file_is_never_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    folder = tmp_path / "tools"
    (folder / "status").mkdir(parents=True)
    (folder / "status/TOOL.md").symlink_to(tmp_path / "precious")
    ToolFolders(folder).install([TOOLS["status"]], LAUNCHER, force=True)
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (folder / "status/TOOL.md").is_symlink()


def test_an_unknown_tool_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    assert "unknown tool" in contextd(tmp_path, "tools", "install", "nope", cwd=tmp_path, status=1)
    assert not (tmp_path / ".claude").exists()

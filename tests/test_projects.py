"""Which project a path means."""

import subprocess
from pathlib import Path

import pytest

from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import Forbidden
from contextd.services.projects import permitted, project_at


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "api").mkdir(parents=True)
    (root / "api" / "a.txt").write_text("a")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(root)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    return root


def test_a_worktree_is_its_repository(repository: Path) -> None:
    tree = repository.parent / "tree"
    assert project_at(str(tree)) == project_at(str(repository))
    assert project_at(str(tree / "api")) == project_at(str(repository / "api"))


def test_a_symlink_is_what_it_points_to(repository: Path) -> None:
    link = repository.parent / "link"
    link.symlink_to(repository)
    assert project_at(str(link)) == project_at(str(repository))


def test_a_folder_inside_a_repository_is_a_project_of_its_own(repository: Path) -> None:
    assert project_at(str(repository / "api")) != project_at(str(repository))


def test_a_path_that_does_not_exist_is_a_project_all_the_same(tmp_path: Path) -> None:
    project = project_at(str(tmp_path / "nowhere"))
    assert project.path == str(tmp_path / "nowhere")
    assert project != project_at(str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("content", ["", "gitdir: /nowhere", "gitdir: .", "\x00\xff", "gitdir: ../../.."])
def test_a_broken_git_file_changes_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_bytes(content.encode("latin-1"))
    assert project_at(str(tmp_path)).path == str(tmp_path)


def test_a_token_for_one_project_does_not_open_another(tmp_path: Path) -> None:
    mine = project_at(str(tmp_path / "mine"))
    caller = Caller(Principal("ci", frozenset({mine.key})))
    assert permitted(caller, mine.path) == mine
    with pytest.raises(Forbidden):
        permitted(caller, str(tmp_path / "other"))

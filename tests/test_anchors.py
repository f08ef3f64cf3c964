"""Anchors: real files, and what becomes of them."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contextd.domain.errors import BadPath, Invalid
from contextd.services.anchors import MAX_FILE_BYTES, Anchor, AnchorFiles, blob_id


@dataclass
class Clock:
    """Far enough ahead that every file has settled, unless it is set back."""

    ahead: timedelta = field(default_factory=lambda: timedelta(hours=1))

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "cart.py").write_text("def total():\n    return 1\n")
    return root


@pytest.fixture
def files() -> AnchorFiles:
    return AnchorFiles(Clock())


def recorded(files: AnchorFiles, project: Path, file: str) -> Anchor:
    (anchor,) = files.recorded(str(project), [Anchor(file, "total")])
    return anchor


def state(files: AnchorFiles, project: Path, anchor: Anchor) -> str:
    (found,) = files.states([anchor], str(project))
    return found


def test_an_anchor_holds_gits_own_blob_id(files: AnchorFiles, project: Path) -> None:
    anchor = recorded(files, project, "src/cart.py")
    git = subprocess.run(
        ["git", "hash-object", "src/cart.py"], cwd=project, capture_output=True, text=True, check=True
    )
    assert anchor == Anchor("src/cart.py", "total", git.stdout.strip())
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_an_absolute_file_is_kept_relative_to_the_project(files: AnchorFiles, project: Path) -> None:
    assert recorded(files, project, str(project / "src/cart.py")).file == "src/cart.py"
    link = project.parent / "link"
    link.symlink_to(project)
    assert recorded(files, link, str(link / "src/cart.py")).file == "src/cart.py"
    assert recorded(files, link, str(project / "src/cart.py")).file == "src/cart.py"


def test_a_changed_file_is_told_and_so_is_one_that_changed_back(files: AnchorFiles, project: Path) -> None:
    file = project / "src" / "cart.py"
    before = file.read_text()
    anchor = recorded(files, project, "src/cart.py")
    assert state(files, project, anchor) == "fresh"
    file.write_text(before.replace("1", "2"))
    assert state(files, project, anchor) == "changed"
    file.write_text(before)
    assert state(files, project, anchor) == "fresh"


def test_a_deleted_file_is_missing(files: AnchorFiles, project: Path) -> None:
    anchor = recorded(files, project, "src/cart.py")
    (project / "src" / "cart.py").unlink()
    assert state(files, project, anchor) == "missing"


def test_a_file_that_grew_beyond_all_measure_has_changed(files: AnchorFiles, project: Path) -> None:
    anchor = recorded(files, project, "src/cart.py")
    os.truncate(project / "src" / "cart.py", MAX_FILE_BYTES + 1)
    assert state(files, project, anchor) == "changed"


def test_when_the_project_cannot_be_seen_nothing_is_called_stale(files: AnchorFiles, project: Path) -> None:
    anchor = recorded(files, project, "src/cart.py")
    elsewhere = str(project.parent / "unmounted")
    assert files.states([anchor], elsewhere) == ("unknown",)
    assert files.states([anchor], str(project / "src" / "cart.py")) == ("unknown",)
    assert files.states([anchor], elsewhere, str(project)) == ("fresh",)
    assert files.states([], elsewhere) == ()


def test_a_file_is_read_again_only_when_it_changes(files: AnchorFiles, project: Path) -> None:
    anchor = recorded(files, project, "src/cart.py")
    seen: list[str] = []
    real_open = os.open

    def counted(path: str, *arguments: int) -> int:
        seen.append(str(path))
        return real_open(path, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", counted)
        assert [state(files, project, anchor) for _ in range(3)] == ["fresh"] * 3
        assert seen == []
        (project / "src" / "cart.py").touch()
        assert state(files, project, anchor) == "fresh"
        assert len(seen) == 1


def test_a_file_that_has_not_settled_is_not_remembered(project: Path) -> None:
    """Two writes within one tick of the disk's clock look alike; the second must be seen all the same."""
    files = AnchorFiles(Clock(ahead=timedelta()))
    file = project / "src" / "cart.py"
    anchor = recorded(files, project, "src/cart.py")
    assert len(files) == 0
    file.write_text(file.read_text().replace("1", "2"))
    assert state(files, project, anchor) == "changed"


@pytest.mark.parametrize(
    "file",
    ["../secret.txt", "src/../../secret.txt", "/etc/passwd", "out", "folder-out/secret.txt", ".", "loop"],
)
def test_no_anchor_leads_out_of_the_project(files: AnchorFiles, project: Path, file: str) -> None:
    (project.parent / "secret.txt").write_text("secret")
    (project / "out").symlink_to(project.parent / "secret.txt")
    (project / "folder-out").symlink_to(project.parent)
    (project / "loop").symlink_to(project / "loop")
    with pytest.raises(BadPath) as refused:
        recorded(files, project, file)
    assert refused.value.field == "anchors"
    assert "anchors[0].file" in refused.value.message


def test_a_link_within_the_project_is_followed(files: AnchorFiles, project: Path) -> None:
    (project / "alias.py").symlink_to("src/cart.py")
    anchor = recorded(files, project, "alias.py")
    assert anchor.blob == recorded(files, project, "src/cart.py").blob
    assert state(files, project, anchor) == "fresh"


def test_a_file_that_became_a_link_to_the_outside_is_missing_and_not_read(
    files: AnchorFiles, project: Path
) -> None:
    anchor = recorded(files, project, "src/cart.py")
    outside = project.parent / "same.py"
    outside.write_text((project / "src" / "cart.py").read_text())
    (project / "src" / "cart.py").unlink()
    (project / "src" / "cart.py").symlink_to(outside)
    assert state(files, project, anchor) == "missing"


@pytest.fixture
def pipe(project: Path) -> Iterator[str]:
    os.mkfifo(project / "pipe")
    yield "pipe"


def test_what_is_not_a_file_is_refused_and_never_waited_for(
    files: AnchorFiles, project: Path, pipe: str
) -> None:
    for name in ("src", "nowhere.py", pipe):
        with pytest.raises(BadPath, match="name a file that is there now"):
            recorded(files, project, name)


def test_a_file_too_large_to_hash_is_refused(files: AnchorFiles, project: Path) -> None:
    (project / "large.bin").touch()
    os.truncate(project / "large.bin", MAX_FILE_BYTES + 1)
    with pytest.raises(Invalid, match="at most 10 MiB"):
        recorded(files, project, "large.bin")


def test_what_is_remembered_stays_bounded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextd.services.anchors._REMEMBERED", 3)
    files = AnchorFiles(Clock())
    for number in range(5):
        (project / f"{number}.py").write_text(str(number))
        recorded(files, project, f"{number}.py")
    assert len(files) == 3

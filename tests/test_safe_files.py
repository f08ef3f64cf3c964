"""safe_read and safe_write: what an agent sees of a file, what it may change, and what stays secret."""

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_projects import Desk, git, grown, open_desk
from contextd.domain import limits
from contextd.domain.callers import Caller, Principal, Tally
from contextd.domain.errors import Fault, UnknownPlaceholder
from contextd.domain.placeholders import placeholders_of
from contextd.edge.call_pipeline import pipeline_of
from contextd.scrubbing.samples import mixed
from contextd.services.projects import project_at
from contextd.wiring import build

TOKEN = "ghp_" + mixed(36)
OTHER = "ghp_" + mixed(35)[::-1] + "Z"
ENCODED = base64.b64encode(TOKEN.encode()).decode()
KEY_LINES = ["-----BEGIN PRIVATE KEY-----", *(mixed(60 + n) for n in range(6)), "-----END PRIVATE KEY-----"]
KEY = "\n".join(KEY_LINES)
ENV = f"# for the shop\nDEBUG=1\nGITHUB_TOKEN={TOKEN}\n\n{KEY}\nLAST=yes\n"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"), max_size=300)
LINES = st.lists(st.sampled_from(["", "a", "b", "+", "- x", "@@ -1 +1 @@", "\\ x", "ü"]), max_size=12).map(
    "\n".join
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def caller(session: str = "tests") -> Caller:
    return Caller(session=session, tally=Tally())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


class Shop:
    """A project, and calls about its files."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk, self.folder = desk, folder

    def read(self, path: str, who: Caller | None = None, **more: Any) -> dict[str, Any]:
        return self.call("safe_read", who, path=path, **more)

    def write(
        self, path: str, content: str | None = None, who: Caller | None = None, **more: Any
    ) -> dict[str, Any]:
        given = {} if content is None else {"content": content}
        return self.call("safe_write", who, path=path, **given, **more)

    def call(self, tool: str, who: Caller | None, **more: Any) -> dict[str, Any]:
        more = {"token_budget": limits.MAX_TOKENS, "project_path": str(self.folder), **more}
        answer = self.desk.run(self.desk.pipeline.call(tool, more, who or caller()))
        assert not any(secret in answer.text for secret in (TOKEN, OTHER, *KEY_LINES[1:-1]))
        return {**answer.data, **answer.envelope()}

    def fault(self, tool: str, who: Caller | None = None, **more: Any) -> Fault:
        with pytest.raises(Fault) as raised:
            self.call(tool, who, **more)
        assert TOKEN not in raised.value.message
        return raised.value

    def bytes_of(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def text_of(self, path: str) -> str:
        return self.bytes_of(path).decode()


@pytest.fixture
def shop(desk: Desk, tmp_path: Path) -> Shop:
    return Shop(
        desk, grown(tmp_path / "shop", {".env": ENV, "src/app.py": "import os\n\nprint(1)\nprint(2)\n"})
    )


# --- reading ----------------------------------------------------------------------------


def test_a_file_is_read_whole_with_its_hash(shop: Shop) -> None:
    read = shop.read("src/app.py")
    assert read["content"] == "import os\n\nprint(1)\nprint(2)\n"
    assert (read["total_lines"], read["start_line"], read["end_line"]) == (4, 1, 4)
    assert read["sha256"] == hashlib.sha256(shop.bytes_of("src/app.py")).hexdigest()
    assert (read["secrets_redacted"], read["encoding"]) == (0, "utf-8")
    assert "note" not in read
    assert shop.read(str(shop.folder / "src/app.py"))["content"] == read["content"]
    assert shop.read("./src//app.py")["content"] == read["content"]


def test_a_file_of_secrets_is_answered_with_placeholders_and_not_refused(shop: Shop) -> None:
    who = caller()
    read = shop.read(".env", who)
    assert read["secrets_redacted"] == 2
    assert who.tally.secrets == {"github-token": 1, "private-key": 1}
    assert who.tally.project == project_at(str(shop.folder))
    assert read["content"].startswith("# for the shop\nDEBUG=1\nGITHUB_TOKEN=[REDACTED:github-token:")


def test_lines_keep_their_numbers_behind_a_secret_of_several_lines(shop: Shop) -> None:
    last = ENV.count("\n")
    assert shop.read(".env")["total_lines"] == last
    read = shop.read(".env", start_line=last)
    assert (read["content"], read["start_line"], read["end_line"]) == ("LAST=yes\n", last, last)
    assert read["secrets_redacted"] == 0
    assert shop.read(".env", start_line=2, end_line=2)["content"] == "DEBUG=1\n"
    assert shop.read(".env", start_line=2, end_line=9_999)["end_line"] == last


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ({"start_line": 5}, "VAL_004"),
        ({"start_line": 3, "end_line": 2}, "VAL_004"),
        ({"pattern": "("}, "VAL_009"),
    ],
)
def test_lines_that_cannot_be_are_refused(shop: Shop, lines: dict[str, Any], code: str) -> None:
    assert shop.fault("safe_read", path="src/app.py", **lines).id == code


def test_a_pattern_shows_matching_lines_with_numbers_and_neighbours(shop: Shop) -> None:
    grown(shop.folder, {"log": "".join(f"line {n}\n" for n in range(1, 41))})
    read = shop.read("log", pattern="line (5|6|30)$")
    assert read["matches"] == 3
    assert read["content"].splitlines() == [
        *("3- line 3", "4- line 4", "5: line 5", "6: line 6", "7- line 7", "8- line 8", "--"),
        *("28- line 28", "29- line 29", "30: line 30", "31- line 31", "32- line 32"),
    ]
    assert shop.read("log", pattern="line 1", start_line=12)["matches"] == 8
    assert shop.read("log", pattern="nowhere") | {"content": "", "matches": 0} == shop.read(
        "log", pattern="nowhere"
    )


def test_a_pattern_does_not_tell_what_a_secret_is(shop: Shop) -> None:
    assert shop.read(".env", pattern=f"TOKEN={TOKEN[:5]}")["matches"] == 0
    assert shop.read(".env", pattern="TOKEN=")["matches"] == 1


def test_a_long_file_is_cut_to_its_budget_and_the_rest_is_under_a_ref(shop: Shop) -> None:
    grown(shop.folder, {"long": "".join(f"number {n} of many\n" for n in range(1, 2_001))})
    read = shop.read("long", token_budget=2_000)
    assert read["truncated"] is True
    assert read["tokens_used"] <= 2_000
    assert read["total_lines"] == 2_000
    held = shop.desk.call("ref_get", caller(), ref=read["refs"][0], pattern="number 1000 ")
    assert held["content"] == "1000: number 1000 of many\n"
    went_on = shop.read("long", start_line=1_000, end_line=1_010, token_budget=2_000)
    assert went_on["content"].startswith("number 1000 ")
    assert "truncated" not in went_on


def test_more_than_any_budget_holds_is_shown_up_to_a_line_and_says_where_to_go_on(shop: Shop) -> None:
    grown(shop.folder, {"huge": "".join(f"{n:099}\n" for n in range(1, 10_001)), "wide": "x" * 500_000})
    read = shop.read("huge", token_budget=2_000)
    assert (read["end_line"], read["total_lines"]) == (2_000, 10_000)
    assert read["note"] == "go on at line 2001"
    went_on = shop.read("huge", start_line=9_001, token_budget=2_000)
    assert went_on["end_line"] == 10_000
    assert "note" not in went_on
    found = shop.read("huge", pattern="0", token_budget=2_000)
    assert found["matches"] == 10_000
    assert found["end_line"] < 2_000
    assert shop.read("wide", token_budget=2_000)["total_lines"] == 1


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("grüß\n".encode(), "grüß\n", "utf-8"),
        ("grüß\n".encode("utf-8-sig"), "grüß\n", "utf-8 with BOM"),
        (b"\xff\xfe" + "grüß\n".encode("utf-16-le"), "grüß\n", "utf-16-le with BOM"),
        (b"\xfe\xff" + "grüß\n".encode("utf-16-be"), "grüß\n", "utf-16-be with BOM"),
        ("“grüß”\n".encode("cp1252"), "“grüß”\n", "cp1252"),
        (b"gr\xfc\x81\n", "gr\xfc\x81\n", "latin-1"),
    ],
)
def test_encodings_are_told_and_kept(shop: Shop, data: bytes, text: str, encoding: str) -> None:
    grown(shop.folder, {"text": data})
    read = shop.read("text")
    assert (read["content"], read["encoding"]) == (text, encoding)
    assert ("guess" in read.get("note", "")) is (encoding in ("cp1252", "latin-1"))
    shop.write("text", "ä", mode="append")
    mark = next((bom for bom in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff") if data.startswith(bom)), b"")
    assert shop.bytes_of("text") == mark + (text + "ä").encode(encoding.removesuffix(" with BOM"))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG image"),
        (b"\x7fELF\x02\x01\x01\x00", "a program"),
        (b"PK\x03\x04\x14\x00", "a ZIP archive"),
        (b"some\x00thing", "binary data"),
        (bytes(range(1, 32)) + b"\xff" * 20, "binary data"),
        (b"\xff\xfe\x00\xd8", "binary data"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "binary data"),
    ],
)
def test_what_is_no_text_is_refused_with_what_it_looks_like(shop: Shop, data: bytes, kind: str) -> None:
    grown(shop.folder, {"data": data})
    assert f"it looks like {kind}" in shop.fault("safe_read", path="data").message
    assert shop.fault("safe_write", path="data", content="text").id == "FILE_003"
    assert shop.bytes_of("data") == data


# --- where ------------------------------------------------------------------------------


def test_paths_outside_are_refused(shop: Shop, tmp_path: Path) -> None:
    outside = grown(tmp_path / "outside", {"file": "theirs"}) / "file"
    (shop.folder / "link").symlink_to(outside)
    (shop.folder / "folder").symlink_to("../outside")
    for path in ("link", "folder/file", str(outside), "folder/new"):
        assert shop.fault("safe_read", path=path).id == "SBX_002"
        assert shop.fault("safe_write", path=path, content="mine").id == "SBX_002"
    assert shop.fault("safe_read", path="../outside/file").id == "VAL_007"
    os.link(outside, shop.folder / "hard")
    assert shop.fault("safe_read", path="hard").id == "FILE_001"
    assert shop.fault("safe_write", path="hard", content="mine").id == "FILE_001"
    assert outside.read_text() == "theirs"
    assert [path.name for path in outside.parent.iterdir()] == ["file"]


def test_what_is_not_there_or_no_project_is_said(shop: Shop, tmp_path: Path) -> None:
    assert shop.fault("safe_read", path="none.txt").id == "REC_001"
    assert shop.fault("safe_read", path="none.txt", project_path=str(tmp_path / "none")).id == "REC_001"
    assert shop.fault("safe_read", path=".").id == "VAL_007"
    assert shop.fault("safe_read", path="environ", project_path="/proc/self").id == "SBX_002"
    assert shop.fault("safe_read", path="etc/passwd", project_path="/").id == "SBX_002"


def test_a_home_and_what_is_hidden_in_it_are_no_projects(shop: Shop) -> None:
    for folder in (Path.home(), Path.home() / ".ssh"):
        fault = shop.fault("safe_write", path="authorized_keys", project_path=str(folder), content="x")
        assert fault.id == "SBX_002"
        assert "give it a table in the policies" in fault.message


def test_a_token_of_another_project_is_refused(shop: Shop) -> None:
    outsider = Caller(Principal("ci", frozenset({project_at("/srv/two").key})))
    assert shop.fault("safe_read", outsider, path="src/app.py").id == "SEC_002"
    assert shop.fault("safe_write", outsider, path="src/app.py", content="").id == "SEC_002"


def test_what_contextd_keeps_for_itself_is_out_of_reach(shop: Shop) -> None:
    data = shop.desk.house.settings.data_dir
    grown(data, {"notes.txt": "its own"})
    for project, path, id in (
        (data, "notes.txt", "SBX_002"),
        (data.parent, f"{data.name}/notes.txt", "SEC_002"),
    ):
        assert shop.fault("safe_read", path=path, project_path=str(project)).id == id
        assert shop.fault("safe_write", path=path, project_path=str(project), content="x").id == id


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".claude/settings.json",
        "sub/.git/config",
        ".GIT/Config",
        "vendor/.vscode/tasks.json",
        ".envrc",
        "hooks/pre-push",
    ],
)
def test_what_programs_outside_obey_is_not_written(shop: Shop, path: str) -> None:
    (shop.folder / ".git").mkdir()
    (shop.folder / "hooks").symlink_to(".git/hooks")
    (shop.folder / ".git/hooks").mkdir()
    assert shop.fault("safe_write", path=path, content="#!/bin/sh\n").id == "FILE_002"
    assert not any(each.is_file() for each in (shop.folder / ".git").rglob("*"))


def test_a_file_that_leads_git_elsewhere_is_not_written(shop: Shop) -> None:
    for path in (".git", "sub/.git"):
        assert shop.fault("safe_write", path=path, content="gitdir: evil\n").id == "FILE_002"


@pytest.mark.parametrize("root", [".git", ".git/hooks", ".claude"])
def test_a_tools_folder_is_no_project_to_write_in(shop: Shop, root: str) -> None:
    folder = shop.folder / root
    folder.mkdir(parents=True)
    assert shop.fault("safe_write", path="x", content="", project_path=str(folder)).id == "FILE_002"


def test_an_agents_worktree_is_a_project(shop: Shop) -> None:
    folder = shop.folder / ".claude/worktrees/one"
    folder.mkdir(parents=True)
    assert shop.write("x", "y", project_path=str(folder))["bytes_written"] == 1


def test_a_worktree_of_git_has_its_own_files(shop: Shop, tmp_path: Path) -> None:
    main = grown(tmp_path / "main", {"file": "of main\n"})
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "one"],
        ["worktree", "add", "-q", "../linked"],
    ):
        git(main, *arguments)
    shop.write("file", "of linked\n", project_path=str(tmp_path / "linked"))
    assert (main / "file").read_text() == "of main\n"
    assert shop.read("file", project_path=str(tmp_path / "linked"))["content"] == "of linked\n"


# --- writing ----------------------------------------------------------------------------


def test_a_file_is_created_overwritten_appended_to_and_edited(shop: Shop) -> None:
    made = shop.write("docs/new.md", "# New\n")
    assert (made["path"], made["bytes_written"], made["backup_ref"]) == ("docs/new.md", 6, None)
    assert made["diff"] == "--- /dev/null\n+++ b/docs/new.md\n@@ -0,0 +1,1 @@\n+# New\n"
    over = shop.write("docs/new.md", "# Newer", expected_sha256=made["sha256"].upper(), mode="overwrite")
    assert shop.desk.call("ref_get", caller(), ref=over["backup_ref"])["content"] == "# New\n"
    added = shop.write("docs/new.md", "Line.\n", mode="append")
    assert shop.text_of("docs/new.md") == "# Newer\nLine.\n"
    assert added["sha256"] == shop.read("docs/new.md")["sha256"]
    edits = [{"old": "Newer", "new": "Old"}, {"old": "e", "new": "E", "replace_all": True}]
    edited = shop.write("docs/new.md", edits=edits)
    assert shop.text_of("docs/new.md") == "# Old\nLinE.\n"
    patched = shop.write("docs/new.md", patch="@@ -1,2 +1,2 @@\n-# Old\n+# Patched\n LinE.\n", mode="edit")
    assert shop.text_of("docs/new.md") == "# Patched\nLinE.\n"
    assert edited["sha256"] != patched["sha256"]
    assert shop.write("log/today", "first\n", mode="append")["backup_ref"] is None


def test_a_dry_run_answers_the_diff_and_writes_nothing(shop: Shop) -> None:
    before = shop.bytes_of("src/app.py")
    tried = shop.write("src/app.py", edits=[{"old": "print(1)\n", "new": ""}], dry_run=True)
    assert (tried["bytes_written"], tried["backup_ref"]) == (0, None)
    assert "-print(1)\n" in tried["diff"]
    assert shop.bytes_of("src/app.py") == before
    assert shop.write("new/file", "x", dry_run=True)["path"] == "new/file"
    assert not (shop.folder / "new").exists()
    done = shop.write("src/app.py", edits=[{"old": "print(1)\n", "new": ""}])
    assert (done["diff"], done["sha256"]) == (tried["diff"], tried["sha256"])


def test_writing_what_is_there_already_changes_nothing(shop: Shop) -> None:
    before = (shop.folder / "src/app.py").stat()
    same = shop.write("src/app.py", shop.text_of("src/app.py"))
    assert (same["bytes_written"], same["diff"], same["backup_ref"]) == (0, "", None)
    assert (shop.folder / "src/app.py").stat() == before


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"mode": "create", "content": ""}, "REC_002"),
        ({"content": "x", "expected_sha256": "0" * 64}, "FILE_006"),
        ({"edits": [{"old": "nowhere", "new": ""}]}, "FILE_005"),
        ({"edits": [{"old": "print", "new": ""}]}, "FILE_005"),
        ({"edits": [{"old": "import os", "new": "x"}, {"old": "import os", "new": "y"}]}, "FILE_005"),
        ({"edits": [{"old": "import os", "new": "import os"}]}, "VAL_000"),
        ({"patch": "@@ -1 +1 @@\n-import sys\n+import re\n"}, "FILE_005"),
        ({"patch": "@@ -1,2 +1,1 @@\n-import os\n"}, "VAL_009"),
        ({"patch": "@@ -1 +1 @@\n-import os\n-more\n+x\n"}, "VAL_009"),
        ({"patch": "@@ -1 +1 @@\n-import os"}, "VAL_009"),
        ({"patch": "hello"}, "VAL_009"),
        ({"patch": "--- a/x\n+++ b/x\n"}, "VAL_009"),
        ({"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-import os\n+x\n--- a/y\n+++ b/y\n"}, "VAL_009"),
        ({}, "VAL_000"),
        ({"content": "x", "patch": "y"}, "VAL_000"),
        ({"content": "x", "mode": "edit"}, "VAL_000"),
        ({"edits": [{"old": "a", "new": "b"}], "mode": "append"}, "VAL_000"),
        ({"content": "x", "expected_sha256": "z" * 64}, "VAL_009"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_and_nothing_is_written(
    shop: Shop, more: dict[str, Any], code: str
) -> None:
    before = shop.bytes_of("src/app.py")
    assert shop.fault("safe_write", path="src/app.py", **more).id == code
    assert shop.bytes_of("src/app.py") == before


def test_a_file_that_is_not_there_cannot_be_edited_or_overwritten(shop: Shop) -> None:
    for more in ({"edits": [{"old": "a", "new": "b"}]}, {"content": "x", "mode": "overwrite"}):
        assert shop.fault("safe_write", path="new/none", **more).id == "REC_001"
    assert shop.fault("safe_write", path="none", content="x", expected_sha256="0" * 64).id == "FILE_006"
    assert not (shop.folder / "new").exists()


def test_a_patch_whose_line_numbers_are_off_finds_its_one_place(shop: Shop) -> None:
    shop.write(
        "src/app.py",
        patch="--- a/src/app.py\n+++ b/src/app.py\n@@ -9,2 +9,2 @@\n print(1)\n-print(2)\n+print(3)\n",
    )
    assert shop.text_of("src/app.py").endswith("print(1)\nprint(3)\n")


def test_a_cut_answer_is_not_written_back_over_the_whole(shop: Shop) -> None:
    whole = "".join(f"number {n} of many\n" for n in range(1, 2_001))
    grown(shop.folder, {"long": whole})
    cut = shop.read("long", token_budget=2_000)["content"]
    assert "mark of a cut answer" in shop.fault("safe_write", path="long", content=cut).message
    assert shop.text_of("long") == whole
    grown(shop.folder, {"folding.md": f"Looks like this:\n{cut}"})
    assert shop.write("folding.md", cut)["bytes_written"] > 0


def test_windows_line_ends_are_kept(shop: Shop) -> None:
    grown(shop.folder, {"win.txt": b"one\r\ntwo\r\n"})
    read = shop.read("win.txt")
    assert (read["content"], "CRLF" in read["note"]) == ("one\ntwo\n", True)
    shop.write("win.txt", edits=[{"old": "one\ntwo", "new": "one\nand\ntwo"}])
    assert shop.bytes_of("win.txt") == b"one\r\nand\r\ntwo\r\n"
    shop.write("win.txt", "three\r\n", mode="append")
    shop.write("win.txt", patch="@@ -4 +4 @@\n-three\n+four\n")
    assert shop.bytes_of("win.txt") == b"one\r\nand\r\ntwo\r\nfour\r\n"
    shop.write("win.txt", "all\nnew\n")
    assert shop.bytes_of("win.txt") == b"all\r\nnew\r\n"
    grown(shop.folder, {"mixed.txt": b"one\r\ntwo\n"})
    assert shop.read("mixed.txt")["content"] == "one\r\ntwo\n"
    shop.write("mixed.txt", edits=[{"old": "two", "new": "2"}])
    assert shop.bytes_of("mixed.txt") == b"one\r\n2\n"


def test_characters_that_an_encoding_lacks_are_refused_or_make_it_utf_8(shop: Shop) -> None:
    grown(shop.folder, {"old.txt": "grüß\n".encode("cp1252")})
    assert shop.fault("safe_write", path="old.txt", content="日本", mode="append").id == "VAL_008"
    assert shop.write("old.txt", "日本")["encoding"] == "utf-8"
    assert shop.text_of("old.txt") == "日本"


def test_what_is_too_large_is_not_written(shop: Shop) -> None:
    line = "x" * 999 + "\n"
    grown(shop.folder, {"large": line * 3_900})
    assert shop.fault("safe_write", path="large", content=line * 101, mode="append").id == "VAL_011"
    written = shop.write("large", line * 90, mode="append", token_budget=2_000)
    assert written["bytes_written"] == 3_990_000
    grown(shop.folder, {"larger": line * 4_001})
    assert shop.fault("safe_write", path="larger", edits=[{"old": "a", "new": "b"}]).id == "VAL_011"


def test_a_long_diff_is_bounded(shop: Shop) -> None:
    many = "".join(f"{n:030}\n" for n in range(9_000))
    whole: dict[str, Any] = {"token_budget": limits.MIN_TOKENS, "dry_run": True}
    made = shop.write("many", many, **whole)
    held = shop.desk.call("ref_get", caller(), ref=made["refs"][0], pattern="more lines")
    assert re.search(r"\[… \d+ more lines …\]\n$", held["content"])
    grown(shop.folder, {"many": many})
    other = shop.write("many", many.replace("0", "o"), **whole)
    assert len(other["diff"]) < len(many)


# --- secrets ----------------------------------------------------------------------------


def test_what_was_shown_can_be_written_back_as_it_was_shown(shop: Shop) -> None:
    shown = shop.read(".env")["content"]
    written = shop.write(".env", shown.replace("DEBUG=1", "DEBUG=0"))
    assert shop.text_of(".env") == ENV.replace("DEBUG=1", "DEBUG=0")
    assert "-DEBUG=1\n+DEBUG=0\n" in written["diff"]


def test_blank_lines_that_stood_for_a_key_may_be_left_out(shop: Shop) -> None:
    shown = re.sub("\n\n+", "\n", shop.read(".env")["content"])
    shop.write(".env", shown)
    assert shop.text_of(".env") == ENV.replace("\n\n", "\n")


def test_edits_and_patches_go_around_secrets_without_having_read_the_file(shop: Shop) -> None:
    shop.write(".env", edits=[{"old": "LAST=yes", "new": "LAST=no"}], who=caller("new here"))
    assert shop.text_of(".env") == ENV.replace("LAST=yes", "LAST=no")
    shop.write(".env", patch="@@ -2 +2 @@\n-DEBUG=1\n+DEBUG=2\n", who=caller("newer here"))
    assert shop.text_of(".env") == ENV.replace("LAST=yes", "LAST=no").replace("DEBUG=1", "DEBUG=2")


def test_edits_may_name_placeholders_on_both_sides(shop: Shop) -> None:
    line = next(each for each in shop.read(".env")["content"].splitlines() if "TOKEN" in each)
    shop.write(".env", edits=[{"old": line, "new": f"export {line} # mine"}])
    assert f"\nexport GITHUB_TOKEN={TOKEN} # mine\n" in shop.text_of(".env")
    shop.write(".env", edits=[{"old": f"export {line} # mine\n", "new": ""}])
    assert TOKEN not in shop.text_of(".env")
    assert KEY in shop.text_of(".env")


@pytest.mark.parametrize("kind", ["content", "edits", "patch"])
def test_a_placeholder_is_refused_in_another_file_and_another_session(shop: Shop, kind: str) -> None:
    (mark, *_) = placeholders_of(shop.read(".env")["content"])
    kinds: dict[str, dict[str, Any]] = {
        "content": {"content": f"x = {mark}\n"},
        "edits": {"edits": [{"old": "DEBUG=1", "new": f"DEBUG={mark}"}]},
        "patch": {"patch": f"@@ -2 +2 @@\n-DEBUG=1\n+DEBUG={mark}\n"},
    }
    given = kinds[kind]
    grown(shop.folder, {"copy": "# a copy\nDEBUG=1\n"})
    for path, who in (("copy", caller()), (".env", caller("another"))):
        before = shop.bytes_of(path)
        fault = shop.fault("safe_write", who, path=path, **given)
        assert (fault.id, fault.details["field"]) == ("FILE_004", kind)
        assert shop.bytes_of(path) == before
    shop.write(".env", **given)
    assert TOKEN in shop.text_of(".env") or KEY in shop.text_of(".env")


def test_a_link_that_is_turned_round_does_not_carry_a_secret_along(shop: Shop) -> None:
    grown(shop.folder, {"public.txt": "nothing\n"})
    (shop.folder / "link").symlink_to(".env")
    shown = shop.read("link")["content"]
    (shop.folder / "link").unlink()
    (shop.folder / "link").symlink_to("public.txt")
    assert shop.fault("safe_write", path="link", content=shown).id == "FILE_004"
    assert shop.write(".env", shown)["bytes_written"] == 0


def test_a_placeholder_that_a_file_itself_holds_stays_one(shop: Shop) -> None:
    mark = "[REDACTED:github-token:abc123]"
    grown(shop.folder, {"docs.md": f"Shown as {mark}.\n"})
    read = shop.read("docs.md")
    assert read["secrets_redacted"] == 0
    shop.write("docs.md", f"Looks like {mark}.\n", who=caller("other"))
    assert shop.text_of("docs.md") == f"Looks like {mark}.\n"


def test_a_backup_without_its_secrets_can_be_written_back_whole(shop: Shop) -> None:
    over = shop.write(".env", "EMPTY=1\n")
    held = shop.desk.call("ref_get", caller(), ref=over["backup_ref"], token_budget=8_000)["content"]
    assert TOKEN not in held
    shop.write(".env", held)
    assert shop.text_of(".env") == ENV


def test_a_diff_that_cuts_a_key_does_not_show_a_part_of_it(shop: Shop) -> None:
    lines = [*KEY_LINES[:4], mixed(64)[::-1], *KEY_LINES[5:]]
    grown(shop.folder, {"key.pem": KEY + "\n"})
    diff = shop.write("key.pem", "\n".join(lines) + "\n", dry_run=True)["diff"]
    assert len(placeholders_of(diff)) == 2
    assert mixed(64)[::-1] not in diff


def test_invisible_characters_in_a_secret_do_not_make_an_edit_tell_it(shop: Shop) -> None:
    hidden = TOKEN[:10] + "\u200b" + TOKEN[10:]
    grown(shop.folder, {"odd": f"A=1\nTOKEN={hidden}\n"})
    assert (
        shop.fault("safe_write", path="odd", edits=[{"old": f"TOKEN={TOKEN[:6]}", "new": "x"}]).id
        == "FILE_005"
    )
    shop.write("odd", edits=[{"old": "A=1", "new": "A=2"}])
    assert shop.text_of("odd") == f"A=2\nTOKEN={hidden}\n"


def test_secrets_are_remembered_in_memory_alone_and_not_for_ever(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = shop.read(".env")["content"]
    shop.write(".env", shown + "MORE=1\n")
    data = shop.desk.house.settings.data_dir
    assert not any(TOKEN.encode() in file.read_bytes() for file in data.rglob("*") if file.is_file())
    clock = shop.desk.house.clock
    late = clock.monotonic() + limits.SHOWN_SECRETS_HOURS * 3_600 + 1
    monkeypatch.setattr(type(clock), "monotonic", lambda self: late)
    assert shop.fault("safe_write", path=".env", content=shown).id == "FILE_004"


def test_more_files_than_are_remembered_push_out_the_oldest(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextd.services.shown_secrets.SHOWN_SECRETS_FILES", 2)
    shown = shop.read(".env")["content"]
    for name in ("one", "two"):
        grown(shop.folder, {name: f"TOKEN={OTHER}\n"})
        shop.read(name)
    assert shop.fault("safe_write", path=".env", content=shown).id == "FILE_004"


# --- properties -------------------------------------------------------------------------


@FEW
@given(text=TEXTS)
def test_any_text_that_is_written_is_read_as_it_was(shop: Shop, text: str) -> None:
    shop.write("any", text)
    assert shop.text_of("any") == text
    assert shop.read("any")["content"] == text


@FEW
@given(old=LINES, new=LINES)
def test_a_diff_applied_to_the_old_text_gives_the_new(shop: Shop, old: str, new: str) -> None:
    grown(shop.folder, {"text": old})
    diff = shop.write("text", new, dry_run=True)["diff"]
    if old == new:
        assert diff == ""
    else:
        shop.write("text", patch=diff)
        assert shop.text_of("text") == new


@FEW
@given(
    parts=st.lists(
        st.sampled_from([f"a = {TOKEN}\n", f"'{OTHER}', ", f"{KEY}\n", KEY + '"\n', "\n\n", "# x\n"])
    )
)
def test_any_file_with_secrets_survives_being_shown_and_written_back(shop: Shop, parts: list[str]) -> None:
    text = "".join(parts)
    grown(shop.folder, {"secrets": text})
    shown = shop.read("secrets")["content"]
    shop.write("secrets", "gone")
    shop.write("secrets", shown)
    assert shop.text_of("secrets") == text


@FEW
@given(parts=st.lists(st.sampled_from([TOKEN, OTHER, KEY, ENCODED, "\n", "a = ", '"', " "]), max_size=12))
def test_however_secrets_touch_they_come_back_right_or_not_at_all(shop: Shop, parts: list[str]) -> None:
    text = "".join(parts)
    grown(shop.folder, {"secrets": text})
    shown = shop.read("secrets")["content"]
    try:
        shop.write("secrets", "gone")
        shop.write("secrets", shown)
        assert shop.text_of("secrets") == text
    except UnknownPlaceholder:
        assert shop.text_of("secrets") == "gone"
    grown(shop.folder, {"secrets": f"DEBUG=1\n{text}"})
    shop.write("secrets", edits=[{"old": "DEBUG=1", "new": "DEBUG=2"}])
    assert shop.text_of("secrets") == f"DEBUG=2\n{text}"


@FEW
@given(old=LINES, new=LINES)
def test_any_patch_goes_around_the_secrets_of_its_file(shop: Shop, old: str, new: str) -> None:
    before, after = f"{old}\nT={TOKEN}\n{KEY}\n{new}", f"{new}\nT={TOKEN}\n{KEY}\n{old}"
    grown(shop.folder, {"text": before})
    shown = shop.read("text")["content"]
    grown(shop.folder, {"text": after})
    wanted = shop.read("text")["content"]
    grown(shop.folder, {"text": before})
    diff = shop.write("text", wanted, dry_run=True)["diff"]
    assert shown == shop.read("text")["content"]
    if diff:
        shop.write("text", patch=diff)
    assert shop.text_of("text") == after


def test_hard_links_can_be_allowed_by_the_daemons_settings(desk: Desk, shop: Shop) -> None:
    os.link(shop.folder / "src/app.py", shop.folder / "second")
    allowing = build(replace(desk.house.settings, allow_hard_links=True))
    assert shop.fault("safe_read", path="second").id == "FILE_001"
    answer = pipeline_of(allowing).call(
        "safe_read", {"path": "second", "project_path": str(shop.folder)}, caller()
    )
    assert desk.run(answer).data["total_lines"] == 4

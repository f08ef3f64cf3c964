"""Walks over real trees on disk: git is the oracle for what is ignored, and no tree leads out of itself."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextd.services.ignore_rules import MAX_IGNORE_FILE_BYTES
from contextd.services.source_tree import FoundFile, Print, Selection, SourceTree, Walk

EVERYTHING = Selection(lambda path: None)


def grown(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def empty(*paths: str) -> dict[str, str | bytes]:
    return dict.fromkeys(paths, "")


def paths(walk: Walk) -> list[str]:
    return [file.path for file in walk.files]


def walked(root: Path, selection: Selection = EVERYTHING) -> list[str]:
    return paths(SourceTree(root).walk(selection))


def git(folder: Path, *arguments: str) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout


def listed_by_git(folder: Path) -> list[str]:
    names = git(folder, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split(b"\0")
    return sorted(os.fsdecode(name) for name in names if name)


def repository(root: Path) -> Path:
    """As little as git takes for one: quicker than `git init`."""
    for folder in ("objects", "refs", "info"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


# What is ignored


@pytest.mark.parametrize(
    ("rules", "ignored", "kept"),
    [
        ({".gitignore": "*.log\n"}, ["a.log", "x/y/b.log"], ["a.py"]),
        ({".gitignore": "*.log\n!keep.log\n"}, ["a.log"], ["keep.log", "x/keep.log"]),
        ({".gitignore": "build/\n!build/keep\n"}, ["build/keep", "x/build/a"], ["x/y"]),
        ({".gitignore": "build/*\n!build/keep\n"}, ["build/a"], ["build/keep"]),
        ({".gitignore": "build/**\n!build/keep\n"}, ["build/a", "build/b/c"], ["build/keep"]),
        ({".gitignore": "build/\n"}, ["build/a", "x/build/b"], ["src/build"]),
        ({".gitignore": "/build\n"}, ["build/a"], ["x/build"]),
        ({".gitignore": "a/b\n"}, ["a/b/c"], ["x/a/b"]),
        ({".gitignore": "*\n!*/\n!*.py\n"}, ["a.log", "x/a.log"], ["a.py", "x/y/b.py"]),
        ({".gitignore": "a/**/z\n"}, ["a/z", "a/b/c/z/y"], ["z", "b/a/z"]),
        ({".gitignore": "a/**/\n"}, ["a/b/c"], ["a/x"]),
        ({".gitignore": "**/gen/*.go\n"}, ["gen/a.go", "x/gen/b.go"], ["gen/x/a.go"]),
        ({".gitignore": "x/*\n"}, ["x/a"], ["y/x/a"]),
        ({".gitignore": "*.log\n", "x/.gitignore": "!*.log\n"}, ["a.log"], ["x/a.log", "x/y/b.log"]),
        ({".gitignore": "!a.py\n", "x/.gitignore": "a.py\n"}, ["x/a.py"], ["a.py"]),
        ({"x/.gitignore": "/a\n"}, ["x/a"], ["a", "x/y/a"]),
        ({".git/info/exclude": "*.log\n", ".gitignore": "!b.log\n"}, ["a.log"], ["b.log"]),
        ({".gitignore": "#a\n\\#b\n\\!c\n"}, ["#b", "!c"], ["#a", "a"]),
        ({".gitignore": "a  \nb\\ \nc\t\n"}, ["a", "b ", "c\t"], ["b", "c"]),
        ({".gitignore": "a\r\nb/\r\n"}, ["a", "b/c"], ["ab"]),
        ({".gitignore": b"\xef\xbb\xbfa\n"}, ["a"], ["b"]),
        ({".gitignore": "[[:digit:]]x\n[!a-c]y\n[]]z\n"}, ["1x", "dy", "]z"], ["ax", "by", "z"]),
        ({".gitignore": "a[!b]c\n"}, ["a.c"], ["a/c", "abc"]),
        ({".gitignore": "a[.-0]c\n"}, ["a.c"], ["a/c"]),
        ({".gitignore": "a[!b]\nc?\n"}, ["ax", "cx"], ["a/x", "c/x"]),
        ({".gitignore": b"a\0b\n"}, ["a"], ["b"]),
        ({".gitignore": "[z-a]\n[b\nc\\\n[[:nope:]]\n/\n//\n!\n"}, ["z"], ["a", "b", "c"]),
        ({".gitignore": "?.py\nä\n"}, ["a.py", "ä"], ["é.py", "aä"]),
        ({".gitignore": b"\xe9\n"}, [], ["é"]),
        ({".gitignore": "a?c\n"}, ["a\nc"], ["a/c"]),
        ({".gitignore": "x\n"}, ["a\nb/x"], ["x\n"]),
        ({".gitignore": "*.log"}, ["a.log"], ["A.LOG"]),
    ],
)
def test_ignore_files_mean_what_git_says(
    tmp_path: Path, rules: dict[str, str | bytes], ignored: list[str], kept: list[str]
) -> None:
    root = grown(repository(tmp_path), empty(*ignored, *kept) | rules)
    found = walked(root)
    assert found == listed_by_git(root)
    assert set(found) - {".gitignore", "x/.gitignore"} == set(kept)


NAMES = [
    "a",
    "b",
    "ab",
    "a.c",
    "b.log",
    "foo",
    "a b",
    "a ",
    "é",
    "[a]",
    "!a",
    "#a",
    "a\nb",
    "-",
    "a\\b",
    "1",
]
GLOBS = (
    "* ** ? a* *a *.c [ab] [!a] [^b] [a-c] []a] [!]a] [[:alpha:]] [[:nope:]] [b-a] [--a] [+-9] [\\]a] "
    "\\a \\* \\[a] ?? *? *b* *** [a a\\"
).split()
SEGMENT = st.sampled_from([name.replace("\n", "?") for name in NAMES] + GLOBS)
LINE = st.builds(
    "{0}{1}{2}{3}{4}".format,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", "", " ", "\\ ", "\t", "\r"]),
)
# A run of stars after plain letters is the one form left out: git 2.39 lets `a**/b` span folders, where
# its manual says that such stars are ordinary ones. The manual is followed.
NOISE = st.text("ab*?[]!^-\\/ .#:", max_size=8).filter(lambda line: "**" not in line)
RULES = st.lists(st.one_of(LINE, LINE, NOISE), min_size=1, max_size=5).map("\n".join)
FILES = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), min_size=3, max_size=20)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=FILES, rules=st.lists(RULES, min_size=1, max_size=4), exclude=st.one_of(st.just(""), RULES))
def test_any_tree_is_walked_as_git_lists_it(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], rules: list[str], exclude: str
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        root = repository(Path(folder))
        (root / ".git" / "info" / "exclude").write_text(exclude)
        for names in files:
            _grow_where_there_is_room(root, names)
        folders = sorted(path for path in root.rglob("*") if path.is_dir() and ".git" not in path.parts)
        for place, text in zip([root, *folders], rules, strict=False):
            (place / ".gitignore").write_text(text, newline="")
        assert walked(root) == listed_by_git(root)


def _grow_where_there_is_room(root: Path, names: Sequence[str]) -> None:
    """A name that is a file already cannot be a folder too; then the file is all there is."""
    at = root
    for name in names[:-1]:
        at = at / name
        if at.is_file():
            return
        at.mkdir(exist_ok=True)
    if not (at / names[-1]).exists():
        (at / names[-1]).touch()


def test_a_root_inside_a_work_tree_obeys_the_folders_above_it(tmp_path: Path) -> None:
    rules: dict[str, str | bytes] = {
        ".gitignore": "*.log\n/a/b/gen\n",
        "a/.gitignore": "b/*.tmp\n!b/x.log\n",
        "a/b/.gitignore": "*.o\n",
        ".git/info/exclude": "a/b/private\n",
    }
    files = empty(
        *(f"a/b/{name}" for name in ("x.log", "y.log", "gen/z", "t.tmp", "o.o", "private", "k/l.py"))
    )
    grown(repository(tmp_path), rules | files)
    root = tmp_path / "a" / "b"
    assert walked(root) == listed_by_git(root) == [".gitignore", "k/l.py", "x.log"]


def test_a_root_that_is_itself_ignored_is_walked_all_the_same(tmp_path: Path) -> None:
    grown(repository(tmp_path), {".gitignore": "build/\n", "build/a.py": ""})
    assert walked(tmp_path / "build") == ["a.py"]


def test_without_a_repository_the_folders_above_have_no_say(tmp_path: Path) -> None:
    grown(tmp_path, {".gitignore": "*.py\n", "x/a.py": "", "x/b.log": "", "x/.gitignore": "*.log\n"})
    assert walked(tmp_path / "x") == [".gitignore", "a.py"]


def test_a_linked_work_tree_obeys_its_repositorys_exclude_file(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    linked = grown(tmp_path / "linked", empty("a.py", "a.private"))
    grown(main, {".git/info/exclude": "*.private\n"})
    assert walked(linked) == listed_by_git(linked) == ["a.py"]
    assert SourceTree(linked).walk(EVERYTHING).skipped == {"ignored": 1, "repository": 1}


@pytest.mark.parametrize(
    "pointer",
    [b"gitdir: \0", b"gitdir: /nowhere", b"gitdir:", b"nonsense", b"gitdir: " + b"x/" * 9000, b"\xff"],
)
def test_a_git_file_that_leads_nowhere_changes_nothing(tmp_path: Path, pointer: bytes) -> None:
    assert walked(grown(tmp_path, {".git": pointer, "a.py": ""})) == ["a.py"]


def test_our_own_ignore_file_has_its_say_after_every_gitignore(tmp_path: Path) -> None:
    root = grown(
        repository(tmp_path),
        {
            ".gitignore": "*.pb.go\nsecret/\n",
            ".contextdignore": "!*.pb.go\n*.md\n!secret/kept.py\n",
            "x/.gitignore": "*.pb.go\n!*.md\n",
            "x/.contextdignore": "!keep.md\n",
        }
        | empty("a.pb.go", "x/b.pb.go", "x/a.md", "x/keep.md", "secret/kept.py"),
    )
    walk = SourceTree(root).walk(Selection(lambda path: "rules" if path.endswith("ignore") else None))
    assert paths(walk) == ["a.pb.go", "x/b.pb.go", "x/keep.md"]
    assert walk.skipped == {"ignored": 2, "repository": 1, "rules": 4}
    assert walk.skipped_folders == {".git": "repository", "secret": "ignored"}


def test_a_link_in_place_of_an_ignore_file_is_not_followed(tmp_path: Path) -> None:
    root = grown(repository(tmp_path / "root"), empty("a.py"))
    grown(tmp_path, {"outside": "*.py\n"})
    (root / ".gitignore").symlink_to(tmp_path / "outside")
    assert walked(root) == ["a.py"]
    assert [path for path in listed_by_git(root) if path != ".gitignore"] == ["a.py"]


def test_an_ignore_file_that_cannot_be_used_is_counted(tmp_path: Path) -> None:
    root = grown(
        tmp_path, {"x/.gitignore": "*.py\n" + "#" * MAX_IGNORE_FILE_BYTES} | empty("x/a.py", "y/b.py")
    )
    os.mkfifo(root / "y" / ".gitignore")
    walk = SourceTree(root).walk(EVERYTHING)
    assert paths(walk) == ["x/.gitignore", "x/a.py", "y/b.py"]
    assert walk.skipped == {"ignore_file": 2, "special": 1}


@pytest.mark.timeout(60)
def test_a_hostile_ignore_file_does_not_hold_up_the_walk(tmp_path: Path) -> None:
    lines = ["*a" * 400 + "b", "**/*a/" * 100 + "b", "[!b]" * 200 + "*b", "?" * 900, "[" * 900, "\\" * 901]
    text = "\n".join([*lines * 20, "?" * 20_000, "*.log"])
    assert len(text) < MAX_IGNORE_FILE_BYTES
    deep = "/".join(["a" * 40] * 20)
    root = grown(tmp_path, {".gitignore": text} | empty(f"{deep}/{'a' * 250}", f"{deep}/x.log"))
    assert walked(root) == [".gitignore", f"{deep}/{'a' * 250}"]


# What is never entered, and what is left out


def test_repositories_vendored_code_and_caches_are_not_entered(tmp_path: Path) -> None:
    reasons = (
        dict.fromkeys([".git", ".hg", ".svn"], "repository")
        | dict.fromkeys("vendor node_modules third_party .venv venv site-packages".split(), "vendor")
        | dict.fromkeys(["bower_components", "Pods"], "vendor")
        | dict.fromkeys("__pycache__ .mypy_cache .ruff_cache .pytest_cache .tox".split(), "caches")
        | dict.fromkeys([".gradle", ".idea", ".vscode"], "caches")
    )
    root = grown(
        tmp_path, empty("src/build/a.py", "src/vendor.py", *(f"src/{name}/a.py" for name in reasons))
    )
    walk = SourceTree(root).walk(EVERYTHING)
    assert paths(walk) == ["src/build/a.py", "src/vendor.py"]
    assert walk.skipped_folders == {f"src/{name}": reason for name, reason in sorted(reasons.items())}
    assert walk.skipped == {"caches": 8, "repository": 3, "vendor": 8}


def test_vendored_code_can_be_asked_for_but_not_what_an_installer_fetched(tmp_path: Path) -> None:
    root = grown(
        tmp_path, empty(*(f"{name}/a.py" for name in "vendor third_party node_modules .venv".split()))
    )
    walk = SourceTree(root).walk(Selection(lambda path: None, include_vendor=True))
    assert paths(walk) == ["third_party/a.py", "vendor/a.py"]
    assert walk.skipped == {"dependencies": 2}
    assert walk.skipped_folders == {".venv": "dependencies", "node_modules": "dependencies"}


def test_a_repository_inside_the_project_is_entered(tmp_path: Path) -> None:
    grown(repository(repository(tmp_path) / "sub"), {"a.py": "", ".gitignore": "*.log\n", "b.log": ""})
    (tmp_path / "module").mkdir()
    grown(tmp_path / "module", {".git": "gitdir: ../.git/modules/module\n", "c.py": ""})
    walk = SourceTree(tmp_path).walk(EVERYTHING)
    assert paths(walk) == ["module/c.py", "sub/.gitignore", "sub/a.py"]
    assert walk.skipped == {"ignored": 1, "repository": 3}


def test_each_file_left_out_is_counted_under_one_reason(tmp_path: Path) -> None:
    root = grown(
        tmp_path,
        {"big.py": "x" * 11, "fits.py": "x" * 10, "empty.py": "", ".gitignore": "*.log\n"}
        | empty("a.log", "docs/x.py", "docs/y.bin", "gen/z.py", "test_a.py", "logo.png"),
    )

    def is_wanted(path: str) -> str | None:
        if not path.endswith(".py"):
            return "unsupported"
        return "tests" if path.startswith("test_") else None

    everything = Selection(is_wanted, max_file_size=10)
    walk = SourceTree(root).walk(everything)
    assert paths(walk) == ["docs/x.py", "empty.py", "fits.py", "gen/z.py"]
    assert list(walk.skipped.items()) == [
        ("ignored", 1),
        ("tests", 1),
        ("too_large", 1),
        ("unsupported", 3),
    ]

    chosen = Selection(is_wanted, include=("docs/**", "*.py"), exclude=("gen", "big.*"), max_file_size=10)
    walk = SourceTree(root).walk(chosen)
    assert paths(walk) == ["docs/x.py", "empty.py", "fits.py"]
    assert walk.skipped == {"excluded": 2, "ignored": 1, "not_included": 2, "tests": 1, "unsupported": 1}


def test_a_glob_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bracket"):
        SourceTree(tmp_path).walk(Selection(lambda path: None, include=("[a",)))


def test_files_come_by_path_with_their_prints(tmp_path: Path) -> None:
    root = grown(tmp_path, {"b/a.py": "12345", "b.py": "", "a/z/y.py": ""})
    tree = SourceTree(root)
    files = tree.walk(EVERYTHING).files
    assert [file.path for file in files] == ["a/z/y.py", "b.py", "b/a.py"]
    about = (root / "b/a.py").stat()
    print = Print(5, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev)
    assert files[2] == FoundFile("b/a.py", print)
    assert tree.stat("b/a.py") == print
    (root / "b/a.py").write_text("54321")
    os.utime(root / "b/a.py", ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    assert tree.stat("b/a.py") != print


def test_a_root_that_is_a_link_is_resolved_once(tmp_path: Path) -> None:
    grown(tmp_path / "real", {"a.py": "one"})
    grown(tmp_path / "other", {"a.py": "two"})
    (tmp_path / "link").symlink_to("real")
    tree = SourceTree(tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("other")
    assert paths(tree.walk(EVERYTHING)) == ["a.py"]
    assert tree.read("a.py", 10) == b"one"


def test_a_root_that_cannot_be_listed_is_an_error_and_not_an_empty_project(tmp_path: Path) -> None:
    grown(tmp_path, {"file": ""})
    with pytest.raises(FileNotFoundError):
        SourceTree(tmp_path / "gone").walk(EVERYTHING)
    with pytest.raises(NotADirectoryError):
        SourceTree(tmp_path / "file").walk(EVERYTHING)


# Trees that mean harm


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return grown(tmp_path / "outside", {"secret.py": "secret", "x/secret.py": "secret"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return grown(tmp_path / "root", {"a.py": "one", "x/b.py": "two", "x/y/c.py": "three"})


def test_no_link_is_followed_wherever_it_leads(root: Path, outside: Path) -> None:
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "folder").symlink_to(outside)
    (root / "inside").symlink_to("x")
    (root / "alias.py").symlink_to("a.py")
    (root / "x" / "loop").symlink_to("..")
    (root / "self").symlink_to("self")
    (root / "nowhere").symlink_to("nothing")
    tree = SourceTree(root)
    walk = tree.walk(EVERYTHING)
    assert paths(walk) == ["a.py", "x/b.py", "x/y/c.py"]
    assert walk.skipped == {"links": 7}
    assert walk.skipped_folders == {}
    for path in ("passwd", "folder/secret.py", "inside/b.py", "alias.py", "x/loop/a.py", "self", "nowhere"):
        assert tree.stat(path) is None
        with pytest.raises(OSError):
            tree.read(path, 1000)


@pytest.mark.parametrize(
    "path",
    ["../outside/secret.py", "x/../../outside/secret.py", "/etc/passwd", "", ".", "..", "x/", "./a.py"],
)
def test_no_path_leads_out_of_the_root(root: Path, outside: Path, path: str) -> None:
    tree = SourceTree(root)
    assert tree.stat(path) is None
    with pytest.raises(FileNotFoundError):
        tree.read(path, 1000)
    with pytest.raises(FileNotFoundError):
        tree.read(str(outside / "secret.py"), 1000)


@pytest.mark.parametrize("path", ["a\0.py", "\udcff", "\ud800", "x" * 300, "x/" * 3000 + "a"])
def test_a_path_that_no_file_can_have_is_gone_like_any_other(root: Path, path: str) -> None:
    assert SourceTree(root).stat(path) is None
    with pytest.raises(OSError):
        SourceTree(root).read(path, 1000)


@pytest.mark.parametrize(("swapped", "path"), [("x", "x/secret.py"), ("x/y", "x/y/secret.py")])
def test_a_folder_swapped_for_a_link_after_the_walk_is_refused(
    root: Path, outside: Path, swapped: str, path: str
) -> None:
    grown(root, {path: "mine"})
    tree = SourceTree(root)
    assert path in paths(tree.walk(EVERYTHING))
    assert tree.read(path, 10) == b"mine"
    shutil.rmtree(root / swapped)
    (root / swapped).symlink_to(outside)
    assert tree.stat(path) is None
    with pytest.raises(OSError):
        tree.read(path, 10)


def test_a_file_swapped_for_a_link_after_the_walk_is_refused(root: Path, outside: Path) -> None:
    tree = SourceTree(root)
    (root / "a.py").unlink()
    (root / "a.py").symlink_to(outside / "secret.py")
    assert tree.stat("a.py") is None
    with pytest.raises(OSError):
        tree.read("a.py", 10)


def test_a_folder_swapped_for_a_link_during_the_walk_is_not_entered(root: Path, outside: Path) -> None:
    def is_wanted(path: str) -> str | None:
        if path == "a.py":
            shutil.rmtree(root / "x")
            (root / "x").symlink_to(outside)
        return None

    walk = SourceTree(root).walk(Selection(is_wanted))
    assert paths(walk) == ["a.py"]
    assert walk.skipped == {}


def test_what_vanishes_during_the_walk_is_passed_over(root: Path) -> None:
    def is_wanted(path: str) -> str | None:
        if path == "a.py":
            (root / "a.py").unlink()
            shutil.rmtree(root / "x")
        return None

    walk = SourceTree(root).walk(Selection(is_wanted))
    assert (walk.files, walk.skipped, walk.skipped_folders) == ([], {}, {})


def test_pipes_and_sockets_are_neither_waited_for_nor_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe.py")
    monkeypatch.chdir(root)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.py")
        tree = SourceTree(root)
        walk = tree.walk(EVERYTHING)
        assert paths(walk) == ["a.py", "x/b.py", "x/y/c.py"]
        assert walk.skipped == {"special": 2}
        for path in ("pipe.py", "socket.py", "x"):
            assert tree.stat(path) is None
            with pytest.raises(OSError, match="not a regular file"):
                tree.read(path, 1000)


def test_a_file_is_read_as_it_is_now_and_only_up_to_a_length(root: Path) -> None:
    tree = SourceTree(root)
    tree.walk(EVERYTHING)
    (root / "a.py").write_text("12345")
    assert tree.read("a.py", 5) == b"12345"
    assert tree.read("a.py", 4) is None
    (root / "a.py").unlink()
    with pytest.raises(FileNotFoundError):
        tree.read("a.py", 5)
    (root / "a.py").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        tree.read("a.py", 5)
    with pytest.raises(OSError):
        tree.read("x/b.py/c", 5)


def test_a_file_swapped_or_grown_while_it_is_opened_is_refused(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open, real_fstat = os.open, os.fstat

    def open_after_a_swap(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "a.py":
            (root / "a.py").unlink()
            (root / "a.py").symlink_to(outside / "secret.py")
        return real_open(path, flags, dir_fd=dir_fd)

    def fstat_before_growth(handle: int) -> os.stat_result:
        about = real_fstat(handle)
        (root / "x" / "b.py").write_text("longer than it was")
        return about

    tree = SourceTree(root)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_after_a_swap)
        with pytest.raises(OSError):
            tree.read("a.py", 10)
    monkeypatch.setattr(os, "fstat", fstat_before_growth)
    assert tree.read("x/b.py", 3) is None


def test_odd_names_are_names_unless_they_are_not_text(root: Path) -> None:
    grown(root, {"line\nbreak.py": "1", " .py": "2", "é/ü.py": "3", "$(id).py": "4"})
    (root / os.fsdecode(b"\xff.py")).touch()
    (root / os.fsdecode(b"f\xff")).mkdir()
    (root / os.fsdecode(b"f\xff") / "lost.py").touch()
    tree = SourceTree(root)
    walk = tree.walk(EVERYTHING)
    assert paths(walk) == [" .py", "$(id).py", "a.py", "line\nbreak.py", "x/b.py", "x/y/c.py", "é/ü.py"]
    assert tree.read("line\nbreak.py", 1) == b"1"
    assert tree.read("é/ü.py", 1) == b"3"
    assert walk.skipped == {"unreadable": 2}
    assert walk.skipped_folders == {"f�": "unreadable"}


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that any user can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user to whom permissions apply: to root they do not."""
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(65534)
    try:
        yield
    finally:
        if privileged:
            os.seteuid(0)


def test_what_may_not_be_read_is_counted_and_never_an_error(public: Path) -> None:
    root = grown(public, empty("a.py", "locked.py", "locked/b.py", "shut/.gitignore", "shut/c.py"))
    for path in ("locked.py", "locked", "shut/.gitignore"):
        (root / path).chmod(0)
    tree = SourceTree(root)
    with without_privileges():
        walk = tree.walk(EVERYTHING)
        with pytest.raises(PermissionError):
            tree.read("locked.py", 10)
        assert tree.stat("locked/b.py") is None
    assert paths(walk) == ["a.py", "shut/c.py"]
    assert walk.skipped == {"ignore_file": 1, "unreadable": 3}
    assert walk.skipped_folders == {"locked": "unreadable"}
    (root / "locked").chmod(0o755)


@pytest.fixture
def bottomless(tmp_path: Path) -> Iterator[Path]:
    """Two thousand folders deep, and so beyond the longest path that a system call takes."""
    root = tmp_path / "bottomless"
    root.mkdir()
    at = os.open(root, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("deep", dir_fd=at)
        inner = os.open("deep", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("a.py", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    yield root
    # Python's own removal descends by recursion, and would fail here.
    subprocess.run(["rm", "-rf", str(root)], check=True)


def test_a_tree_may_be_deeper_than_any_limit(bottomless: Path) -> None:
    (bottomless / ".gitignore").write_text("*.log\n")
    tree = SourceTree(bottomless)
    walk = tree.walk(EVERYTHING)
    path = "deep/" * 2000 + "a.py"
    assert paths(walk) == [".gitignore", path]
    assert walk.skipped == {}
    assert tree.stat(path) == walk.files[1].print
    assert tree.read(path, 10) == b""

"""SKILL.md folders: what is read and what is refused, and that nothing is lost on the way out and in."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, BadLength, BadPath, BadText, Conflict, Invalid
from contextd.services.front_matter import is_plain_key, read, typed, write
from contextd.services.skill_folders import read_folder, skill_folders, write_folder
from contextd.services.skill_imports import SkillImports
from contextd.services.skill_md import from_markdown, front_matter, slug, to_markdown
from contextd.services.skill_records import Change, Skill
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import KEYWORD_ONLY, command, environment

HERE = Caller(session="tests")


# --- front matter ---------------------------------------------------------------------


def fields(*lines: str) -> Any:
    return typed(read("\n".join(["---", *lines, "---", ""]))[0])


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["k: plain words here"], "plain words here"),
        (["k: a # comment"], "a"),
        (["k: a#b"], "a#b"),
        (["k: http://x.y/z?a=b"], "http://x.y/z?a=b"),
        (["k: it's fine"], "it's fine"),
        (["k: 'it''s: quoted' # comment"], "it's: quoted"),
        ([r'k: "tab\t, quote \", \x41 \u00e9 \U0001F680"'], 'tab\t, quote ", A é 🚀'),
        (["k: one", "  two", "  three"], "one two three"),
        (["k: |", "  a", "   b", "", "  c"], "a\n b\n\nc\n"),
        (["k: |-", "  a", ""], "a"),
        (["k: |+", "  a", "", ""], "a\n\n\n"),
        (["k: |2", "    a", "  b"], "  a\nb\n"),
        (["k: >", "  one", "  two", "", "  three", "    four", "  five"], "one two\nthree\n  four\nfive\n"),
        (["k: >-", "  one", "  two"], "one two"),
        (["k: |", "other: x"], ""),
        (["k:"], None),
        (["k: # nothing"], None),
        (["k: ~"], None),
        (["k: True"], True),
        (["k: 'true'"], "true"),
        (["k: tRUE"], "tRUE"),
        (["k: 12"], 12),
        (["k: -1.5e3"], -1500.0),
        (["k: 1e999"], "1e999"),
        (["k: 1.2.3"], "1.2.3"),
        (["k: 2026-01-02"], "2026-01-02"),
        (["k: [a, 'b, c', \"d\", 3]"], ["a", "b, c", "d", 3]),
        (["k: [a, b,]"], ["a", "b"]),
        (["k: []"], []),
        (["k:", "  - a", "  - 'b: c'", "  - [1, 2]"], ["a", "b: c", [1, 2]]),
        (["k:", "- a", "- b"], ["a", "b"]),
        (["k:", "  x: 1", "", "  # comment", "  'y z': two"], {"x": 1, "y z": "two"}),
        (["k:", "  x:", "    y: deep"], {"x": {"y": "deep"}}),
        (['k: {"a": [1, {"b": null}]}'], {"a": [1, {"b": None}]}),
        (["k: " + "[" * 64 + "]" * 64], json.loads("[" * 64 + "]" * 64)),
    ],
)
def test_what_such_files_use_is_read_as_yaml_has_it(lines: list[str], value: Any) -> None:
    assert fields(*lines)["k"] == value
    assert fields("before: 1", *lines, "after: 2").items() >= {"before": 1, "after": 2}.items()


@pytest.mark.parametrize(
    ("line", "lines", "says"),
    [
        (2, ["no colon"], "'key: value'"),
        (3, ["k: a", "k: b"], "twice"),
        (2, ["k: a: b"], "colon"),
        (2, ["k: &anchor x"], "sign of YAML's"),
        (2, ["k: *anchor"], "sign of YAML's"),
        (2, ["k: !tag x"], "sign of YAML's"),
        (2, ["k: - x"], "sign of YAML's"),
        (2, ["k: 'open"], "quotes"),
        (2, ['k: "a" b'], "quotes"),
        (2, [r'k: "\q"'], "escape is unknown"),
        (2, [r'k: "\ud800"'], "no character"),
        (2, ["k: [a, b"], "not JSON"),
        (2, ["k: {a: b}"], "not JSON"),
        (2, ["k: [NaN"], "not JSON"),
        (2, ["k: [a,, b]"], "empty"),
        (2, ["k: [a][b]"], "more than words"),
        (2, ["k: " + "[" * 100_000], "too deeply"),
        (2, ["k: " + "[" * 65 + "]" * 65], "too deeply"),
        (2, ["k: " + '{"a":' * 700 + "1" + "}" * 700], "too deeply"),
        (3, ["k:", "  - " + "[" * 700 + "]" * 700], "too deeply"),
        (3, ["k: 1", "   x: 2"], "colon"),
        (3, ["k: 'a'", "   x: 2"], "indented too far"),
        (3, ["k:", "\tx: 2"], "spaces"),
        (4, ["k:", "  - a", "    - b"], "indented too far"),
        (3, ["k:", "  - a: b"], "colon"),
        (4, ["a: 1", "", "- item"], "'key: value'"),
        (11, [*(" " * depth + "k:" for depth in range(9)), " " * 9 + "x: 1"], "too deeply"),
    ],
)
def test_anything_else_is_refused_with_its_line(line: int, lines: list[str], says: str) -> None:
    with pytest.raises(BadFormat, match=says) as refused:
        fields(*lines)
    assert f"line {line} of SKILL.md" in refused.value.problem
    assert refused.value.field == "SKILL.md"


@pytest.mark.parametrize(
    ("text", "says"), [("# no front matter", "no front matter"), ("---\nname: x\n", "no end")]
)
def test_a_file_without_front_matter_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadFormat, match=says):
        read(text)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = TEXT.filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True).filter(is_plain_key)
OURS = st.sampled_from(["files", "frontmatter", "contextd", "title", "version", "tags", "license", "true"])
QUICK = settings(max_examples=150, deadline=None)


@QUICK
@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=3), max_size=4), TEXT)
def test_whatever_front_matter_is_written_is_read_again(values: dict[str, Any], body: str) -> None:
    found, after = read(write(values) + body)
    assert (typed(found), after) == (values, body)


@QUICK
@given(TEXT)
def test_no_text_makes_the_reader_fail_in_another_way(text: str) -> None:
    for source in (f"---\n{text}\n---\n", f"---\nk: {text}\n---\n", f"---\nk:\n  {text}\n---\n"):
        try:
            typed(read(source)[0])
        except BadFormat:
            continue


# --- a skill and its file -------------------------------------------------------------

LINES = NAMES.filter(lambda text: not any(category(char) in ("Cc", "Zl", "Zp") for char in text))
SKILLS = st.builds(
    Skill,
    name=LINES,
    description=NAMES,
    content=TEXT,
    version=st.sampled_from(["1.0.0", "2.1.0-rc.1+build"]),
    author=LINES,
    category=LINES,
    prerequisites=st.lists(NAMES, max_size=3).map(tuple),
    expected_outcome=TEXT,
    tags=st.lists(NAMES, max_size=3).map(tuple),
    metadata=st.dictionaries(
        OURS | TEXT, JSON | st.lists(TEXT, max_size=3) | st.dictionaries(OURS | KEYS, JSON), max_size=4
    ),
)


def written(skill: Skill) -> str:
    return to_markdown(front_matter(skill, slug(skill.name, "skill-shared-0123456789")), skill.content)


def test_a_name_in_a_file_cannot_forge_lines_in_a_list() -> None:
    text = '---\nname: "con\\nevil"\ndescription: "What it does"\n---\nDo it.\n'
    assert from_markdown(text, "", "ana").name == "con evil"


@QUICK
@given(SKILLS)
def test_nothing_of_a_skill_is_lost_in_its_file(skill: Skill) -> None:
    assert from_markdown(written(skill), "", "") == skill


@given(TEXT)
def test_a_name_becomes_one_that_the_format_allows(name: str) -> None:
    made = slug(name, "skill-shared-0123456789")
    assert 1 <= len(made) <= 64
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not made.startswith("-")
    assert not made.endswith("-")
    assert "--" not in made


def test_a_file_of_another_maker_keeps_what_it_says() -> None:
    text = "\n".join(
        [
            "---",
            "name: pdf-processing",
            "description: >-",
            "  Fill forms",
            "  and merge files",
            "license: Apache-2.0",
            "allowed-tools: Read, Bash(python:*)",
            "disable-model-invocation: true",
            "tags: [pdf, forms]",
            "metadata:",
            "  author: acme",
            "  version: 1.0",
            "  short: yes and no",
            "---",
            "# PDF",
            "",
        ]
    )
    skill = from_markdown(text, "folder", "somebody")
    assert skill.name == "pdf-processing"
    assert skill.description == "Fill forms and merge files"
    assert (skill.version, skill.author, skill.category) == ("1.0.0", "acme", "")
    assert skill.tags == ("pdf", "forms")
    assert skill.content == "# PDF"
    assert skill.metadata == {
        "short": "yes and no",
        "frontmatter": {
            "license": "Apache-2.0",
            "allowed-tools": "Read, Bash(python:*)",
            "disable-model-invocation": True,
        },
    }
    again = written(skill)
    assert "\nlicense: " in again
    assert "\ndisable-model-invocation: true\n" in again
    assert from_markdown(again, "", "") == skill


def test_metadata_may_be_json_with_numbers_in_it() -> None:
    text = '---\nname: a\ndescription: b\nmetadata: {"version": 2, "author": 7, "tags": ["x", 1]}\n---\nc'
    skill = from_markdown(text, "", "")
    assert (skill.version, skill.author, skill.tags) == ("2.0.0", "7", ("x", "1"))


def test_lines_that_end_as_on_windows_are_the_same_skill() -> None:
    text = "---\nname: a\ndescription: b\n---\n\n# Body\n\nmore\n"
    assert from_markdown("\ufeff" + text.replace("\n", "\r\n"), "", "x") == from_markdown(text, "", "x")


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("name: a", "description is missing"),
        ("name: [a]\ndescription: b", "name in the front matter"),
        ("description: b\nmetadata: text", "metadata in the front matter"),
    ],
)
def test_a_file_that_says_too_little_or_the_wrong_thing_is_refused(front: str, says: str) -> None:
    with pytest.raises(BadFormat, match=says):
        from_markdown(f"---\n{front}\n---\nbody", "folder", "x")


# --- folders --------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return skill_folder(tmp_path / "skills" / "tidy-up")


def skill_folder(folder: Path, body: str = "# Tidy", front: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {folder.name}\ndescription: Tidy a folder\n{front}---\n\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def test_other_files_are_kept_by_their_paths_alone(folder: Path) -> None:
    for name in ("scripts/run.sh", "references/deep/a.md", ".git/config", ".hidden"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("rm -rf /")
    skill = read_folder(folder, "me")
    assert skill.metadata == {"files": ["references/deep/a.md", "scripts/run.sh"]}
    assert "rm -rf" not in str(skill)
    assert from_markdown(written(skill), "", "") == skill


def test_folders_are_found_by_themselves_their_file_or_their_parent(folder: Path) -> None:
    other = skill_folder(folder.parent / "another")
    assert skill_folders(folder) == [folder]
    assert skill_folders(folder / "SKILL.md") == [folder]
    assert skill_folders(folder.parent) == [other, folder]
    with pytest.raises(BadPath, match=r"no SKILL\.md"):
        skill_folders(folder.parent.parent)


def _link_to_the_file(folder: Path) -> None:
    (folder / "SKILL.md").rename(folder.parent / "elsewhere.md")
    (folder / "SKILL.md").symlink_to(folder.parent / "elsewhere.md")


def _pipe(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")


def _large_file(folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(17 * 2**20)


@pytest.mark.parametrize(
    ("spoil", "fault", "says"),
    [
        (_link_to_the_file, BadPath, "cannot be read"),
        (_pipe, BadPath, "not a file"),
        (lambda folder: (folder / "SKILL.md").unlink(), BadPath, "cannot be read"),
        (lambda folder: (folder / "out").symlink_to("/etc/passwd"), BadPath, "out is a link"),
        (lambda folder: (folder / "out").symlink_to("/etc"), BadPath, "out is a link"),
        (lambda folder: os.mkfifo(folder / "pipe"), BadPath, "pipe is not a file"),
        (
            lambda folder: (folder / "SKILL.md").write_bytes(b"---\n" + b"x" * 400_000),
            BadLength,
            "too long",
        ),
        (lambda folder: (folder / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n"), BadText, "UTF-8"),
        (_large_file, BadLength, "too large"),
        (lambda folder: [(folder / f"{n}").touch() for n in range(513)], BadLength, "too many"),
        (lambda folder: (folder / os.fsdecode(b"\xff")).touch(), BadText, "name is not UTF-8"),
    ],
)
def test_a_suspicious_folder_is_refused(folder: Path, spoil: Any, fault: type[Invalid], says: str) -> None:
    spoil(folder)
    with pytest.raises(fault, match=says):
        read_folder(folder, "me")


def test_a_folder_behind_a_link_is_neither_read_nor_written(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(BadPath, match="link"):
        read_folder(link, "me")
    with pytest.raises(BadPath, match="link"):
        write_folder(link, "text")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "SKILL.md").symlink_to(folder / "SKILL.md")
    with pytest.raises(BadPath, match="link"):
        write_folder(tmp_path / "new", "text")


def test_a_file_is_written_whole_and_only_when_it_changed(tmp_path: Path) -> None:
    assert write_folder(tmp_path / "a" / "b", "text") is True
    assert write_folder(tmp_path / "a" / "b", "text") is False
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["SKILL.md"]
    with pytest.raises(Conflict, match="cannot be written"):
        write_folder(tmp_path / "a" / "b" / "SKILL.md", "text")


# --- in and out of the house ----------------------------------------------------------


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    settings = Settings(data_dir=tmp_path / "data", rate_limit=RateLimit(on=False))
    async with open_house(build(settings)) as opened:
        yield opened


SKILL = Skill("a skill", "what for", "first", "", "me", "general", metadata={"k": [1]})


async def taken(house: House, **changes: Any) -> tuple[str, str]:
    from dataclasses import replace

    done = await SkillImports(house.skills).take_in(replace(SKILL, **changes), HERE)
    return done.standing, done.kept.skill.version


@pytest.mark.anyio
async def test_what_is_known_is_left_and_what_changed_is_a_version(house: House) -> None:
    assert await taken(house) == ("new", "1.0.0")
    assert await taken(house) == ("unchanged", "1.0.0")
    assert await taken(house, version="1.0.0") == ("unchanged", "1.0.0")
    assert await taken(house, content="second") == ("changed", "1.0.1")
    assert await taken(house, content="second", version="0.9.0") == ("unchanged", "1.0.1")
    assert await taken(house, content="third", version="1.0.0") == ("changed", "1.0.2")
    assert await taken(house, content="fourth", version="2.0.0") == ("changed", "2.0.0")
    assert await taken(house, content="fourth", version="2.1.0") == ("changed", "2.1.0")
    assert await taken(house, name="A  SKILL", content="fourth") == ("changed", "2.1.1")
    assert await taken(house, name="A  SKILL", content="fourth", category="") == ("unchanged", "2.1.1")


@pytest.mark.anyio
async def test_a_file_that_was_overtaken_does_not_bring_the_past_back(house: House) -> None:
    await taken(house, version="1.0.0")
    known = await house.skills.named(SKILL, HERE)
    assert known is not None
    await house.skills.update(known.id, Change(content="by an agent"), HERE)
    assert await taken(house, version="1.0.0") == ("older", "1.0.1")
    assert (await house.skills.get(known.id, HERE)).skill.content == "by an agent"


@pytest.mark.anyio
async def test_a_secret_in_a_file_does_not_make_each_import_a_change(house: House) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    assert await taken(house, content=f"TOKEN={secret}") == ("new", "1.0.0")
    assert await taken(house, content=f"TOKEN={secret}") == ("unchanged", "1.0.0")


@pytest.mark.anyio
async def test_a_version_that_is_none_is_told(house: House) -> None:
    with pytest.raises(BadFormat, match="semantic version"):
        await taken(house, version="latest")


def contextd(data_dir: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*map(str, arguments)),
        env=environment(data_dir, **KEYWORD_ONLY),
        cwd=data_dir,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_folders_go_in_and_come_out_the_same(folder: Path, tmp_path: Path) -> None:
    skill_folder(folder.parent / "other", body="# Other", front="metadata:\n  author: acme\n")
    (folder / "run.sh").write_text("echo")
    data = tmp_path / "data"
    data.mkdir()
    first = contextd(data, "skill", "import", folder.parent, "--author", "me", "--category", "tidying")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == ["created    other 1.0.0", "created    tidy-up 1.0.0"]
    exported = contextd(data, "skill", "export")
    assert exported.stdout.count("written") == 2
    out = data / ".claude" / "skills"
    assert "run.sh" in (out / "tidy-up" / "SKILL.md").read_text()
    again = contextd(data, "skill", "import", out, folder.parent / "other" / "SKILL.md")
    assert [line.split()[0] for line in again.stdout.splitlines()] == ["unchanged"] * 3
    shown = contextd(data, "skill", "list").stdout
    assert "1.0.0      tidying        tidy-up  (used 0)" in shown


def test_the_commands_of_the_page_work_as_written(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "skills.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    skill_folder(tmp_path / ".claude" / "skills" / "tidy-up")
    for line in block.splitlines():
        ran = contextd(tmp_path, *shlex.split(line)[1:])
        assert (ran.returncode, ran.stderr) == (0, "")
    assert "author: platform team" in (tmp_path / "shared-skills" / "tidy-up" / "SKILL.md").read_text()


def test_an_export_overwrites_only_what_is_kept(folder: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    contextd(data, "skill", "import", folder)
    assert contextd(data, "skill", "export", "--dir", out, "tidy-up").stdout.startswith("written")
    target = out / "tidy-up" / "SKILL.md"
    target.write_text(target.read_text().replace("# Tidy", "# Edited by hand"))
    refused = contextd(data, "skill", "export", "--dir", out)
    assert refused.returncode == 1
    assert "import it first" in refused.stderr
    assert "Edited by hand" in target.read_text()
    assert contextd(data, "skill", "import", out).stdout == "updated    tidy-up 1.0.1\n"
    assert contextd(data, "skill", "export", "--dir", out).stdout == "written    tidy-up 1.0.1\n"
    target.write_text("not a skill")
    assert contextd(data, "skill", "export", "--dir", out, "--force").returncode == 0
    assert "Edited by hand" in target.read_text()


def test_mistakes_are_told_folder_by_folder_and_the_rest_goes_on(folder: Path, tmp_path: Path) -> None:
    skill_folder(folder.parent / "bad", front="tags: [\n")
    skill_folder(folder.parent / "long", body="x" * 50_001)
    for name, levels in (("deep", 700), ("deeper", 5_000)):
        skill_folder(folder.parent / name, front=f"extra: {'[' * levels}{']' * levels}\n")
    inner = '{"a":' * 700 + "1" + "}" * 700
    skill_folder(folder.parent / "within", front=f"metadata:\n  contextd: '{inner}'\n")
    data = tmp_path / "data"
    data.mkdir()
    ran = contextd(data, "skill", "import", folder.parent)
    assert ran.returncode == 2
    assert ran.stdout == "created    tidy-up 1.0.0\n"
    assert "bad: line 4 of SKILL.md: this is not JSON on one line" in ran.stderr
    assert "long: content is too long" in ran.stderr
    for name in ("deep", "deeper"):
        assert f"{name}: line 4 of SKILL.md: the JSON is nested too deeply" in ran.stderr
    assert "within: contextd" in ran.stderr
    assert "at most 64 levels" in ran.stderr
    assert "Traceback" not in ran.stderr
    nothing = contextd(data, "skill", "export", "nope")
    assert nothing.returncode == 1
    assert "contextd skill list" in nothing.stderr
    assert contextd(data, "skill", "import", tmp_path / "nowhere").returncode == 2
    (tmp_path / "empty").mkdir()
    assert "no SKILL.md here" in contextd(data, "skill", "import", tmp_path / "empty").stderr

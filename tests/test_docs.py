"""A document's claim is executed: generated pages are current, links lead somewhere, settings are told."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from contextd.edge.reference import pages
from contextd.settings import load_settings
from running import command, environment

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
WRITTEN = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize(("name", "text"), pages().items())
def test_a_generated_page_is_current(name: str, text: str) -> None:
    """`make docs` writes them."""
    assert (DOCS / name).read_text(encoding="utf-8") == text


def test_no_page_outlives_its_tool() -> None:
    assert {path.name for path in (DOCS / "tools").glob("*.md")} == {
        name.removeprefix("tools/") for name in pages() if name.startswith("tools/")
    }


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.name)
def test_every_link_between_our_pages_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_is_short_and_names_both_commands() -> None:
    assert len(README.splitlines()) <= 130
    assert "make serve" in README
    assert "make test" in README


def test_what_the_readme_calls_works_as_written(tmp_path: Path) -> None:
    """Each block of the README that has a `contextd call`, run by a shell."""
    blocks = re.findall(r"```sh\n(.+?)```", README, re.DOTALL)
    blocks = [block for block in blocks if "contextd call" in block]
    assert len(blocks) > 1
    data, project = tmp_path / "data", tmp_path / "project"
    project.mkdir()
    for block in blocks:
        ran = subprocess.run(
            ["bash", "-euc", f'contextd() {{ {" ".join(command())} "$@"; }}\n{block}'],
            env=environment(data),
            cwd=project,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, f"{block}\n{ran.stderr}"


def test_every_setting_is_on_its_page() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert all(f"`{source.env}`" in page for source in load_settings({}).sources)


def test_pins_are_exact_and_name_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.!+]+", line) for line in lines)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {re.split(r"[<>=;\[ ]", need)[0].lower() for need in project["dependencies"]}
    assert wanted <= pinned


def test_the_plugin_of_its_page_works_as_written(tmp_path: Path) -> None:
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "greetings.py").write_text(code)
    ran = subprocess.run(
        command("call", "greet", "name=Ada"),
        env=environment(tmp_path, CONTEXTD_PLUGINS="greetings", PYTHONPATH=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Hello, Ada!" in ran.stdout

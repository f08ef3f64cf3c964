"""The policies of projects: read from a file that no project can write, or refused with what to write."""

import os
from pathlib import Path

import pytest

from contextd.adapters.sandbox import PolicyFile
from contextd.domain.errors import Misconfigured
from contextd.domain.sandboxing import PROTECTED, Limits, Policy

SHOP = "/srv/shop"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policies.toml"


def written(file: Path, text: str, mode: int = 0o600) -> PolicyFile:
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return PolicyFile(file)


def test_without_a_file_every_project_has_the_built_in_policy(file: Path) -> None:
    policies = PolicyFile(file)
    assert policies.policy(SHOP) == Policy()
    assert not policies.names(SHOP)
    assert "built in" in policies.origin(SHOP)


def test_a_project_is_laid_over_the_default_and_that_over_the_built_in_one(file: Path) -> None:
    policies = written(
        file,
        f"""
        [default]
        readable = ["/opt/go"]
        [default.limits]
        memory_mb = 1024
        [projects."{SHOP}"]
        hosts = ["pypi.org", "*.pythonhosted.org"]
        [projects."{SHOP}".limits]
        timeout_s = 600.5
        """,
    )
    assert policies.policy("/srv/other") == Policy(readable=("/opt/go",), limits=Limits(memory_mb=1024))
    own = policies.policy(SHOP)
    assert own.hosts == ("pypi.org", "*.pythonhosted.org")
    assert own.readable == ("/opt/go",)
    assert own.limits == Limits(memory_mb=1024, timeout_s=600.5)
    assert own.protected == PROTECTED
    assert policies.names(SHOP)
    assert not policies.names("/srv/other")
    assert SHOP in policies.origin(SHOP)
    assert "[default]" in policies.origin("/srv/other")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[defaults]\n", "use default, projects"),
        ("[default]\nwriteable = ['.']\n", "use writable"),
        ("[default]\nhosts = 'pypi.org'\n", "write hosts ="),
        ("[default]\nhosts = [1]\n", "write hosts ="),
        ("[default]\nreadable = ['/opt/../root']\n", "without '..'"),
        ("[default.limits]\nmemory = 5\n", "use timeout_s"),
        ("[default.limits]\nmemory_mb = 1.5\n", "write memory_mb ="),
        ("[default.limits]\nmemory_mb = 0\n", "write memory_mb ="),
        ("[default.limits]\nmemory_mb = true\n", "write memory_mb ="),
        ("[default.limits]\ntimeout_s = inf\n", "write timeout_s ="),
        ("default = 1\n", "write [default]"),
        ('[projects."shop"]\n', 'write [projects."/home/me/project"]'),
        ("[projects]\n'/srv/a' = 3\n", "table"),
        ("[default\n", "mend or remove it"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write(file: Path, text: str, says: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        written(file, text).policy(SHOP)
    assert says in raised.value.message


def test_a_change_is_followed_at_once(file: Path) -> None:
    policies = written(file, "[default]\nhosts = ['a.org']\n")
    assert policies.policy(SHOP).hosts == ("a.org",)
    written(file, "[default]\nhosts = ['bb.org']\n")
    assert policies.policy(SHOP).hosts == ("bb.org",)
    file.unlink()
    assert policies.policy(SHOP).hosts == ()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    with pytest.raises(Misconfigured, match="chmod 600"):
        written(file, "", mode).policy(SHOP)


def test_a_file_inside_what_the_project_may_write_is_refused(file: Path) -> None:
    """Commands could widen their own policy."""
    policies = written(file, "")
    with pytest.raises(Misconfigured, match="CONTEXTD_POLICIES"):
        policies.policy(os.path.realpath(file.parent))
    assert policies.policy(SHOP) == Policy()


def test_a_project_is_found_by_where_a_link_leads(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    policies = written(file, f'[projects."{tmp_path}/link"]\nhosts = ["a.org"]\n')
    assert policies.policy(os.path.realpath(real)).hosts == ("a.org",)

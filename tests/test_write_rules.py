"""Which files may be written: inside of what is writable, outside of what is protected."""

import pytest

from contextd.domain.errors import ProtectedPath
from contextd.domain.sandboxing import PROTECTED, Policy
from contextd.domain.write_rules import require_writable

SHOP = "/home/dev/shop"
OWN = Policy(
    writable=("src", f"{SHOP}/out"), protected=(*PROTECTED, "src/generated", f"{SHOP}/out/x", "out/deep/y")
)


@pytest.mark.parametrize("path", ["src/a.py", "src/deep/generated/a.py", "out/report.txt", "out/xy"])
def test_what_the_policy_names_may_be_written(path: str) -> None:
    require_writable(OWN, SHOP, path)


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "srcs/a.py", "src/generated/a.py", "out/x", "out/x/y", "out/deep"),
        *("src/.git/hooks/update", "src/.Claude/x"),
    ],
)
def test_what_is_outside_or_protected_may_not(path: str) -> None:
    with pytest.raises(ProtectedPath, match="policy"):
        require_writable(OWN, SHOP, path)


def test_nothing_is_writable_without_a_path_that_is() -> None:
    with pytest.raises(ProtectedPath):
        require_writable(Policy(writable=()), SHOP, "src/a.py")


@pytest.mark.parametrize("path", [".github/ci.yml", ".gitignore", "x.git/config", "claude/x", "config"])
def test_names_that_only_look_alike_are_not_protected(path: str) -> None:
    require_writable(Policy(), SHOP, path)

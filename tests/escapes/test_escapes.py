"""What works outside does not work inside: every attack, on each rung, as root and as an ordinary user."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from escapes.attempts import Sandbox, attempt
from escapes.case import Case
from escapes.ground import Ground, User
from escapes.ours import RUNGS, ours
from escapes.suite import CASES, Verdict, judge, users

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are of Linux alone")

_OTHER: Final = os.environ.get("CONTEXTD_ESCAPES_COMMAND", "")
"""Another sandbox to be tried in the place of ours."""
PLACES: Final = ("another",) if _OTHER else RUNGS

_NESTED: Final = "a clone in a subfolder is everyday work, and looking through the whole tree is not"
_KILLED: Final = "what was not there is looked at afterwards, and there is no afterwards"
_PATHS: Final = "Landlock knows no right for this, and hides no names"
KNOWN_OPEN: Final[dict[tuple[str, str], str]] = {
    ("makes a repository in a folder of the project", "bubblewrap"): _NESTED,
    ("makes a repository in a folder of the project", "landlock"): _NESTED,
    ("makes .mcp.json, and the sandbox is killed", "bubblewrap"): _KILLED,
    ("makes .mcp.json, and the sandbox is killed", "landlock"): _KILLED,
    ("reads the arguments of others", "landlock"): "programs need /proc, and there is but one",
    ("learns what is there outside", "landlock"): _PATHS,
    ("changes the rights of a file outside", "landlock"): _PATHS,
    ("changes the times of a file outside", "landlock"): _PATHS,
    ("watches a folder outside (inotify)", "landlock"): _PATHS,
}
"""Attack and rung, and why it is not stopped."""
OF_GROUPS: Final = ("takes 6 GB of memory in six processes", "takes 6 GB of memory that can be shared")
"""Held by control groups, which an ordinary user has only where one was given to them."""

_HARMLESS: Final = Case("says hello", "files", "echo ESCAPED")


Find = Callable[[str, User, Case], Sandbox]


@pytest.fixture(scope="module")
def sandbox_of() -> Iterator[Find]:
    if _OTHER:
        yield lambda place, user, case: Sandbox("another", tuple(shlex.split(_OTHER)))
        return
    with ours() as found:
        yield found.sandbox


@cache
def _unavailable(find: Find, place: str, user: User) -> str:
    """Why this machine does not have it for this user, in the sandbox's own words; empty where it has."""
    tried = attempt(_HARMLESS, find(place, user, _HARMLESS), user)
    if tried.ran and tried.worked:
        return ""
    assert "SBX_001" in tried.said, (
        f"the sandbox did not run a command, and not for want of it: {tried.said}"
    )
    return tried.said


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("user", [*users()], ids=lambda user: user.name.replace(" ", "-"))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_what_works_outside_fails_inside(
    case: Case, user: User, place: str, sandbox_of: Find, request: pytest.FixtureRequest
) -> None:
    if missing := _unavailable(sandbox_of, place, user):
        pytest.skip(f"no {place} as {user.name}: {missing}")
    if reason := KNOWN_OPEN.get((case.name, place)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    verdict = judge(case, sandbox_of(place, user, case), user)
    if verdict.word == "open" and case.name in OF_GROUPS and (user.uid != 0 or place == "landlock"):
        pytest.xfail("no control group to be had: each process is limited alone")
    if verdict.word == "not applicable":
        pytest.skip(verdict.reason)
    assert verdict.word == "held", verdict


def test_a_sandbox_that_lets_all_through_is_seen() -> None:
    through = Sandbox("none", ("env",))
    reads = next(case for case in CASES if case.name == "reads a private key in HOME")
    assert judge(reads, through, User.current()) == Verdict("open")


def test_a_sandbox_that_runs_nothing_is_not_taken_for_a_safe_one() -> None:
    nothing = Sandbox("nothing", ("false",))
    assert judge(CASES[0], nothing, User.current()).word == "refused"


def test_every_attack_is_named_once() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_ground_leaves_nothing_behind() -> None:
    with Ground(User.current()) as ground:
        made = [
            ground.root,
            Path(ground.shared_file),
            Path(ground.temporary_file),
            Path(f"/proc/{ground.victim}"),
        ]
        assert all(path.exists() for path in made)
    assert not any(path.exists() for path in made)


def test_the_suite_runs_by_itself_and_prints_a_table() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "escapes", "--only", "private key", "--sandbox", "none=env"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "reads a private key in HOME" in ran.stdout
    assert "open" in ran.stdout

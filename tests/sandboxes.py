"""Every rung of the sandbox and everyone who may stand on it: the contract holds for all of them."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import sandbox_driver
from contextd.domain.errors import SandboxUnavailable
from contextd.domain.sandboxing import Job, Policy
from sandbox_driver import Ran

NOBODY = 60_000 + os.getpid() % 5_000
"""An ordinary user of this run's own: the kernel counts the processes of a user together."""
SECRET = "canary-7f3a91"
IS_ROOT = os.geteuid() == 0
_SOURCES = Path(__file__).parent.parent / "src"
_PACKAGES = os.pathsep.join([str(_SOURCES), *(path for path in sys.path if path.endswith("-packages"))])
"""Where the system has no bubblewrap, ours is the one that came as a package."""
_SYSTEM_PYTHON = "/usr/bin/python3"

_AS_ROOT = ("bubblewrap as root", "bubblewrap as root for a user", "landlock as root for a user")
STANDS = (*(_AS_ROOT if IS_ROOT else ()), "bubblewrap as a user", "landlock as a user")


@dataclass(frozen=True)
class Ground:
    """A project, and around it what is none of its business."""

    stand: str
    project: Path
    outside: Path
    own: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)

    @property
    def level(self) -> str:
        return self.stand.split()[0]

    def job(self, command: str, timeout_s: float = 20.0, **more: object) -> Job:
        return Job(command, str(self.project), str(self.project), timeout_s, **more)  # type: ignore[arg-type]  # as given

    def run(
        self,
        command: str,
        policy: Policy | None = None,
        *,
        timeout_s: float = 20.0,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Ran:
        job = self.job(command, timeout_s, env=dict(env or {}), stdin=stdin)
        if self.stand.endswith("as a user") and IS_ROOT:
            return self._as_user(job, policy or self.policy)
        return asyncio.run(sandbox_driver.ran(self.level, job, policy or self.policy, self.own))

    def _as_user(self, job: Job, policy: Policy) -> Ran:
        """A daemon that is an ordinary user: a process that has given up being root."""
        done = subprocess.run(
            [_SYSTEM_PYTHON, str(Path(__file__).parent / "sandbox_driver.py")],
            input=sandbox_driver.asked(self.level, job, policy, self.own),
            env={"PYTHONPATH": _PACKAGES, "CONTEXTD_SECRET": SECRET, "PYTHONDONTWRITEBYTECODE": "1"},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise SandboxUnavailable(done.stderr)
        return sandbox_driver.answered(done.stdout)

    def give_to_owner(self) -> None:
        """What the test put into the project is as its owner would have it."""
        if IS_ROOT and not self.stand.endswith("as root"):
            for path in (self.project, *self.project.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def ground_at(stand: str, place: Path) -> Ground:
    ground = Ground(stand, place / "project", place / "outside")
    ground.project.mkdir()
    ground.outside.mkdir(mode=0o777)
    ground.outside.chmod(0o777)
    secret = ground.outside / "secret"
    secret.write_text(SECRET, encoding="ascii")
    secret.chmod(0o666)
    ground.give_to_owner()
    return ground


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can get to, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="contextd-ground-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(os.path.realpath(folder))


@pytest.fixture(params=STANDS)
def ground(request: pytest.FixtureRequest, place: Path) -> Ground:
    return ground_at(request.param, place)


def running(marker: str) -> list[int]:
    """Processes that have this in their command line."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(process.name))
    return found

"""Packages from npm, each in a folder of its own: one that cannot be installed skips its own tests only."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSIONS = Path(__file__).with_name("package.json")
_INSTALL_S = 300


def installed(package: str) -> Path:
    """The package's `node_modules`, installed on first use; skips the test where that cannot be done.

    `CONTEXTD_TEST_NODE` names the folder to keep packages in from run to run.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on PATH")
    folder = _cache() / f"{package.replace('/', '+')}@{version(package)}"
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / ".lock"):
        if not (folder / ".installed").exists():
            _install(npm, package, version(package), folder)
            (folder / ".installed").touch()
    return folder / "node_modules"


def version(package: str) -> str:
    return str(json.loads(_VERSIONS.read_text())["dependencies"][package])


def environment(home: Path, **more: str) -> dict[str, str]:
    """A client's own home and nothing of the developer's; Node.js is the version that all of them take."""
    node = installed("node") / "node" / "bin"
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "NO_COLOR": "1", **more}


def _cache() -> Path:
    chosen = os.environ.get("CONTEXTD_TEST_NODE")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / "contextd-test-node"


def _install(npm: str, package: str, version: str, folder: Path) -> None:
    # Some keep their binary in a package of its own and put it in place by an install script.
    wanted = {"private": True, "dependencies": {package: version}, "allowScripts": {package: True}}
    (folder / "package.json").write_text(json.dumps(wanted))
    quietly = ["--package-lock=false", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            [npm, "install", *quietly],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm could not install {package}@{version} within {_INSTALL_S} s")
    if done.returncode:
        pytest.skip(f"npm could not install {package}@{version}: {done.stderr.strip()[-400:]}")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Tests in several processes install once."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

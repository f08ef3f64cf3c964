"""One commit of a repository as a tar. Nothing is checked out: no hook or filter has its turn."""

import resource
import subprocess
from pathlib import Path
from typing import Final

from contextd.adapters.tool_processes.archives import LARGEST_ARCHIVE
from contextd.adapters.tool_processes.arrival import LARGEST
from contextd.domain.errors import NotInstallable
from contextd.settings import passed_on

_SECONDS: Final = 300.0
_PASSED_ON: Final = (
    "PATH",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_*",
)
_ALONE: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "https:file",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "LC_ALL": "C",
}
"""Neither the user's settings nor anybody else's: they can name programs to run."""


def archive_commit(url: str, commit: str, folder: Path) -> Path:
    """Fetched into `folder`. Raises NotInstallable, also when git is not there."""
    repository, archive = folder / "repository", folder / "archive.tar"
    _git(folder, "init", "--quiet", "--bare", "--template=", str(repository))
    _git(repository, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", url, commit)
    fetched = _git(repository, "rev-parse", "--verify", "FETCH_HEAD^{commit}").strip()
    if fetched != commit:
        raise NotInstallable("the repository gave another commit than the one that was asked for")
    _git(repository, "archive", "--format=tar", f"--output={archive}", commit)
    return archive


def _git(folder: Path, *arguments: str) -> str:
    try:
        ran = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**passed_on(_PASSED_ON), **_ALONE, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            preexec_fn=_bounded,
        )
    except FileNotFoundError:
        raise NotInstallable("git is not installed", "install git, or give an archive") from None
    except subprocess.TimeoutExpired:
        raise NotInstallable("git takes too long", "give an archive instead") from None
    except subprocess.CalledProcessError as error:
        raise NotInstallable(
            f"git could not {arguments[0]} (exit code {error.returncode})",
            "check the address and that the commit is there",
        ) from error
    return ran.stdout.decode(errors="replace")


def _bounded() -> None:
    most = LARGEST_ARCHIVE + LARGEST
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

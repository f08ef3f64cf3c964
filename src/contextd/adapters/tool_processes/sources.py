"""Where a plugin comes from: a folder, a commit of a git repository, an archive here or on the web."""

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from contextd.adapters.tool_processes.archives import LARGEST_ARCHIVE, check_sum, unpack
from contextd.adapters.tool_processes.arrival import Arrival
from contextd.adapters.tool_processes.git_commits import archive_commit
from contextd.adapters.tool_processes.manifest import FILE
from contextd.domain.errors import NotInstallable

_GIT: Final = re.compile(r"git\+((?:https|file)://[^\s@]*(?:@[^\s@/]+/[^\s@]*)?)@([0-9a-fA-F]{40})")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_NOT_COPIED: Final = frozenset((".git", "__pycache__"))
_CONNECT_S: Final = 15.0
_DOWNLOAD_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Source:
    """`said` is the argument as it was given."""

    said: str
    sha256: str | None = None

    @property
    def told(self) -> str:
        """For the record: without a password that stands in an address."""
        if "://" not in self.said:
            return str(Path(self.said).expanduser().absolute())
        parts = urlsplit(self.said)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

    def fetch(self, files: Path) -> None:
        """Put its files there. Raises NotInstallable; what is there then is to be thrown away."""
        arrival = Arrival(files)
        if self.said.startswith("git+"):
            self._fetch_commit(arrival)
        elif self.said.startswith(("http://", "https://")):
            self._fetch_from_web(arrival)
        elif (path := Path(self.said).expanduser()).is_dir():
            self._no_sum("a folder")
            arrival.copy(path, without=_NOT_COPIED)
        elif path.is_file():
            check_sum(path, self._sum())
            unpack(path, arrival)
        else:
            raise NotInstallable(
                "there is no such folder or archive",
                "give a folder, an archive, an http(s) address, or git+https://…@COMMIT",
            )
        arrival.settle(FILE)

    def _fetch_commit(self, arrival: Arrival) -> None:
        named = _GIT.fullmatch(self.said)
        if named is None:
            raise NotInstallable(
                "a git source needs a whole commit",
                "give git+https://HOST/PATH@COMMIT or git+file:///PATH@COMMIT with all 40 hex digits:"
                " a branch or a tag can be moved",
            )
        self._no_sum("a commit")
        with tempfile.TemporaryDirectory(prefix="contextd-git-") as folder:
            unpack(archive_commit(named[1], named[2].lower(), Path(folder)), arrival)

    def _fetch_from_web(self, arrival: Arrival) -> None:
        sha256 = self._sum()
        with tempfile.TemporaryDirectory(prefix="contextd-download-") as folder:
            archive = Path(folder, "archive")
            _download(self.said, archive)
            check_sum(archive, sha256)
            unpack(archive, arrival)

    def _sum(self) -> str:
        if self.sha256 is None or not _SHA256.fullmatch(self.sha256):
            raise NotInstallable(
                "an archive needs its checksum",
                "give --sha256 with the 64 hex digits that its author published",
            )
        return self.sha256

    def _no_sum(self, what: str) -> None:
        if self.sha256 is not None:
            raise NotInstallable(f"{what} has no sha256 to compare", "leave --sha256 out")


def _download(url: str, file: Path) -> None:
    import httpx2

    ends_at = time.monotonic() + _DOWNLOAD_S
    try:
        with (
            httpx2.Client(follow_redirects=True, max_redirects=5, timeout=_CONNECT_S) as client,
            client.stream("GET", url) as response,
            file.open("wb") as out,
        ):
            response.raise_for_status()
            for piece in response.iter_raw():
                out.write(piece)
                if out.tell() > LARGEST_ARCHIVE or time.monotonic() > ends_at:
                    raise NotInstallable(
                        f"the archive is larger than {LARGEST_ARCHIVE >> 20} MB, or takes too long"
                    )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotInstallable(
            f"the archive cannot be fetched ({type(error).__name__})", "check the address and the network"
        ) from error

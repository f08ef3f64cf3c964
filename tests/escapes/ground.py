"""Where an attack takes place: a home, a project and a world outside, made for one attempt and thrown away.

Everything that an attack aims at is a canary of the ground's own. What costs time to make, such as a
process or a listener, is made when a script first names it.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from escapes import canaries

PYTHON: Final = "/usr/bin/python3"
"""The system's own: a sandbox that shows anything shows this one."""
_FOLDER: Final = "/var/tmp"
"""Not /tmp: most sandboxes lay one of their own over it, and all would look safe behind that."""


@dataclass(frozen=True, slots=True)
class User:
    """Who starts the sandbox, and whose everything is that an attack may aim at."""

    name: str
    uid: int
    gid: int
    owner_uid: int
    owner_gid: int

    @classmethod
    def named(cls, name: str) -> Self:
        entry = pwd.getpwnam(name)
        return cls(name, entry.pw_uid, entry.pw_gid, entry.pw_uid, entry.pw_gid)

    def among(self, other: "User") -> "User":
        """The same, in a project of somebody else."""
        return User(f"{self.name} for {other.name}", self.uid, self.gid, other.uid, other.gid)

    @classmethod
    def current(cls) -> Self:
        return cls.named(pwd.getpwuid(os.getuid()).pw_name)


class Ground:
    def __init__(self, user: User) -> None:
        self.user = user
        self.secret = f"canary-{secrets.token_hex(16)}"
        self.printed = 0
        """Bytes that came back from the script."""
        self.of_root: set[Path] = set()
        """What is not handed to the owner."""
        self._held = ExitStack()

    def __enter__(self) -> Self:
        self.root = Path(tempfile.mkdtemp(prefix="contextd-escapes-", dir=_FOLDER))
        self._held.callback(shutil.rmtree, self.root, ignore_errors=True)
        self.root.chmod(0o755)
        for folder in (self.home, self.project, self.outside, self.other, self.data):
            folder.mkdir(parents=True)
        self._lay_out()
        self.own()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_orphans()
        self._held.close()

    def _end_orphans(self) -> None:
        """A bwrap whose parent is killed while it is being set up waits for ever, with nothing in it."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                orphan = "\nPPid:\t1\n" in (process / "status").read_text()
                if orphan and str(self.root).encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "home" / "work" / "project"

    @property
    def other(self) -> Path:
        return self.root / "home" / "work" / "other"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def data(self) -> Path:
        return self.root / "home" / ".local" / "share" / "contextd"

    @property
    def canary(self) -> Path:
        return self.outside / "canary.txt"

    @property
    def payload_ran(self) -> Path:
        """Made by what an attack left behind, when something outside runs it."""
        return self.outside / "payload-ran"

    @property
    def environment(self) -> dict[str, str]:
        """Of whoever starts the sandbox: with a secret in it, as everyone has."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.home}/.local/bin:/usr/local/bin:/usr/bin:/bin",
            "USER": self.user.name,
            "LANG": "C.UTF-8",
            "SERVICE_TOKEN": self.secret,
            "SSH_AUTH_SOCK": f"{self.root}/agent.sock",
            "CONTEXTD_DATA_DIR": str(self.data),
            "CONTEXTD_CONFIG": f"{self.home}/.config/contextd/config.toml",
            "CONTEXTD_POLICIES": f"{self.home}/.config/contextd/policies.toml",
        }

    def _lay_out(self) -> None:
        secret_files = (
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".git-credentials",
            "notes.txt",
            ".local/share/contextd/secret.key",
            "work/other/source.txt",
        )
        for name in (*secret_files, ".bashrc", ".local/bin/tool"):
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(f"{self.secret}\n" if name in secret_files else "# as it was\n")
            (self.home / name).chmod(0o600)
        self.canary.write_text(f"{self.secret}\n")
        (self.project / "source.txt").write_text("a project\n")
        (self.project / "shortcut").symlink_to(self.canary)

    def own(self) -> None:
        """Hands all of it to its owner, without following links."""
        if os.getuid() != 0:
            return
        for folder, folders, files in os.walk(self.root):
            for path in {Path(folder, name) for name in (".", *folders, *files)} - self.of_root:
                os.chown(path, self.user.owner_uid, self.user.owner_gid, follow_symlinks=False)

    def as_owner(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs something outside, as people do: what an attack left behind may run by it."""
        return subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            **self.owner,
        )

    @property
    def identity(self) -> canaries.Identity:
        return canaries.identity(self.user.uid, self.user.gid)

    @property
    def owner(self) -> canaries.Identity:
        return canaries.identity(self.user.owner_uid, self.user.owner_gid)

    # --- what is made when a script names it ----------------------------------------------

    @cached_property
    def tcp(self) -> int:
        return self._held.enter_context(canaries.tcp("127.0.0.1", self.secret))

    @cached_property
    def tcp6(self) -> int:
        return self._held.enter_context(canaries.tcp("::1", self.secret))

    @cached_property
    def udp(self) -> int:
        return self._held.enter_context(canaries.udp(self.secret))

    @cached_property
    def abstract(self) -> str:
        name = f"contextd-escapes-{secrets.token_hex(6)}"
        self._held.enter_context(canaries.unix(f"\0{name}", self.secret))
        return name

    @cached_property
    def agent(self) -> str:
        """A socket by path, such as those of ssh-agent, the message bus and docker."""
        path = f"{self.root}/agent.sock"
        self._held.enter_context(canaries.unix(path, self.secret))
        Path(path).chmod(0o777)
        return path

    @cached_property
    def _victim(self) -> canaries.Victim:
        return self._held.enter_context(canaries.victim(PYTHON, self.secret, self.canary, self.owner))

    @property
    def victim(self) -> int:
        return self._victim.process.pid

    @property
    def address(self) -> int:
        """Where the victim holds the secret in its memory."""
        return self._victim.address

    @property
    def victim_lives(self) -> bool:
        return self._victim.process.poll() is None

    @cached_property
    def shared_file(self) -> str:
        return self._held.enter_context(canaries.file_in("/dev/shm", self.secret, self.user.owner_uid))

    @cached_property
    def temporary_file(self) -> str:
        return self._held.enter_context(canaries.file_in("/tmp", self.secret, self.user.owner_uid))

    @cached_property
    def segment(self) -> int:
        return self._held.enter_context(canaries.segment(self.secret, self.user.owner_uid))

    @cached_property
    def queue(self) -> str:
        return self._held.enter_context(canaries.queue(self.secret))

    @cached_property
    def key(self) -> int:
        return self._held.enter_context(canaries.key(PYTHON, self.secret, self.owner))

    @cached_property
    def handle(self) -> str:
        """The canary as the file system knows it, without a path."""
        return canaries.handle(self.canary)

    @cached_property
    def disk(self) -> str:
        """The numbers of the device that this is on."""
        device = self.root.stat().st_dev
        return f"{os.major(device)} {os.minor(device)}"

    @cached_property
    def folders(self) -> str:
        """Folders of the system that are worth writing to, each with what tells it from a copy."""
        known = ("/etc", "/usr/local/bin", "/usr/lib", "/var/spool/cron", "/root", "/boot")
        found = [(path, Path(path).stat()) for path in known if os.access(path, os.W_OK)]
        return repr([(path, there.st_dev, there.st_ino) for path, there in found])

"""A command in a sandbox: what it may touch, what it may use up, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from contextd.domain.limits import COMMAND_S

Level = Literal["bubblewrap", "landlock", "off"]
"""How a command is kept apart. `bubblewrap`: namespaces, seccomp and limits. `landlock`: Landlock, seccomp
and limits, where namespaces are not to be had. `off`: not at all, because the daemon's settings say so."""

Stream = Literal["stdout", "stderr"]
Sink = Callable[[Stream, bytes], None]
"""Told what the command prints, as it comes."""

TIMED_OUT: Final = 124
"""The exit code of a command that was ended because its time was over, as of timeout(1)."""
SIGNALLED: Final = 128
"""Added to the number of the signal that ended a command, as a shell does."""

PROTECTED: Final = (
    ".git/hooks",
    ".git/config",
    ".git/modules",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".envrc",
)
"""What programs outside the sandbox run or obey when they find it in a project: read-only within."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use up."""

    timeout_s: float = COMMAND_S
    """The most that a call may ask for."""
    memory_mb: int = 4_096
    processes: int = 512
    file_mb: int = 2_048
    """Of any one file that it writes."""
    open_files: int = 1_024
    output_mb: int = 16
    """Of each stream; what comes after it is read and thrown away, and counted."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What commands of one project may touch. Paths are absolute, or relative to the project."""

    writable: tuple[str, ...] = (".",)
    readable: tuple[str, ...] = ()
    """Besides the system's programs and libraries, and what is writable."""
    protected: tuple[str, ...] = PROTECTED
    """Of what is writable, what is not."""
    hosts: tuple[str, ...] = ()
    """Names that may be reached, as `pypi.org` or `*.github.com`, with `:port` where it is not 443. Without
    any there is no network but the sandbox's own loopback."""
    environment: tuple[str, ...] = ("LANG", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR")
    """Names of variables that are passed on from the daemon's own environment."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Job:
    """A command line for bash, and where it is to run."""

    command: str
    project: str
    """The project's folder: absolute, resolved, and there."""
    cwd: str
    """Absolute, resolved, within the project."""
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to what the policy passes on."""
    stdin: bytes = b""
    own: bool = False
    """Of contextd's own choice, in a folder made for it: not judged as a caller's project would be, and no
    other sandbox like it is kept warm."""


@dataclass(frozen=True, slots=True)
class Finished:
    exit_code: int
    """Of the command; TIMED_OUT, or SIGNALLED and the signal."""
    duration_ms: float
    level: Level
    timed_out: bool = False
    dropped_bytes: int = 0
    """Of what it printed beyond its limit."""
    refused_hosts: tuple[str, ...] = ()
    """That it tried to reach and may not."""


class Sandbox(Protocol):
    """Runs commands apart from all else. What a command started has ended when `run` returns or raises."""

    async def level(self) -> Level:
        """Tried on this machine, not guessed. Raises SandboxUnavailable, which says what to do."""

    async def run(self, job: Job, policy: Policy, sink: Sink) -> Finished:
        """Raises SandboxUnavailable. A command that fails or runs out of time is a result."""

    async def close(self) -> None: ...


class Policies(Protocol):
    """The policy of each project, written where no project can write it."""

    def policy(self, project: str) -> Policy:
        """Of the project at this path, or the one for all. Raises Misconfigured when it cannot be read."""

    def names(self, project: str) -> bool:
        """Whether it has a policy of its own. Raises Misconfigured."""

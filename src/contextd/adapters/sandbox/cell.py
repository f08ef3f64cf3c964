"""A started sandbox: a shell in it that waits for its one script, and what the daemon holds of it."""

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from contextd.adapters.sandbox.descriptors import read_all, readable
from contextd.adapters.sandbox.layout import Owner
from contextd.domain.errors import SandboxUnavailable

SHELL: Final = "/bin/bash"
_START_S: Final = 10.0
_END_S: Final = 10.0
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Ends:
    """The numbers, within the sandbox, of the pipes that the waiting shell uses."""

    script: int
    ready: int

    @property
    def waiting(self) -> list[str]:
        """It says that it is there, then reads the script to its end in one go, and becomes it."""
        return [SHELL, "--norc", "--noprofile", "-c", self.words]

    @property
    def words(self) -> str:
        return f"echo >&{self.ready}; . /dev/fd/{self.script}"

    @property
    def closing(self) -> str:
        return f"exec {self.script}<&- {self.ready}>&-"


@dataclass
class Cell:
    """`root` is the process with which all others in the sandbox end: the init of its namespace."""

    process: subprocess.Popen[bytes]
    ends: Ends
    stdin: int
    stdout: int
    stderr: int
    script: int
    exited: int
    root: int
    root_pid: int
    environment: Mapping[str, str] = field(default_factory=dict)
    """What a command in it needs to be told: its home, for one."""
    stop: signal.Signals = signal.SIGKILL
    """What ends the root, and all others with it."""
    takes_group: bool = False
    """Whether the processes of its group must be ended one by one, for want of anything better."""
    others: int = 0
    """Processes outside that count against the limit of those inside."""
    refused: Callable[[], tuple[str, ...]] = tuple
    """Hosts that the command tried to reach and may not."""
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """What else to put away when it has ended."""

    @property
    def waits(self) -> bool:
        return self.process.poll() is None

    def find_root(self, pid: int) -> None:
        root = os.pidfd_open(pid)
        os.close(self.root)
        self.root, self.root_pid = root, pid

    def hand_over(self) -> tuple[int, int]:
        """The ends for the script and for standard input: from now on somebody else closes them."""
        ends = (self.script, self.stdin)
        self.script = self.stdin = _NONE
        return ends

    def kill(self) -> None:
        for pidfd in (self.root, self.exited):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, self.stop)
        if self.takes_group and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def empty(self) -> None:
        """Kill what is in it and wait until nothing is. A root that does not obey is killed itself."""
        for _ in range(2):
            self.kill()
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await readable(self.root)
                    await readable(self.exited)
                    return
            self.stop = signal.SIGKILL

    async def end(self) -> None:
        """Empty it, and give every descriptor back."""
        await self.empty()
        self._reap()
        for held in (self.stdin, self.stdout, self.stderr, self.script, self.exited, self.root):
            if held != _NONE:
                os.close(held)
        for put_away in self.at_end:
            put_away()

    def _reap(self) -> None:
        """The root too, where orphans come to the daemon, as to the first process of a container."""
        self.process.poll()
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self.root, os.WEXITED | os.WNOHANG)


@dataclass
class Opening:
    """Descriptors on their way into a sandbox. Whatever happens, none stays open by mistake."""

    theirs: list[int] = field(default_factory=list)
    ours: list[int] = field(default_factory=list)

    def to_them(self) -> tuple[int, int]:
        """A pipe that they read."""
        read, write = os.pipe()
        self.theirs.append(read)
        self.ours.append(write)
        return read, write

    def to_us(self) -> tuple[int, int]:
        read, write = os.pipe()
        self.theirs.append(write)
        self.ours.append(read)
        return read, write

    def content(self, content: bytes) -> int:
        """A file in memory that they read from its start."""
        memory = os.memfd_create("contextd", os.MFD_CLOEXEC)
        self.theirs.append(memory)
        os.write(memory, content)
        os.lseek(memory, 0, os.SEEK_SET)
        return memory

    def close(self, *, all: bool) -> None:
        for held in self.theirs + (self.ours if all else []):
            with suppress(OSError):
                os.close(held)


async def open_cell(
    argv: Callable[[Opening, Ends, int], Sequence[str]],
    owner: Owner | None,
    root_of: Callable[[bytes, int], int],
    env: Mapping[str, str] | None = None,
) -> Cell:
    """Start what `argv` says and wait until the shell in it waits.

    `argv` is given what it may pass on, the shell's pipes, and a pipe on which the program tells about
    itself; `root_of` reads from that, and the program's own id, which process is the sandbox's root.
    Raises SandboxUnavailable with what the program said.
    """
    opening = Opening()
    try:
        stdin, feed = opening.to_them()
        script, write = opening.to_them()
        stdout, out = opening.to_us()
        stderr, err = opening.to_us()
        ready, ready_end = opening.to_us()
        told, tell = opening.to_us()
        ends = Ends(script, ready_end)
        if owner:
            os.fchown(script, owner.uid, owner.gid)
        command = list(argv(opening, ends, tell))
        streams = (stdin, out, err)
        passed = tuple(each for each in opening.theirs if each not in streams)
        process = _spawn(command, owner, streams, passed, env or {})
    except BaseException:
        opening.close(all=True)
        raise
    opening.close(all=False)
    exited = os.pidfd_open(process.pid)
    cell = Cell(process, ends, feed, stdout, stderr, write, exited, os.dup(exited), process.pid)
    try:
        about = await _until_waiting(cell, told, ready)
        cell.find_root(root_of(about, process.pid))
    except (TimeoutError, ProcessLookupError, ValueError, KeyError) as error:
        await cell.end()
        raise SandboxUnavailable("the sandbox did not start") from error
    except BaseException:
        await cell.end()
        raise
    finally:
        os.close(told)
        os.close(ready)
    return cell


async def _until_waiting(cell: Cell, told: int, ready: int) -> bytes:
    """What the program told about itself."""
    async with asyncio.timeout(_START_S):
        about = await read_all(told)
        if not await read_all(ready, 1):
            raise SandboxUnavailable(f"the sandbox did not start ({await _complaint(cell)})")
    return about


def _spawn(
    command: Sequence[str],
    owner: Owner | None,
    streams: tuple[int, int, int],
    passed: tuple[int, ...],
    env: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """On the loop's own thread: a sandbox ends with the thread that started it."""
    try:
        return subprocess.Popen(
            command,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=passed,
            env=dict(env),
            cwd=tempfile.gettempdir() if not owner else "/",
            user=owner.uid if owner else None,
            group=owner.gid if owner else None,
            extra_groups=[] if owner else None,
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"the sandbox did not start ({error.strerror})") from error


async def _complaint(cell: Cell) -> str:
    """The last line that the program said before it gave up."""
    cell.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            lines = (await read_all(cell.stderr, 4_096)).decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else "it said nothing"
    return "it said nothing"

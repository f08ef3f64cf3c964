"""Commands that an agent runs: apart from everything, their output scrubbed, their failures recognised."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, BadPath, OutOfRange, OutsideProject
from contextd.domain.ports import Clock, ScrubStream, StreamScrubber
from contextd.domain.sandboxing import Finished, Job, Policies, Policy, Sandbox, Stream
from contextd.services.known_fixes import Attempt, KnownFix, KnownFixes
from contextd.services.project_secrets import ProjectSecrets
from contextd.services.projects import permitted

_AT_ONCE: Final = 8
"""Commands under way in this daemon; further ones wait for their turn."""
_TELL_EVERY_S: Final = 0.5
_TOLD: Final = 400
"""Characters of the output's end that progress tells."""
_LOOKED_AT: Final = 16_384
"""Bytes before them that are looked at for the beginning of a secret."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


@dataclass(frozen=True, slots=True)
class CommandAsk:
    command: str
    project_path: str
    cwd: str = ""
    """Relative to the project, or absolute inside it."""
    timeout_s: float | None = None
    """None for the most that the project's policy gives."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    finished: Finished
    stdout: str
    stderr: str
    secrets: int
    """How many were removed from what it printed."""
    fix: KnownFix | None = None
    """Told with a failure."""
    verified: str | None = None
    """The fix that was told when this command failed, and has helped: it passes now."""


class SafeCommands:
    def __init__(
        self,
        sandbox: Sandbox,
        policies: Policies,
        scrubber: StreamScrubber,
        secrets: ProjectSecrets,
        fixes: KnownFixes,
        clock: Clock,
    ) -> None:
        self._sandbox = sandbox
        self._policies = policies
        self._scrubber = scrubber
        self._secrets = secrets
        self._fixes = fixes
        self._clock = clock
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def run(self, ask: CommandAsk, caller: Caller) -> Ran:
        """A command that fails or runs out of time is an answer.

        Raises BadPath, OutsideProject, BadFormat, OutOfRange, Forbidden, SandboxUnavailable, Misconfigured.
        """
        caller.tally.project = project = permitted(caller, ask.project_path)
        root = _folder(ask.project_path)
        policy = self._policies.policy(root)
        job = _job(ask, root, policy)
        await self._secrets.learn(root)
        printed = _Printed(self._scrubber)
        async with self._turns, self._told(printed, job.timeout_s, caller):
            finished = await self._sandbox.run(job, policy, printed.take)
        ran = printed.ran(finished)
        caller.tally.isolation = finished.level
        caller.tally.exit_code = finished.exit_code
        caller.tally.secrets.update(printed.secrets)
        attempt = Attempt(project, job.cwd, ask.command)
        return await self._learned(ran, attempt, caller)

    async def _learned(self, ran: Ran, attempt: Attempt, caller: Caller) -> Ran:
        fix = verified = None
        if ran.finished.exit_code == 0:
            verified = await self._fixes.passed(attempt, caller)
        elif not ran.finished.timed_out:
            fix = await self._fixes.failed(attempt, f"{ran.stdout}\n{ran.stderr}", caller)
        return Ran(ran.finished, ran.stdout, ran.stderr, ran.secrets, fix, verified)

    @asynccontextmanager
    async def _told(self, printed: "_Printed", most: float, caller: Caller) -> AsyncIterator[None]:
        """How long it has been running and what it printed last, to a caller that wants to know."""

        async def tell() -> None:
            started = self._clock.monotonic()
            while True:
                await asyncio.sleep(_TELL_EVERY_S)
                elapsed = round(self._clock.monotonic() - started, 1)
                await caller.progress(elapsed, most, printed.last())

        telling = asyncio.create_task(tell())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.wait([telling])


class _Printed:
    """Both streams of a command, scrubbed as they come."""

    def __init__(self, scrubber: StreamScrubber) -> None:
        self._scrubber = scrubber
        self._streams: dict[Stream, ScrubStream] = {
            "stdout": scrubber.byte_stream(),
            "stderr": scrubber.byte_stream(),
        }
        self._parts: dict[Stream, list[str]] = {"stdout": [], "stderr": []}
        self._latest = b""

    def take(self, stream: Stream, chunk: bytes) -> None:
        self._latest = (self._latest + chunk)[-_LOOKED_AT:]
        self._parts[stream].append(self._streams[stream].feed(chunk))

    def last(self) -> str:
        """What it printed last. The streams still hold that back, so it is scrubbed for itself."""
        return self._scrubber.scrub(self._latest.decode(errors="replace")).text[-_TOLD:]

    def ran(self, finished: Finished) -> Ran:
        texts = {
            name: "".join((*self._parts[name], stream.finish())) for name, stream in self._streams.items()
        }
        return Ran(finished, texts["stdout"], texts["stderr"], sum(self.secrets.values()))

    @property
    def secrets(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for stream in self._streams.values():
            found.update(stream.findings)
        return found


def _folder(path: str) -> str:
    root = os.path.realpath(path)
    if not Path(root).is_dir():
        raise BadPath("project_path", "project_path is not a folder", "give the folder of a project")
    return root


def _job(ask: CommandAsk, root: str, policy: Policy) -> Job:
    most = policy.limits.timeout_s
    if ask.timeout_s is not None and ask.timeout_s > most:
        raise OutOfRange(
            "timeout_s",
            f"timeout_s is more than the project's policy gives ({most:g})",
            f"ask for at most {most:g}, or raise limits.timeout_s in the policy",
        )
    if not all(_NAME.match(name) for name in ask.env):
        raise BadFormat("env", "env holds a name that no variable can have", "use letters, digits and _")
    return Job(
        command=ask.command,
        project=root,
        cwd=_within(root, ask.cwd),
        timeout_s=ask.timeout_s or most,
        env=dict(ask.env),
        stdin=ask.stdin.encode(),
    )


def _within(root: str, cwd: str) -> str:
    """Resolved here to be told apart early; what the command can reach is the sandbox's matter."""
    resolved = os.path.realpath(Path(root) / cwd)
    if resolved != root and not resolved.startswith(root.rstrip("/") + "/"):
        raise OutsideProject("cwd leads out of the project")
    if not Path(resolved).is_dir():
        raise BadPath("cwd", "cwd is not a folder of the project", "give a folder inside the project")
    return resolved

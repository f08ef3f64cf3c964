"""The sandbox: the first rung that holds on this machine, and every command through it."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.bubblewrap import Bubblewrap, programs
from contextd.adapters.sandbox.cell import SHELL
from contextd.adapters.sandbox.cgroups import ControlGroups, places
from contextd.adapters.sandbox.execution import perform
from contextd.adapters.sandbox.layout import lay_out
from contextd.adapters.sandbox.leftovers import put_aside
from contextd.adapters.sandbox.plain import Plain
from contextd.adapters.sandbox.probe import probe
from contextd.adapters.sandbox.remedies import refusal
from contextd.adapters.sandbox.rung import Rung
from contextd.adapters.sandbox.warm_pool import WarmPool
from contextd.domain.errors import SandboxUnavailable
from contextd.domain.sandboxing import Finished, Job, Level, Policy, Sink

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TRY_AGAIN_S: Final = 30.0


class Ladder:
    """Fills the port Sandbox.

    `choice` is the setting: `auto` takes the best rung. `own` is what belongs to contextd and is never
    shown; `named` tells whether the policies name a project; `passed_on` picks from the environment.
    """

    def __init__(
        self,
        choice: str,
        own: Sequence[str],
        named: Callable[[str], bool],
        passed_on: Callable[[Sequence[str]], Mapping[str, str]],
    ) -> None:
        self._choice = choice
        self._own = tuple(os.path.realpath(path) for path in own)
        self._named = named
        self._passed_on = passed_on
        self._found: tuple[Rung, WarmPool] | None = None
        self._refused: SandboxUnavailable | None = None
        self._refused_at = 0.0
        self._finding = asyncio.Lock()

    async def level(self) -> Level:
        rung, _ = await self._find()
        return rung.level

    async def run(self, job: Job, policy: Policy, sink: Sink) -> Finished:
        rung, pool = await self._find()
        layout = lay_out(job.project, policy, self._own, named=job.own or self._named(job.project))
        put_back = rung.guard(layout)
        cell = await pool.take(layout)
        if not job.own:
            asyncio.get_running_loop().call_soon(pool.refill, layout)
        environment = {**self._environment(policy), **cell.environment, **job.env}
        try:
            return await perform(cell, job, policy.limits, environment, rung.level, sink)
        finally:
            for said in (*put_back(), *put_aside(layout)):
                sink("stderr", said.encode())

    async def close(self) -> None:
        if self._found is not None:
            await self._found[1].close()

    async def _find(self) -> tuple[Rung, WarmPool]:
        """Tried once. A machine that has no sandbox is asked again after a while: somebody may mend it."""
        async with self._finding:
            if self._found is None:
                if self._refused and time.monotonic() - self._refused_at < _TRY_AGAIN_S:
                    raise self._refused
                try:
                    rung = await self._first()
                except SandboxUnavailable as fault:
                    self._refused, self._refused_at = fault, time.monotonic()
                    raise
                self._found = rung, WarmPool(rung.start)
            return self._found

    async def _first(self) -> Rung:
        if self._choice == "off":
            return Plain()
        if not sys.platform.startswith("linux"):
            raise refusal(self._choice, ())
        troubles: list[str] = []
        for rung in self._rungs():
            try:
                await probe(rung)
            except SandboxUnavailable as fault:
                troubles.append(fault.problem)
            else:
                return rung
        raise refusal(self._choice, troubles)

    def _rungs(self) -> Iterator[Rung]:
        if self._choice in ("auto", "bubblewrap"):
            groups = ControlGroups(places())
            for program in programs():
                yield Bubblewrap(program, groups)
        if self._choice in ("auto", "landlock"):
            from contextd.adapters.sandbox.landlock import Landlock

            yield Landlock()

    def _environment(self, policy: Policy) -> dict[str, str]:
        """Programs of toolchains that the policy grants are found, before the system's."""
        granted = (str(Path(path).expanduser() / "bin") for path in policy.readable)
        path = ":".join((*(folder for folder in granted if Path(folder).is_dir()), _PATH))
        return {"PATH": path, "SHELL": SHELL, "LANG": "C.UTF-8", **self._passed_on(policy.environment)}

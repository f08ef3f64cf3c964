"""Limits for all processes of a sandbox together, where the kernel's control groups may be written.

Never required: resource limits are the floor. They hold for each process alone, and root's number of
processes is not limited by them at all, so a group is used wherever one can be had.
"""

import itertools
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.domain.sandboxing import Limits

logger = logging.getLogger(__name__)

_MOUNTED: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "contextd-"
_OWN_PROCESSES: Final = 2
"""The sandbox's init, and the shell that becomes the command."""
_TRIES: Final = 20
_PAUSE_S: Final = 0.002
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a hierarchy in which groups can be made, and the files that set its limits."""

    folder: Path
    limits: tuple[tuple[str, str], ...]
    """A file of a group, and what it limits: `processes` or `memory`."""


def places() -> tuple[Place, ...]:
    """Tried, not guessed: in each of these a group could be made and has its files."""
    found: list[Place] = []
    limited: set[str] = set()
    for place in _candidates():
        limits = {what for _, what in place.limits}
        if not limits & limited and _works(place):
            limited |= limits
            found.append(place)
    return tuple(found)


class ControlGroups:
    """A group for each cell, gone with it. Where there is none to be had, this does nothing."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._left: list[Path] = []

    def confine(self, pids: Sequence[int], limits: Limits, made: list[Path]) -> None:
        """Put the processes, and all that they will start, into new groups, which are added to `made`."""
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        values = {
            "processes": limits.processes + _OWN_PROCESSES,
            "memory": limits.memory_mb * 2**20,
        }
        for place in self._places:
            group = place.folder / name
            with suppress(OSError):
                group.mkdir()
                made.append(group)
                for file, what in place.limits:
                    (group / file).write_text(str(values[what]), encoding="ascii")
                # The last is the one that becomes the command: whatever happens to the others, it is in.
                for pid in reversed(pids):
                    _join(group, pid)

    def remove(self, groups: Sequence[Path]) -> None:
        """What the kernel still holds is removed the next time."""
        waiting = [*self._left, *groups]
        self._left = [group for group in waiting if not _removed(group)]


def _join(group: Path, pid: int) -> None:
    """The kernel may say no for a moment, while it is busy with the group or the process."""
    for _ in range(_TRIES):
        try:
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
        except ProcessLookupError:
            return
        except OSError as error:
            why = error.strerror
            time.sleep(_PAUSE_S)
        else:
            return
    logger.warning("a sandbox is not in its control group (%s): only limits of each process hold", why)


def children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _candidates() -> Iterator[Place]:
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        number, controllers, path = line.split(":", 2)
        own = path.lstrip("/")
        if number == "0":
            limits = (("pids.max", "processes"), ("memory.max", "memory"))
            for mounted in (_MOUNTED, _MOUNTED / "unified"):
                yield Place((mounted / own).parent if own else mounted, limits)
                yield Place(mounted, limits)
        elif controllers in ("pids", "memory"):
            file, what = (
                ("pids.max", "processes") if controllers == "pids" else ("memory.limit_in_bytes", "memory")
            )
            yield Place(_MOUNTED / controllers / own, ((file, what),))


def _works(place: Place) -> bool:
    """And what a daemon that died left there is cleared away."""
    trial = place.folder / f"{_PREFIX}{os.getpid()}-0"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        works = all((trial / file).exists() for file, _ in place.limits)
        for stale in place.folder.glob(f"{_PREFIX}*-*"):
            pid = stale.name.removeprefix(_PREFIX).partition("-")[0]
            if pid.isdigit() and not Path("/proc", pid).exists():
                _removed(stale)
    finally:
        trial.rmdir()
    return works


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True

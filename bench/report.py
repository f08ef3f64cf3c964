"""What was measured, as Markdown."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from sizes import Sizes


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that has a target."""

    what: str
    target: str
    measured: str
    met: bool


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    setup: str
    tables: tuple[Table, ...]
    checks: tuple[Check, ...] = ()

    def markdown(self) -> str:
        return "\n".join(
            [f"## {self.title}\n", f"{self.setup}\n", *(each.markdown() for each in self.tables)]
        )


def results(
    sections: Sequence[Section], sizes: Sizes, command: str, load_before: float, *, is_full: bool
) -> str:
    checks = [check for section in sections for check in section.checks]
    targets = Table(
        ("what", "target", "measured", ""),
        tuple(
            (each.what, each.target, each.measured, "met" if each.met else "**missed**") for each in checks
        ),
    )
    parts = [
        "# Results\n",
        _origin(command, load_before),
        *([] if is_full else [f"**A small run, to see that the benches work: {_sizes(sizes)}.**\n"]),
        "## Targets\n",
        targets.markdown(),
        *(section.markdown() for section in sections),
    ]
    return "\n".join(parts)


def _origin(command: str, load_before: float) -> str:
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} (UTC) by `{command}`: contextd {version('contextd')},"
        f" mcp {version('mcp')}, Python {platform.python_version()}, {_cpu()}, {os.cpu_count()} cores,"
        f" load average before the run {load_before:.2f}. Ratios are of things measured in turns within"
        " this run and travel between machines; times do not.\n"
    )


def _sizes(sizes: Sizes) -> str:
    return (
        f"{sizes.rounds} rounds of {sizes.requests} requests, {sizes.checkpoints} checkpoints,"
        f" {sizes.calls} calls, {sizes.sessions} sessions for {sizes.seconds} s"
    )


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return " ".join(found.group(1).split()) if found else platform.machine()

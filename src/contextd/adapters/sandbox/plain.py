"""No rung at all: a plain shell, for those whose settings say `off`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.cell import SHELL, Cell, Ends, Opening, open_cell
from contextd.adapters.sandbox.layout import Layout
from contextd.adapters.sandbox.scratch import tasks_of


class Plain:
    """What ran in the command's own process group ends with it; what left the group does not."""

    level: Final = "off"
    takes_root: Final = True

    def guard(self, layout: Layout) -> Callable[[], tuple[str, ...]]:
        return tuple

    async def start(self, layout: Layout) -> Cell:
        def argv(opening: Opening, ends: Ends, tell: int) -> list[str]:
            return [SHELL, "--norc", "--noprofile", "-c", f"exec {tell}>&-; {ends.words}"]

        cell = await open_cell(argv, layout.owner, lambda told, program: program)
        cell.takes_group = True
        cell.others = tasks_of(layout.owner.uid if layout.owner else os.getuid())
        cell.environment = {"HOME": _home()}
        return cell


def _home() -> str:
    """Of a user who has none, as in a container, the root."""
    try:
        return str(Path.home())
    except RuntimeError:
        return "/"

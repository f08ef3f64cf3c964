"""What a rung of the ladder can do: start a cell for a layout."""

from collections.abc import Callable
from typing import Protocol

from contextd.adapters.sandbox.cell import Cell
from contextd.adapters.sandbox.layout import Layout
from contextd.domain.sandboxing import Level


class Rung(Protocol):
    @property
    def level(self) -> Level: ...

    @property
    def takes_root(self) -> bool:
        """Whether it holds for a project of root's own, when the daemon is root."""

    def guard(self, layout: Layout) -> Callable[[], tuple[str, ...]]:
        """Called before a command; what it returns is called afterwards, undoes what the rung could not
        prevent, and says what it was."""

    async def start(self, layout: Layout) -> Cell:
        """Raises SandboxUnavailable."""

"""Collections: a project's store as a person manages it."""

from dataclasses import dataclass

from contextd.domain.callers import Caller
from contextd.domain.records import Drawer
from contextd.services.archive import Archive


@dataclass(frozen=True, slots=True)
class Made:
    drawer: Drawer
    created: bool


class Collections:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    async def create(self, project_path: str, caller: Caller) -> Made:
        """Make a project's store ahead of its first record; one that exists is left as it is."""
        drawer, created = await self._archive.create_drawer(caller, project_path)
        return Made(drawer, created)

    async def delete(self, project_path: str, caller: Caller) -> Drawer:
        """Remove everything kept for a project. Raises NotFound."""
        return await self._archive.drop_drawer(caller, project_path)

    async def list(self, caller: Caller) -> list[Drawer]:
        return await self._archive.drawers(caller)

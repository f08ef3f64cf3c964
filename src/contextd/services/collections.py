"""Collections: a project's store as a person manages it."""

from dataclasses import dataclass, replace
from typing import Protocol

from contextd.domain.callers import Caller
from contextd.domain.errors import NotFound
from contextd.domain.records import Drawer, Project
from contextd.services.archive import Archive


@dataclass(frozen=True, slots=True)
class Made:
    drawer: Drawer
    created: bool


class CodeDrawers(Protocol):
    """The code indexes of projects, which belong to their collections."""

    async def drawer(self, project: Project) -> Drawer | None: ...

    async def projects(self) -> list[Project]: ...

    async def drop(self, project: Project) -> None: ...


class Collections:
    def __init__(self, archive: Archive, code: CodeDrawers) -> None:
        self._archive = archive
        self._code = code

    async def create(self, project_path: str, caller: Caller) -> Made:
        """Make a project's store ahead of its first record; one that exists is left as it is."""
        drawer, created = await self._archive.create_drawer(caller, project_path)
        return Made(drawer, created)

    async def delete(self, project_path: str, caller: Caller) -> Drawer:
        """Remove everything kept for a project, its code index too. Raises NotFound."""
        project = self._archive.project(caller, project_path)
        code = await self._code.drawer(project)
        await self._code.drop(project)
        try:
            records = await self._archive.drop_drawer(caller, project_path)
        except NotFound:
            if code is None:
                raise
            return code
        return _together(records, code)

    async def list(self, caller: Caller) -> list[Drawer]:
        drawers = {drawer.project.key: drawer for drawer in await self._archive.drawers(caller)}
        for project in await self._code.projects():
            code = await self._code.drawer(project) if caller.principal.may_use(project) else None
            if code is not None:
                drawers[project.key] = _together(drawers.get(project.key), code)
        return sorted(drawers.values(), key=lambda drawer: drawer.project.path)


def _together(records: Drawer | None, code: Drawer | None) -> Drawer:
    if records is None or code is None:
        whole = records or code
        assert whole is not None
        return whole
    counts = {**records.counts, **code.counts}
    return replace(records, counts=counts, size_bytes=records.size_bytes + code.size_bytes)

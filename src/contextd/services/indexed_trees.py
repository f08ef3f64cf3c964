"""From a path to the trees that are indexed there."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contextd.domain.callers import Caller
from contextd.domain.code_store import Tree
from contextd.domain.errors import NotIndexed
from contextd.domain.records import Project
from contextd.services.code_index import folder_at
from contextd.services.projects import permitted, project_at


class TreeLister(Protocol):
    async def trees(self, project: Project) -> list[Tree]: ...


@dataclass(frozen=True, slots=True)
class Indexed:
    """`below` is the folder of the trees that was asked for; empty for all of it."""

    project: Project
    trees: tuple[Tree, ...]
    below: str = ""

    @property
    def root(self) -> str:
        return self.trees[0].path

    @property
    def versions(self) -> tuple[tuple[int, int], ...]:
        return tuple((tree.id, tree.version) for tree in self.trees)


async def indexed_at(store: TreeLister, path: str, caller: Caller) -> Indexed:
    """The trees at this path, or around it. Raises BadPath, Forbidden, NotIndexed."""
    root = folder_at(path)
    permitted(caller, root)
    for folder, below in _outwards(root):
        project = project_at(folder)
        if not caller.principal.may_use(project):
            break
        trees = [tree for tree in await store.trees(project) if tree.path == folder]
        if trees:
            caller.tally.project = project
            return Indexed(project, tuple(trees), below)
    raise NotIndexed


def _outwards(root: str) -> Iterator[tuple[str, str]]:
    """The folder and those around it, up to the top of its repository; with the way back."""
    for folder in (Path(root), *Path(root).parents):
        below = Path(root).relative_to(folder)
        yield str(folder), "" if folder == Path(root) else str(below)
        if (folder / ".git").exists():
            return

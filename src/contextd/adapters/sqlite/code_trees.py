"""A tree's files in memory: which blob stands at which paths. Good for one version of the tree."""

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from contextd.domain.code_store import CodeFilter, Tree
from contextd.domain.globs import compile_glob

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REMEMBERED: Final = 8


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    marks: int


@dataclass(frozen=True)
class TreeView:
    """`places` has the files of each blob, the shortest path first."""

    places: dict[int, list[Place]]
    alive: "NDArray[np.int64]"
    comparable: bool
    """Whether all were taken in by today's recipe. If not, some have no vector that a query's can meet, and
    those that have would win by that alone."""

    def narrowed(self, filter: CodeFilter) -> "TreeView":
        """Only the files that the filter's paths leave."""
        if not filter.file_pattern and not filter.below:
            return self
        pattern = compile_glob(filter.file_pattern) if filter.file_pattern else None
        below = f"{filter.below}/" if filter.below else ""
        places: dict[int, list[Place]] = {}
        for blob, here in self.places.items():
            kept = [
                place
                for place in here
                if place.path.startswith(below) and (pattern is None or pattern.fullmatch(place.path))
            ]
            if kept:
                places[blob] = kept
        return view_of(places, self.comparable)


def view_of(places: dict[int, list[Place]], comparable: bool) -> TreeView:
    import numpy as np

    return TreeView(places, np.fromiter(places, dtype=np.int64, count=len(places)), comparable)


class TreeViews:
    """The last few, by project and version."""

    def __init__(self, recipe: str) -> None:
        self._recipe = recipe
        self._views: OrderedDict[tuple[object, ...], TreeView] = OrderedDict()
        self._lock = Lock()

    def of(self, connection: sqlite3.Connection, project: str, trees: Sequence[Tree]) -> TreeView:
        versions = connection.execute(
            f"SELECT id, version FROM roots WHERE id IN ({', '.join('?' * len(trees))}) ORDER BY id",
            [tree.id for tree in trees],
        ).fetchall()
        key = (project, *versions)
        with self._lock:
            known = self._views.get(key)
        if known is None:
            known = _read(connection, trees, self._recipe)
            with self._lock:
                self._views[key] = known
                if len(self._views) > _REMEMBERED:
                    self._views.popitem(last=False)
        return known


def _read(connection: sqlite3.Connection, trees: Sequence[Tree], recipe: str) -> TreeView:
    places: dict[int, list[Place]] = {}
    seen: set[str] = set()
    for tree in trees:
        rows = connection.execute("SELECT path, blob, marks FROM files WHERE root = ?", (tree.id,))
        for path, blob, marks in rows:
            if path not in seen:
                seen.add(path)
                places.setdefault(int(blob), []).append(Place(path, int(marks)))
    for here in places.values():
        here.sort(key=lambda place: (len(place.path), place.path))
    older = connection.execute("SELECT id FROM blobs WHERE recipe <> ?", (recipe,))
    return view_of(places, not any(blob in places for (blob,) in older))

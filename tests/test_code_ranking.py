"""What a ranking is told of its candidates, against the plain arithmetic; and what comes of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from code_projects import HERE, Desk, grown, open_desk
from contextd.adapters.code_static import CodeStatic
from contextd.domain.code import Chunk
from contextd.domain.code_store import Candidates, CodeFilter, Probe
from contextd.domain.source_text import chunk_text, lines_of
from contextd.services.code_search import with_names
from contextd.services.indexed_trees import indexed_at

HALF: float = 2e-3
"""Vectors are kept in half precision."""

FILES = {
    "shop.go": "package shop\n\nfunc cancelRequest(id int) int {\n\treturn run(id)\n}\n\n"
    "func parseRequest(id int) int {\n\treturn run(id)\n}\n\n"
    "func sendRequest(id int) int {\n\treturn run(id)\n}\n",
    "colours.py": "RED, GREEN = range(2)\n\n\ndef mix(one, other):\n    return one + other\n",
    "deep/tree.go": "package deep\n\ntype Tree struct {\n\tleft, right *Tree\n}\n\n"
    "func (t *Tree) Height() int {\n\tif t == nil {\n\t\treturn 0\n\t}\n"
    "\treturn 1 + max(t.left.Height(), t.right.Height())\n}\n",
    "README.md": "# Shop\n\nRequests are sent, parsed and cancelled.\n",
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return grown(tmp_path / "shop", FILES)


def candidates(desk: Desk, root: Path, query: str, **fields: Any) -> Candidates:
    async def work() -> Candidates:
        room = desk.house.code
        indexed = await indexed_at(room.store, str(root), HERE)
        probe = Probe(
            words=tuple(query.split()),
            required=(),
            whole="",
            vector=room.reader.query(query),
            names=(),
            filter=fields.pop("filter", CodeFilter()),
        )
        return await room.store.candidates(indexed.project, indexed.trees, replace(probe, **fields))

    return desk.run(work())


def plain_means(files: dict[str, str], found: Candidates) -> dict[int, float]:
    """From the chunks' texts, which are all among the candidates of a small project."""
    model = CodeStatic()
    vectors = {}
    for chunk, row in found.rows.items():
        lines = lines_of(files[row.path])
        signature = row.symbol.signature if row.symbol else ""
        text = chunk_text(Chunk(row.start_line, row.end_line, part=row.part), lines, signature)
        vectors[chunk] = model.document(model.pieces(text))
    mean = np.mean(list(vectors.values()), axis=0)
    return {chunk: float(vector @ mean / np.linalg.norm(mean)) for chunk, vector in vectors.items()}


def test_how_typical_a_chunk_is_is_its_cosine_to_the_mean_of_all(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    found = candidates(desk, shop, "the height of a tree")
    assert len(found.rows) == desk.status(shop)["statistics"]["total_chunks"] > 6
    assert dict(found.typical) == pytest.approx(plain_means(FILES, found), abs=HALF)


def test_what_went_away_is_no_part_of_the_mean(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    candidates(desk, shop, "the height of a tree")
    (shop / "colours.py").unlink()
    changed = {**FILES, "deep/tree.go": FILES["deep/tree.go"].replace("Height", "Depth")}
    grown(shop, {"deep/tree.go": changed["deep/tree.go"]})
    desk.index(shop)
    found = candidates(desk, shop, "the depth of a tree")
    assert "colours.py" not in {row.path for row in found.rows.values()}
    assert dict(found.typical) == pytest.approx(plain_means(changed, found), abs=HALF)


def test_a_filter_changes_who_is_found_and_not_what_is_typical(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    whole = candidates(desk, shop, "the height of a tree")
    some = candidates(desk, shop, "the height of a tree", filter=CodeFilter(file_pattern="**/*.go"))
    assert 0 < len(some.rows) < len(whole.rows)
    assert some.typical == {chunk: whole.typical[chunk] for chunk in some.rows}


def test_by_words_alone_no_vector_is_looked_at(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    found = candidates(desk, shop, "cancelled tree", vector=None)
    assert found.rows
    assert found.typical == {}
    assert with_names(found, None, desk.house.code.reader).names_near == {}


def test_names_are_compared_by_what_they_mean(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    found, reader = candidates(desk, shop, "abort"), desk.house.code.reader
    near = with_names(found, reader.query("abort"), reader).names_near
    by_name = {row.symbol.name: near[chunk] for chunk, row in found.rows.items() if row.symbol}
    assert max(by_name, key=lambda name: by_name[name]) == "cancelRequest"
    assert near.keys() == {chunk for chunk, row in found.rows.items() if row.symbol}


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_of_functions_that_do_the_same_the_one_of_such_a_name_comes_first(
    desk: Desk, shop: Path, mode: str
) -> None:
    desk.index(shop)
    (best, *_) = desk.found(shop, "abort what was asked for", search_mode=mode)
    assert best["symbol"]["name"] == "cancelRequest"

"""How much a code index holds of some trees."""

import json
import sqlite3
from collections.abc import Sequence

from contextd.adapters.sqlite.code_trees import TreeView
from contextd.domain.code_store import Totals, Tree


def totals(connection: sqlite3.Connection, view: TreeView, trees: Sequence[Tree], recipe: str) -> Totals:
    """Embeddings are those of this recipe: no other takes part in a search."""
    mine = f"(SELECT blob FROM files WHERE root IN ({', '.join(str(tree.id) for tree in trees)}))"
    counts = [
        int(connection.execute(f"SELECT count({what}) FROM {table} WHERE blob IN {mine}").fetchone()[0])
        for what, table in (("*", "symbols"), ("*", "chunks"))
    ]
    (embeddings,) = connection.execute(
        f"SELECT count(vector) FROM chunks WHERE blob IN {mine}"
        " AND blob IN (SELECT id FROM blobs WHERE recipe = ?)",
        (recipe,),
    ).fetchone()
    closer = connection.execute(
        "SELECT closer.model, count(*) FROM closer JOIN chunks ON chunks.id = closer.chunk"
        f" WHERE chunks.blob IN {mine} GROUP BY closer.model"
    )
    (words,) = connection.execute(
        f"SELECT count(*) FROM words WHERE rowid IN (SELECT id FROM chunks WHERE blob IN {mine})"
    ).fetchone()
    languages: dict[str, int] = {}
    troubles: list[tuple[str, int, str]] = []
    for id, language, found in connection.execute(
        f"SELECT id, language, troubles FROM blobs WHERE id IN {mine}"
    ):
        places = view.places.get(int(id), [])
        languages[language] = languages.get(language, 0) + len(places)
        troubles += [(place.path, line, why) for place in places for line, why in json.loads(found)]
    return Totals(
        files=sum(map(len, view.places.values())),
        symbols=counts[0],
        chunks=counts[1],
        embeddings=int(embeddings),
        closer={str(model): int(count) for model, count in closer},
        words=int(words),
        size_bytes=_size(connection),
        languages=dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        troubles=sorted(troubles),
    )


def _size(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page_size)

"""The text model's vectors of chunks: which are there, which are not yet, and how near a query they are."""

import sqlite3
import zlib
from collections.abc import Sequence

from contextd.adapters.sqlite.code_finding import at_once
from contextd.domain.records import Vector


def closer(
    connection: sqlite3.Connection, chunks: Sequence[int], model: str, vector: Vector
) -> dict[int, float]:
    """Cosines of those chunks that the model has read."""
    import numpy as np

    query = np.frombuffer(vector, dtype="<f4")
    found: dict[int, float] = {}
    for some in at_once(chunks):
        rows = connection.execute(
            f"SELECT chunk, vector FROM closer WHERE model = ? AND chunk IN ({', '.join('?' * len(some))})",
            [model, *some],
        )
        for chunk, half in rows:
            found[int(chunk)] = float(np.frombuffer(half, "<f2").astype(np.float32) @ query)
    return found


def unread(connection: sqlite3.Connection, recipe: str, model: str, limit: int) -> list[tuple[int, str]]:
    """Chunks without a vector of this model, with their text. Those of another recipe are about to go."""
    rows = connection.execute(
        "SELECT chunks.id, chunks.start_line, chunks.end_line, blobs.content FROM chunks"
        " JOIN blobs ON blobs.id = chunks.blob LEFT JOIN closer"
        " ON closer.chunk = chunks.id AND closer.model = ?"
        " WHERE closer.chunk IS NULL AND chunks.blob IN (SELECT blob FROM files)"
        " AND blobs.recipe = ? ORDER BY chunks.id LIMIT ?",
        (model, recipe, limit),
    )
    return [
        (int(id), "\n".join(zlib.decompress(content).decode().split("\n")[start - 1 : end]))
        for id, start, end, content in rows
    ]


def attach(connection: sqlite3.Connection, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Vectors in half precision, to chunks that are still there."""
    connection.executemany(
        "INSERT INTO closer (chunk, model, vector) SELECT ?1, ?2, ?3"
        " WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?1)"
        " ON CONFLICT (chunk) DO UPDATE SET model = excluded.model, vector = excluded.vector",
        [(chunk, model, half) for chunk, half in vectors],
    )


def forget_others(connection: sqlite3.Connection, model: str) -> None:
    connection.execute("DELETE FROM closer WHERE model <> ?", (model,))

"""Symbols of a code index: where they are defined and used, what files import, what patterns types have."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from contextd.adapters.sqlite.code_finding import at_once
from contextd.adapters.sqlite.code_rows import SYMBOL_COLUMNS, to_symbol, to_use
from contextd.domain.code import Import
from contextd.domain.code_store import PatternRow, SymbolRow, Tree, UseRow

_MOST_USES: Final = 5_000
_IS_USED: Final = (
    "uses.rowid IN (SELECT rowid FROM uses WHERE name = ?1 UNION"
    " SELECT uses.rowid FROM imports JOIN uses ON uses.blob = imports.blob AND uses.name = imports.alias"
    " WHERE imports.name = ?1 AND imports.name <> '' AND imports.alias <> imports.name"
    " AND uses.qualifier = '')"
)
"""By its name, or by the name that an import gives it."""


def defined(connection: sqlite3.Connection, trees: Sequence[Tree], name: str) -> list[SymbolRow]:
    rows = connection.execute(
        f"SELECT {SYMBOL_COLUMNS} FROM symbols JOIN blobs ON blobs.id = symbols.blob"
        " JOIN files ON files.blob = symbols.blob"
        f" WHERE symbols.name = ? AND {_is_of(trees)} ORDER BY files.path, symbols.line",
        (name,),
    )
    return [to_symbol(row) for row in rows if row[2] == name]


def used(connection: sqlite3.Connection, trees: Sequence[Tree], name: str) -> list[UseRow]:
    return _uses(connection, trees, _IS_USED, name)


def uses_within(connection: sqlite3.Connection, trees: Sequence[Tree], symbol: SymbolRow) -> list[UseRow]:
    return _uses(connection, trees, "uses.symbol = ?1", symbol.id)


def _uses(
    connection: sqlite3.Connection, trees: Sequence[Tree], condition: str, value: object
) -> list[UseRow]:
    rows = connection.execute(
        "SELECT uses.name, uses.kind, files.path, uses.line, uses.qualifier, uses.blob,"
        f" blobs.language, blobs.package, files.marks, {SYMBOL_COLUMNS}"
        " FROM uses JOIN blobs ON blobs.id = uses.blob JOIN files ON files.blob = uses.blob"
        " LEFT JOIN symbols ON symbols.id = uses.symbol"
        f" WHERE {condition} AND {_is_of(trees)} ORDER BY files.path, uses.line LIMIT ?2",
        (value, _MOST_USES),
    )
    return [to_use(row) for row in rows]


def _is_of(trees: Sequence[Tree]) -> str:
    """That a file is of these trees; a path that several of them have counts once, by the first."""
    ids = ", ".join(str(tree.id) for tree in trees)
    if len(trees) == 1:
        return f"files.root = {ids}"
    first = f"SELECT min(root) FROM files AS first WHERE first.path = files.path AND first.root IN ({ids})"
    return f"files.root = ({first})"


def imports(connection: sqlite3.Connection, blobs: Collection[int]) -> dict[int, list[Import]]:
    found: dict[int, list[Import]] = {}
    for some in at_once(set(blobs)):
        rows = connection.execute(
            f"SELECT blob, module, alias, name FROM imports WHERE blob IN ({', '.join('?' * len(some))})",
            some,
        )
        for blob, module, alias, name in rows:
            found.setdefault(int(blob), []).append(Import(module, alias, name))
    return found


def patterns(
    connection: sqlite3.Connection, trees: Sequence[Tree], symbols: Collection[int]
) -> list[PatternRow]:
    ids = [tree.id for tree in trees]
    return [
        PatternRow(symbol, pattern, json.loads(evidence), folder)
        for some in at_once(symbols)
        for symbol, pattern, evidence, folder, _ in connection.execute(
            "SELECT symbol, pattern, evidence, folder, min(root) FROM patterns"
            f" WHERE symbol IN ({', '.join('?' * len(some))})"
            f" AND root IN ({', '.join('?' * len(ids))})"
            " GROUP BY symbol, folder, pattern ORDER BY symbol, folder, pattern",
            [*some, *ids],
        )
    ]

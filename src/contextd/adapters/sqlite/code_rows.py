"""Rows of a code index as the domain has them."""

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from contextd.domain.code import SymbolKind
from contextd.domain.code_store import Print, Purpose, SymbolRow, Tree, UseRow

SYMBOL_COLUMNS: Final = (
    "symbols.id, symbols.blob, symbols.name, symbols.kind, symbols.container, symbols.signature,"
    " symbols.doc, symbols.line, symbols.start_line, symbols.end_line, symbols.exported, symbols.facts,"
    " files.path, blobs.package, blobs.language"
)
SYMBOL_WIDTH: Final = 15


def to_symbol(row: Sequence[Any]) -> SymbolRow:
    return SymbolRow(
        id=row[0],
        blob=row[1],
        name=row[2],
        kind=cast(SymbolKind, row[3]),
        container=row[4],
        signature=row[5],
        doc=row[6],
        line=row[7],
        start_line=row[8],
        end_line=row[9],
        exported=bool(row[10]),
        facts=json.loads(row[11]) if row[11] else {},
        path=row[12],
        package=row[13],
        language=row[14],
    )


def to_tree(row: Sequence[Any]) -> Tree:
    id, path, purpose, version, about = row
    return Tree(id, path, cast(Purpose, purpose), version, json.loads(about))


def to_print(text: str) -> Print:
    size, modified, changed, inode, device = map(int, text.split())
    return size, modified, changed, inode, device


def to_use(row: Sequence[Any]) -> UseRow:
    """From its own columns, and then those of the symbol around it."""
    name, kind, path, line, qualifier, blob, language, package, marks = row[:9]
    within = to_symbol(row[9:]) if row[9] is not None else None
    return UseRow(name, kind, path, line, qualifier, blob, language, package, marks, within)

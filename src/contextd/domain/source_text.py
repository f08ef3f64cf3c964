"""What the index makes of a file's text: what is searched of a chunk, and what is shown of it."""

from collections.abc import Sequence

from contextd.domain.code import Chunk, Outline
from contextd.domain.words import index_words


def lines_of(text: str) -> list[str]:
    """As editors and git count them: only line feeds end a line."""
    lines = text.split("\n")
    return lines[:-1] if lines and lines[-1] == "" else lines


def chunk_text(chunk: Chunk, lines: Sequence[str], signature: str) -> str:
    """As it is shown: later parts of a symbol begin with its signature."""
    body = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
    return f"{signature} …\n{body}" if signature and chunk.part > 0 else body


def chunk_words(chunk: Chunk, lines: Sequence[str], outline: Outline) -> tuple[str, str]:
    """For the keyword index: the names that the chunk defines, and its text."""
    inside = [
        symbol
        for symbol in outline.symbols
        if chunk.start_line <= symbol.line <= chunk.end_line and symbol.kind != "module"
    ]
    own = outline.symbols[chunk.symbol] if chunk.symbol >= 0 else None
    named = {f"{each.container} {each.name}": None for each in ([own] if own else []) + inside}
    return index_words(" ".join(named)), index_words(
        "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
    )

"""An outline of a text as it was written, told in the words of the same text with its secrets removed.

A placeholder is no syntax of any language, so that what is parsed is the text itself. What an outline
repeats of it, signatures and comments, comes from lines that were not touched, or from the clean ones.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from contextd.domain.code import Outline, Reference, Symbol, Trouble

_BLANK = re.compile(r"\s+")


def scrubbed_outline(outline: Outline, raw: Sequence[str], clean: Sequence[str]) -> Outline:
    """Both texts have the same lines, one for one."""
    pairs = enumerate(zip(raw, clean, strict=True), start=1)
    touched = {line for line, (one, other) in pairs if one != other}
    if not touched:
        return outline
    return replace(
        outline,
        symbols=tuple(_symbol(each, touched, clean) for each in outline.symbols),
        references=tuple(_reference(each, touched) for each in outline.references),
        troubles=tuple(_trouble(each, touched) for each in outline.troubles),
        build="" if outline.build and outline.build not in clean else outline.build,
    )


def _symbol(symbol: Symbol, touched: set[int], clean: Sequence[str]) -> Symbol:
    if touched.isdisjoint(range(symbol.start_line, symbol.end_line + 1)):
        return symbol
    text = _BLANK.sub(" ", " ".join(clean[symbol.start_line - 1 : symbol.end_line]))
    signature = symbol.signature
    if not touched.isdisjoint(range(symbol.line, symbol.end_line + 1)) and signature not in text:
        signature = _BLANK.sub(" ", clean[symbol.line - 1]).strip()
    doc = "\n".join(line for line in symbol.doc.split("\n") if _BLANK.sub(" ", line.strip()) in text)
    return replace(symbol, signature=signature, doc=doc)


def _reference(use: Reference, touched: set[int]) -> Reference:
    return replace(use, qualifier="…") if use.line in touched and use.qualifier else use


def _trouble(trouble: Trouble, touched: set[int]) -> Trouble:
    return replace(trouble, reason="syntax error") if trouble.line in touched else trouble

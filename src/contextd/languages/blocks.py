"""Blocks between braces in texts that no grammar reads: where each of them ends."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from contextd.languages.sections import Head


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def ended(lines: Sequence[str], heads: Sequence[Head], closing: tuple[str, ...] = ("}",)) -> list[Head]:
    """Each head with its last line: the one that closes it at the same indent, or all before the next head.

    One pass over the lines, however many blocks are never closed.
    """
    ends = dict(_ends(lines, {head.line: head for head in heads if not head.last}, closing))
    return [replace(head, last=ends.get(head.line, head.last)) for head in heads]


def _ends(
    lines: Sequence[str], heads: dict[int, Head], closing: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    open_: list[tuple[int, int]] = []
    for number, line in enumerate(lines, 1):
        indent = indent_of(line)
        if number in heads:
            while open_ and open_[-1][1] >= indent:
                open_.pop()
            open_.append((number, indent))
        elif open_ and line.startswith(closing, indent):
            while open_ and open_[-1][1] > indent:
                open_.pop()
            if open_ and open_[-1][1] == indent:
                yield open_.pop()[0], number

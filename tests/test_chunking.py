"""Chunks: every line is in one of them, none is larger than the model reads at once, and cuts are clean."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from code_projects import Desk, grown, open_desk
from contextd.adapters.code_static import MAX_PIECES, CodeStatic
from contextd.adapters.digester import Digester
from contextd.domain.chunking import REPEATED, chunks_of
from contextd.domain.code import Chunk, Outline, Source, Symbol, SymbolKind
from contextd.domain.source_text import chunk_text, lines_of
from contextd.languages import Languages

WINDOW = 100
KINDS: tuple[SymbolKind, ...] = ("function", "constant", "variable", "class")


def symbol(
    start: int, end: int, kind: SymbolKind = "function", borders: tuple[int, ...] = (), container: str = ""
) -> Symbol:
    return Symbol(
        f"s{start}_{end}", kind, "func s()", "", start, start, end, borders=borders, container=container
    )


@st.composite
def nested(draw: st.DrawFn, first: int, last: int, depth: int = 0) -> list[Symbol]:
    """Symbols in a row between two lines, some with others inside, as parsers give them."""
    symbols: list[Symbol] = []
    at = first
    while at <= last and draw(st.booleans()):
        start = draw(st.integers(at, last))
        end = draw(st.integers(start, last))
        kind: SymbolKind = draw(st.sampled_from(KINDS))
        borders = tuple(sorted(draw(st.sets(st.integers(start, end), max_size=6))))
        symbols.append(symbol(start, end, kind, borders))
        if kind == "class" and depth < 2 and end > start:
            symbols += draw(nested(start + 1, end, depth + 1))
        at = end + 1
    return symbols


@st.composite
def files(draw: st.DrawFn) -> tuple[Outline, list[int]]:
    """An outline, and the sizes of the lines; a blank line has none."""
    sizes = draw(st.lists(st.one_of(st.just(0), st.integers(1, 60), st.integers(90, 250)), max_size=40))
    return Outline(symbols=tuple(draw(nested(1, len(sizes))) if sizes else ())), sizes


def cut(outline: Outline, sizes: list[int]) -> list[Chunk]:
    return chunks_of(outline, sizes, [size == 0 for size in sizes], WINDOW)


@given(files())
def test_every_line_that_is_not_blank_is_in_exactly_one_chunk(file: tuple[Outline, list[int]]) -> None:
    outline, sizes = file
    chunks = cut(outline, sizes)
    covered = [line for chunk in chunks for line in range(chunk.start_line, chunk.end_line + 1)]
    assert len(covered) == len(set(covered))
    assert {line for line in covered if sizes[line - 1]} == {
        line for line, size in enumerate(sizes, start=1) if size
    }
    assert covered == sorted(covered)
    for chunk in chunks:
        assert sizes[chunk.start_line - 1], "a chunk begins with a blank line"
        assert sizes[chunk.end_line - 1], "a chunk ends with a blank line"


@given(files())
@example((Outline(symbols=(symbol(1, 4, "class"), symbol(2, 2))), [10, 5, 50, 45]))
def test_no_chunk_is_larger_than_the_window_unless_it_is_one_line(file: tuple[Outline, list[int]]) -> None:
    outline, sizes = file
    for chunk in cut(outline, sizes):
        size = sum(sizes[chunk.start_line - 1 : chunk.end_line])
        repeated = REPEATED if chunk.part else 0
        assert size + repeated <= WINDOW or chunk.start_line == chunk.end_line


@given(files())
def test_parts_of_a_symbol_are_numbered_from_nought_in_order(file: tuple[Outline, list[int]]) -> None:
    parts: dict[int, list[int]] = {}
    for chunk in cut(*file):
        if chunk.symbol < 0:
            assert chunk.part == 0
        else:
            parts.setdefault(chunk.symbol, []).append(chunk.part)
    assert all(numbers == list(range(len(numbers))) for numbers in parts.values())


@given(files())
def test_a_chunk_belongs_to_the_innermost_symbol_of_its_lines(file: tuple[Outline, list[int]]) -> None:
    outline, sizes = file
    for chunk in cut(outline, sizes):
        around = [
            each
            for each in outline.symbols
            if each.start_line <= chunk.start_line and each.end_line >= chunk.start_line
        ]
        if not around:
            assert chunk.symbol == -1
            continue
        innermost = min(around, key=lambda each: each.end_line - each.start_line)
        owner = outline.symbols[chunk.symbol]
        assert (owner.start_line, owner.end_line) == (innermost.start_line, innermost.end_line)


def test_a_long_symbol_is_cut_where_a_statement_begins() -> None:
    borders = (2, 4, 7, 11, 13)
    chunks = cut(Outline(symbols=(symbol(1, 14, borders=borders),)), [9] * 14)
    assert len(chunks) > 1
    assert {chunk.start_line for chunk in chunks[1:]} <= set(borders)
    assert [chunk.part for chunk in chunks] == list(range(len(chunks)))


def test_a_border_far_back_is_not_worth_a_tiny_part() -> None:
    """The only border stands right at the beginning: the cut is made by size."""
    chunks = cut(Outline(symbols=(symbol(1, 60, borders=(2,)),)), [3] * 60)
    assert chunks[0].end_line > 2


def test_short_declarations_in_a_row_are_one_chunk() -> None:
    row = tuple(symbol(line, line, "constant") for line in (1, 2, 3))
    assert cut(Outline(symbols=row), [4, 4, 4]) == [Chunk(1, 3, 0)]


def test_declarations_of_two_kinds_are_two_chunks() -> None:
    pair = (symbol(1, 1, "constant"), symbol(2, 2, "variable"))
    assert [chunk.symbol for chunk in cut(Outline(symbols=pair), [4, 4])] == [0, 1]


def test_names_that_are_declared_together_are_one_chunk() -> None:
    twins = (symbol(1, 2, "variable"), symbol(1, 2, "variable"))
    assert cut(Outline(symbols=twins), [4, 4]) == [Chunk(1, 2, 0)]


# --- the same through the parser and the model's own pieces ------------------------------------


@pytest.fixture(scope="module")
def digester() -> Digester:
    return Digester(Languages(), CodeStatic())


def long_function(statements: int) -> str:
    body = "".join(
        f'\tif value%{n} == 0 {{\n\t\tresult = append(result, "divisor number {n} of the value")\n\t}}\n'
        for n in range(2, statements + 2)
    )
    return (
        "package maths\n\n// Divisors tells what divides a value.\nfunc Divisors(value int) []string {\n"
        f"\tvar result []string\n{body}\treturn result\n}}\n"
    )


def test_a_long_function_is_split_at_its_statements(digester: Digester) -> None:
    text = long_function(90)
    digest = digester.digest(Source("go", text))
    lines = lines_of(text)
    parts = [
        chunk
        for chunk in digest.chunks
        if chunk.symbol >= 0 and digest.outline.symbols[chunk.symbol].name == "Divisors"
    ]
    assert len(parts) > 2
    assert [part.part for part in parts] == list(range(len(parts)))
    assert all(before.end_line + 1 == after.start_line for before, after in pairwise(parts))
    for part in parts[1:]:
        assert lines[part.start_line - 1].lstrip().startswith(("if ", "result ", "return "))
    assert digest.over_window == 0


def test_later_parts_repeat_the_signature(digester: Digester) -> None:
    text = long_function(90)
    digest = digester.digest(Source("go", text))
    signature = "func Divisors(value int) []string"
    for chunk in digest.chunks:
        shown = chunk_text(chunk, lines_of(text), signature)
        assert shown.startswith(f"{signature} …\n") == (chunk.part > 0)


def test_a_line_that_is_longer_than_the_window_is_counted(digester: Digester) -> None:
    lines = ["package p", "", "func F() {", *(f'\tg("{"order " * count}")' for count in (9, 900, 300)), "}"]
    digest = digester.digest(Source("go", "\n".join(lines)))
    assert digest.over_window == 1
    pieces = [len(CodeStatic().pieces(line)) for line in lines]
    for chunk in digest.chunks:
        size = sum(pieces[chunk.start_line - 1 : chunk.end_line]) + (REPEATED if chunk.part else 0)
        assert size <= MAX_PIECES or (chunk.start_line, chunk.end_line) == (5, 5)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


def test_a_hit_in_the_middle_of_a_long_function_says_what_function_it_is_in(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = grown(tmp_path_factory.mktemp("maths"), {"maths.go": long_function(90)})
    desk.index(root)
    found = desk.found(root, '"divisor number 55 of the value"')
    assert [hit["symbol"]["name"] for hit in found] == ["Divisors"]
    assert found[0]["content"].startswith("func Divisors(value int) []string …\n")
    assert found[0]["file"]["start_line"] > 50

"""Languages: each has samples with the outline that an expert would write; some things hold for any text.

`python tests/test_languages.py --write [NAME ...]` writes the outlines anew. They are then read line by
line against their samples: a wrong table proves nothing.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextd.adapters.tree_sitter import TreeSitterParser
from contextd.domain.code import Outline, Reference, Symbol
from contextd.languages import Languages

FOLDER = Path(__file__).parent / "languages"
SAMPLES = sorted(
    path
    for path in FOLDER.glob("*/*")
    if path.is_file() and path.suffix != ".golden" and path.name.startswith(("sample", "broken"))
)
LANGUAGES = Languages()
PARSER = TreeSitterParser(LANGUAGES.by_name)


def language_of(sample: Path) -> str:
    language = LANGUAGES.of(sample.name)
    assert language is not None, f"no language knows {sample.name}"
    return language.name


def text_of(sample: Path) -> str:
    return sample.read_bytes().decode()


def golden_of(sample: Path) -> Path:
    return sample.with_name(f"{sample.name}.golden")


def table(outline: Outline) -> str:
    """An outline as text, a line each."""
    return "".join(f"{line}\n" for line in _rows(outline))


def _rows(outline: Outline) -> Iterator[str]:
    if outline.package:
        yield f"package {outline.package}"
    if outline.build:
        yield f"build {outline.build}"
    for each in outline.imports:
        alias = f" as {each.alias}" if each.alias else ""
        yield f"import {each.module}{alias}" + (f" name {each.name}" if each.name else "")
    for symbol in outline.symbols:
        yield _symbol_row(symbol)
    for reference in outline.references:
        yield _reference_row(reference, outline)
    for trouble in outline.troubles:
        yield f"trouble @{trouble.line} {trouble.reason}"


def _symbol_row(symbol: Symbol) -> str:
    seen = "exported" if symbol.exported else "internal"
    lines = f"{symbol.start_line}..{symbol.end_line} @{symbol.line}"
    doc = symbol.doc.split("\n", 1)[0]
    return f"{symbol.kind} {_full_name(symbol)} {lines} {seen} :: {symbol.signature} :: {doc}".rstrip()


def _reference_row(reference: Reference, outline: Outline) -> str:
    qualifier = f"{reference.qualifier}." if reference.qualifier else ""
    place = f" in {_full_name(outline.symbols[reference.within])}" if reference.within >= 0 else ""
    return f"{reference.kind} {qualifier}{reference.name} @{reference.line}{place}"


def _full_name(symbol: Symbol) -> str:
    return f"{symbol.container}.{symbol.name}" if symbol.container else symbol.name


def hold_together(outline: Outline, text: str) -> None:
    """What is true of every outline, whatever the text."""
    lines = max(1, text.count("\n") + (not text.endswith("\n")))
    for symbol in outline.symbols:
        assert 1 <= symbol.start_line <= symbol.line <= symbol.end_line <= lines, symbol
        assert symbol.name
        assert "\n" not in symbol.signature
        assert all(symbol.start_line <= border <= symbol.end_line for border in symbol.borders)
    for reference in outline.references:
        assert -1 <= reference.within < len(outline.symbols)
        assert 1 <= reference.line <= lines
        assert reference.name
    assert all(1 <= trouble.line <= lines for trouble in outline.troubles)


def id_of(sample: Path) -> str:
    return f"{sample.parent.name}/{sample.name}"


@pytest.mark.parametrize("sample", SAMPLES, ids=id_of)
def test_a_sample_has_the_outline_beside_it(sample: Path) -> None:
    outline = PARSER.outline(language_of(sample), text_of(sample))
    hold_together(outline, text_of(sample))
    assert table(outline) == golden_of(sample).read_text()
    if LANGUAGES.by_name[language_of(sample)].grammar:
        assert bool(outline.troubles) == sample.name.startswith("broken")


def test_every_language_has_a_sample() -> None:
    assert set(LANGUAGES.by_name) == {language_of(sample) for sample in SAMPLES}


def test_no_outline_is_left_without_its_sample() -> None:
    assert {path.with_suffix("") for path in FOLDER.glob("*/*.golden")} == set(SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=id_of)
def test_line_ends_change_nothing(sample: Path) -> None:
    text = text_of(sample)
    language = language_of(sample)
    windows = PARSER.outline(language, text.replace("\n", "\r\n"))
    assert table(windows) == table(PARSER.outline(language, text))


@pytest.mark.parametrize("sample", SAMPLES, ids=id_of)
def test_a_sample_cut_at_any_line_still_has_an_outline(sample: Path) -> None:
    lines = text_of(sample).splitlines(keepends=True)
    for end in range(len(lines)):
        text = "".join(lines[:end])
        hold_together(PARSER.outline(language_of(sample), text), text)


def any_text(language: str) -> st.SearchStrategy[str]:
    """Anything at all, and lines of the language in any order: those get further into its rules."""
    mine = [sample for sample in SAMPLES if LANGUAGES.of(sample.name) is LANGUAGES.by_name[language]]
    lines = [line for sample in mine for line in text_of(sample).splitlines(keepends=True)]
    shuffled = st.lists(st.sampled_from(lines or ["\n"]), max_size=30).map("".join)
    return st.one_of(st.text(st.characters(), max_size=60), shuffled)


@pytest.mark.parametrize("language", sorted(LANGUAGES.by_name))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_text_has_an_outline(language: str, data: st.DataObject) -> None:
    text = data.draw(any_text(language))
    hold_together(PARSER.outline(language, text), text)


@pytest.mark.parametrize("language", sorted(LANGUAGES.by_name))
@pytest.mark.parametrize("text", ["", "\n", "\r\n\r\n", "\ufeff", "\x00", "(" * 5000, "{[" * 3000, "é漢🦊"])
def test_odd_texts_have_an_outline(language: str, text: str) -> None:
    hold_together(PARSER.outline(language, text), text)


DOCS = [
    ("go", "// Put adds.\n//\n// put(1)\n//nolint:all\nfunc Put() {}\n", "Put adds.\n\nput(1)"),
    ("python", 'def put():\n    """Adds.\n\n    Once.\n    """\n', "Adds.\n\nOnce."),
    ("python", 'LIMIT = 3\n"""As far\nas it goes."""\n', "As far\nas it goes."),
    (
        "javascript",
        "/**\n * Adds.\n *\n * @param x what\n */\nfunction put(x) {}\n",
        "Adds.\n\n@param x what",
    ),
    ("typescript", "// One.\n// Two.\nlet x = 1; // three\n", "One.\nTwo."),
    (
        "java",
        "/** Adds {@code 1} to <b>it</b>, see {@link Shelf#all() all}. */\nclass A {}",
        "Adds 1 to it, see all.",
    ),
    (
        "csharp",
        '/// <summary>\n/// Adds.\n/// </summary>\n/// <param name="x">What.</param>\nclass A {}',
        "Adds.\nx: What.",
    ),
]


@pytest.mark.parametrize(("language", "text", "doc"), DOCS)
def test_a_doc_comment_is_kept_whole_without_its_marks(language: str, text: str, doc: str) -> None:
    (symbol,) = PARSER.outline(language, text).symbols
    assert symbol.doc == doc


def test_a_comment_that_stands_apart_or_behind_code_is_no_doc_comment() -> None:
    apart, behind = PARSER.outline("go", "// Licence.\n\nfunc A() {} // of a\nfunc B() {}\n").symbols
    assert (apart.doc, apart.start_line) == ("", 3)
    assert (behind.doc, behind.start_line) == ("", 4)


def test_go_tells_what_its_types_hold_and_what_its_methods_assign() -> None:
    outline = PARSER.outline("go", text_of(FOLDER / "go" / "sample.go"))
    facts = {_full_name(symbol): symbol.facts for symbol in outline.symbols}
    assert facts["Order"]["fields"] == [
        ["Base", "Base"],
        ["Mutex", "*sync.Mutex"],
        ["Entry", "ledger.Entry"],
        ["lines", "[]Line"],
        ["State", "State"],
    ]
    assert facts["Line"]["fields"] == [["Name", "string"], ["Note", "string"]]
    assert facts["Repository"]["methods"] == ["Find", "Save"]
    assert facts["Shelf.Put"] == {
        "pointer": True,
        "assigns": ["size", "values"],
        "returns": "(ok bool, err error)",
    }
    assert facts["Order.Find"]["pointer"] is False
    assert facts["NewShelf"] == {"returns": "*Shelf[K]"}


def test_a_long_symbol_has_borders_where_its_statements_begin() -> None:
    body = "".join(f"    if value == {n}:\n        return {n}\n" for n in range(20))
    (symbol,) = PARSER.outline("python", f"def pick(value):\n{body}").symbols
    assert set(range(2, 42, 2)) <= set(symbol.borders)


def test_a_file_is_known_by_its_suffix_or_its_name() -> None:
    names = ("a/x.PY", "x.d.ts", "x.tsx", "x.mjs", "SConstruct", "Order.java", "x.csx")
    found = [LANGUAGES.of(name) for name in names]
    assert [each.name for each in found if each is not None] == [
        "python",
        "typescript",
        "tsx",
        "javascript",
        "python",
        "java",
        "csharp",
    ]
    assert LANGUAGES.of("x.unknown") is None


def write(names: list[str]) -> None:
    for sample in SAMPLES:
        if not names or sample.parent.name in names:
            golden_of(sample).write_text(table(PARSER.outline(language_of(sample), text_of(sample))))


if __name__ == "__main__" and sys.argv[1:2] == ["--write"]:
    write(sys.argv[2:])

"""Texts without a grammar: what would be too many sections, and where none is looked for."""

import pytest

from contextd.domain.code import Outline
from contextd.languages import Languages
from contextd.languages.sections import LARGEST, MOST

LANGUAGES = Languages()

MANY = {
    "toml": "[[package]]\nname = 'a'\n\n",
    "yaml": "package:\n  name: a\n",
    "ini": "[package]\nname = a\n",
    "hcl": 'package "a" {\n}\n',
    "makefile": "package:\n\tbuild\n",
    "dockerfile": "FROM package\n",
    "cmake": "add_library(package a.c)\n",
    "groovy": "package {\n}\n",
}


def outline(language: str, text: str) -> Outline:
    sections = LANGUAGES.by_name[language].sections
    assert sections is not None
    return sections(text)


def json_with(keys: int) -> str:
    return "{\n" + ",\n".join(f'"k{key}": {{\n}}' for key in range(keys)) + "\n}\n"


def xml_with(elements: int) -> str:
    return "<all>\n" + "<one>\n</one>\n" * elements + "</all>\n"


@pytest.mark.parametrize("language", sorted(MANY))
def test_settings_with_hundreds_of_sections_are_data_and_have_none(language: str) -> None:
    assert len(outline(language, MANY[language] * MOST).symbols) == MOST
    assert outline(language, MANY[language] * (MOST + 1)).symbols == ()


def test_so_it_is_where_sections_are_inside_of_something() -> None:
    assert len(outline("json", json_with(MOST)).symbols) == MOST
    assert outline("json", json_with(MOST + 1)).symbols == ()
    assert len(outline("xml", xml_with(MOST)).symbols) == MOST
    assert outline("xml", xml_with(MOST + 1)).symbols == ()


def test_a_very_large_file_of_settings_is_data_too() -> None:
    padding = " " * LARGEST
    assert outline("json", json_with(2) + padding).symbols == ()
    assert outline("yaml", "a:\n  b: 1\n" + padding).symbols == ()
    assert outline("xml", xml_with(2) + padding).symbols == ()


def test_a_document_has_as_many_sections_as_it_has_headings() -> None:
    symbols = outline("markdown", "# one\n\ntext\n\n" * 1000).symbols
    assert len(symbols) == 1000
    assert symbols[-1].start_line == 3997
    assert symbols[-1].end_line == 3999


def test_long_sections_may_be_split_where_a_paragraph_begins() -> None:
    (symbol,) = outline("markdown", "# one\n\n" + "a\nb\n\n" * 20).symbols
    assert symbol.borders[:3] == (3, 6, 9)


def test_code_and_settings_are_told_apart() -> None:
    code = {name for name, each in LANGUAGES.by_name.items() if each.sections is not None and each.is_code}
    assert code == {"shell", "sql", "proto"}


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("Dockerfile", "dockerfile"),
        ("src/Makefile", "makefile"),
        ("CMakeLists.txt", "cmake"),
        ("go.mod", "settings"),
        ("README", "text"),
        ("docs/Guide.MD", "markdown"),
        ("include/shop.h", "c"),
        ("include/shop.hpp", "cpp"),
        ("Gemfile", "ruby"),
        ("LICENSE", None),
        (".env", None),
        ("Cargo.lock", None),
    ],
)
def test_a_file_is_known_by_its_name_or_suffix(path: str, language: str | None) -> None:
    found = LANGUAGES.of(path)
    assert (found.name if found is not None else None) == language


def test_a_long_key_with_nothing_but_comments_inside_is_a_section_without_sections() -> None:
    text = "processors:\n" + "  # batch:\n" * 30 + "exporters:\n  otlp: {}\n"
    assert [symbol.name for symbol in outline("yaml", text).symbols] == ["processors", "exporters"]

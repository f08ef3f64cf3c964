"""One file a language: what a symbol, a chunk and a doc comment is."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from contextd.languages.language import Language

MODULES: Final = (
    "go",
    "python",
    "javascript",
    "typescript",
    "java",
    "csharp",
    "rust",
    "c",
    "cpp",
    "ruby",
    "php",
    "markdown",
    "text",
    "config",
    "toml",
    "yaml",
    "json",
    "xml",
    "build_files",
    "shell",
    "sql",
    "proto",
)


def shipped() -> Iterator[Language]:
    for name in MODULES:
        module = importlib.import_module(f"contextd.languages.{name}")
        yield from getattr(module, "LANGUAGES", None) or (module.LANGUAGE,)


class Languages:
    """Every language by name, and which one a file is written in."""

    def __init__(self, more: Iterable[Language] = ()) -> None:
        """Those that ship, and more, which come before them."""
        added = tuple(more)
        self.is_shipped = not added
        self.by_name: dict[str, Language] = {each.name: each for each in (*shipped(), *added)}
        self._by_suffix = {suffix: each for each in self.by_name.values() for suffix in each.suffixes}
        self._by_file = {name: each for each in self.by_name.values() for name in each.names}

    def of(self, path: str) -> Language | None:
        """By the file's name; None for a file that no language knows."""
        name = PurePosixPath(path)
        return self._by_file.get(name.name) or self._by_suffix.get(name.suffix.lower())

"""Settings of other kinds: in sections with names in brackets, in blocks with braces, or plain."""

import re
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.blocks import ended
from contextd.languages.language import Language
from contextd.languages.sections import Head, commented, lines_of, settings_outline

_BRACKETS: Final = re.compile(r"\[([^\[\]]+)\][ \t]*(?:[#;].*)?$")
_BLOCK: Final = re.compile(r"([A-Za-z_][^{}#;=]*)\{[ \t]*(?:#.*)?$")


def _ini(text: str) -> Outline:
    """Files that end in `.conf` may have blocks instead: `server {`."""
    lines = lines_of(text)
    heads = [
        commented(lines, Head(number, found[1]), "#", ";")
        for number, line in enumerate(lines, 1)
        if (found := _BRACKETS.match(line)) is not None
    ]
    return settings_outline(lines, heads) if heads else _blocks(text)


def _blocks(text: str) -> Outline:
    lines = lines_of(text)
    heads = [
        commented(lines, Head(number, " ".join(found[1].replace('"', " ").split())), "#", "//")
        for number, line in enumerate(lines, 1)
        if (found := _BLOCK.match(line)) is not None
    ]
    return settings_outline(lines, ended(lines, heads))


def _plain(text: str) -> Outline:
    return Outline()


LANGUAGES = (
    Language(
        name="ini",
        suffixes=(".ini", ".cfg", ".conf", ".cnf", ".service", ".timer", ".socket", ".desktop"),
        names=(".editorconfig", ".gitconfig", ".gitmodules", ".flake8", ".pylintrc", ".coveragerc"),
        sections=_ini,
        is_code=False,
    ),
    Language(name="hcl", suffixes=(".tf", ".hcl", ".tfvars", ".nomad"), sections=_blocks, is_code=False),
    Language(
        name="settings",
        suffixes=(".properties",),
        names=(
            ".env.example",
            ".env.sample",
            ".env.template",
            "CODEOWNERS",
            "Procfile",
            "go.mod",
            "go.work",
        ),
        sections=_plain,
        is_code=False,
    ),
)

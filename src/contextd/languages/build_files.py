"""Files that say how things are built: targets, stages and functions of make, Docker, CMake and Groovy."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from contextd.domain.code import Outline, SymbolKind
from contextd.languages.blocks import ended
from contextd.languages.language import Language
from contextd.languages.sections import Head, commented, lines_of, settings_outline

_TARGET: Final = re.compile(r"([^\s#:=][^:=#]*)::?(?![:=])([^#]*)(?:#+[ \t]*(.*))?$")
_DEFINE: Final = re.compile(r"(?:override[ \t]+|export[ \t]+)*define[ \t]+([^\s:+?=]+)")
_SPECIAL: Final = re.compile(r"\.[A-Z_]+$")


def _make(text: str) -> Outline:
    lines = lines_of(text)
    return settings_outline(lines, list(_make_heads(lines)))


def _make_heads(lines: Sequence[str]) -> Iterator[Head]:
    """Targets with their recipes, and definitions until their end."""
    opened: Head | None = None
    is_definition = False
    for number, line in enumerate(lines, 1):
        if opened is not None and is_definition:
            if line.strip() == "endef":
                yield replace(opened, last=number)
                opened = None
            continue
        if not line.strip() or line[0] in "\t #" or (number > 1 and lines[number - 2].endswith("\\")):
            continue
        if opened is not None:
            yield replace(opened, last=_last_of_recipe(lines, number - 1))
        opened = _make_head(lines, number, line)
        is_definition = opened is not None and _DEFINE.match(line) is not None
    if opened is not None:
        yield opened


def _last_of_recipe(lines: Sequence[str], last: int) -> int:
    """Without the comment of what follows."""
    while lines[last - 1].startswith("#") or not lines[last - 1].strip():
        last -= 1
    return last


def _make_head(lines: Sequence[str], number: int, line: str) -> Head | None:
    if (define := _DEFINE.match(line)) is not None:
        return commented(lines, Head(number, define[1]), "#")
    target = _TARGET.match(line)
    if target is None or _SPECIAL.match(target[1].strip()):
        return None
    return commented(lines, Head(number, target[1].strip(), doc=(target[3] or "").strip()), "#")


_STAGE: Final = re.compile(r"FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?", re.IGNORECASE)


def _docker(text: str) -> Outline:
    lines = lines_of(text)
    heads = [
        commented(lines, Head(number, found[2] or found[1]), "#")
        for number, line in enumerate(lines, 1)
        if (found := _STAGE.match(line)) is not None
    ]
    return settings_outline(lines, heads)


_CMAKE: Final = re.compile(
    r"(function|macro|add_(?:executable|library|custom_target|test))\s*\([ \t]*(?:NAME[ \t]+)?([^\s()]+)",
    re.IGNORECASE,
)
_CMAKE_KINDS: Final[dict[str, SymbolKind]] = {"function": "function", "macro": "macro"}
_CMAKE_END: Final = re.compile(r"end(?:function|macro)[ \t]*\(", re.IGNORECASE)


def _cmake(text: str) -> Outline:
    lines = lines_of(text)
    return settings_outline(lines, list(_cmake_heads(lines)))


def _cmake_heads(lines: Sequence[str]) -> Iterator[Head]:
    """Functions until their end, and targets until their bracket closes."""
    opened: Head | None = None
    is_target, depth = False, 0
    for number, line in enumerate(lines, 1):
        found = _CMAKE.match(line) if opened is None else None
        if found is not None:
            kind = _CMAKE_KINDS.get(found[1].lower(), "section")
            opened = commented(lines, Head(number, found[2], kind=kind), "#")
            is_target, depth = kind == "section", 0
        if opened is None:
            continue
        depth += line.count("(") - line.count(")")
        if depth <= 0 if is_target else _CMAKE_END.match(line):
            yield replace(opened, last=number)
            opened = None


_GROOVY_STAGE: Final = re.compile(r"([ \t]*)stage[ \t]*\([ \t]*[\"']([^\"']+)[\"'][ \t]*\)[ \t]*\{")
_GROOVY_FUNCTION: Final = re.compile(r"()def[ \t]+(\w+)[ \t]*\([^{}=;]*\{[ \t]*$")
_GROOVY_BLOCK: Final = re.compile(r"()([A-Za-z_][^{}=;]*)\{[ \t]*$")


def _groovy(text: str) -> Outline:
    """Blocks at the left, and the stages of a pipeline wherever they are."""
    lines = lines_of(text)
    heads = [head for number, line in enumerate(lines, 1) for head in _groovy_head(lines, number, line)]
    return settings_outline(lines, ended(lines, heads))


def _groovy_head(lines: Sequence[str], number: int, line: str) -> Iterator[Head]:
    function = _GROOVY_FUNCTION.match(line)
    found = function or _GROOVY_STAGE.match(line) or _GROOVY_BLOCK.match(line)
    if found is not None:
        kind: SymbolKind = "function" if function is not None else "section"
        yield commented(lines, Head(number, found[2], 1 + len(found[1]), kind), "//")


LANGUAGES = (
    Language(
        name="makefile",
        suffixes=(".mk", ".mak", ".make"),
        names=("Makefile", "makefile", "GNUmakefile"),
        sections=_make,
        is_code=False,
    ),
    Language(
        name="dockerfile",
        suffixes=(".dockerfile",),
        names=("Dockerfile", "Containerfile"),
        sections=_docker,
        is_code=False,
    ),
    Language(name="cmake", suffixes=(".cmake",), names=("CMakeLists.txt",), sections=_cmake, is_code=False),
    Language(
        name="groovy",
        suffixes=(".gradle", ".groovy"),
        names=("Jenkinsfile",),
        sections=_groovy,
        is_code=False,
    ),
)

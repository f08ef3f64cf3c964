"""Shell scripts: their functions, what they source, and which of their own functions they call."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from contextd.domain.code import Import, Outline, Reference
from contextd.languages.blocks import ended
from contextd.languages.language import Language
from contextd.languages.sections import Head, code_outline, commented, lines_of

_FUNCTION: Final = re.compile(
    r"[ \t]*(?:function[ \t]+([A-Za-z_][\w:.-]*)[ \t]*(?:\([ \t]*\))?|([A-Za-z_][\w:.-]*)[ \t]*\([ \t]*\))"
    r"[ \t]*(?:[{(](.*))?$"
)
_SOURCED: Final = re.compile(r"[ \t]*(?:source|\.)[ \t]+([^;&|#]*)")
_PATH: Final = re.compile(r"[\w./-]+")
_HERE: Final = re.compile(r"<<-?[ \t]*[\"']?([A-Za-z_]\w*)[\"']?")
_WORD: Final = re.compile(r"(?<![\w./$-])[A-Za-z_][\w:-]*(?![\w./=(-])")
_ASIDE: Final = re.compile(r"'[^']*+'|(?<!\S)#.*")


def _sections(text: str) -> Outline:
    lines = lines_of(text)
    shown = list(_without_documents(lines))
    found = [head for number, line in enumerate(shown, 1) for head in _function(lines, number, line)]
    heads = ended(shown, found, ("}", ")"))
    names = {head.name for head in heads}
    return code_outline(lines, heads, list(_imports(shown)), list(_calls(shown, names)))


def _without_documents(lines: Sequence[str]) -> Iterator[str]:
    """Blanks for what stands between `<<END` and `END`: it is no script."""
    end = ""
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            yield ""
            continue
        found = _HERE.search(line)
        end = found[1] if found is not None else ""
        yield line


def _function(lines: Sequence[str], number: int, line: str) -> Iterator[Head]:
    found = _FUNCTION.match(line)
    if found is None:
        return
    is_short = (found[3] or "").rstrip().endswith(("}", ")"))
    signature = line.strip() if is_short else line.strip().rstrip("{( \t")
    head = Head(
        number,
        found[1] or found[2],
        kind="function",
        signature=signature.partition("{")[0].strip(),
        last=number if is_short else 0,
    )
    yield commented(lines, head, "#")


def _imports(lines: Sequence[str]) -> Iterator[Import]:
    for line in lines:
        found = _SOURCED.match(line)
        paths = _PATH.findall(found[1]) if found is not None else []
        if found is not None and paths:
            # `"$here/lib.sh"` is taken for a file beside this one.
            path = f".{paths[-1]}" if paths[-1].startswith("/") and "$" in found[1] else paths[-1]
            yield Import(path, PurePosixPath(path).stem)


def _calls(lines: Sequence[str], names: set[str]) -> Iterator[Reference]:
    """Any word may be a command: those count that are functions of this file."""
    if not names:
        return
    for number, line in enumerate(lines, 1):
        defined = _FUNCTION.match(line)
        start = defined.end(1 if defined[1] else 2) if defined is not None else 0
        for found in _WORD.finditer(_ASIDE.sub("", line[start:])):
            if found[0] in names:
                yield Reference(found[0], "call", number)


LANGUAGE = Language(
    name="shell",
    suffixes=(".sh", ".bash", ".zsh", ".ksh", ".bats"),
    sections=_sections,
    tests=("*.bats", "test_*.sh", "*_test.sh", "**/tests/**"),
)

"""XML: what stands directly in the outermost element and takes several lines."""

import re
from collections.abc import Iterator
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.language import Language
from contextd.languages.sections import LARGEST, Head, lines_of, settings_outline

_TAG: Final = re.compile(r"</?([A-Za-z_][\w:.-]*)")
_NAMED: Final = re.compile(r"[ \t\r\n](?:id|name|Name|Include)[ \t]*=[ \t]*[\"']([^\"'<>]+)[\"']")
_SKIPPED: Final = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}


def _sections(text: str) -> Outline:
    if len(text) > LARGEST:
        return Outline()
    return settings_outline(lines_of(text), list(_heads(text)))


def _heads(text: str) -> Iterator[Head]:
    depth = start = 0
    name = ""
    for tag, line in _tags(text):
        is_end, is_empty = tag.startswith("</"), tag.endswith("/>")
        if is_end:
            depth = max(0, depth - 1)
            if depth == 1 and name and line > start:
                yield Head(start, name, last=line)
        elif depth == 1:
            start, name = line, _name(tag)
        depth += not is_end and not is_empty


def _tags(text: str) -> Iterator[tuple[str, int]]:
    """Tags with the lines on which they begin; comments, declarations and raw text are left out."""
    line, at = 1, 0
    while (opened := text.find("<", at)) >= 0:
        line += text.count("\n", at, opened)
        end_mark = next((end for mark, end in _SKIPPED.items() if text.startswith(mark, opened)), ">")
        end = text.find(end_mark, opened)
        if end < 0:
            return
        at = end + len(end_mark)
        if end_mark == ">" and _TAG.match(text, opened):
            yield text[opened:at], line
        line += text.count("\n", opened, at)


def _name(tag: str) -> str:
    """`<bean id="clock">` is the bean of that name."""
    found = _TAG.match(tag)
    named = _NAMED.search(tag)
    return " ".join(part[1] for part in (found, named) if part is not None)


LANGUAGE = Language(
    name="xml",
    suffixes=(".xml", ".xsd", ".wsdl", ".csproj", ".fsproj", ".vbproj", ".props", ".targets", ".nuspec"),
    sections=_sections,
    is_code=False,
)

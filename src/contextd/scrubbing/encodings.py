"""The forms in which one value may stand in a text."""

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_URL_SAFE: Final = str.maketrans("+/", "-_")
_ODD: Final = re.compile(r"([^\w@%+=:,./-])", re.ASCII)
_IN_DOUBLE_QUOTES: Final = re.compile(r'([\\"$`])')


@dataclass(frozen=True, slots=True)
class Form:
    """`text` is what is looked for. In base64 the characters beside it may hold some bits of the value."""

    text: str
    shares_left: bool = False
    shares_right: bool = False

    def span(self, text: str, end: int) -> tuple[int, int]:
        """Where the form is that ends here, with those neighbours and the padding."""
        start = end - len(self.text)
        if self.shares_left and start and text[start - 1] in _BASE64:
            start -= 1
        if self.shares_right and end < len(text) and text[end] in _BASE64:
            end += 1
        if self.shares_right:
            end += len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
        return start, end


def forms_of(value: str, shortest: int) -> Iterator[Form]:
    """As is, base64 at each alignment, hex, URL-encoded, escaped as JSON, HTML and shells do.

    Forms under the shortest length are left out: they would be found by chance.
    """
    raw = value.encode("utf-8", "surrogatepass")
    seen: set[str] = set()
    for form in (Form(value), *_base64(raw), *map(Form, _spelled(value, raw))):
        if form.text not in seen and len(form.text) >= shortest:
            seen.add(form.text)
            yield form


def _base64(raw: bytes) -> Iterator[Form]:
    """What surely stands in the base64 of any text around it: the sextets that are the value's alone."""
    for before in range(3):
        code = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        first = (before * 8 + 5) // 6
        whole = (before + len(raw)) * 8 // 6
        inner = code[first:whole]
        for text in (inner, inner.translate(_URL_SAFE)):
            yield Form(text, shares_left=before > 0, shares_right=(before + len(raw)) % 3 != 0)


def _spelled(value: str, raw: bytes) -> Iterator[str]:
    yield raw.hex()
    yield raw.hex().upper()
    every = "".join(f"%{byte:02X}" for byte in raw)
    for coded in (every, quote(raw, safe=""), quote(raw), quote_plus(raw), quote_plus(raw, safe="/")):
        yield coded
        yield re.sub(r"%..", lambda match: match[0].lower(), coded)
    for coded in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        yield coded[1:-1]
        yield json.dumps(coded[1:-1])[1:-1]
        yield coded[1:-1].replace("/", "\\/")
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield shlex.quote(value).removeprefix("'").removesuffix("'")
    yield value.replace("'", "'\\''")
    yield _ODD.sub(r"\\\1", value)
    yield _IN_DOUBLE_QUOTES.sub(r"\\\1", value)

"""Bytes of a file as text, and what kind of text it is."""

import re
from typing import Final

_HEAD: Final = 8_192
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_GENERATED: Final = re.compile(
    r"^(?:// Code generated .* DO NOT EDIT\.$"
    r"|\W{0,8}@generated\b"
    r"|\W{0,8}(?:this (?:file|code) (?:is|was)|automatically|auto)[ -]?(?:automatically )?-?generated\b"
    r".{0,80}(?:do not (?:edit|modify)|by )"
    r"|\W{0,8}<auto-?generated)",
    re.MULTILINE | re.IGNORECASE,
)
"""Go's own rule, and the marks that other generators leave, in the first lines."""
_LONG_LINE: Final = 5_000
_DENSE: Final = 400


def decoded(data: bytes) -> str | None:
    """As text with line feeds; None for what is no text. Bytes that are no UTF-8 are read as Latin-1."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            try:
                return _one_break(data.decode(encoding))
            except UnicodeDecodeError:
                return None
    if b"\0" in data[:_HEAD]:
        return None
    try:
        return _one_break(data.decode("utf-8"))
    except UnicodeDecodeError:
        head = data[:_HEAD]
        controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
        return None if controls * 50 > len(head) else _one_break(data.decode("latin-1"))


def _one_break(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def is_generated(text: str) -> bool:
    """Marked as generated near its top, or minified."""
    head = text[:_HEAD]
    if _GENERATED.search("\n".join(head.split("\n")[:40])):
        return True
    lines = text.count("\n") + 1
    return len(text) > _LONG_LINE and len(text) / lines > _DENSE

"""Bytes of a file as text, and back: what an editor would keep of the file is kept.

Encodings are told by a byte order mark, else UTF-8, else a Western one of a byte a character.
"""

import codecs
from dataclasses import dataclass, field
from typing import Final

from contextd.domain.errors import BadText, NotText

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ONE_BYTE: Final = ("cp1252", "latin-1")
_FORMATS: Final = (
    (b"\x7fELF", "a program"),
    (b"MZ", "a program for Windows"),
    (b"\xca\xfe\xba\xbe", "compiled Java or a program for macOS"),
    (b"\xcf\xfa\xed\xfe", "a program for macOS"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a WebP image, sound or video"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x00asm", "WebAssembly"),
    (b"!<arch>", "an archive of object files"),
    (b"OTTO", "a font"),
    (b"wOF2", "a font"),
)
_CONTROLS: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b\x08")
_LOOK_AT: Final = 8_192


@dataclass(frozen=True, slots=True)
class Shape:
    """How a text lies in its file."""

    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark that it begins with."""
    crlf: bool = False
    """Whether every line ends so. Its text is then shown and changed with plain line feeds."""

    @property
    def name(self) -> str:
        return f"{self.encoding} with BOM" if self.mark else self.encoding

    @property
    def is_guessed(self) -> bool:
        return self.encoding in _ONE_BYTE

    def encoded(self, text: str) -> bytes:
        """Raises BadText for a character that the encoding does not have."""
        if self.crlf:
            text = with_line_feeds(text).replace("\n", "\r\n")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError:
            raise BadText(
                "content",
                f"the text has characters that the file's encoding {self.encoding} has not",
                "leave them out, or give the whole content with mode overwrite, which makes it UTF-8",
            ) from None

    def can_encode(self, text: str) -> bool:
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class FileText:
    text: str = field(repr=False)
    shape: Shape


def decoded(data: bytes) -> FileText:
    """Raises NotText, which says what it looks like."""
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", None))
    text, encoding = _as_text(data, mark, encoding)
    if "\x00" in text:
        raise _not_text(data)
    crlf = _ends_in_crlf(text)
    return FileText(with_line_feeds(text) if crlf else text, Shape(encoding, mark, crlf))


def with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n")


def _as_text(data: bytes, mark: bytes, encoding: str | None) -> tuple[str, str]:
    body = data[len(mark) :]
    try:
        return body.decode(encoding or "utf-8"), encoding or "utf-8"
    except UnicodeDecodeError:
        if encoding is not None or _is_binary(data):
            raise _not_text(data) from None
    for guess in _ONE_BYTE[:-1]:
        try:
            return body.decode(guess), guess
        except UnicodeDecodeError:
            continue
    return body.decode(_ONE_BYTE[-1]), _ONE_BYTE[-1]


def _is_binary(data: bytes) -> bool:
    if any(data.startswith(begin) for begin, _ in _FORMATS):
        return True
    begin = data[:_LOOK_AT]
    return b"\x00" in data or sum(byte in _CONTROLS for byte in begin) > len(begin) // 50


def _ends_in_crlf(text: str) -> bool:
    ends = text.count("\r\n")
    return ends > 0 and ends == text.count("\n") == text.count("\r")


def _not_text(data: bytes) -> NotText:
    kind = next((kind for begin, kind in _FORMATS if data.startswith(begin)), "binary data")
    return NotText("path", f"the file is not text: it looks like {kind} ({len(data)} bytes)")

"""The terminal: what may be written to it, how much fits, and a line that tells how far the work is."""

import json
import os
import shutil
import sys
import unicodedata
from io import TextIOWrapper
from typing import Final

import click

from contextd.adapters.log_lines import UNSEEN

_BAR: Final = 24


def prepare_terminal() -> None:
    """No colours for who asks for none, and no crash over a character that the terminal does not have."""
    if os.environ.get("NO_COLOR"):
        click.get_current_context().color = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    """Names and code are anybody's: what would steer the terminal, or hide a part, is written out."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that may be looked at, too: what a terminal obeys is escaped, as JSON allows anywhere."""
    lines = json.dumps(value, ensure_ascii=False, indent=indent).split("\n")
    return "\n".join(UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in lines)


def clipped(text: str, columns: int) -> str:
    """The text as far as it fits on a line, with a sign where it goes on."""
    used = fits = 0
    for at, char in enumerate(text):
        used += _columns_of(char)
        if used < columns:
            fits = at + 1
        if used > columns:
            return f"{text[:fits]}…"
    return text


def _columns_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class ProgressLine:
    """One line of a terminal that is written over, and gone at the end. Nothing where there is none."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._written = False

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            self._write("")

    async def tell(self, done: float, total: float | None, message: str | None) -> None:
        """As a caller's progress."""
        if self._shows:
            columns = shutil.get_terminal_size().columns - 1
            self._write(clipped(self._text(done, total, message or ""), columns))

    def _text(self, done: float, total: float | None, message: str) -> str:
        if not total:
            return f"{message} …"
        filled = int(_BAR * done / total)
        bar = "█" * filled + "░" * (_BAR - filled)
        what = "writing the index" if done >= total else f"{done:,.0f} of {total:,.0f} files"
        return f"{bar} {done / total:4.0%}  {what}"

    def _write(self, text: str) -> None:
        """In one piece, clearing what is left of the longer line before: so nothing flickers."""
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()
        self._written = True

"""What hides a secret from a pattern and not from a reader: colours, NUL, backspace, zero width."""

import re
from collections.abc import Iterator
from typing import Final

from contextd.scrubbing.views import View, without

_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n\r"))
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_CLASS: Final = f"[{re.escape(_CONTROLS.decode())}\x80-\x9f{_INVISIBLE}]"
_HIDDEN: Final = re.compile(_CLASS)
_ESCAPE: Final = (
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|\x1b(?:[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|[ -/]*+[0-~])"
)
_OVERSTRIKE: Final = r"(.)\x08(?=\1)|_\x08(?=.)"
_UNSEEN: Final = re.compile(f"{_ESCAPE}|{_CLASS}")
_STRUCK_OR_UNSEEN: Final = re.compile(f"{_OVERSTRIKE}|{_ESCAPE}|{_CLASS}")


def hides(text: str) -> bool:
    """Whether anything is there that hides. Quick, for it is asked of every text."""
    if text.isascii():
        return len(text.encode().translate(None, _CONTROLS)) < len(text)
    return _HIDDEN.search(text) is not None


def plain(text: str) -> str:
    """The text without what hides."""
    return _UNSEEN.sub("", text) if hides(text) else text


def revealed(text: str) -> Iterator[View]:
    """The text as a reader sees it, where that differs: each way to read it."""
    if not hides(text):
        return
    yield without(text, _UNSEEN)
    if "\b" in text:
        yield without(text, _STRUCK_OR_UNSEEN)

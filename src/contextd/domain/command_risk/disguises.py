"""Letters that look like others, and characters that cannot be seen."""

import re
import unicodedata
from typing import Final

_LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝгмткпвνορκυαιτѵӏ",
    "aeopcyxijshdqwrmtknbvopkuaitvl",
)
_UNSEEN: Final = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\ufeff\ufff9-\ufffb]"
)
_TURNING: Final = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_SPLIT_WORD: Final = re.compile(rf"[A-Za-z]{_UNSEEN.pattern}+[A-Za-z]")
_MIXED: Final = re.compile(r"[A-Za-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z]")


def undisguised(command: str) -> str:
    """As it looks to a person: unseen characters gone, look-alikes in plain letters."""
    if command.isascii():
        return command
    seen = _TURNING.sub("", _UNSEEN.sub("", command))
    return unicodedata.normalize("NFKC", seen).translate(_LOOK_ALIKES)


def oddities(command: str) -> list[str]:
    """What no honest command has."""
    found: list[str] = []
    if command.isascii():
        return found
    if _TURNING.search(command):
        found.append(
            "holds characters that turn the direction of the text, so that it reads otherwise than it runs"
        )
    if _SPLIT_WORD.search(command):
        found.append("holds characters within a word that cannot be seen")
    if any(_mixes(match[0]) for match in _MIXED.finditer(command)):
        found.append("mixes look-alike letters of two alphabets within a word")
    return found


def _mixes(pair: str) -> bool:
    return pair.translate(_LOOK_ALIKES).isascii()

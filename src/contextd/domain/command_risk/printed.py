"""What a pipeline prints, where its text is plain to see: `echo cm0gLXJm | base64 -d`."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final

from contextd.domain.command_risk.syntax import Command, Pipeline

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "", "b": "", "e": "", "E": "", "f": "", "v": ""}
_LAST_CODE_POINT: Final = 0x10FFFF


def printed(pipeline: Pipeline) -> str | None:
    """The text that the last command prints, or None when it cannot be known."""
    text: str | None = None
    for command in pipeline:
        text = passed_on(command, text)
    return text


def passed_on(command: Command, fed: str | None) -> str | None:
    """What one command prints, given what comes down the pipe."""
    args = [word.text for word in command.words[1:]]
    stdin = command.stdin if command.stdin is not None else fed
    if any(word.open or word.glob for word in command.words):
        return None
    if source := _SOURCES.get(command.program):
        return source(args)
    filter = _FILTERS.get(command.program)
    return filter(args, stdin) if filter and stdin is not None else None


def unescaped(text: str) -> str:
    """As `$'…'`, `printf` and `echo -e` read it."""
    return _ESCAPE.sub(_character, text)


def _echoed(args: list[str]) -> str:
    escapes = False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        escapes = escapes or "e" in args[0]
        args = args[1:]
    text = " ".join(args)
    return unescaped(text) if escapes else text


def _formatted(args: list[str]) -> str | None:
    if args[:1] == ["--"]:
        args = args[1:]
    if not args or args[0] == "-v":
        return None
    values = iter(args[1:])
    return re.sub(r"%[-0-9.]*[a-zA-Z]", lambda _: unescaped(next(values, "")), unescaped(args[0]))


def _copied(args: list[str], text: str) -> str | None:
    return text if args in ([], ["-"]) else None


def _reversed(args: list[str], text: str) -> str:
    return "\n".join(line[::-1] for line in text.split("\n"))


def _decoded(args: list[str], text: str) -> str | None:
    if not {"-d", "-D", "--decode"} & set(args):
        return None
    try:
        return base64.b64decode("".join(text.split()) + "==").decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _from_hex(args: list[str], text: str) -> str | None:
    if not any(arg.startswith("-") and "r" in arg for arg in args):
        return None
    try:
        return bytes.fromhex("".join(text.split())).decode("utf-8", "replace")
    except ValueError:
        return None


def _character(match: re.Match[str]) -> str:
    two, four, eight, octal, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    return chr(code) if code <= _LAST_CODE_POINT else ""


_SOURCES: Final[Mapping[str, Callable[[list[str]], str | None]]] = {"echo": _echoed, "printf": _formatted}
_FILTERS: Final[Mapping[str, Callable[[list[str], str], str | None]]] = {
    "cat": _copied,
    "tee": _copied,
    "rev": _reversed,
    "base64": _decoded,
    "openssl": _decoded,
    "xxd": _from_hex,
}

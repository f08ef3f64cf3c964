"""The flat part of YAML that front matter uses, read strictly.

Scalars plain, quoted or in blocks, lists of them, maps, and JSON on one line. Anything else is refused
with its line, never guessed at.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from contextd.domain.errors import BadFormat

_DOUBLE: Final = r'"(?:[^"\\]|\\.)*"'
_SINGLE: Final = r"'(?:[^']|'')*'"
_PAIR: Final = re.compile(rf"([A-Za-z_][A-Za-z0-9_.-]*|{_DOUBLE}|{_SINGLE}) *:(?: +(.*))?")
_QUOTED: Final = re.compile(f"({_DOUBLE}|{_SINGLE})(?:[ \t]+#.*|[ \t]*)")
_PIECE: Final = re.compile(rf"""{_DOUBLE}|{_SINGLE}|[^,"'[\]{{}}]+|,""")
_COMMENT: Final = re.compile("[ \t]#")
_BLOCK: Final = re.compile(r"([|>])(?:([+-])([1-9])?|([1-9])([+-])?)?(?: +#.*)?")
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED: Final = '0abt\tnvfre "/\\N_LP'
_MEANT: Final = '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029'
_DEEPEST: Final = 8
DEEPEST_JSON: Final = 64
"""As deep as the input of any tool may be."""
_SIGNS: Final = "[]{},#&*!|>%@`"

_IN_QUOTES: Final = "put the text in quotes"
_CLOSE: Final = "close them on the line where they began"


class Plain(str):
    """A scalar without quotes: its text, whatever YAML would take it for."""

    __slots__ = ()


def parse(lines: Sequence[str], first: int) -> dict[str, Any]:
    """Keys to Plain, text, lists, maps or JSON. Raises BadFormat; `first` is the first line's number."""
    return _Reader(lines, first).mapping(0)


class _Reader:
    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines = lines
        self._first = first
        self._at = 0

    # --- lines ------------------------------------------------------------------------

    def mapping(self, indent: int, level: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in self._items(indent):
            pair = _PAIR.fullmatch(line.strip())
            self._at += 1
            if pair is None:
                raise self._refusal(
                    "this is not 'key: value'", "write a key, a colon, a space and its value"
                )
            key = str(self._scalar(pair[1]))
            if key in found:
                raise self._refusal("the key is there twice", "remove one of the two")
            found[key] = self._value((pair[2] or "").strip(), indent, level)
        return found

    def _items(self, indent: int) -> Iterator[str]:
        """The lines of this indentation that say something, until one that is less indented."""
        while (line := self._next()) is not None and _depth(line) >= indent:
            if _depth(line) > indent:
                raise self._refusal(
                    "the line is indented too far", "indent it like its neighbours", ahead=1
                )
            yield line

    def _next(self) -> str | None:
        """The next line that is neither blank nor a comment; the reader stands there."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line.lstrip().startswith("#"):
                if _depth(line) != len(line) - len(line.lstrip()):
                    raise self._refusal("the line is not indented with spaces", "use spaces alone", ahead=1)
                return line
            self._at += 1
        return None

    def _below(self, indent: int, level: int) -> Any:
        """What stands on the lines under a key: a list, a map, or nothing."""
        line = self._next()
        if line is None:
            return Plain("")
        depth = _depth(line)
        if depth >= indent and _is_item(line):
            return self._list(depth)
        if depth <= indent:
            return Plain("")
        if level == _DEEPEST:
            raise self._refusal("the maps are nested too deeply", f"use at most {_DEEPEST} levels", ahead=1)
        return self.mapping(depth, level + 1)

    def _list(self, indent: int) -> list[Any]:
        items = []
        for line in self._items(indent):
            if not _is_item(line):
                break
            self._at += 1
            text = line.strip()[2:].lstrip()
            items.append(self._flow(text) if text[0] in "[{" else self._scalar(text))
        return items

    # --- values -----------------------------------------------------------------------

    def _value(self, text: str, indent: int, level: int) -> Any:
        if not text or text.startswith("#"):
            return self._below(indent, level)
        if block := _BLOCK.fullmatch(text):
            return self._block(block, indent)
        if text[0] in "[{":
            return self._flow(text)
        if text[0] in "\"'":
            return self._quoted(text)
        return self._carried_on(text, indent)

    def _scalar(self, text: str) -> str:
        return self._quoted(text) if text[0] in "\"'" else self._plain(text)

    def _plain(self, text: str) -> Plain:
        text = _COMMENT.split(text, maxsplit=1)[0].rstrip()
        if text[0] in _SIGNS or text.startswith(("- ", "? ", ": ")):
            raise self._refusal("the text begins with a sign of YAML's", _IN_QUOTES)
        if ": " in text or text.endswith(":"):
            raise self._refusal("the text holds a colon", _IN_QUOTES)
        return Plain(text)

    def _carried_on(self, text: str, indent: int) -> Plain:
        """A plain scalar, with the deeper lines that carry it on until a comment or an empty line."""
        parts = [self._plain(text)]
        while not _COMMENT.search(text) and self._at < len(self._lines):
            line = self._lines[self._at]
            text = line.strip()
            if not text or _depth(line) <= indent or text.startswith("#"):
                break
            self._at += 1
            parts.append(self._plain(text))
        return Plain(" ".join(parts))

    def _quoted(self, text: str) -> str:
        found = _QUOTED.fullmatch(text)
        if found is None:
            raise self._refusal("the quotes do not end with the line", _CLOSE)
        inner = found[1][1:-1]
        if found[1].startswith("'"):
            return inner.replace("''", "'")
        return _ESCAPE.sub(self._unescaped, inner)

    def _unescaped(self, found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) > 1:
            code = int(escape[1:], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self._refusal("an escape names no character", "write the character itself")
            return chr(code)
        if escape not in _ESCAPED:
            raise self._refusal("an escape is unknown", "double the backslash to keep it")
        return _MEANT[_ESCAPED.index(escape)]

    def _flow(self, text: str) -> Any:
        """JSON, or a list in brackets."""
        try:
            return load_json(text, _no_number)
        except TooDeep:
            raise self._refusal(
                "the JSON is nested too deeply", f"use at most {DEEPEST_JSON} levels"
            ) from None
        except ValueError:
            pass
        if text[0] == "{" or not text.endswith("]"):
            raise self._refusal("this is not JSON on one line", "write JSON, or indented lines")
        inner = text[1:-1].strip().removesuffix(",")
        pieces = _PIECE.findall(inner)
        if "".join(pieces) != inner:
            raise self._refusal("the list holds more than words", "write it as a JSON list")
        items = [""]
        for piece in pieces:
            if piece == ",":
                items.append("")
            else:
                items[-1] += piece
        if not all(item.strip() for item in items):
            raise self._refusal("an item of the list is empty", "remove the comma too many")
        return [self._scalar(item.strip()) for item in items]

    # --- blocks -----------------------------------------------------------------------

    def _block(self, header: re.Match[str], indent: int) -> str:
        style, ending, stated = header[1], header[2] or header[5], header[3] or header[4]
        lines = list(self._block_lines(indent, indent + int(stated) if stated else None))
        said = len(lines)
        while said and not lines[said - 1]:
            said -= 1
        text = "\n".join(lines[:said]) if style == "|" else _fold(lines[:said])
        if ending == "+":
            return text + "\n" * (len(lines) - said + bool(said))
        return text + "\n" if said and ending is None else text

    def _block_lines(self, indent: int, depth: int | None) -> Iterator[str]:
        """Without their common indentation, which is that of the first unless the header states it."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip(" "):
                if depth is None and _depth(line) > indent:
                    depth = _depth(line)
                if depth is None or _depth(line) < depth:
                    return
            self._at += 1
            yield line[depth or len(line) :]

    def _refusal(self, problem: str, remedy: str, ahead: int = 0) -> BadFormat:
        """About the line that was read last, or the one ahead of it."""
        return refusal(self._first + self._at - 1 + ahead, problem, remedy)


def refusal(line: int, problem: str, remedy: str) -> BadFormat:
    return BadFormat("SKILL.md", f"line {line} of SKILL.md: {problem}", remedy)


class TooDeep(ValueError):
    """JSON with more levels than what reads it afterwards can bear."""


def load_json(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Raises ValueError for what is no JSON, TooDeep for what is nested too deeply."""
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise TooDeep from None
    level = [value]
    for _ in range(DEEPEST_JSON):
        level = [inner for each in level for inner in _inside(each)]
    if any(isinstance(each, list | dict) for each in level):
        raise TooDeep
    return value


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_item(line: str) -> bool:
    return line.strip().startswith("- ")


def _fold(lines: Sequence[str]) -> str:
    """Lines become one, an empty line ends a paragraph, and what is indented further stays as it is."""
    text, empty, before = "", 0, ""
    for line in lines:
        if not line:
            empty += 1
            continue
        kept = bool(before) and (line[0] in " \t" or before[0] in " \t")
        joint = "\n" * (empty + kept)
        text += (joint or " ") + line if before else joint + line
        empty, before = 0, line
    return text

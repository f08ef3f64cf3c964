"""Notes, or the transcript of a session, as blocks: what is said, what is run, what is only shown.

A sentence decides something when somebody says it; the same words in a file that was printed decide
nothing. So every later reading asks a block for its form first.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Form = Literal["prose", "shell", "shown"]
"""`shell` is meant to be run; `shown` is code, or what a tool printed."""

_LONGEST: Final = 2_000
"""Of a paragraph: what is longer is no prose that a person wrote, and must cost no more than its length."""

_FENCE: Final = re.compile(r"\s{0,3}(```+|~~~+)\s*([\w+-]*)")
_SHELLS: Final = frozenset("sh bash shell zsh console shell-session terminal powershell".split())
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+(\S.{0,120})|\*\*([^*]{2,80})\*\*:?\s*\Z")
_INTRODUCING: Final = re.compile(r"([A-Za-z][\w '/-]{1,40}):\s*\Z")
_LABELLED: Final = re.compile(
    r"[A-Z][\w /-]{1,30}:\s|(?:next|todo|open|decision|decided|entschieden|entscheidung|beschlossen|offen"
    r"|noch offen|n(?:ä|ae)chste[rs]? schritte?|als [Nn](?:ä|ae)chstes)[\w /-]{0,20}(?::\s|(?<=chstes)\s)"
)
_BULLET: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[([ xX])\]\s+)?")
PROMPT: Final = re.compile(
    r"\s*(?:\([\w.-]{1,40}\)\s*)?(?:[\w.-]{1,40}@[\w.-]{1,60}[: ]\S{0,100}\s?)?[$\u276f]\s+(\S.*)"
)
_INDENTED: Final = re.compile(r"(?: {4}|\t)\s*\S")
_SPEAKER: Final = re.compile(
    r"\s{0,3}(?:#{1,6}\s*|\*\*)?(user|human|assistant|agent|system|tool(?:[ _](?:result|output|call|use))?)"
    r"(?:\s*\([^)\n]{0,60}\))?\**:\**(?:\s+|\Z)",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"""\s*(?:
      //|/\*|\*/|\#include\b|\#!/|@[A-Za-z_][\w.]*(?:\(|\Z)|\}
    | (?:(?:pub|async|export|default|static|public|private|protected|override|inline)\s+){0,4}(?:
          (?:func|fn|def|function)\s+(?:\([^)]{0,80}\)\s*)?[\w.$]{1,80}\s*[(<\[]
        | (?:class|interface|struct|enum|impl|trait|namespace|type)\s+\w[^.]{0,120}[{:]\Z
        | class\s+\w{1,80}(?:\([\w., =]{0,120}\))?:
        | (?:const|let|var|val)\s+[\w{\[][^.]{0,120}\s=)
    | import\s+(?:[\w.*]{1,100}(?:\s+as\s+\w{1,40})?\Z|.{1,200}\sfrom\s+["']|[("'])
    | from\s+[\w.]{1,100}\s+import\s | package\s+\w{1,60}\Z | \#(?:define|if|ifdef|ifndef|endif|pragma)\b
    | (?:else|try|finally):\Z | (?:elif|except)\b.{0,100}:\Z
    | [\w.,]{1,100}\s:=\s | [(){}\[\];,\s]{1,40}\Z )""",
    re.VERBOSE,
)
"""What only a line of source begins like."""
_ENDS_LIKE_CODE: Final[Mapping[str, re.Pattern[str]]] = {
    ";": re.compile(
        r"\s*(?:return|break|continue|throw|using|use|goto|await|yield|delete)\b[^.]{0,200};"
        r"|.{0,200}(?:\w\(|\s=\s)|\S{0,200};"
    ),
    "{": re.compile(r".{0,400}[\s)=]\{\Z|\{"),
    ")": re.compile(r"\s*[\w.\[\]*, ]{1,80}\s:?=\s[\w.]{1,80}\("),
    "(": re.compile(r"\s*[\w.\[\]*, ]{1,80}\s:?=\s|\s*[\w.]{1,80}\("),
    ",": re.compile(r"\s*[\w.\[\]*, ]{1,80}\s:?=\s"),
}
"""By its last character, what a line of source looks like that ends so."""
_MAY_BE_CODE: Final = re.compile(r"[;{}()=/@#:*]|\A\s*(?:import|package|from)\s")
_COMMENT: Final = re.compile(r"\s*#(?:\s|\Z)")
_WITHIN_CODE: Final = re.compile(r"(?:\s+(?!(?:[-+•]|\d{1,3}[.)])\s)|\#(?!\#)|\*/)", re.VERBOSE)
"""Beside a line of source, an indented line and a comment are source too."""
_WORKING: Final = re.compile(r"^\s{0,3}(?:#{1,6}\s*|\*\*)?(?:assistant|agent)\b[^:\n]{0,60}:", re.I | re.M)
_ASKING: Final = re.compile(r"^\s{0,3}(?:#{1,6}\s*|\*\*)?(?:user|human|tool)\b[^:\n]{0,60}:", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph or a bullet on one line; of a shell or of what is shown, each line by itself."""

    text: str
    form: Form
    line: int
    heading: str = ""
    """What it stands under, lower-case."""
    is_done: bool | None = None
    """Of an item with a box: whether it is ticked."""
    is_asked: bool = False
    """Whether the one who gives the work says it."""


def has_turns(text: str) -> bool:
    """Whether it is the transcript of a session."""
    return bool(_WORKING.search(text) and _ASKING.search(text))


def blocks(text: str) -> Iterator[Block]:
    """In order. Time is linear in the text, whatever it is."""
    return _Reading(text).blocks()


class _Reading:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._has_turns = has_turns(text)
        self._heading = ""
        self._introduced_at: int | None = None
        """The line of a heading that is only a line with a colon: it holds for what follows at once."""
        self._is_shown = False
        """Whether a tool speaks."""
        self._is_asked = False
        """Whether a person does."""
        self._fence = ""
        self._in_shell = False
        self._paragraph: list[str] = []
        self._length = 0
        self._started = 0
        self._box: bool | None = None
        self._after_blank = True
        self._unfinished = ""
        """A command that goes on in the next line."""
        self._in_code = False
        """Whether the last line was source that stands in no fence."""
        self._comments = (0, False)
        """The last line of a run of `#` lines, and whether source follows it: each run is read once."""

    def blocks(self) -> Iterator[Block]:
        for number, line in enumerate(self._lines, start=1):
            bare = self._unfinished + line.rstrip()
            self._unfinished = ""
            if bare.endswith("\\") and self._is_typed(bare):
                self._unfinished = bare[:-1].rstrip() + " "
            elif bare:
                yield from self._line(bare, number)
            elif not self._after_blank:
                yield from self._flushed()
                self._after_blank = True
        if self._unfinished:
            yield from self._line(self._unfinished.rstrip(), len(self._lines))
        yield from self._flushed()

    def _is_typed(self, line: str) -> bool:
        return len(line) < _LONGEST and bool(self._fence or PROMPT.match(line))

    def _line(self, line: str, number: int) -> Iterator[Block]:
        speaker = _SPEAKER.match(line) if self._has_turns else None
        if speaker:
            yield from self._flushed()
            self._turn(speaker.group(1))
            line = line[speaker.end() :]
            if not line:
                return
        if self._fence or "```" in line or "~~~" in line:
            fence = _FENCE.match(line)
            if fence and self._opens_or_closes(fence):
                yield from self._flushed()
                return
        if self._fence or self._is_shown:
            yield Block(line, "shell" if self._in_shell and not self._is_shown else "shown", number)
        else:
            yield from self._prose(line, number)

    def _turn(self, speaker: str) -> None:
        self._is_shown = speaker.lower().startswith("tool")
        self._is_asked = speaker.lower() in ("user", "human")
        self._fence, self._heading, self._after_blank, self._in_code = "", "", True, False

    def _opens_or_closes(self, fence: re.Match[str]) -> bool:
        mark, info = fence.groups()
        if not self._fence:
            self._fence = mark
            self._in_shell = not info or info.lower() in _SHELLS
            return True
        if info or not mark.startswith(self._fence):
            return False
        self._fence = ""
        return True

    def _prose(self, line: str, number: int) -> Iterator[Block]:
        self._in_code = self._is_code(line, number)
        if self._in_code:
            yield from self._flushed()
            self._after_blank = False
            yield Block(line, "shown", number)
            return
        bullet = _BULLET.match(line)
        if not bullet and not self._paragraph and self._after_blank and _INDENTED.match(line):
            yield Block(line.strip(), "shell", number)
            return
        self._after_blank = False
        if line[0] == ">" or PROMPT.match(line):
            yield from self._flushed()
            yield Block(line, "prose" if line[0] == ">" else "shell", number)
            return
        heading = None if bullet else _HEADING.match(line)
        introducing = _INTRODUCING.fullmatch(line.strip()) if line[-1] == ":" and not bullet else None
        if heading or introducing:
            yield from self._flushed()
            self._heading = _title(heading or introducing)
            self._introduced_at = number if introducing else None
            return
        if bullet or self._length > _LONGEST or line[0] == "|" or _LABELLED.match(line):
            yield from self._flushed()
        if not self._paragraph:
            self._begin(bullet, number)
        self._paragraph.append(line[bullet.end() :] if bullet else line.strip())
        self._length += len(line) + 1

    def _is_code(self, line: str, number: int) -> bool:
        if self._in_code and _WITHIN_CODE.match(line) and (line[0] != "#" or not self._after_blank):
            return True
        if len(line) > _LONGEST or not _MAY_BE_CODE.search(line):
            return False
        if _COMMENT.match(line):
            return line[0] == "#" and line[:2] != "##" and self._comments_source(number)
        return _is_source(line)

    def _comments_source(self, number: int) -> bool:
        last, is_source = self._comments
        if number > last:
            last = number
            while last < len(self._lines) and _COMMENT.match(self._lines[last]):
                last += 1
            after = self._lines[last].rstrip() if last < len(self._lines) else ""
            is_source = bool(after) and len(after) <= _LONGEST and _is_source(after)
            self._comments = last, is_source
        return is_source

    def _begin(self, bullet: re.Match[str] | None, number: int) -> None:
        self._started = number
        self._box = bullet.group(1) in ("x", "X") if bullet and bullet.group(1) else None
        if not bullet and self._introduced_at is not None and number > self._introduced_at + 1:
            self._heading, self._introduced_at = "", None

    def _flushed(self) -> Iterator[Block]:
        if self._paragraph:
            text = " ".join(self._paragraph)
            yield Block(text, "prose", self._started, self._heading, self._box, self._is_asked)
        self._paragraph, self._length = [], 0


def _is_source(line: str) -> bool:
    ends = _ENDS_LIKE_CODE.get(line[-1])
    looks = bool(_CODE.match(line) or (ends and ends.match(line)))
    return looks and not _BULLET.match(line) and not PROMPT.match(line)


def _title(found: re.Match[str] | None) -> str:
    return next((name.lower() for name in (found.groups() if found else ()) if name), "")

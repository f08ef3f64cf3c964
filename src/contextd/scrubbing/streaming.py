"""Text that comes in pieces, scrubbed as if it had come whole."""

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from contextd.domain.errors import Internal
from contextd.scrubbing.findings import Finding
from contextd.scrubbing.redaction import Account

HOLD_BACK: Final = 4_096
"""What is not let go yet: a secret that begins before it has its end within."""
_STEP: Final = 4 * HOLD_BACK
_LONGEST: Final = 16 * HOLD_BACK
"""As far as the stream waits for the end of what has begun."""

_BORDERS: Final = ("\n", "\r \t")
_OPENING: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|Private-Lines:")
_CLOSING: Final = re.compile(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|Private-MAC:")


class Looking(Protocol):
    """What a stream needs of the scrubber."""

    def look(self, text: str) -> list[Finding]: ...

    def scrub_between(self, text: str, start: int, end: int, account: Account) -> str: ...


class TextStream:
    """`feed` returns what is safe to show by now, `finish` the rest. Used by one thread at a time.

    Where the text is parted depends on the text alone and never on how it came, so that any
    pieces give the same output. Each part is looked at with what stands before and behind it.
    After a failure nothing more is returned.
    """

    def __init__(self, scrubber: Looking, keep_lines: bool = False) -> None:
        self._scrubber = scrubber
        self._account = Account(keep_lines)
        self._before = ""
        self._pending = ""
        self._arrived: list[str] = []
        self._waiting = 0
        self._wanted = _STEP
        self._broken = False

    @property
    def findings(self) -> Counter[str]:
        """By rule, what was removed so far."""
        return self._account.findings

    def feed(self, chunk: str) -> str:
        self._arrived.append(chunk)
        self._waiting += len(chunk)
        if len(self._pending) + self._waiting < self._wanted:
            return ""
        return self._guarded(last=False)

    def finish(self) -> str:
        """What was held back. The stream is empty then, and may be used for another text."""
        rest = self._guarded(last=True)
        self._before, self._wanted = "", _STEP
        return rest

    def _guarded(self, last: bool) -> str:
        if self._broken:
            raise Internal
        self._broken = True
        self._pending += "".join(self._arrived)
        self._arrived.clear()
        self._waiting = 0
        text = self._released(last)
        self._broken = False
        return text

    def _released(self, last: bool) -> str:
        parts: list[str] = []
        while len(self._pending) >= self._wanted:
            view = self._before + self._pending[: self._wanted]
            found = self._scrubber.look(view)
            cut = _cut(view, len(self._before), found, self._wanted < _LONGEST)
            if cut:
                parts.append(self._part(view, cut) if found else view[len(self._before) : cut])
                self._let_go(view, cut)
            self._wanted = _STEP if cut else min(2 * self._wanted, _LONGEST)
        if last:
            view = self._before + self._pending
            parts.append(self._part(view, len(view)))
            self._pending = ""
        return "".join(parts)

    def _part(self, view: str, cut: int) -> str:
        return self._scrubber.scrub_between(view, len(self._before), cut, self._account)

    def _let_go(self, view: str, cut: int) -> None:
        self._pending = self._pending[cut - len(self._before) :]
        context = view[max(0, cut - HOLD_BACK) : cut]
        line = context.find("\n") + 1
        self._before = context[line:] if 0 < line < len(context) else context


class ByteStream:
    """A text stream that is fed with bytes, wherever they part a character."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def findings(self) -> Counter[str]:
        return self._stream.findings

    def feed(self, chunk: bytes) -> str:
        return self._stream.feed(self._decoder.decode(chunk))

    def finish(self) -> str:
        released = self._stream.feed(self._decoder.decode(b"", final=True))
        return released + self._stream.finish()


def _cut(view: str, start: int, found: Sequence[Finding], may_wait: bool) -> int:
    """Where to part: behind the last line that surely holds no part of an unfinished secret; else behind
    a blank; 0 is not yet."""
    limit = len(view) - HOLD_BACK
    opened = _opened(view, start)
    for borders in _BORDERS:
        cut = _last(borders, view, start, limit if opened is None else min(limit, opened), found)
        if cut > start:
            return cut
    return 0 if may_wait else limit


def _last(borders: str, view: str, start: int, limit: int, found: Sequence[Finding]) -> int:
    """Behind the last border before the limit that is in no finding."""
    cut = limit
    while cut > start:
        cut = max(view.rfind(border, start, cut) for border in borders) + 1
        inside = next((each for each in found if each.start < cut < each.end), None)
        if inside is None:
            break
        cut = inside.start
    return cut


def _opened(view: str, start: int) -> int | None:
    """Where a key of many lines begins whose end is not there yet."""
    for match in _OPENING.finditer(view, start):
        if not _CLOSING.search(view, match.end()):
            return match.start()
    return None

"""What placeholders stand for, for the one who was shown them, in the file that they came from.

In memory alone, bounded in time and number: a restart forgets all of it, and the file is read again.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from contextd.domain.limits import SHOWN_SECRETS_CHARS, SHOWN_SECRETS_FILES, SHOWN_SECRETS_HOURS
from contextd.domain.ports import Clock

_KEEP_S: Final = SHOWN_SECRETS_HOURS * 3_600


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who was shown which file."""

    caller: str
    file: str
    """Its absolute path, with every link in it followed."""


@dataclass(slots=True)
class _Seen:
    at: float
    secrets: dict[str, str] = field(repr=False)
    """Nothing for a placeholder that has stood for two texts: nobody can tell which of them is meant."""

    @property
    def chars(self) -> int:
        return sum(map(len, self.secrets.values()))


class ShownSecrets:
    """Safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[Viewer, _Seen] = OrderedDict()
        self._lock = threading.Lock()

    def shown(self, viewer: Viewer, secrets: Mapping[str, str]) -> None:
        """The file was read: from now on its placeholders mean this, and others what they meant before."""
        self._keep(viewer, {**self._before(viewer), **secrets})

    def replaced(self, viewer: Viewer, secrets: Mapping[str, str]) -> None:
        """The file was written, and these can be read in its backup besides what was shown before.

        A placeholder that means another text there than it was shown for means nothing any more.
        """
        before = self._before(viewer)
        agreed = {mark: text if before.get(mark, text) == text else "" for mark, text in secrets.items()}
        self._keep(viewer, before | agreed)

    def _before(self, viewer: Viewer) -> dict[str, str]:
        with self._lock:
            seen = self._seen.get(viewer)
            return dict(seen.secrets) if seen else {}

    def _keep(self, viewer: Viewer, secrets: dict[str, str]) -> None:
        if not secrets:
            return
        with self._lock:
            self._seen.pop(viewer, None)
            self._seen[viewer] = _Seen(self._clock.monotonic(), secrets)
            self._forget()

    def of(self, viewer: Viewer) -> Mapping[str, str]:
        with self._lock:
            self._forget()
            seen = self._seen.get(viewer)
            return {mark: text for mark, text in seen.secrets.items() if text} if seen else {}

    def _forget(self) -> None:
        """The oldest first, until what is left is young and small enough."""
        oldest_kept = self._clock.monotonic() - _KEEP_S
        chars = sum(seen.chars for seen in self._seen.values())
        while self._seen:
            viewer, seen = next(iter(self._seen.items()))
            if (
                seen.at >= oldest_kept
                and len(self._seen) <= SHOWN_SECRETS_FILES
                and chars <= SHOWN_SECRETS_CHARS
            ):
                return
            chars -= seen.chars
            del self._seen[viewer]

"""Leaves alone what keeps failing, and looks now and then whether it is back."""

import time
from collections.abc import Callable


class CircuitBreaker:
    """Opens after `threshold` failures in a row; then lets one probe through every `cooldown_s`.

    A probe that never reports back (its caller was cancelled) costs one cooldown and no more.
    """

    def __init__(
        self, threshold: int = 5, cooldown_s: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threshold = threshold
        self._cooldown_s = cooldown_s
        self._clock = clock
        self._failures = 0
        self._waiting_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._threshold

    def admit(self) -> bool:
        """Whether to try now. While open, True is the one probe of this cooldown."""
        if not self.is_open:
            return True
        now = self._clock()
        if now - self._waiting_since < self._cooldown_s:
            return False
        self._waiting_since = now
        return True

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self) -> None:
        self._failures += 1
        self._waiting_since = self._clock()

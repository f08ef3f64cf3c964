"""Many measurements into few figures."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one kind of call, in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    mean: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency":
        ordered = sorted(each * 1000 for each in seconds)
        p50, p95, p99 = (_at(ordered, share) for share in (0.5, 0.95, 0.99))
        return cls(len(ordered), p50, p95, p99, statistics.fmean(ordered))


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of two things measured in turns: the median over the rounds, and the range."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, above: Sequence[float], below: Sequence[float]) -> "Ratio":
        each = [a / b for a, b in zip(above, below, strict=True)]
        return cls(statistics.median(each), min(each), max(each))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f} to {self.most:.2f})"


def ms(value: float) -> str:
    """Two figures that tell, whatever the size."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

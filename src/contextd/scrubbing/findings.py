"""Where a secret is, and what it is called."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Finding:
    start: int
    end: int
    name: str
    """What stands in the placeholder: a rule's name."""
    specific: bool = False
    """A vendor's, and no generic rule's."""
    known: str | None = None
    """The secret itself where the text holds it in another form."""

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """What is known wins, then the longer, then the more specific."""
        return self.known is not None, self.end - self.start, self.specific

    def moved(self, start: int, end: int) -> "Finding":
        return replace(self, start=start, end=end)


def merged(found: Iterable[Finding]) -> list[Finding]:
    """In order, none over another: overlapping findings become one over both, named after the better.

    What is known of one of them is not known of both.
    """
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and finding.start < kept[-1].end:
            other = kept.pop()
            best = max(other, finding, key=lambda each: each.rank)
            end = max(other.end, finding.end)
            whole = (best.start, best.end) == (other.start, end)
            kept.append(replace(best, start=other.start, end=end, known=best.known if whole else None))
        elif finding.start < finding.end:
            kept.append(finding)
    return kept


def parted(found: Iterable[Finding], marks: Iterable[int]) -> Iterator[Finding]:
    """The same findings, none of them across a mark."""
    borders = sorted(marks)
    for finding in found:
        start = finding.start
        for border in borders:
            if start < border < finding.end:
                yield replace(finding, start=start, end=border)
                start = border
        yield replace(finding, start=start)

"""How well fingerprints group log lines whose events are known.

    python bench/error_grouping.py PATH

PATH is a CSV file in the loghub format, with a log line in `Content` and its true event in `EventId`
(or in `EventTemplate`), or a folder of such files. Grouping accuracy is loghub's: the share of lines
whose group holds exactly the lines of their true event.
"""

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contextd.domain.fingerprints import read_error
from report import Table


@dataclass(frozen=True, slots=True)
class Grouping:
    name: str
    lines: int
    events: int
    groups: int
    accuracy: float
    seconds: float

    def row(self) -> tuple[str, ...]:
        speed = self.lines / self.seconds if self.seconds else 0.0
        return (
            self.name, str(self.lines), str(self.events), str(self.groups),
            f"{self.accuracy:.3f}", f"{speed:.0f}",
        )  # fmt: skip


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    measured = [measure(file) for file in _files(Path(sys.argv[1]))]
    if not measured:
        print("no CSV file with the columns Content and EventId or EventTemplate is there", file=sys.stderr)
        return 1
    columns = ("data", "lines", "events", "groups", "grouping accuracy", "lines a second")
    print(Table(columns, tuple(each.row() for each in measured)).markdown())
    print(f"mean grouping accuracy {sum(each.accuracy for each in measured) / len(measured):.3f}")
    return 0


def measure(file: Path) -> Grouping:
    lines, events = zip(*_labelled(file), strict=True)
    started = time.perf_counter()
    fingerprints = [read_error(line).fingerprint for line in lines]
    seconds = time.perf_counter() - started
    return Grouping(
        name=file.name.removesuffix(".csv").removesuffix("_structured"),
        lines=len(lines),
        events=len(set(events)),
        groups=len(set(fingerprints)),
        accuracy=accuracy(events, fingerprints),
        seconds=seconds,
    )


def accuracy(events: Iterable[Hashable], groups: Iterable[Hashable]) -> float:
    true, found = _members(events), _members(groups)
    wanted = set(true)
    right = sum(len(group) for group in found if group in wanted)
    return right / sum(len(group) for group in true)


def _members(labels: Iterable[Hashable]) -> list[frozenset[int]]:
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        members[label].append(place)
    return [frozenset(each) for each in members.values()]


def _files(path: Path) -> Iterator[Path]:
    for file in [path] if path.is_file() else sorted(path.rglob("*.csv")):
        if next(_labelled(file), None) is not None:
            yield file


def _labelled(file: Path) -> Iterator[tuple[str, str]]:
    """Line and event; nothing for a file that is not of this format."""
    with file.open(encoding="utf-8", errors="replace", newline="") as opened:
        rows = csv.DictReader(opened)
        names = set(rows.fieldnames or ())
        event = next((name for name in ("EventId", "EventTemplate") if name in names), None)
        if "Content" not in names or event is None:
            return
        for row in rows:
            yield row["Content"], row[event]


if __name__ == "__main__":
    sys.exit(main())

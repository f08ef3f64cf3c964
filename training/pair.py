"""What the models learn from: a text that somebody looks with, and the text that they look for."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, get_args

PairKind = Literal[
    "doc",
    "detail",
    "remark",
    "name",
    "error",
    "type",
    "change",
    "report",
    "heading",
    "prose",
    "commit",
    "alike",
    "beside",
]
"""What they look for: functions, from `doc` to `error`; a `type`; the code that a commit changed, for a
`change` with its subject, for a `report` with a sentence of its explanation; text, `heading`, `prose` and
`commit`; the same error as it is seen elsewhere, `alike`.

`beside` is a test or an example that nobody asks for: it has no query, and is only ever a wrong answer.
"""

KINDS: Final[tuple[str, ...]] = get_args(PairKind)


@dataclass(frozen=True, slots=True)
class Pair:
    kind: PairKind
    repository: str
    language: str
    query: str
    document: str


def write(file: Path, pairs: Iterable[Pair]) -> int:
    """One JSON object a line, packed. Returns how many."""
    count = 0
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=3) as lines:
        for pair in pairs:
            lines.write(json.dumps(asdict(pair), ensure_ascii=False) + "\n")
            count += 1
    return count


def read(file: Path) -> Iterator[Pair]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield Pair(**json.loads(line))

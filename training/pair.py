"""What the models learn from: a text that somebody looks with, and the text that they look for."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

PairKind = Literal["doc", "name", "type", "error", "heading", "prose", "commit", "change"]
"""`doc`, `name`, `error` and `change` look for code; `type` for a type; the others for text.

A `commit` is a subject and its explanation; a `change` a subject and the code that it changed.
"""


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

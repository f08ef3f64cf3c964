"""Documents, and queries whose answers are among them: what models are judged by."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pool:
    set: str
    name: str
    documents: list[str]
    queries: list[str]
    answers: list[list[int]]
    """For each query, places among the documents."""
    kinds: list[str]


def pools_of(file: Path) -> list[Pool]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [Pool(**json.loads(line)) for line in lines]


def write_pools(file: Path, pools: Iterable[Pool]) -> None:
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        for pool in pools:
            lines.write(json.dumps(asdict(pool)) + "\n")

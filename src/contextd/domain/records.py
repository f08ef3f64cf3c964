"""What is kept and how it is asked for. A store knows these, and no feature by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NewType, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

Vector = NewType("Vector", bytes)
"""Little-endian float32, L2-normalised: a buffer that every adapter can read without copying."""

Content = Literal["text", "code"]
"""What a text is made of; it decides which model embeds it."""

Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Project:
    """A project's own drawer. `path` is canonical: worktrees and symlinks of one repository share it."""

    key: str
    path: str


SHARED = Project(key="shared", path="")
"""The drawer for what all projects share: remediations, patterns, skills."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """`model` names what it can be compared with: see `space`."""

    model: str
    vector: Vector


def space(model: str, dimension: int) -> str:
    """A name for vectors that may meet. An endpoint can serve another dimension under its old name."""
    return f"{model}:{dimension}"


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that is kept. `title` and `text` are searched; `fields` belong to the feature."""

    id: str
    kind: str
    project: Project
    title: str
    text: str
    fields: Mapping[str, Json]
    created_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()

    @property
    def passage(self) -> str:
        """What a model embeds."""
        return f"{self.title}\n{self.text}" if self.text else self.title


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its vector, or without one while the embedder is away."""

    record: Record
    embedding: Embedding | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are meant. `projects` None means every project; `tags` must all be present."""

    kinds: tuple[str, ...]
    projects: tuple[Project, ...] | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fusion:
    """How keyword and vector ranks become one: reciprocal rank fusion, its weights by kind."""

    keyword_weight: float = 1.0
    vector_weight: float = 1.0
    k: int = 60


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    filter: Filter
    limit: int
    embedding: Embedding | None = None
    """None searches by keyword alone."""
    fusion: Fusion = field(default_factory=Fusion)


@dataclass(frozen=True, slots=True)
class Hit:
    """`score` is 0..1 and comparable within one answer; `distance` is cosine, None without a vector."""

    record: Record
    score: float
    distance: float | None = None


Order = Literal["created_at", "updated_at"]


@dataclass(frozen=True, slots=True)
class Page:
    records: tuple[Record, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Drawer:
    """A project's store, as collection_list shows it."""

    project: Project
    counts: Mapping[str, int]
    size_bytes: int
    created_at: datetime

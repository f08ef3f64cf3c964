"""A memory as the features see it, and as the record that is kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, cast

from contextd.domain.confidence import DISTILLED, ON_PURPOSE, Prior
from contextd.domain.ids import new_id
from contextd.domain.limits import MAX_ANCHORS
from contextd.domain.records import Project, Record
from contextd.services.anchors import Anchor

T = TypeVar("T")

KIND: Final = "memory"
ARCHIVED: Final = "memory_archived"
"""A memory that another one took in: reached by its id, never by a search."""
NOTE: Final = "memory_note"
"""What somebody wrote when giving feedback; tagged with the memory's id."""

Lesson = Literal["success", "failure"]
Source = Literal["user", "agent", "distilled", "tool_output", "web"]
Trust = Literal["high", "medium", "low"]

_TRUST: Final[Mapping[Source, Trust]] = {
    "user": "high",
    "agent": "medium",
    "distilled": "medium",
    "tool_output": "low",
    "web": "low",
}
_MOST_ANCESTORS: Final = 100
_LEAST_FIRST: Final[tuple[Trust, ...]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    project: Project
    project_path: str
    title: str
    content: str
    created_at: datetime
    updated_at: datetime
    """When it was last stored, confirmed or archived; feedback does not move it."""
    description: str = ""
    outcome: Lesson | None = None
    tags: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ("agent",)
    anchors: tuple[Anchor, ...] = ()
    evidence: int = 1
    """How many times it was stored."""
    ancestors: tuple[str, ...] = ()
    """Ids of the archived memories that went into it."""
    archived_into: str | None = None

    @property
    def trust(self) -> Trust:
        """The least of its sources."""
        return min((_TRUST[source] for source in self.sources), key=_LEAST_FIRST.index)

    @property
    def prior(self) -> Prior:
        """Whoever stores on purpose what was distilled has confirmed it."""
        return DISTILLED if set(self.sources) == {"distilled"} else ON_PURPOSE

    def record(self) -> Record:
        return Record(
            id=self.id,
            kind=KIND if self.archived_into is None else ARCHIVED,
            project=self.project,
            title=self.title,
            text=f"{self.description}\n{self.content}" if self.description else self.content,
            fields={
                "project_path": self.project_path,
                "description": self.description,
                "content": self.content,
                "outcome": self.outcome,
                "sources": list(self.sources),
                "anchors": [anchor.as_json() for anchor in self.anchors],
                "evidence": self.evidence,
                "ancestors": list(self.ancestors),
                "archived_into": self.archived_into,
            },
            tags=self.tags,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory before it is kept."""

    project_path: str
    title: str
    content: str
    description: str = ""
    outcome: Lesson | None = None
    tags: tuple[str, ...] = ()
    source: Source = "agent"
    anchors: tuple[Anchor, ...] = ()

    def memory(self, project: Project, now: datetime) -> Memory:
        """Without its anchors, which have to be looked up."""
        return Memory(
            id=new_id("mem", project.key, now),
            project=project,
            project_path=self.project_path,
            title=self.title,
            content=self.content,
            description=self.description,
            outcome=self.outcome,
            tags=union(self.tags),
            sources=(self.source,),
            created_at=now,
            updated_at=now,
        )


def memory_of(record: Record) -> Memory:
    fields = cast(Mapping[str, Any], record.fields)
    return Memory(
        id=record.id,
        project=record.project,
        project_path=fields["project_path"],
        title=record.title,
        content=fields["content"],
        created_at=record.created_at,
        updated_at=record.updated_at,
        description=fields["description"],
        outcome=fields["outcome"],
        tags=record.tags,
        sources=tuple(fields["sources"]),
        anchors=tuple(Anchor(**anchor) for anchor in fields["anchors"]),
        evidence=fields["evidence"],
        ancestors=tuple(fields["ancestors"]),
        archived_into=fields["archived_into"],
    )


def union(*many: Iterable[T], most: int | None = None) -> tuple[T, ...]:
    """Each once, in the order of first sight."""
    return tuple(dict.fromkeys(item for items in many for item in items))[:most]


def anchors_of(memories: Sequence[Memory]) -> tuple[Anchor, ...]:
    """One for each file and symbol, as the newest of these memories saw it."""
    newest_last = sorted(memories, key=lambda memory: memory.updated_at)
    places = {(anchor.file, anchor.symbol): anchor for memory in newest_last for anchor in memory.anchors}
    return tuple(places.values())[-MAX_ANCHORS:]


def ancestry(archived: Sequence[Memory], *others: Memory) -> tuple[str, ...]:
    """The ids of the archived, and of theirs and the others' ancestors; of too many, the nearest."""
    ids = (each.id for each in archived)
    return union(ids, *(each.ancestors for each in (*archived, *others)), most=_MOST_ANCESTORS)


def quoted(text: str) -> str:
    """Each line marked as a quotation: data to weigh, not words to follow."""
    return "\n".join(f"> {line}" for line in text.splitlines())

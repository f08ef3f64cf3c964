"""What a skill is, and how it lies in the store."""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from contextd.domain.errors import BadFormat
from contextd.domain.ports import Usage
from contextd.domain.records import SHARED, Json, Record

KIND: Final = "skill"
VERSION_KIND: Final = "skill_version"
"""What a skill was before an update; found by id, never by a search for skills."""

_OURS: Final = "contextd:"
"""Begins the labels that stand among a record's tags and are not the author's."""
_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")


@dataclass(frozen=True, slots=True)
class Skill:
    """What an author writes. `version` may be empty where the next one is meant."""

    name: str
    description: str
    content: str
    version: str
    author: str
    category: str
    prerequisites: tuple[str, ...] = ()
    expected_outcome: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What an update changes; None leaves as it is."""

    name: str | None = None
    description: str | None = None
    content: str | None = None
    version: str | None = None
    category: str | None = None
    prerequisites: tuple[str, ...] | None = None
    expected_outcome: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Json] | None = None

    def given(self) -> dict[str, Any]:
        named = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class Kept:
    """A skill as it is kept, and how it fared."""

    id: str
    skill: Skill
    created_at: datetime
    updated_at: datetime
    usage: Usage


def skill_id(skill: Skill, turn: int = 0) -> str:
    """From its author and name, so that of two who make it at once, in any process, one fails.

    A later `turn` is for a name that is free again because its skill got another.
    """
    digest = hashlib.sha256(f"{_name_key(skill)} {turn}".encode()).hexdigest()
    return f"skill-{SHARED.key}-{digest[:20]}"


def _name_key(skill: Skill) -> str:
    """Author and name as a reader tells them apart: whatever the case and the spaces."""
    parts = (unicodedata.normalize("NFKC", part).casefold() for part in (skill.author, skill.name))
    digest = hashlib.sha256("\n".join(" ".join(part.split()) for part in parts).encode()).hexdigest()
    # Letters alone: the words of a label are searched too, and this way it is one that nobody types.
    return digest[:32].translate(_LETTERS)


def version_id(id: str, version: str) -> str:
    """As a digest, for a version has more characters than an id may."""
    return f"{id}.{hashlib.sha256(version.encode()).hexdigest()[:20]}"


def check_tags(tags: Sequence[str]) -> None:
    if any(tag.startswith(_OURS) for tag in tags):
        raise BadFormat("tags", f"a tag begins with '{_OURS}', which is contextd's own", "rename that tag")


def version_label(id: str) -> str:
    """What the earlier versions of a skill have in common."""
    return f"{_OURS}skill={id}"


def name_label(skill: Skill) -> str:
    return f"{_OURS}named={_name_key(skill)}"


def labels(category: str | None, tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(tags) if category is None else (*tags, f"{_OURS}category={category.casefold()}")


def to_record(id: str, skill: Skill, created_at: datetime, updated_at: datetime) -> Record:
    return Record(
        id=id,
        kind=KIND,
        project=SHARED,
        title=skill.name,
        text=_searched(skill),
        fields={
            "description": skill.description,
            "content": skill.content,
            "version": skill.version,
            "author": skill.author,
            "category": skill.category,
            "prerequisites": list(skill.prerequisites),
            "expected_outcome": skill.expected_outcome,
            "metadata": dict(skill.metadata),
        },
        tags=(*labels(skill.category, skill.tags), name_label(skill)),
        created_at=created_at,
        updated_at=updated_at,
    )


def as_version(head: Record) -> Record:
    """The same contents under an id of its own, with no text: it is not searched for."""
    return replace(
        head,
        id=version_id(head.id, to_skill(head).version),
        kind=VERSION_KIND,
        text="",
        tags=(*head.tags, version_label(head.id)),
    )


def _searched(skill: Skill) -> str:
    """What is said about it comes first: a model reads no further than its window."""
    parts = (skill.description, skill.expected_outcome, *skill.prerequisites, skill.content)
    return "\n".join(part for part in parts if part)


def to_skill(record: Record) -> Skill:
    fields: dict[str, Any] = dict(record.fields)
    return Skill(
        **{**fields, "prerequisites": tuple(fields["prerequisites"])},
        name=record.title,
        tags=tuple(tag for tag in record.tags if not tag.startswith(_OURS)),
    )


def to_kept(record: Record, usage: Usage) -> Kept:
    return Kept(record.id, to_skill(record), record.created_at, record.updated_at, usage)

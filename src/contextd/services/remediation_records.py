"""A remediation as it is kept, and as one more sighting changes it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from contextd.domain.errors import BadFormat
from contextd.domain.fingerprints import ErrorText, essence
from contextd.domain.limits import MAX_CONTEXT_FIELDS, MAX_TAGS
from contextd.domain.records import SHARED, Json, Record

KIND: Final = "remediation"

Severity = Literal["low", "medium", "high", "critical"]

_MOST_EMBEDDED: Final = 400
"""Characters of an error that a model reads: the telling line of nearly all, within milliseconds."""
_MOST_FRAMES: Final = 50
_MARK: Final = "fingerprint:"
"""Begins the tag by which an exact match is looked up. It stays inside: nobody is shown it."""
_IN_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")


@dataclass(frozen=True, slots=True)
class Draft:
    """A remediation before it is kept."""

    error_message: str
    error_type: str
    solution: str
    project_path: str | None = None
    context: Mapping[str, Json] | None = None
    tags: tuple[str, ...] = ()
    severity: Severity | None = None
    stack_trace: str = ""
    as_pattern: bool = False
    """Whether troubleshoot shall know the error by it."""


def raw(draft: Draft, now: datetime) -> Record:
    """A draft as a record, before anything is read out of it. Raises BadFormat for a tag of ours."""
    if any(tag.startswith(_MARK) for tag in draft.tags):
        raise BadFormat("tags", f"a tag begins with '{_MARK}', which is contextd's own", "rename that tag")
    return Record(
        id="",
        kind=KIND,
        project=SHARED,
        title="",
        text="",
        fields={
            "error_message": draft.error_message,
            "error_type": draft.error_type,
            "solution": draft.solution,
            "stack_trace": draft.stack_trace,
            "project_path": draft.project_path,
            "context": dict(draft.context or {}),
            "severity": draft.severity,
            "seen_count": 1,
        },
        tags=tuple(dict.fromkeys(draft.tags)),
        created_at=now,
        updated_at=now,
    )


def completed(record: Record, error: ErrorText) -> Record:
    """With its id, its title and what was read out of its error."""
    fields: dict[str, Any] = dict(record.fields)
    return replace(
        record,
        id=_id(error.fingerprint, fields["solution"]),
        title=title(error),
        fields={**fields, **_facts(error)},
        tags=(*record.tags, mark(error.fingerprint)),
    )


def _facts(error: ErrorText) -> dict[str, Json]:
    """What was read out of the error, so that a search need not read it again."""
    return {
        "fingerprint": error.fingerprint,
        "masked": error.masked,
        "named_type": error.error_type,
        "ecosystem": error.ecosystem,
        "frames": [[frame.function, frame.file] for frame in error.frames[:_MOST_FRAMES]],
    }


def merged(old: Record, fresh: Record) -> Record:
    """One more sighting: counted, its tags and context added, and what was missing filled in."""
    before: dict[str, Any] = dict(old.fields)
    now: dict[str, Any] = dict(fresh.fields)
    filled = {name: value for name, value in now.items() if not before.get(name)}
    added = {name: value for name, value in now["context"].items() if name not in before["context"]}
    # What is there comes first: where there are too many facts, it is the new ones that have no room.
    context = {**before["context"], **added}
    return replace(
        old,
        fields={
            **before,
            **filled,
            "context": dict(list(context.items())[:MAX_CONTEXT_FIELDS]),
            "seen_count": seen(old) + 1,
        },
        tags=tuple(list(dict.fromkeys((*old.tags, *fresh.tags)))[: MAX_TAGS * 5]),
        # The store tells states of a record apart by this moment, so it must not stand still.
        updated_at=max(fresh.updated_at, old.updated_at + timedelta(microseconds=1)),
    )


def _id(fingerprint: str, solution: str) -> str:
    """Of the error and its solution, so that whoever saves the same meets here."""
    same = " ".join([fingerprint, *solution.lower().split()])
    return f"rm-{SHARED.key}-{hashlib.sha256(same.encode()).hexdigest()[:24]}"


def title(error: ErrorText) -> str:
    words = essence(error.line) or error.masked or " ".join(error.message.split())
    return (f"{error.error_type}: {words}" if error.error_type else words)[:_MOST_EMBEDDED]


def mark(fingerprint: str) -> str:
    """In letters alone: the keyword index takes it for one word, and not for a dozen short ones."""
    return f"{_MARK}{fingerprint.translate(_IN_LETTERS)}"


def shown(record: Record) -> Record:
    return replace(record, tags=tuple(tag for tag in record.tags if not tag.startswith(_MARK)))


def seen(record: Record) -> int:
    count = record.fields["seen_count"]
    assert isinstance(count, int)
    return count

"""Records as points: ids, payloads and the names of vectors. Plain values, no driver."""

import json
import math
import re
import sys
from array import array
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from uuid import UUID, uuid4, uuid5

from contextd.domain.records import Embedding, Project, Record, Vector

Payload = Mapping[str, Any]

_NAMESPACE: Final = UUID("6d0f5b0e-6f0c-5b7a-9d5e-0c4f3a6b2e11")


def point_id(project: Project, id: str) -> str:
    """A record's point. It holds the project's key, so the same id in two projects is two points."""
    return str(uuid5(_NAMESPACE, json.dumps([project.key, id])))


def marker_id(project: Project) -> str:
    """The point that says that a drawer is there."""
    return str(uuid5(_NAMESPACE, json.dumps([project.key])))


def to_payload(record: Record) -> dict[str, Any]:
    """`fields` travel as one JSON text: numbers of any size come back as they were."""
    fields = json.dumps(record.fields, ensure_ascii=False, separators=(",", ":"))
    return {
        "id": record.id,
        "kind": record.kind,
        "project": record.project.key,
        "path": record.project.path,
        "title": record.title,
        "text": record.text,
        "fields": fields,
        "tags": list(record.tags),
        "created_at": to_instant(record.created_at),
        "updated_at": to_instant(record.updated_at),
        "bytes": sum(len(part.encode()) for part in (record.title, record.text, fields)),
    }


def to_record(payload: Payload) -> Record:
    return Record(
        id=payload["id"],
        kind=payload["kind"],
        project=Project(payload["project"], payload["path"]),
        title=payload["title"],
        text=payload["text"],
        fields=json.loads(payload["fields"]),
        tags=tuple(payload["tags"]),
        created_at=from_instant(payload["created_at"]),
        updated_at=from_instant(payload["updated_at"]),
    )


def to_marker(project: Project) -> dict[str, Any]:
    """No two are alike, so whoever made a drawer can tell."""
    return {
        "drawer": project.key,
        "path": project.path,
        "made_at": to_instant(datetime.now(UTC)),
        "made_by": str(uuid4()),
    }


def to_instant(moment: datetime) -> str:
    """UTC with all six decimals, so that instants also compare as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def from_instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def vector_name(embedding: Embedding) -> str:
    """One named vector for each model and dimension: what cannot be compared never meets."""
    return f"{_model_prefix(embedding.model)}{len(embedding.vector) // 4}"


def names_of_model(names: Iterable[str], model: str) -> list[str]:
    prefix = _model_prefix(model)
    return [name for name in names if name.startswith(prefix)]


def _model_prefix(model: str) -> str:
    """Readable in Qdrant's dashboard, and unique where the readable part is not."""
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", model)[:100]
    return f"{readable}-{sha256(model.encode()).hexdigest()[:8]}-"


def to_floats(vector: Vector) -> list[float]:
    values = array("f")
    values.frombytes(vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()


def cosine(left: list[float], right: list[float]) -> float:
    """Of unit vectors."""
    return math.fsum(a * b for a, b in zip(left, right, strict=True))

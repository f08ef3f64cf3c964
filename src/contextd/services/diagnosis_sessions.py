"""A diagnosis that goes on: what was asked, shown and tried, kept so that any process can continue it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from contextd.domain.callers import Caller
from contextd.domain.errors import Conflict, NotFound
from contextd.domain.ids import new_id
from contextd.domain.limits import MAX_CONTEXT_FIELDS
from contextd.domain.records import SHARED, Json, Record
from contextd.services.archive import Archive
from contextd.services.second_opinion import Opinion

KIND: Final = "diagnosis"
Mode = Literal["auto", "interactive", "guided"]

_MOST_TRACE: Final = 8_000
_MOST_KEPT: Final = 1_000
_SWEEP_EVERY: Final = 50


@dataclass(frozen=True, slots=True)
class Shown:
    """A step that the next outcome is about."""

    mark: str
    subject: str | None
    last: bool
    """Of its subject's steps: when it fails, the subject has."""


@dataclass(frozen=True, slots=True)
class Session:
    error_message: str
    stack_trace: str = ""
    mode: Mode = "auto"
    context: dict[str, Any] = field(default_factory=dict)
    category: str | None = None
    tags: tuple[str, ...] = ()
    top_k: int = 5
    principal: str = ""
    id: str = ""
    opened_at: datetime | None = None
    ended: bool = False
    tried: tuple[str, ...] = ()
    """Marks of the steps that have had their turn."""
    failed: tuple[str, ...] = ()
    """Subjects whose advice did not help."""
    shown: tuple[Shown, ...] = ()
    opinion: Opinion | None = None

    def knowing(self, context: Mapping[str, Json]) -> "Session":
        """With more facts; the newest are kept when there are too many."""
        merged = {**self.context, **context}
        return replace(self, context=dict(list(merged.items())[-MAX_CONTEXT_FIELDS:]))


@cache
def _adapter() -> TypeAdapter[Session]:
    return TypeAdapter(Session)


class DiagnosisSessions:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._kept = 0

    async def resume(self, id: str, caller: Caller) -> tuple[Session, Record]:
        """The session, and how it is kept. Raises NotFound, also for one that somebody else opened."""
        try:
            record = await self._archive.fetch(caller, id, KIND, "diagnosis session")
        except NotFound:
            raise _unknown(id) from None
        session = _adapter().validate_python(dict(record.fields))
        if session.principal != caller.principal.name:
            raise _unknown(id)
        return replace(session, id=id, opened_at=record.created_at), record

    async def keep(self, session: Session, caller: Caller, old: Record | None) -> tuple[Session, Record]:
        """The session with its id, when it is durable. Raises Conflict when it is no longer as `old` is."""
        now = self._archive.now()
        session = replace(
            session,
            id=session.id or new_id("dx", SHARED.key, now),
            principal=caller.principal.name,
            opened_at=session.opened_at or now,
        )
        record = await self._archive.swap(await self._record(session, now), old)
        if record is None:
            raise Conflict(
                "another call has just continued this diagnosis", "ask again with the same session_id"
            )
        await self._sweep(caller)
        return session, record

    async def _record(self, session: Session, now: datetime) -> Record:
        """Without words: sessions are fetched by id, and must not be in the way of what is searched for."""
        whole = Record(
            id=session.id,
            kind=KIND,
            project=SHARED,
            title="",
            text="",
            fields=_adapter().dump_python(session, mode="json"),
            created_at=session.opened_at or now,
            updated_at=now,
        )
        # Scrubbed before it is cut: half a secret looks like none.
        clean = await self._archive.scrubbed(whole)
        return replace(
            clean,
            fields={**clean.fields, "stack_trace": _both_ends(str(clean.fields["stack_trace"]))},
        )

    async def _sweep(self, caller: Caller) -> None:
        """At first and now and then the oldest go, so that what nobody continues does not pile up."""
        self._kept += 1
        if self._kept % _SWEEP_EVERY != 1:
            return
        old = await self._archive.page(caller, KIND, SHARED, "updated_at", _MOST_KEPT, _SWEEP_EVERY * 2)
        for record in old.records:
            await self._archive.remove(record)


def _unknown(id: str) -> NotFound:
    return NotFound("diagnosis session", id, "open another by leaving out session_id")


def _both_ends(trace: str) -> str:
    """The beginning and the end of a long trace: in one of them stands where it happened."""
    if len(trace) <= _MOST_TRACE:
        return trace
    half = _MOST_TRACE // 2
    return f"{trace[:half]}\n...\n{trace[-half:]}"

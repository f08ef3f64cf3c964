"""Remediations: errors that were solved, found again when they come back."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from contextd.domain.callers import Caller
from contextd.domain.errors import Conflict, NotFound
from contextd.domain.fingerprints import ErrorText, read_error, same_type, similarity_to
from contextd.domain.ports import OutcomeLog, Usage
from contextd.domain.records import SHARED, Fusion, Hit, Record
from contextd.domain.stack_frames import Frame, frames_overlap
from contextd.services.archive import Archive
from contextd.services.pattern_library import PatternLibrary, draft_of
from contextd.services.projects import project_at
from contextd.services.remediation_records import (
    KIND,
    Draft,
    Severity,
    completed,
    mark,
    merged,
    raw,
    seen,
    shown,
    title,
)

__all__ = ["KIND", "Draft", "Found", "Match", "Remediations", "Saved", "Severity"]

SEMANTIC_WEIGHT: Final = 0.7
STRING_WEIGHT: Final = 0.3
FUSION: Final = Fusion()

_CANDIDATES: Final = 60
"""How many are weighed, at least: twice the limit when that is more."""
_TRIES: Final = 64
_LONG: Final = 4_000


@dataclass(frozen=True, slots=True)
class Saved:
    record: Record
    merged: bool
    """Whether it was known already, and this was one more sighting."""
    seen_count: int
    pattern_id: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    record: Record
    match_score: float
    semantic_score: float
    string_score: float
    stack_trace_match: bool
    error_type_match: bool


@dataclass(frozen=True, slots=True)
class Found:
    matches: list[Match]
    """Best first, to the limit."""
    total: int
    by_meaning: bool = True
    """False while the embedding model is away: the scores are then of the strings alone."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What came of each match when it was used, by its id."""


class Remediations:
    def __init__(self, archive: Archive, outcomes: OutcomeLog, patterns: PatternLibrary) -> None:
        self._archive = archive
        self._patterns = patterns
        self._outcomes = outcomes

    async def save(self, draft: Draft, caller: Caller) -> Saved:
        """Keep how an error was solved; the same error with the same solution is counted, not kept twice.

        Raises Invalid when it shall be a pattern too and too little of the error stays the same; Conflict
        when too many save the same at once; and StoreUnavailable.
        """
        fresh = await self._drafted(draft)
        pattern = await self._patterns.save(draft_of(shown(fresh)), caller) if draft.as_pattern else None
        for _ in range(_TRIES):
            old = await self._kept(fresh.id, caller)
            kept = await self._archive.swap(merged(old, fresh) if old else fresh, old)
            if kept is not None:
                _count_for(draft.project_path, caller)
                return Saved(shown(kept), old is not None, seen(kept), pattern.id if pattern else None)
        raise Conflict("others keep saving this remediation at the same time", "try again shortly")

    async def search(
        self,
        error_message: str,
        caller: Caller,
        stack_trace: str = "",
        limit: int = 5,
        min_score: float = 0.5,
        tags: Sequence[str] = (),
    ) -> Found:
        """How this error, or one like it, was solved: those of its fingerprint first, then the nearest."""
        asked = await self._read(error_message, stack_trace)
        depth = max(_CANDIDATES, 2 * limit)
        hits, exact = await asyncio.gather(
            self._archive.search(caller, title(asked), (KIND,), SHARED, tags, depth, FUSION),
            self._archive.page(
                caller, KIND, SHARED, "updated_at", 0, depth, [mark(asked.fingerprint), *tags]
            ),
        )
        known = {hit.record.id for hit in hits}
        candidates = [*hits, *(Hit(each, 0.0) for each in exact.records if each.id not in known)]
        matches = _matches(candidates, asked)
        ranked = sorted(
            (match for match in matches if match.match_score >= min_score),
            key=lambda match: _rank(match, asked),
            reverse=True,
        )
        best = [replace(match, record=shown(match.record)) for match in ranked[:limit]]
        return Found(
            matches=best,
            total=len(ranked),
            by_meaning=not hits or any(hit.distance is not None for hit in hits),
            usage=await self._outcomes.usage([match.record.id for match in best]),
        )

    # --- inside -----------------------------------------------------------------------

    async def _drafted(self, draft: Draft) -> Record:
        clean = await self._archive.scrubbed(raw(draft, self._archive.now()))
        return completed(clean, await _aside(clean))

    async def _read(self, message: str, stack_trace: str) -> ErrorText:
        """As it would be kept: what is taken from a scrubbed text holds no secret either."""
        asked = Draft(message, "", "", stack_trace=stack_trace)
        return await _aside(await self._archive.scrubbed(raw(asked, self._archive.now())))

    async def _kept(self, id: str, caller: Caller) -> Record | None:
        try:
            return await self._archive.fetch(caller, id, KIND, "remediation")
        except NotFound:
            return None


def _count_for(project_path: str | None, caller: Caller) -> None:
    """The path is for information alone; it says for which project the call is counted."""
    project = project_at(project_path) if project_path else SHARED
    if project is SHARED or caller.principal.may_use(project):
        caller.tally.project = project


async def _aside(record: Record) -> ErrorText:
    """Its error. Long texts are read in a thread, so that other calls get their turn."""
    message, trace = str(record.fields["error_message"]), str(record.fields["stack_trace"])
    if len(message) + len(trace) > _LONG:
        return await asyncio.to_thread(read_error, message, trace)
    return read_error(message, trace)


# --- how well it matches --------------------------------------------------------------


def _matches(hits: Iterable[Hit], asked: ErrorText) -> Iterator[Match]:
    similarity = similarity_to(asked.masked)
    for hit in hits:
        fields: Mapping[str, Any] = hit.record.fields
        string = similarity(fields["masked"])
        semantic = 0.0 if hit.distance is None else min(1.0, max(0.0, 1.0 - hit.distance))
        # Without a vector nothing is known of the meaning, and the string has to speak for both.
        score = string if hit.distance is None else SEMANTIC_WEIGHT * semantic + STRING_WEIGHT * string
        yield Match(
            record=hit.record,
            match_score=score,
            semantic_score=semantic,
            string_score=string,
            stack_trace_match=_shares_frame(asked.frames, fields["frames"]),
            error_type_match=_is_same_type(fields, asked),
        )


def _is_same_type(fields: Mapping[str, Any], asked: ErrorText) -> bool:
    if fields["fingerprint"] == asked.fingerprint:
        return True
    return any(same_type(asked.error_type, name) for name in (fields["error_type"], fields["named_type"]))


def _shares_frame(asked: Sequence[Frame], kept: Iterable[Sequence[str]]) -> bool:
    if not asked:
        return False
    return frames_overlap(asked, [Frame(function, file, None) for function, file in kept]) > 0


def _rank(match: Match, asked: ErrorText) -> tuple[bool, float, int]:
    same = match.record.fields["fingerprint"] == asked.fingerprint
    return same, match.match_score, seen(match.record)

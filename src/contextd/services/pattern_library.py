"""The patterns in use: the pack, and those that were saved. What each has done is counted from outcomes."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from contextd.domain.callers import Caller
from contextd.domain.errors import Conflict, Invalid, NotAChoice, NotFound
from contextd.domain.fingerprints import ErrorText, read_error
from contextd.domain.masking import HOLE
from contextd.domain.ports import OutcomeLog, Usage
from contextd.domain.records import SHARED, Record
from contextd.services.archive import Archive
from contextd.services.patterns import CATEGORIES, LEAST_KEYWORD, SEVERITIES, Pattern, PatternPack

logger = logging.getLogger(__name__)

KIND: Final = "pattern"
_MOST_SAVED: Final = 1_000
_LONGEST: Final = 300
_FEWEST_WORDS: Final = 2
_TRIES: Final = 64
_TICK: Final = timedelta(microseconds=1)
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
"""Patterns see ASCII: other letters are gaps."""


@dataclass(frozen=True, slots=True)
class PatternDraft:
    """A pattern before it is kept: an error that was met, and what helped."""

    error_message: str
    root_cause: str
    solution: str
    category: str = "runtime"
    severity: str = "medium"
    verification_steps: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def draft_of(remediation: Record) -> PatternDraft:
    """A remediation as a pattern. Its context may name the root cause and the category."""
    fields: dict[str, Any] = dict(remediation.fields)
    told: dict[str, Any] = fields["context"]
    category = str(told.get("category", "")).lower()
    return PatternDraft(
        error_message=fields["error_message"],
        root_cause=str(
            told.get("root_cause") or f"Met before as {fields['error_type']}; its fix is known."
        ),
        solution=fields["solution"],
        category=category if category in CATEGORIES else "runtime",
        severity=fields["severity"] or "medium",
        tags=remediation.tags,
    )


@dataclass(frozen=True, slots=True)
class Listed:
    pattern: Pattern
    usage: Usage


@dataclass(frozen=True, slots=True)
class Listing:
    patterns: tuple[Listed, ...]
    total: int


class PatternLibrary:
    def __init__(self, archive: Archive, load: Callable[[], PatternPack], outcomes: OutcomeLog) -> None:
        self._archive = archive
        self._load = load
        self._outcomes = outcomes
        self._pack: PatternPack | None = None
        self._seen: object = None

    async def pack(self, caller: Caller) -> PatternPack:
        """The shipped patterns and the saved ones, also those that another process has just saved."""
        newest = await self._archive.page(caller, KIND, SHARED, "updated_at", 0, 1)
        seen = (newest.total, *((record.id, record.updated_at) for record in newest.records))
        if self._pack is None or seen != self._seen:
            saved = await self._saved(caller) if newest.total else ()
            self._pack = await asyncio.to_thread(lambda: self._load().with_patterns(saved))
            self._seen = seen
        return self._pack

    async def save(self, draft: PatternDraft, caller: Caller) -> Pattern:
        """Keep an error and what helped as a pattern. The same error again replaces it.

        Raises Invalid; and Conflict when too many save the same at once.
        """
        _check_choice("category", draft.category, CATEGORIES)
        _check_choice("severity", draft.severity, SEVERITIES)
        pattern = _drafted(draft)
        known = next((one for one in await self._saved(caller) if one.regex == pattern.regex), None)
        fresh = self._record(replace(pattern, id=known.id) if known else pattern)
        for _ in range(_TRIES):
            old = await self._kept(fresh.id, caller)
            kept = await self._archive.swap(_in_place_of(old, fresh) if old else fresh, old)
            if kept is not None:
                return _pattern(kept)
        raise Conflict("others keep saving this pattern at the same time", "try again shortly")

    async def list(
        self,
        caller: Caller,
        category: str | None = None,
        severity: str | None = None,
        min_success_rate: float | None = None,
        limit: int = 10,
    ) -> Listing:
        """The most used first. A rate that is asked for leaves out what has no history, unless it is 0."""
        wanted = [
            pattern
            for pattern in await self.pack(caller)
            if category in (None, pattern.category) and severity in (None, pattern.severity)
        ]
        usage = await self._outcomes.usage([pattern.id for pattern in wanted])
        listed = [
            Listed(pattern, usage[pattern.id])
            for pattern in wanted
            if _reaches(usage[pattern.id], min_success_rate)
        ]
        listed.sort(key=_order)
        return Listing(tuple(listed[:limit]), len(listed))

    def _record(self, pattern: Pattern) -> Record:
        now = self._archive.now()
        return Record(
            id=pattern.id,
            kind=KIND,
            project=SHARED,
            title=pattern.error_pattern,
            text=f"{pattern.root_cause}\n{pattern.solution}",
            fields=_adapter().dump_python(pattern, mode="json"),
            tags=pattern.tags,
            created_at=now,
            updated_at=now,
        )

    async def _kept(self, id: str, caller: Caller) -> Record | None:
        try:
            return await self._archive.fetch(caller, id, KIND, "pattern")
        except NotFound:
            return None

    async def _saved(self, caller: Caller) -> Sequence[Pattern]:
        page = await self._archive.page(caller, KIND, SHARED, "updated_at", 0, _MOST_SAVED)
        return [pattern for record in page.records if (pattern := _usable(record))]


def _drafted(draft: PatternDraft) -> Pattern:
    error = read_error(draft.error_message)
    keyword, regex = _form(error)
    return Pattern(
        id=_id(regex),
        ecosystem=error.ecosystem or "any",
        category=draft.category,
        severity=draft.severity,
        error_pattern=error.masked[:_LONGEST],
        root_cause=draft.root_cause,
        solution=draft.solution,
        verification_steps=draft.verification_steps,
        actions=(),
        tags=draft.tags,
        examples=(draft.error_message,),
        misses=(),
        keywords=(keyword,),
        regex=regex,
    )


def _id(regex: str) -> str:
    """Of what it recognises, so that whoever saves the same error meets here."""
    return f"pat-{SHARED.key}-{hashlib.sha256(regex.encode()).hexdigest()[:24]}"


def _in_place_of(old: Record, fresh: Record) -> Record:
    # The store tells states of a record apart by `updated_at`, so it must not stand still.
    later = max(fresh.updated_at, old.updated_at + _TICK)
    return replace(fresh, created_at=old.created_at, updated_at=later)


@cache
def _adapter() -> TypeAdapter[Pattern]:
    return TypeAdapter(Pattern)


def _pattern(record: Record) -> Pattern:
    return _adapter().validate_python(dict(record.fields))


def _usable(record: Record) -> Pattern | None:
    """None for a record that is no pattern any more: one of them must not silence the others."""
    try:
        pattern = _pattern(record)
        PatternPack([pattern])
    except ValueError as error:
        logger.warning("the saved pattern %s is left out: %s", record.id, type(error).__name__)
        return None
    return pattern


def _check_choice(field: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise NotAChoice(field, f"{field} is not one of its values", f"give one of: {', '.join(choices)}")


def _reaches(usage: Usage, least: float | None) -> bool:
    return not least or (usage.success_rate is not None and usage.success_rate >= least)


def _order(listed: Listed) -> tuple[int, float, int, str]:
    usage, pattern = listed.usage, listed.pattern
    return -usage.uses, -(usage.success_rate or 0.0), -SEVERITIES.index(pattern.severity), pattern.id


def _form(error: ErrorText) -> tuple[str, str]:
    """The longest run of words that stays the same, and a regular expression with room for the rest.

    Raises Invalid when too little stays the same: such a pattern would match everything.
    """
    pieces = [piece.strip() for piece in error.masked[:_LONGEST].split(HOLE)]
    lowered = error.message.lower()
    keyword = max((piece for piece in pieces if piece.lower() in lowered), key=len, default="")
    if len(_WORD.findall(keyword)) < _FEWEST_WORDS or len(keyword) < LEAST_KEYWORD:
        raise Invalid(
            "error_message", "error_message has too few words that stay the same", "give all of it"
        )
    runs = [words for piece in pieces if (words := _WORD.findall(piece))]
    return keyword, ".{0,200}?".join(r"\W{1,9}".join(words) for words in runs)

"""Skills: ways of working worth repeating, kept with every version and with how they fared."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, NoReturn
from weakref import WeakValueDictionary

from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, BadLength, Conflict, MissingField, NotFound, OutOfRange
from contextd.domain.ports import Outcome, OutcomeLog, Usage
from contextd.domain.records import SHARED, Fusion, Record
from contextd.domain.versions import MAX_VERSION_LENGTH, Version
from contextd.services.archive import Archive
from contextd.services.skill_records import (
    KIND,
    VERSION_KIND,
    Change,
    Kept,
    Skill,
    as_version,
    check_tags,
    labels,
    name_label,
    skill_id,
    to_kept,
    to_record,
    to_skill,
    version_id,
    version_label,
)

Sort = Literal["created_at", "updated_at", "usage_count", "success_rate"]

FUSION: Final = Fusion()
_A_STRIDE: Final = 100
_MOST_TOLD: Final = 10
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Saved:
    kept: Kept
    token_count: int


@dataclass(frozen=True, slots=True)
class Found:
    kept: Kept
    score: float
    distance: float | None


@dataclass(frozen=True, slots=True)
class Listed:
    skills: tuple[Kept, ...]
    total: int


class Skills:
    def __init__(self, archive: Archive, outcomes: OutcomeLog) -> None:
        self._archive = archive
        self._outcomes = outcomes
        self._naming: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- writing ----------------------------------------------------------------------

    async def create(self, skill: Skill, caller: Caller) -> Saved:
        """Keep a new skill. Raises BadFormat, and Conflict when its author has one of this name."""
        parse_version(skill.version)
        check_tags(skill.tags)
        now = self._archive.now()
        kept, turn = None, 0
        async with self._sole_taker(skill):
            while kept is None:
                await self._refuse_taken(skill, caller)
                kept = await self._archive.swap(to_record(skill_id(skill, turn), skill, now, now), None)
                turn += 1
        return Saved(to_kept(kept, Usage()), await self._archive.count_tokens(kept))

    async def update(self, id: str, change: Change, caller: Caller) -> Kept:
        """Make a new version; the one before stays retrievable. Without `version` the patch goes up.

        Raises NotFound; BadFormat; OutOfRange for a version below the current one; and Conflict when the
        version exists, the name is taken, or somebody else changed the skill meanwhile.
        """
        given = change.given()
        if not given:
            raise MissingField("id", "nothing is given to change", "give at least one field besides id")
        check_tags(change.tags or ())
        old = await self._head(id, caller)
        current = to_skill(old)
        changed = replace(current, **{**given, "version": _next(current.version, change.version)})
        if changed.name == current.name:
            return await self._replace(old, changed, caller)
        async with self._sole_taker(changed):
            await self._refuse_taken(changed, caller, old.id)
            return await self._replace(old, changed, caller)

    async def delete(self, id: str, caller: Caller) -> int:
        """Forget the skill, its versions and how it fared. How many versions went. Raises NotFound."""
        head = await self._head(id, caller)
        if not await self._archive.remove(head):
            raise NotFound("skill", id)
        gone = 1
        while older := await self._older(head, caller, _A_STRIDE):
            await self._archive.remove(*older)
            gone += len(older)
        await self._outcomes.forget(head.id)
        return gone

    async def apply(
        self, id: str, caller: Caller, success: bool | None = None, version: str | None = None
    ) -> Kept:
        """The skill to follow. Notes a use, and how it went when that is known. Raises NotFound."""
        record = await self._at_version(id, version, caller)
        await self._outcomes.note([Outcome(record.id, self._archive.now(), good=success)])
        return await self._with_usage(record)

    # --- reading ----------------------------------------------------------------------

    async def get(self, id: str, caller: Caller, version: str | None = None) -> Kept:
        """By id, the newest version or the one that is named. Not a use. Raises NotFound."""
        return await self._with_usage(await self._at_version(id, version, caller))

    async def named(self, skill: Skill, caller: Caller) -> Kept | None:
        """The one of this author and name, if there is one."""
        page = await self._archive.page(caller, KIND, SHARED, "created_at", 0, 1, [name_label(skill)])
        return await self._with_usage(page.records[0]) if page.records else None

    async def as_kept(self, skill: Skill) -> Skill:
        """The skill without its secrets, as it would be kept."""
        now = self._archive.now()
        return to_skill(await self._archive.scrubbed(to_record("", skill, now, now)))

    async def search(
        self, query: str, caller: Caller, category: str | None, tags: Sequence[str], limit: int
    ) -> list[Found]:
        """By meaning and by words, best first."""
        wanted = labels(category, tags)
        hits = await self._archive.search(caller, query, (KIND,), SHARED, wanted, limit, FUSION)
        kept = await self._all_with_usage([hit.record for hit in hits])
        return [Found(each, hit.score, hit.distance) for each, hit in zip(kept, hits, strict=True)]

    async def page(
        self,
        caller: Caller,
        sort: Sort,
        offset: int,
        limit: int,
        category: str | None = None,
        tags: Sequence[str] = (),
    ) -> Listed:
        """Newest, most used or most successful first; of those, what was never used comes last."""
        wanted = labels(category, tags)
        match sort:
            case "created_at" | "updated_at":
                page = await self._archive.page(caller, KIND, SHARED, sort, offset, limit, wanted)
                return Listed(await self._all_with_usage(page.records), page.total)
            case "usage_count" | "success_rate":
                return await self._page_by_usage(caller, sort, offset, limit, wanted)

    async def every(self, caller: Caller, wanted: Sequence[str] = ()) -> AsyncIterator[Kept]:
        """All of them, newest first, read a stride at a time."""
        offset, total = 0, 1
        while offset < total:
            page = await self._archive.page(caller, KIND, SHARED, "created_at", offset, _A_STRIDE, wanted)
            for kept in await self._all_with_usage(page.records):
                yield kept
            offset, total = offset + _A_STRIDE, page.total

    # --- inside -----------------------------------------------------------------------

    async def _head(self, id: str, caller: Caller) -> Record:
        return await self._archive.fetch(caller, id, KIND, "skill")

    async def _at_version(self, id: str, version: str | None, caller: Caller) -> Record:
        """The skill under its own id, with what the version says."""
        head = await self._head(id, caller)
        current = to_skill(head).version
        if version is None or version == current:
            return head
        parse_version(version)
        # What a deleted skill of the same name left behind in a crash is not this skill's.
        with suppress(NotFound):
            found = await self._archive.fetch(caller, version_id(id, version), VERSION_KIND, "version")
            if found.created_at == head.created_at:
                return replace(found, id=id)
        older = await self._older(head, caller, _MOST_TOLD)
        known = ", ".join([current, *(to_skill(record).version for record in older)])
        raise NotFound("version of the skill", id, f"these are kept: {known}")

    async def _older(self, head: Record, caller: Caller, limit: int) -> tuple[Record, ...]:
        wanted = (version_label(head.id),)
        page = await self._archive.page(caller, VERSION_KIND, SHARED, "updated_at", 0, limit, wanted)
        return page.records

    def _sole_taker(self, skill: Skill) -> asyncio.Lock:
        """Held from looking whether a name is free until it is taken; gone when nobody wants it."""
        return self._naming.setdefault(name_label(skill), asyncio.Lock())

    async def _refuse_taken(self, skill: Skill, caller: Caller, own: str = "") -> None:
        holder = await self.named(skill, caller)
        if holder is not None and holder.id != own:
            raise Conflict(
                "a skill of this name by this author exists already",
                f"change it with skill_update and id {holder.id}, or choose another name",
                {"id": holder.id},
            )

    async def _replace(self, old: Record, changed: Skill, caller: Caller) -> Kept:
        """Keep what was as a version, then the change. Raises Conflict, or NotFound, when overtaken."""
        before = await self._archive.keep(as_version(old))
        # A clock that stands still or goes back must not make two states look the same.
        now = max(self._archive.now(), old.updated_at + _TICK)
        kept = await self._archive.swap(to_record(old.id, changed, old.created_at, now), old)
        if kept is None:
            await self._overtaken(old, before, caller)
        return await self._with_usage(kept)

    async def _overtaken(self, old: Record, before: Record, caller: Caller) -> NoReturn:
        try:
            await self._head(old.id, caller)
        except NotFound:
            await self._archive.remove(before)
            raise
        raise Conflict(
            "the skill was changed meanwhile",
            "read it again with skill_apply or skill_list, then change what still needs it",
            {"id": old.id},
        )

    async def _page_by_usage(
        self, caller: Caller, sort: Sort, offset: int, limit: int, wanted: Sequence[str]
    ) -> Listed:
        """Ranks are held for all, contents for the page alone."""
        ranks = [(*_rank(kept, sort), kept.id) async for kept in self.every(caller, wanted)]
        skills = []
        for *_, id in sorted(ranks, reverse=True)[offset : offset + limit]:
            with suppress(NotFound):
                skills.append(await self.get(id, caller))
        return Listed(tuple(skills), len(ranks))

    async def _with_usage(self, record: Record) -> Kept:
        (kept,) = await self._all_with_usage([record])
        return kept

    async def _all_with_usage(self, records: Sequence[Record]) -> tuple[Kept, ...]:
        usage = await self._outcomes.usage([record.id for record in records])
        return tuple(to_kept(record, usage[record.id]) for record in records)


def parse_version(version: str) -> Version:
    """Raises BadFormat."""
    try:
        if len(version) <= MAX_VERSION_LENGTH:
            return Version.parse(version)
    except ValueError:
        pass
    raise BadFormat(
        "version",
        "version is not a semantic version",
        "write MAJOR.MINOR.PATCH without leading zeros, such as 1.0.0 or 2.1.0-rc.1",
    )


def _next(current: str, wanted: str | None) -> str:
    now = Version.parse(current)
    after = str(now.next_patch())
    fits = len(after) <= MAX_VERSION_LENGTH
    if wanted is None:
        if fits:
            return after
        raise BadLength(
            "version",
            f"the next version would have more than {MAX_VERSION_LENGTH} characters",
            "give a shorter one above it, such as the next minor or major version",
        )
    then = parse_version(wanted)
    remedy = f"give a version above {current}" + (f", or none for {after}" if fits else "")
    if now.is_above(then):
        raise OutOfRange("version", "version is below the skill's own", remedy)
    if not then.is_above(now):
        raise Conflict("this version of the skill exists already", remedy, {"version": current})
    return wanted


def _rank(kept: Kept, sort: Sort) -> tuple[float, int, datetime]:
    rate = kept.usage.success_rate
    first = -1.0 if sort == "usage_count" or rate is None else rate
    return first, kept.usage.uses, kept.created_at

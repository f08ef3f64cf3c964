"""Memories: what was learned, doubted when it does not help, and marked when the code has moved on."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from contextd.domain.callers import Caller
from contextd.domain.confidence import confidence
from contextd.domain.errors import NotFound
from contextd.domain.ids import new_id
from contextd.domain.ports import Clock, Outcome, OutcomeLog, Usage
from contextd.domain.records import Fusion, Hit, Project, Record
from contextd.services import memory_consolidation as consolidation
from contextd.services.anchors import AnchorFiles, State
from contextd.services.archive import Archive
from contextd.services.memory_consolidation import Left
from contextd.services.memory_quality import Gist, loses, refuse_junk, says_the_same
from contextd.services.memory_ranking import Found, arranged, demoted, relevance
from contextd.services.memory_records import (
    ARCHIVED,
    KIND,
    NOTE,
    Draft,
    Lesson,
    Memory,
    ancestry,
    memory_of,
    union,
)

FUSION: Final = Fusion()
_CANDIDATES: Final = 60
_TWINS: Final = 5
_NOTES: Final = 10


@dataclass(frozen=True, slots=True)
class Stored:
    memory: Memory
    confidence: float
    merged: bool


@dataclass(frozen=True, slots=True)
class Whole:
    """A memory with all that is known of it."""

    memory: Memory
    confidence: float
    usage: Usage
    anchors: tuple[State, ...]
    notes: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Consolidated:
    created: tuple[Memory, ...]
    archived: tuple[str, ...]
    left: tuple[Left, ...]
    looked_at: int
    next_offset: int | None


class Memories:
    def __init__(self, archive: Archive, outcomes: OutcomeLog, clock: Clock) -> None:
        self._archive = archive
        self._outcomes = outcomes
        self._clock = clock
        self._anchors = AnchorFiles(clock)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- storing ----------------------------------------------------------------------

    async def store(self, draft: Draft, caller: Caller) -> Stored:
        """Keep a memory, or count it as more evidence for one that says the same.

        Raises NotWorthKeeping, BadPath for an anchor, Forbidden, StoreUnavailable.
        """
        project = self._archive.project(caller, draft.project_path)
        drafted = draft.memory(project, self._archive.now())
        memory = memory_of(await self._archive.scrubbed(drafted.record()))
        await asyncio.to_thread(refuse_junk, memory.title, memory.content)
        anchors = await asyncio.to_thread(self._anchors.recorded, draft.project_path, draft.anchors)
        memory = replace(memory, anchors=anchors)
        async with self._lock(project):
            kept = twin = None
            while kept is None:
                twin = await self._twin(memory, caller)
                one = memory if twin is None else await self._merged(twin, memory)
                kept = await self._archive.swap(one.record(), None if twin is None else twin.record())
        stored = memory_of(kept)
        return Stored(stored, await self._confidence(stored), merged=twin is not None)

    async def _twin(self, memory: Memory, caller: Caller) -> Memory | None:
        """The nearest memory of the project that says the same."""
        text = memory.record().passage
        hits = await self._archive.search(caller, text, (KIND,), memory.project, (), _TWINS, FUSION)
        return await asyncio.to_thread(_first_that_says_the_same, memory, hits)

    async def _merged(self, old: Memory, new: Memory) -> Memory:
        """Under the old one's id. Words of the old one that would be lost are archived first."""
        merged = await asyncio.to_thread(consolidation.confirmed, old, new)
        if not await asyncio.to_thread(loses, old, merged):
            return merged
        earlier = replace(old, id=new_id("mem", old.project.key, new.updated_at), archived_into=old.id)
        await self._archive.keep(earlier.record())
        return replace(merged, ancestors=ancestry([earlier], merged))

    # --- finding ----------------------------------------------------------------------

    async def search(
        self,
        query: str,
        project_path: str,
        caller: Caller,
        tags: Sequence[str] = (),
        limit: int = 5,
        min_confidence: float = 0.0,
    ) -> list[Found]:
        """Best first; doubted and stale ones later, contradicting ones together with the newer first."""
        candidates = max(_CANDIDATES, 3 * limit)
        hits = await self._archive.search(caller, query, (KIND,), project_path, tags, candidates, FUSION)
        memories = [memory_of(hit.record) for hit in hits]
        usages = await self._usages(memories)
        sure = [
            confidence(each.prior, use.good, use.bad) for each, use in zip(memories, usages, strict=True)
        ]

        def judged() -> list[Found]:
            found = self._judged(query, project_path, hits, memories, sure)
            return arranged([each for each in found if each.confidence >= min_confidence], limit)

        return await asyncio.to_thread(judged)

    def _judged(
        self,
        query: str,
        project_path: str,
        hits: Sequence[Hit],
        memories: Sequence[Memory],
        sure: Sequence[float],
    ) -> list[Found]:
        found = []
        for memory, relevant, certain in zip(memories, relevance(query, hits), sure, strict=True):
            stale = self._stale_files(memory, project_path)
            score = demoted(relevant, certain, stale=bool(stale))
            found.append(Found(memory, score, certain, stale))
        return found

    def _stale_files(self, memory: Memory, project_path: str) -> tuple[str, ...]:
        states = self._anchors.states(memory.anchors, project_path)
        return union(
            anchor.file
            for anchor, state in zip(memory.anchors, states, strict=True)
            if state in ("changed", "missing")
        )

    async def get(self, id: str, caller: Caller) -> Whole:
        """A memory, archived ones included. Raises NotFound."""
        memory = await self._fetch(id, caller)
        (usage,) = await self._usages([memory])
        places = (memory.project_path, memory.project.path)
        states = await asyncio.to_thread(self._anchors.states, memory.anchors, *places)
        notes = await self._archive.page(caller, NOTE, memory.project, "created_at", 0, _NOTES, (id,))
        return Whole(memory, confidence(memory.prior, usage.good, usage.bad), usage, states, notes.records)

    async def recent(self, caller: Caller, limit: int) -> list[Memory]:
        """The newest of every project that the caller may read."""
        page = await self._archive.page(caller, KIND, None, "updated_at", 0, limit)
        return [memory_of(record) for record in page.records]

    async def _fetch(self, id: str, caller: Caller) -> Memory:
        try:
            return memory_of(await self._archive.fetch(caller, id, KIND, "memory"))
        except NotFound:
            return memory_of(await self._archive.fetch(caller, id, ARCHIVED, "memory"))

    # --- learning ---------------------------------------------------------------------

    async def feedback(
        self, id: str, caller: Caller, *, helpful: bool, outcome: Lesson | None = None, note: str = ""
    ) -> tuple[Memory, float]:
        """Note whether it helped, and how the work went. Returns its new confidence. Raises NotFound."""
        memory = await self._fetch(id, caller)
        now = self._archive.now()
        seen = [helpful] if outcome is None else [helpful, outcome == "success"]
        if note:
            await self._archive.keep(
                Record(
                    id=new_id("note", memory.project.key, now),
                    kind=NOTE,
                    project=memory.project,
                    title=memory.title,
                    text=note,
                    fields={"note": note, "helpful": helpful, "outcome": outcome},
                    tags=(id,),
                    created_at=now,
                    updated_at=now,
                )
            )
        await self._outcomes.note([Outcome(id, now, good) for good in seen])
        return memory, await self._confidence(memory)

    async def _confidence(self, memory: Memory) -> float:
        (usage,) = await self._usages([memory])
        return confidence(memory.prior, usage.good, usage.bad)

    async def _usages(self, memories: Sequence[Memory]) -> list[Usage]:
        """What came of each, and of the memories that went into it."""
        subjects = [(memory.id, *memory.ancestors) for memory in memories]
        known = await self._outcomes.usage(union(*subjects))
        return [Usage.together([known[id] for id in ids]) for ids in subjects]

    # --- consolidating ----------------------------------------------------------------

    async def consolidate(
        self, project_path: str, caller: Caller, *, threshold: float, dry_run: bool = False, offset: int = 0
    ) -> Consolidated:
        """Near-duplicates become one; what they were is archived and linked. Raises EmbedderUnavailable."""
        project = self._archive.project(caller, project_path)
        plan = await consolidation.plan(self._archive, self._clock, caller, project_path, threshold, offset)
        created: list[Memory] = []
        archived: list[str] = []
        left = list(plan.left)
        for members in plan.clusters:
            one = consolidation.composed(members, new_id("mem", project.key, self._archive.now()))
            kept, gone = (one, members) if dry_run else await self._replaced(members, one, caller)
            created += [kept] if gone else []
            archived += [member.id for member in gone]
            stayed = [member.id for member in members if member not in gone]
            left += [Left(id, "changed meanwhile: consolidate again") for id in stayed]
        # What was archived is in no later page; a dry run archived nothing.
        passed = plan.looked_at - (0 if dry_run else len(archived))
        rest = None if plan.finished else max(0, offset + passed)
        return Consolidated(tuple(created), tuple(archived), tuple(left), plan.looked_at, rest)

    async def _replaced(
        self, members: Sequence[Memory], one: Memory, caller: Caller
    ) -> tuple[Memory, tuple[Memory, ...]]:
        """The one as kept, and the members that left for it; none when one of them had changed.

        The one is durable before its members leave, so that nothing is lost on the way.
        """
        async with self._lock(one.project):
            if not all([await self._is_as_it_was(member, caller) for member in members]):
                return one, ()
            kept = memory_of(await self._archive.keep(one.record()))
            gone = tuple([member for member in members if await self._left_for(kept, member)])
            if len(gone) == len(members):
                return kept, gone
            return await self._shrunk(kept, members, gone), gone

    async def _left_for(self, one: Memory, member: Memory) -> bool:
        """Whether it could be archived: not if another process has changed it.

        Its time moves with it, because that is how another process sees the change.
        """
        archived = replace(member, archived_into=one.id, updated_at=self._archive.now())
        return await self._archive.swap(archived.record(), member.record()) is not None

    async def _shrunk(self, one: Memory, members: Sequence[Memory], gone: Sequence[Memory]) -> Memory:
        """The one made of those that did leave, so that what stays is not counted twice.

        If none left, it is archived itself; if another process has changed it, it stays as it is.
        """
        if gone:
            smaller = consolidation.composed(gone, one.id)
        else:
            smaller = replace(
                one, ancestors=(), archived_into=members[0].id, updated_at=self._archive.now()
            )
        swapped = await self._archive.swap(smaller.record(), one.record())
        return one if swapped is None else memory_of(swapped)

    async def _is_as_it_was(self, memory: Memory, caller: Caller) -> bool:
        try:
            now = await self._archive.fetch(caller, memory.id, KIND, "memory")
        except NotFound:
            return False
        return now.updated_at == memory.updated_at

    def _lock(self, project: Project) -> asyncio.Lock:
        """One writer at a time looks for twins in a project, or the same memory could come in twice."""
        return self._locks.setdefault(project.key, asyncio.Lock())


def _first_that_says_the_same(memory: Memory, hits: Sequence[Hit]) -> Memory | None:
    gist = Gist(memory)
    for hit in hits:
        other = memory_of(hit.record)
        cosine = None if hit.distance is None else 1.0 - hit.distance
        if says_the_same(gist, Gist(other), cosine):
            return other
    return None

"""Near-duplicates into one memory: which belong together, and what the one says. It writes nothing."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from contextd.domain.callers import Caller
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.limits import MAX_MEMORY_CONTENT_LENGTH, MAX_TAGS
from contextd.domain.ports import Clock
from contextd.domain.records import Fusion
from contextd.services.archive import Archive
from contextd.services.memory_quality import Gist, contradicts, opposite, particulars, telling_words
from contextd.services.memory_records import (
    KIND,
    Memory,
    ancestry,
    anchors_of,
    memory_of,
    union,
)

_BY_VECTOR: Final = Fusion(keyword_weight=0.0)
_NEIGHBOURS: Final = 20
_MOST_MEMBERS: Final = 20
_PAGE: Final = 100
_LOOK_FOR_S: Final = 15.0
"""Half of the call's time: what is planned must also be written."""

_NEW_SHARE: Final = 0.3
"""Of a sentence's words, how many must be new for it to be told again."""

_PIECES: Final = re.compile(r"```.*?(?:```|\Z)|[^\n]+", re.DOTALL)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])")
_BULLET: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Left:
    """A memory that is near another one and yet stays apart."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    clusters: tuple[tuple[Memory, ...], ...]
    """The members of each, the richest first."""
    left: tuple[Left, ...]
    looked_at: int
    finished: bool


@dataclass(slots=True)
class _Neighbourhood:
    """What was seen on the way: memories by id, and who is near whom."""

    memories: dict[str, Memory] = field(default_factory=dict)
    near: dict[str, set[str]] = field(default_factory=dict)
    compared: bool = False

    def join(self, one: str, other: str) -> None:
        self.near.setdefault(one, set()).add(other)
        self.near.setdefault(other, set()).add(one)


async def plan(
    archive: Archive, clock: Clock, caller: Caller, project_path: str, threshold: float, offset: int
) -> Plan:
    """Look at the memories of a project, newest first, for as long as a call may take.

    Raises EmbedderUnavailable when there are memories and no vectors to compare them by.
    """
    seen = _Neighbourhood()
    until = clock.monotonic() + _LOOK_FOR_S
    looked_at, total = 0, offset + 1
    while offset + looked_at < total and clock.monotonic() < until:
        page = await archive.page(caller, KIND, project_path, "created_at", offset + looked_at, _PAGE)
        total = page.total
        for record in page.records:
            await _look_around(archive, caller, project_path, memory_of(record), threshold, seen)
            looked_at += 1
            if clock.monotonic() >= until:
                break
        await caller.progress(offset + looked_at, total, "compared")
    if looked_at and not seen.compared:
        raise EmbedderUnavailable("memories cannot be compared without the embedding model")
    clusters, left = await asyncio.to_thread(cluster, seen.memories, seen.near)
    return Plan(clusters, left, looked_at, finished=offset + looked_at >= total)


async def _look_around(
    archive: Archive,
    caller: Caller,
    project_path: str,
    memory: Memory,
    threshold: float,
    seen: _Neighbourhood,
) -> None:
    seen.memories[memory.id] = memory
    text = memory.record().passage
    for hit in await archive.search(caller, text, (KIND,), project_path, (), _NEIGHBOURS, _BY_VECTOR):
        if hit.distance is None:
            continue
        seen.compared = True
        if hit.record.id != memory.id and 1.0 - hit.distance >= threshold:
            seen.memories.setdefault(hit.record.id, memory_of(hit.record))
            seen.join(memory.id, hit.record.id)


def cluster(
    memories: Mapping[str, Memory], near: Mapping[str, set[str]]
) -> tuple[tuple[tuple[Memory, ...], ...], tuple[Left, ...]]:
    """Each cluster is a rich memory and what is near it: nothing is joined by way of a third."""
    gists = {id: Gist(memories[id]) for id in near}
    by_richness = sorted(near, key=lambda each: (-len(gists[each].words), each))
    place = {id: number for number, id in enumerate(by_richness)}
    taken: set[str] = set()
    clusters: list[tuple[Memory, ...]] = []
    left: dict[str, Left] = {}
    for seed in by_richness:
        if seed in taken:
            continue
        members = [seed]
        for other in sorted(near[seed] - taken, key=place.__getitem__):
            reason = _stays_apart(other, members, gists)
            if reason:
                left[other] = Left(other, reason)
            else:
                members.append(other)
        if len(members) > 1:
            taken.update(members)
            clusters.append(tuple(memories[id] for id in members))
    return tuple(clusters), tuple(each for each in left.values() if each.id not in taken)


def _stays_apart(id: str, members: Sequence[str], gists: Mapping[str, Gist]) -> str | None:
    for member in members:
        if contradicts(gists[id], gists[member]):
            return f"contradicts {member}"
        if opposite(gists[id], gists[member]):
            return f"has the opposite outcome of {member}"
    return None if len(members) < _MOST_MEMBERS else "its cluster is full: consolidate again"


def confirmed(old: Memory, new: Memory) -> Memory:
    """The old one after it was stored again: with the newer words, unless they say less."""
    richer = len(Gist(new).words) >= len(Gist(old).words)
    title, content, description = (
        (new.title, new.content, new.description or old.description)
        if richer
        else (old.title, old.content, old.description)
    )
    return replace(
        old,
        title=title,
        content=content,
        description=description,
        outcome=new.outcome or old.outcome,
        tags=union(old.tags, new.tags, most=MAX_TAGS),
        sources=union(old.sources, new.sources),
        anchors=anchors_of((old, new)),
        evidence=old.evidence + 1,
        updated_at=new.updated_at,
    )


def composed(members: Sequence[Memory], id: str) -> Memory:
    """One memory out of several: the richest, and what the others say besides."""
    richest, *others = members
    return replace(
        richest,
        id=id,
        content=_told_together(richest, sorted(others, key=lambda each: each.updated_at, reverse=True)),
        description=next((each.description for each in members if each.description), ""),
        outcome=next((each.outcome for each in members if each.outcome), None),
        tags=union(*(each.tags for each in members), most=MAX_TAGS),
        sources=union(*(each.sources for each in members)),
        anchors=anchors_of(members),
        evidence=sum(each.evidence for each in members),
        ancestors=ancestry(members),
        created_at=min(each.created_at for each in members),
        updated_at=max(each.updated_at for each in members),
    )


def _told_together(richest: Memory, others: Sequence[Memory]) -> str:
    told = f"{richest.title}\n{richest.description}\n{richest.content}"
    words, named = set(telling_words(told)), set(particulars(told))
    content = richest.content
    for piece in (piece for other in others for piece in _pieces(f"{other.description}\n{other.content}")):
        its_words, its_names = telling_words(piece), particulars(piece)
        if not (its_names - named or len(its_words - words) > _NEW_SHARE * len(its_words)):
            continue
        line = f"\n{piece}" if piece.startswith("```") else f"\n- {piece}"
        if len(content) + len(line) <= MAX_MEMORY_CONTENT_LENGTH:
            content += line
            words |= its_words
            named |= its_names
    return content


def _pieces(text: str) -> Iterator[str]:
    """Sentences and lines; a block of code is one piece."""
    for piece in _PIECES.findall(text):
        if piece.startswith("```"):
            yield piece
        else:
            yield from filter(None, (_BULLET.sub("", each).strip() for each in _SENTENCES.split(piece)))

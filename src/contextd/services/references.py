"""References: what did not fit an answer, held for a while for the scope that it was answered to.

A ref is made of its contents, so the same answer twice is held once, and reads the same twice.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from contextd.domain.callers import Caller
from contextd.domain.cutting import pieces
from contextd.domain.errors import NoSuchRef
from contextd.domain.ids import drawer_of, short_hash
from contextd.domain.limits import REF_CHARS, REF_DAYS, REFS_CHARS
from contextd.domain.ports import Clock, Store
from contextd.domain.records import SHARED, Entry, Filter, Project, Record
from contextd.services.answer_outline import Part

HEAD: Final = "ref"
BODY: Final = "ref_part"
_MOST: Final = 1_000
_SWEEP_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class Held:
    """What is under a ref: a text, or where there are several, a list of them and then each."""

    ref: str
    text: str


class References:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: Counter[str] = Counter()

    def handle(self, caller: Caller, parts: Sequence[Part]) -> str:
        """The ref that these parts are held under."""
        digest = hashlib.sha256(caller.principal.scope.encode())
        for part in parts:
            digest.update(f"\0{part.place}\0{len(part.text)}\0{part.text}".encode())
        return f"ref-{_drawer(caller).key}-{short_hash(digest.digest())}"

    async def keep(self, caller: Caller, *bundles: Sequence[Part]) -> None:
        """Hold each bundle of parts, which are scrubbed, under its ref. Raises StoreUnavailable."""
        await self._store.put(self.entries(caller, *bundles))
        await self.tidy(caller)

    def entries(self, caller: Caller, *bundles: Sequence[Part]) -> list[Entry]:
        """What holds them in the store, for one who puts it there together with something else."""
        drawer, now = _drawer(caller), self._clock.now()
        return [
            Entry(record)
            for parts in bundles
            for record in _records(self.handle(caller, parts), caller, drawer, parts, now)
        ]

    async def tidy(self, caller: Caller) -> None:
        """Now and then, after refs were kept."""
        drawer = _drawer(caller)
        self._kept[drawer.key] += 1
        if self._kept[drawer.key] % _SWEEP_EVERY == 1:
            await self.sweep(drawer)

    async def get(self, ref: str, caller: Caller) -> Held:
        """Raises NoSuchRef, also for what is held for another scope."""
        fields = await self._fields(ref, caller)
        parts: list[dict[str, Any]] | None = fields.get("parts")
        if parts is None:
            return Held(ref, fields["text"])
        if len(parts) == 1:
            return Held(ref, (await self._fields(f"{ref}.1", caller))["text"])
        listed = [f"{ref}.{part['number']} {part['place']} ({part['lines']} lines)\n" for part in parts]
        texts = await asyncio.gather(*(self._section(ref, part, caller) for part in parts))
        return Held(ref, "".join((*listed, *texts)))

    async def _section(self, ref: str, part: dict[str, Any], caller: Caller) -> str:
        text = (await self._fields(f"{ref}.{part['number']}", caller))["text"]
        end = "" if text.endswith("\n") else "\n"
        return f"== {ref}.{part['number']} {part['place']}\n{text}{end}"

    async def sweep(self, drawer: Project) -> int:
        """Forget what is old, and the oldest of what is too much. Returns how many refs went."""
        oldest_kept = self._clock.now() - timedelta(days=REF_DAYS)
        gone: list[str] = []
        chars = 0
        page = await self._store.page(Filter((HEAD,), (drawer,)), "updated_at", 0, 2 * _MOST)
        for number, head in enumerate(page.records):
            fields = cast(Mapping[str, Any], head.fields)
            chars += fields["chars"]
            if number >= _MOST or chars > REFS_CHARS or head.updated_at < oldest_kept:
                gone += [head.id, *(f"{head.id}.{part['number']}" for part in fields["parts"])]
        return await self._store.delete(drawer, gone)

    async def _fields(self, id: str, caller: Caller) -> Mapping[str, Any]:
        key = drawer_of(id)
        if key is None:
            raise NoSuchRef
        record = await self._store.get(Project(key, ""), id)
        if record is None or record.kind not in (HEAD, BODY):
            raise NoSuchRef
        fields = cast(Mapping[str, Any], record.fields)
        late = record.updated_at < self._clock.now() - timedelta(days=REF_DAYS)
        if late or fields["scope"] != caller.principal.scope:
            raise NoSuchRef
        caller.tally.project = record.project if key != SHARED.key else None
        return fields


def _drawer(caller: Caller) -> Project:
    return caller.tally.project or SHARED


def _records(
    ref: str, caller: Caller, drawer: Project, parts: Sequence[Part], now: datetime
) -> list[Record]:
    """A small head that lists the parts, and a body for each."""
    scope = caller.principal.scope
    most = _level([len(part.text) for part in parts], REF_CHARS)
    texts = [_bounded(part.text, most) for part in parts]
    listed = [
        {"number": number, "place": part.place, "lines": len(pieces(text))}
        for number, (part, text) in enumerate(zip(parts, texts, strict=True), start=1)
    ]
    head: dict[str, Any] = {"scope": scope, "parts": listed, "chars": sum(map(len, texts))}
    bodies = [
        _record(f"{ref}.{number}", BODY, drawer, {"scope": scope, "text": text}, now)
        for number, text in enumerate(texts, start=1)
    ]
    return [_record(ref, HEAD, drawer, head, now), *bodies]


def _record(id: str, kind: str, drawer: Project, fields: dict[str, Any], now: datetime) -> Record:
    return Record(id, kind, drawer, title="", text="", fields=fields, created_at=now, updated_at=now)


def _level(lengths: Sequence[int], room: int) -> int:
    """How long each text may be so that all of them fit: the short ones leave more to the long."""
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        if length * left > room:
            return room // left
        room -= length
    return max(lengths, default=0)


def _bounded(text: str, most: int) -> str:
    """Head and tail of a text that is too long to hold."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters were not kept …]\n{text[-half:]}"

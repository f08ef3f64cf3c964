"""Search of indexed code: candidates from the index, put in order, shown as they are on disk."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from contextd.domain.callers import Caller, Tally
from contextd.domain.code_query import CodeQuery, read_query
from contextd.domain.code_store import (
    Candidates,
    ChunkRow,
    CodeFilter,
    CodeFinder,
    Print,
    Probe,
    Tree,
)
from contextd.domain.errors import EmbedderUnavailable, IndexingInProgress, NotIndexed
from contextd.domain.ports import Scrubber
from contextd.domain.records import Embedding, Project, Vector
from contextd.domain.source_text import lines_of
from contextd.services.code_hits import CodeHit, hits_of
from contextd.services.code_ranking import CodeRanking, Mode, Ranked
from contextd.services.indexed_trees import Indexed, indexed_at
from contextd.services.source_tree import SourceTree
from contextd.services.used_trees import UsedTrees

DEPTH: Final = 100
"""Candidates by words, and as many by meaning."""
_PHRASE_DEPTH: Final = 2_000
RERANKED: Final = 30
"""So many of the best are read closer, with the text model's vectors. More find hardly more."""
_REMEMBERED: Final = 256


class Refresher(Protocol):
    async def refresh(self, project: Project, tree: Tree, paths: Sequence[str]) -> bool: ...


class QueryReader(Protocol):
    def query(self, text: str) -> Vector: ...

    def near(self, query: Vector, names: Sequence[str]) -> list[float]: ...


class TextModel(Protocol):
    """The part of Embeddings that a search needs."""

    async def query(self, text: str, tally: Tally) -> Embedding | None: ...


@dataclass(frozen=True, slots=True)
class Ask:
    path: str
    query: str
    limit: int = 10
    mode: Mode = "hybrid"
    filter: CodeFilter = field(default_factory=CodeFilter)
    min_relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[CodeHit]
    total: int
    cache_hit: bool
    indexed: Indexed


@dataclass(frozen=True, slots=True)
class _Order:
    """What a search remembers: the order, before anything is read from it."""

    ranked: tuple[Ranked, ...]
    total: int


class CodeSearch:
    def __init__(
        self,
        store: CodeFinder,
        refresher: Refresher,
        reader: QueryReader,
        text_model: TextModel | None,
        scrubber: Scrubber,
        used: UsedTrees,
        ranking: CodeRanking | None = None,
    ) -> None:
        self._store = store
        self._refresher = refresher
        self._reader = reader
        self._text_model = text_model
        self._scrubber = scrubber
        self._used = used
        self._ranking = ranking or CodeRanking()
        self._orders: OrderedDict[tuple[object, ...], _Order] = OrderedDict()

    async def search(self, ask: Ask, caller: Caller) -> Found:
        """Raises BadPath, Forbidden, NotIndexed."""
        indexed = await indexed_at(self._store, ask.path, caller)
        return await self.search_in(indexed, ask, caller)

    async def search_in(self, indexed: Indexed, ask: Ask, caller: Caller) -> Found:
        self._used.touch(indexed.project, *indexed.trees)
        query = read_query(self._scrubber.scrub(ask.query).text)
        wanted = replace(ask.filter, below=indexed.below)
        order, remembered = await self._order(indexed, query, wanted, ask, caller.tally)
        stale = await self._changed(indexed, order.ranked, _is_as_it_was)
        if stale:
            indexed = await self._refreshed(indexed, stale)
            order, again = await self._order(indexed, query, wanted, ask, caller.tally)
            remembered = remembered and again
            stale = await self._changed(indexed, order.ranked, _looks_as_it_was)
        hits = await hits_of(self._store, indexed, order.ranked, frozenset(path for _, path in stale))
        moved = await self._now(indexed)
        if moved.versions != indexed.versions:
            # A run has changed the trees meanwhile, and what was found may have gone away: after an upgrade
            # all of it does.
            indexed = moved
            order, remembered = await self._order(indexed, query, wanted, ask, caller.tally)
            stale = await self._changed(indexed, order.ranked, _looks_as_it_was)
            hits = await hits_of(self._store, indexed, order.ranked, frozenset(path for _, path in stale))
        caller.tally.cache_hits += remembered
        caller.tally.cache_misses += not remembered
        return Found(hits, order.total, remembered, indexed)

    async def _order(
        self, indexed: Indexed, query: CodeQuery, wanted: CodeFilter, ask: Ask, tally: Tally
    ) -> tuple[_Order, bool]:
        """Remembered by the trees' versions, so that what is remembered is never old."""
        trees = (indexed.project.key, indexed.versions, self._used.times_read(indexed.project))
        key = (*trees, query.text, wanted, ask.mode, ask.limit, ask.min_relevance)
        known = self._orders.get(key)
        if known is not None:
            self._orders.move_to_end(key)
            return known, True
        order = await self._ranked(indexed, query, wanted, ask, tally)
        self._orders[key] = order
        if len(self._orders) > _REMEMBERED:
            self._orders.popitem(last=False)
        return order, False

    async def _ranked(
        self, indexed: Indexed, query: CodeQuery, wanted: CodeFilter, ask: Ask, tally: Tally
    ) -> _Order:
        if not query.words:
            return _Order((), 0)
        coming: asyncio.Future[Embedding | None] | None = None
        if ask.mode == "hybrid" and query.kind != "identifier" and self._text_model is not None:
            coming = asyncio.ensure_future(self._text_model.query(query.text, tally))
        try:
            mode = ask.mode
            probe = self._probe(query, wanted, mode)
            found = await self._store.candidates(indexed.project, indexed.trees, probe)
            if mode == "vector" and not found.by_vector:
                # There is no model, or the index is of an older one and being made anew: by words at least.
                probe = self._probe(query, wanted, "keyword")
                found = await self._store.candidates(indexed.project, indexed.trees, probe)
            if not found.by_vector:
                mode = "keyword"
            found = await self._with_phrases(indexed.project, found, query)
            found = with_names(found, probe.vector, self._reader)
            ranked = self._ranking.rank(query, mode, found, {})
            if coming is not None and mode == "hybrid":
                ranked = await self._read_closer(indexed.project, query, found, ranked, await coming)
        finally:
            if coming is not None:
                coming.cancel()
        kept = [each for each in ranked if each.relevance >= ask.min_relevance]
        counted = len(kept) if ask.min_relevance or query.phrases else max(found.total, len(kept))
        return _Order(tuple(kept[: ask.limit]), counted)

    def _probe(self, query: CodeQuery, wanted: CodeFilter, mode: Mode) -> Probe:
        by_words = mode != "vector"
        vector = None
        if mode != "keyword":
            try:
                vector = self._reader.query(query.text)
            except EmbedderUnavailable:
                # By words alone: `health` in get_status says why.
                vector = None
        return Probe(
            words=query.words if by_words else (),
            required=query.required if by_words else (),
            whole=query.whole if by_words else "",
            vector=vector,
            names=query.names if by_words else (),
            filter=wanted,
            depth=_PHRASE_DEPTH if query.phrases else DEPTH,
        )

    async def _with_phrases(self, project: Project, found: Candidates, query: CodeQuery) -> Candidates:
        """Only those that have every phrase, letter by letter but for case."""
        if not query.phrases:
            return found
        texts = await self._store.texts(project, {row.blob for row in found.rows.values()})
        lines = {blob: lines_of(text.lower()) for blob, text in texts.items()}
        kept = {
            chunk: row
            for chunk, row in found.rows.items()
            if _has(lines.get(row.blob, []), row, query.phrases)
        }
        return replace(
            found,
            by_words=[each for each in found.by_words if each[0] in kept],
            by_vector=[each for each in found.by_vector if each[0] in kept],
            by_name=[chunk for chunk in found.by_name if chunk in kept],
            rows=kept,
            total=len(kept),
        )

    async def _read_closer(
        self,
        project: Project,
        query: CodeQuery,
        found: Candidates,
        ranked: list[Ranked],
        vector: Embedding | None,
    ) -> list[Ranked]:
        """The best again, with what the text model says of them, if it has read them all."""
        best = [each.row.id for each in ranked[:RERANKED]]
        if vector is None or not best:
            return ranked
        cosines = await self._store.closer(project, best, vector.model, vector.vector)
        if len(cosines) < len(best):
            return ranked
        narrowed = replace(found, rows={chunk: found.rows[chunk] for chunk in best})
        again = self._ranking.rank(query, "hybrid", narrowed, cosines)
        least = again[-1].relevance
        return [
            *again,
            *(replace(each, relevance=min(each.relevance, least)) for each in ranked[RERANKED:]),
        ]

    # --- as it is on disk ---------------------------------------------------------------

    async def _changed(
        self, indexed: Indexed, ranked: Sequence[Ranked], is_same: Callable[[Print, Print | None], bool]
    ) -> list[tuple[int, str]]:
        """Tree and path of those files that are not as they were when they were taken in."""
        paths = {each.row.path for each in ranked}
        if not paths:
            return []
        known = await self._store.prints(indexed.project, indexed.trees, paths)
        source = SourceTree(Path(indexed.root))

        def look() -> list[tuple[int, str]]:
            return [
                (tree, path)
                for path, (tree, print) in known.items()
                if not is_same(print, source.stat(path))
            ]

        return await asyncio.to_thread(look)

    async def _refreshed(self, indexed: Indexed, stale: Sequence[tuple[int, str]]) -> Indexed:
        for tree in indexed.trees:
            paths = [path for owner, path in stale if owner == tree.id]
            if paths:
                try:
                    await self._refresher.refresh(indexed.project, tree, paths)
                except IndexingInProgress:
                    # They are being read right now: what is found is marked as stale.
                    continue
        return await self._now(indexed)

    async def _now(self, indexed: Indexed) -> Indexed:
        """Raises NotIndexed when somebody dropped the index."""
        trees = await self._store.trees(indexed.project)
        here = tuple(tree for tree in trees if tree.path == indexed.root)
        if not here:
            raise NotIndexed
        return replace(indexed, trees=here)


def with_names(found: Candidates, vector: Vector | None, reader: QueryReader) -> Candidates:
    """How near the names of the symbols are; not by words alone, nor by an index of an older model."""
    if vector is None or not found.by_vector:
        return found
    symbols = {chunk: row.symbol for chunk, row in found.rows.items() if row.symbol is not None}
    names = [f"{symbol.container} {symbol.name}" for symbol in symbols.values()]
    return replace(found, names_near=dict(zip(symbols, reader.near(vector, names), strict=True)))


def _is_as_it_was(then: Print, now: Print | None) -> bool:
    return now == then


def _looks_as_it_was(then: Print, now: Print | None) -> bool:
    """Of a file that was read a moment ago. The print of a young one has no size, so that it is read again
    by whoever asks next; its times tell whether it changed since."""
    return now is not None and now[1:] == then[1:]


def _has(lines: Sequence[str], row: ChunkRow, phrases: Sequence[str]) -> bool:
    text = "\n".join(lines[row.start_line - 1 : row.end_line])
    return all(phrase in text for phrase in phrases)

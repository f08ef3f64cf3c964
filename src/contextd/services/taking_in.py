"""Files into the index's store: read, scrubbed, parsed and embedded, staged. No tree shows them yet."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from contextd.domain.code import Digest, Digesting, Source, SourceKind, SourceReader, Trouble
from contextd.domain.code_store import (
    GENERATED,
    TEST,
    BlobCounts,
    BlobKey,
    CodeWriter,
    FileRow,
    Print,
    Staged,
)
from contextd.domain.ports import Scrubber
from contextd.domain.records import Project
from contextd.services.anchors import blob_id
from contextd.services.file_texts import decoded, is_generated
from contextd.services.source_tree import FoundFile, SourceTree

_BATCH_FILES: Final = 24
_BATCH_BYTES: Final = 400_000
_AT_ONCE: Final = 5
"""Batches under way: enough to keep every core busy, few enough to hold little in memory."""
_SETTLED_NS: Final = 2_000_000_000
_PLAIN: Final = SourceKind("text", is_code=False, is_test=False)


@dataclass(slots=True)
class Taken:
    """What came of the files of one run."""

    rows: list[FileRow] = field(default_factory=list)
    left_out: list[tuple[str, Print, str]] = field(default_factory=list)
    """Path, print and reason of files that are not held for what is in them."""
    failed: list[tuple[str, int, str]] = field(default_factory=list)
    """Path, line and reason; the rest of such a file is indexed, unless it could not be read at all."""
    symbols: int = 0
    chunks: int = 0
    embeddings: int = 0
    over_window: int = 0
    reused: int = 0
    """Files whose text was in the index already, at another path."""
    same: int = 0
    """Files that looked changed and are as they were; the counts leave them out."""

    def break_down(self, files: Sequence[FoundFile], trouble: Trouble) -> None:
        """The parser did, on these. They are not tried again while they are as they are, however young: the
        next run may read few files, in this process, and would not survive them."""
        self.failed += [(each.path, trouble.line, trouble.reason) for each in files]
        self.left_out += [(each.path, each.print, "broken") for each in files]


@dataclass(frozen=True, slots=True)
class _Read:
    """A file as it was read: a text to take in, or why there is none."""

    found: FoundFile
    row: FileRow | None = None
    source: Source | None = None
    skipped: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How files of one run are read."""

    max_file_size: int
    keeps_generated: bool
    generation: int


Step = Callable[[int], Awaitable[None]]
"""Told how many files are done."""


class TakingIn:
    def __init__(self, store: CodeWriter, reader: SourceReader, scrubber: Scrubber) -> None:
        self._store = store
        self._reader = reader
        self._scrubber = scrubber

    async def take_in(
        self,
        project: Project,
        tree: SourceTree,
        found: Sequence[FoundFile],
        rules: Rules,
        step: Step,
        before: Mapping[str, BlobKey],
    ) -> Taken:
        """Stage what these files hold; `before` is what they held by the index. Cancelled, it leaves staged
        texts behind, which no tree shows and the next run uses or sweeps."""
        taken = Taken()
        slots = asyncio.Semaphore(_AT_ONCE)
        done = 0

        async def work(batch: Sequence[FoundFile], digesting: Digesting) -> None:
            nonlocal done
            try:
                await self._batch(project, tree, batch, rules, digesting, taken, before)
            finally:
                slots.release()
            done += len(batch)
            await step(done)

        try:
            async with self._reader.digesting(len(found)) as digesting, asyncio.TaskGroup() as group:
                for batch in _batches(found):
                    await slots.acquire()
                    group.create_task(work(batch, digesting))
        except ExceptionGroup as failed:
            # Batches fail together when the store does: what the caller is told is the first of it.
            raise failed.exceptions[0] from None
        taken.rows.sort(key=lambda row: row.path)
        taken.failed.sort()
        return taken

    async def keys(self, tree: SourceTree, found: Sequence[FoundFile], rules: Rules) -> list[BlobKey]:
        """Of a few files, to look for an index that has them."""
        read = await asyncio.to_thread(lambda: [self._read(tree, each, rules) for each in found])
        return [each.row.blob for each in read if each.row is not None]

    def is_left_out(self, tree: SourceTree, found: FoundFile, rules: Rules) -> bool:
        """Whether a file is not held for what is in it. Blocks on the disk: in a thread."""
        return bool(self._read(tree, found, rules).skipped)

    async def _batch(
        self,
        project: Project,
        tree: SourceTree,
        batch: Sequence[FoundFile],
        rules: Rules,
        digesting: Digesting,
        taken: Taken,
        before: Mapping[str, BlobKey],
    ) -> None:
        read = await asyncio.to_thread(lambda: [self._read(tree, each, rules) for each in batch])
        for each in read:
            if each.skipped:
                taken.left_out.append((each.found.path, _settled(each.found.print), each.skipped))
            if each.failure:
                taken.failed.append((each.found.path, 1, each.failure))
        whole = [
            (each.row, each.source) for each in read if each.row is not None and each.source is not None
        ]
        known = await self._store.staged(project, {row.blob for row, _ in whole}, rules.generation)
        sources = {row.blob: source for row, source in whole if row.blob not in known}
        digests = await digesting.digest(list(sources.values()))
        fresh: dict[BlobKey, Digest] = {}
        for blob, digest in zip(sources, digests, strict=True):
            if isinstance(digest, Trouble):
                taken.break_down(
                    [each.found for each in read if each.row and each.row.blob == blob], digest
                )
            else:
                fresh[blob] = digest
        staged = [Staged(blob, sources[blob].text, digest) for blob, digest in fresh.items()]
        if staged:
            await self._store.stage(project, staged, rules.generation)
        counts = known | {blob: _counts(digest) for blob, digest in fresh.items()}
        for row, _ in whole:
            if row.blob in counts:
                _add(taken, row, counts[row.blob], row.blob in known, before.get(row.path) == row.blob)

    def _read(self, tree: SourceTree, found: FoundFile, rules: Rules) -> _Read:
        """Blocks on the disk: in a thread."""
        try:
            data = tree.read(found.path, rules.max_file_size)
        except OSError:
            return _Read(found, failure="the file cannot be read")
        if data is None:
            return _Read(found, skipped="too_large")
        text = decoded(data)
        if text is None:
            return _Read(found, skipped="binary")
        generated = is_generated(text)
        if generated and not rules.keeps_generated:
            return _Read(found, skipped="generated")
        kind = self._reader.kind(found.path) or _PLAIN
        clean = self._scrubber.scrub(text, keep_lines=True).text
        row = FileRow(
            path=found.path,
            blob=BlobKey(blob_id(data), kind.language),
            print=_settled(found.print),
            marks=(TEST if kind.is_test else 0) | (GENERATED if generated else 0),
        )
        # Lines stay where they are; only then do both texts say the same of the same line.
        differs = clean != text and clean.count("\n") == text.count("\n")
        return _Read(found, row, Source(kind.language, clean, text if differs else ""))


def _settled(print: Print) -> Print:
    """A file so young may change again without its times and size telling: it gets a print that no file
    has, and is looked into at the next run."""
    if time.time_ns() - max(print[1], print[2]) < _SETTLED_NS:
        return (-1, *print[1:])
    return print


def _batches(found: Sequence[FoundFile]) -> Iterator[list[FoundFile]]:
    batch: list[FoundFile] = []
    size = 0
    for each in found:
        if batch and (len(batch) >= _BATCH_FILES or size + each.print[0] > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.print[0]
    if batch:
        yield batch


def _counts(digest: Digest) -> BlobCounts:
    return BlobCounts(
        symbols=len(digest.outline.symbols),
        chunks=len(digest.chunks),
        embeddings=len(digest.chunks) if digest.vectors else 0,
        over_window=digest.over_window,
        troubles=tuple((each.line, each.reason) for each in digest.outline.troubles),
    )


def _add(taken: Taken, row: FileRow, count: BlobCounts, is_known: bool, is_same: bool) -> None:
    taken.rows.append(row)
    if is_same:
        taken.same += 1
        return
    taken.symbols += count.symbols
    taken.chunks += count.chunks
    taken.embeddings += count.embeddings
    taken.over_window += count.over_window
    taken.reused += is_known
    taken.failed += [(row.path, line, reason) for line, reason in count.troubles]

"""A source text into its digest: parsed, cut into chunks, split into words, embedded."""

from collections.abc import Sequence

from contextd.adapters.code_static import MAX_PIECES, CodeStatic
from contextd.adapters.tree_sitter import TreeSitterParser
from contextd.domain.chunking import REPEATED, chunks_of
from contextd.domain.code import Chunk, Digest, Outline, Source
from contextd.domain.errors import EmbedderUnavailable
from contextd.domain.scrubbed_outline import scrubbed_outline
from contextd.domain.source_text import chunk_words, lines_of
from contextd.languages import Languages


class Digester:
    """One text at a time, in this thread."""

    def __init__(self, languages: Languages, model: CodeStatic) -> None:
        self._parser = TreeSitterParser(languages.by_name)
        self._model = model
        self._embeds = True

    def digest(self, source: Source) -> Digest:
        outline = self._parser.outline(source.language, source.written or source.text)
        lines = lines_of(source.text)
        if source.written:
            outline = scrubbed_outline(outline, lines_of(source.written), lines)
        pieces = self._pieces(lines)
        blank = [not line.strip() for line in lines]
        chunks = chunks_of(outline, [len(each) for each in pieces], blank, MAX_PIECES)
        read = [self._read(chunk, outline, pieces) for chunk in chunks]
        return Digest(
            language=source.language,
            lines=len(lines),
            outline=outline,
            chunks=tuple(chunks),
            words=tuple(chunk_words(chunk, lines, outline) for chunk in chunks),
            vectors=self._vectors(read),
            over_window=sum(len(each) > MAX_PIECES for each in read),
        )

    def _pieces(self, lines: Sequence[str]) -> list[list[int]]:
        try:
            return [self._model.pieces(line) for line in lines]
        except EmbedderUnavailable:
            # Without the model, files are found by their words; force_reindex embeds them later.
            self._embeds = False
            return [[0] * len(line.split()) for line in lines]

    def _read(self, chunk: Chunk, outline: Outline, pieces: Sequence[list[int]]) -> list[int]:
        """What the model reads of a chunk: its lines, after the signature if it is a later part."""
        own = [piece for line in pieces[chunk.start_line - 1 : chunk.end_line] for piece in line]
        if chunk.symbol < 0 or not self._embeds:
            return own
        symbol = outline.symbols[chunk.symbol]
        before = symbol.signature if chunk.part else ""
        return [*self._model.pieces(before)[:REPEATED], *own]

    def _vectors(self, read: Sequence[Sequence[int]]) -> bytes:
        if not self._embeds or not read:
            return b""
        try:
            return b"".join(self._model.document(pieces).astype("<f2").tobytes() for pieces in read)
        except EmbedderUnavailable:
            self._embeds = False
            return b""

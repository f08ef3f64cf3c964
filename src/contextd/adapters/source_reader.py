"""The SourceReader port: knows languages, and has texts taken in, few by a thread and many by processes."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from contextd.adapters.code_static import CodeStatic
from contextd.domain.code import Digest, Digesting, Source, SourceKind, Trouble
from contextd.domain.globs import compile_glob, matches_any
from contextd.domain.records import Vector
from contextd.languages import Languages
from contextd.languages.language import Language

if TYPE_CHECKING:
    from contextd.adapters.digester import Digester

VERSION: Final = 1
"""Counts changes in how a text is taken in. Another number makes every file be read again."""

_WORTH_A_PROCESS: Final = 150
"""Fewer texts than this are done sooner here than a process starts."""


_KEPT_NAMES: Final = 4_096
"""A kilobyte each. The names of a project come again with every search."""


class LocalSourceReader:
    """The SourceReader port, on this machine's cores."""

    def __init__(self, more_languages: Sequence[Language] = (), model: CodeStatic | None = None) -> None:
        self._more_languages = more_languages
        self._model = model or CodeStatic()
        self._turn = asyncio.Lock()
        self._name = lru_cache(maxsize=_KEPT_NAMES)(self._model.query)

    @cached_property
    def _languages(self) -> Languages:
        return Languages(self._more_languages)

    @cached_property
    def _tests(self) -> dict[str, tuple[re.Pattern[str], ...]]:
        return {
            name: tuple(map(compile_glob, each.tests)) for name, each in self._languages.by_name.items()
        }

    @cached_property
    def _here(self) -> "Digester":
        from contextd.adapters.digester import Digester

        return Digester(self._languages, self._model)

    @property
    def recipe(self) -> str:
        return f"{VERSION}:{self._model.model}"

    @property
    def model(self) -> str:
        return self._model.model

    @property
    def dimension(self) -> int:
        return self._model.dimension

    def kind(self, path: str) -> SourceKind | None:
        language = self._languages.of(path)
        return self._kind(language, path) if language is not None else None

    def _kind(self, language: Language, path: str) -> SourceKind:
        is_test = matches_any(path, self._tests[language.name])
        return SourceKind(language.name, language.is_code, is_test)

    def query(self, text: str) -> Vector:
        return Vector(self._model.query(text).astype("<f4").tobytes())

    def near(self, query: Vector, names: Sequence[str]) -> list[float]:
        """The cosine of each name, read as a query is."""
        import numpy as np

        asked = np.frombuffer(query, dtype="<f4")
        return [float(np.vecdot(self._name(name), asked)) for name in names]

    @asynccontextmanager
    async def digesting(self, count: int) -> AsyncIterator[Digesting]:
        if count < _WORTH_A_PROCESS or not self._languages.is_shipped:
            # A plugin's languages are known to this process alone.
            yield _InThread(self._here, self._turn)
            return
        from contextd.adapters.digest_processes import DigestProcesses

        crowd = DigestProcesses()
        try:
            yield crowd
        finally:
            await asyncio.shield(asyncio.to_thread(crowd.close))

    async def close(self) -> None:
        await self._model.close()


class _InThread:
    def __init__(self, digester: "Digester", turn: asyncio.Lock) -> None:
        self._digester = digester
        self._turn = turn

    async def digest(self, sources: Sequence[Source]) -> list[Digest | Trouble]:
        async with self._turn:
            return await asyncio.to_thread(lambda: [self._digester.digest(each) for each in sources])

"""Symbols of an indexed code base: where they are defined, and who uses them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, cast

from contextd.domain.callers import Caller
from contextd.domain.code import Import
from contextd.domain.code_store import CodeFinder, SymbolRow, UseRow
from contextd.services.indexed_trees import Indexed, indexed_at
from contextd.services.symbol_resolution import Certainty, meaning_of, names_of

Relation = Literal["all", "definition", "references", "callers", "callees"]
Resolution = Literal["exact", "by_name", "ambiguous"]

_PARTS: Final = re.compile(r"\.|::|->|#")
_MOST_CALLEES: Final = 300
_HIDES_CODE: Final = frozenset(
    """
    tests vendor dependencies generated too_large unreadable excluded not_included ignored links broken
    """.split()
)
"""Reasons for leaving files out behind which callers may stand."""


@dataclass(frozen=True, slots=True)
class Referred:
    use: UseRow
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class Called:
    """What a definition calls: where that is defined, if it is indexed."""

    name: str
    qualifier: str
    lines: tuple[int, ...]
    definitions: tuple[SymbolRow, ...]
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the index holds of the tree, and what it does not."""

    files: int
    complete: bool
    left_out: Mapping[str, int]
    folders: Mapping[str, str]
    unread: tuple[str, ...]
    following: bool
    """Whether it was brought up to the files just now; otherwise it is as it was when last indexed."""


@dataclass(frozen=True, slots=True)
class Lookup:
    definitions: list[SymbolRow]
    references: list[Referred]
    callees: list[Called]
    resolution: Resolution
    coverage: Coverage


class Follower(Protocol):
    async def up_to_date(self, indexed: Indexed) -> bool:
        """Bring the trees up to their files. False if that would take long, or is being done."""


class Symbols:
    def __init__(self, store: CodeFinder, follower: Follower) -> None:
        self._store = store
        self._follower = follower

    async def look_up(self, path: str, symbol: str, relation: Relation, caller: Caller) -> Lookup:
        """Raises BadPath, Forbidden, NotIndexed."""
        indexed = await indexed_at(self._store, path, caller)
        following = await self._follower.up_to_date(indexed)
        indexed = await indexed_at(self._store, path, caller)
        *qualifiers, name = [part for part in _PARTS.split(symbol) if part] or [symbol]
        named = await self._store.defined(indexed.project, indexed.trees, name)
        meant = _narrowed(named, qualifiers)
        referred, ambiguous = await self._referred(indexed, name, named, meant, relation)
        callees = await self._callees(indexed, meant) if relation in ("all", "callees") else []
        return Lookup(
            definitions=meant,
            references=referred,
            callees=callees,
            resolution=_resolution(meant, referred, callees, ambiguous),
            coverage=await self._coverage(indexed, following),
        )

    async def _referred(
        self,
        indexed: Indexed,
        name: str,
        named: Sequence[SymbolRow],
        meant: Sequence[SymbolRow],
        relation: Relation,
    ) -> tuple[list[Referred], bool]:
        """Uses that mean one of these; and whether some may mean another of that name just as well."""
        if relation in ("definition", "callees"):
            return [], False
        uses = await self._store.used(indexed.project, indexed.trees, name)
        imports = await self._store.imports(indexed.project, {use.blob for use in uses})
        wanted = {(each.id, each.path) for each in meant}
        referred: list[Referred] = []
        ambiguous = False
        for use in uses:
            if not named:
                referred.append(Referred(use, "by_name"))
                continue
            meaning = meaning_of(use, named, imports.get(use.blob, ()), _module(indexed))
            ours = [each for each in meaning.definitions if (each.id, each.path) in wanted]
            if ours:
                referred.append(Referred(use, meaning.certainty))
                ambiguous = ambiguous or len(meaning.definitions) > 1
        return referred, ambiguous

    async def _callees(self, indexed: Indexed, meant: Sequence[SymbolRow]) -> list[Called]:
        calls: dict[tuple[str, str, str], list[UseRow]] = {}
        for definition in meant:
            for use in await self._store.uses_within(indexed.project, indexed.trees, definition):
                if use.kind == "call" and use.path == definition.path:
                    calls.setdefault((use.path, use.name, use.qualifier), []).append(use)
        imports = await self._store.imports(indexed.project, {each.blob for each in meant})
        known: dict[str, list[SymbolRow]] = {}
        called = []
        for (_, name, qualifier), uses in list(calls.items())[:_MOST_CALLEES]:
            definitions: list[SymbolRow] = []
            for meant_name in names_of(uses[0], imports.get(uses[0].blob, ())):
                if meant_name not in known:
                    known[meant_name] = await self._store.defined(
                        indexed.project, indexed.trees, meant_name
                    )
                definitions += known[meant_name]
            called.append(_called(name, qualifier, uses, definitions, imports, _module(indexed)))
        return called

    async def _coverage(self, indexed: Indexed, following: bool) -> Coverage:
        left_out: dict[str, int] = {}
        folders: dict[str, str] = {}
        unread: list[str] = []
        # What index_repository was told to leave out says nothing about the code.
        of_code = [tree for tree in indexed.trees if tree.purpose == "code"] or indexed.trees
        for tree in of_code:
            for reason, count in cast(dict[str, int], tree.about.get("skipped", {})).items():
                left_out[reason] = left_out.get(reason, 0) + count
            folders |= cast(dict[str, str], tree.about.get("skipped_folders", {}))
            unread += cast(list[str], tree.about.get("unread", []))
        totals = await self._store.totals(indexed.project, indexed.trees)
        hidden = {reason: count for reason, count in left_out.items() if reason in _HIDES_CODE}
        shown = {folder: why for folder, why in folders.items() if why in _HIDES_CODE}
        partly = {path for path, _, _ in totals.troubles}
        return Coverage(
            files=totals.files,
            complete=not hidden and not unread and not partly and following,
            left_out=hidden,
            folders=shown,
            unread=tuple(sorted({*unread, *partly})),
            following=following,
        )


def _called(
    name: str,
    qualifier: str,
    uses: Sequence[UseRow],
    definitions: Sequence[SymbolRow],
    imports: Mapping[int, Sequence[Import]],
    module: str | None,
) -> Called:
    meaning = meaning_of(uses[0], definitions, imports.get(uses[0].blob, ()), module)
    lines = tuple(sorted({use.line for use in uses}))
    return Called(name, qualifier, lines, meaning.definitions, meaning.certainty)


def _narrowed(named: Sequence[SymbolRow], qualifiers: Sequence[str]) -> list[SymbolRow]:
    """Those that the qualifiers fit: their type, their package, or a folder or file they are in."""
    return [each for each in named if all(_fits(each, qualifier) for qualifier in qualifiers)]


def _fits(symbol: SymbolRow, qualifier: str) -> bool:
    where = {symbol.container, symbol.package, *re.split(r"[/.\\]", symbol.path)}
    return qualifier in where or symbol.package.endswith((f".{qualifier}", f"\\{qualifier}"))


def _resolution(
    meant: Sequence[SymbolRow], referred: Iterable[Referred], callees: Iterable[Called], ambiguous: bool
) -> Resolution:
    if ambiguous or len(meant) > 1:
        return "ambiguous"
    sure = all(each.certainty == "exact" for each in referred) and all(
        each.certainty == "exact" for each in callees
    )
    return "exact" if meant and sure else "by_name"


def _module(indexed: Indexed) -> str | None:
    names = [tree.about.get("module") for tree in indexed.trees]
    return next((name for name in names if isinstance(name, str)), None)

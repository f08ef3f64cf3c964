"""Symbols, as an agent calls them: where they are defined, and who uses them."""

from typing import ClassVar, Literal

from pydantic import Field

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.code import SymbolKind
from contextd.domain.code_store import TEST, SymbolRow
from contextd.services.symbols import Called, Lookup, Referred, Relation, Symbols
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import PATH_NAMES, Limit, ProjectPath

_PROJECT = "/home/dev/shop"
_FOLLOWED = "calls and uses of types are followed, functions passed as values are not"


class SymbolLookup(Input):
    old_names: ClassVar = PATH_NAMES

    path: ProjectPath = Field(description="Absolute path of the indexed project")
    symbol: str = Field(
        min_length=1, max_length=limits.MAX_SYMBOL_LENGTH, description="Name, or Type.Method, package.Name"
    )
    relation: Relation = "all"
    limit: Limit = Field(50, description="Of each list")


class Place(Output):
    name: str
    kind: SymbolKind
    container: str
    package: str
    signature: str
    file: str
    line: int
    end_line: int


class Use(Output):
    file: str
    line: int
    kind: Literal["call", "type"]
    qualifier: str
    within: str = Field(description="the symbol around it; empty at the top of a file")
    resolution: Literal["exact", "by_name"]


class CallerShown(Output):
    name: str
    file: str
    line: int
    lines: list[int] = Field(description="of the calls")
    test: bool
    resolution: Literal["exact", "by_name"]


class CalleeShown(Output):
    name: str
    qualifier: str
    lines: list[int]
    definitions: list[Place] = Field(description="none: it is not defined in what is indexed")
    resolution: Literal["exact", "by_name"]


class CoverageShown(Output):
    files_indexed: int
    complete: bool
    up_to_date: bool
    not_indexed: dict[str, int] = Field(description="files and folders left out, by reason")
    folders_not_indexed: dict[str, str]
    files_partly_read: list[str]
    note: str


class SymbolFound(Output):
    symbol: str
    definitions: list[Place]
    references: list[Use]
    callers: list[CallerShown]
    callees: list[CalleeShown]
    totals: dict[str, int] = Field(description="before the limit")
    resolution: Literal["exact", "by_name", "ambiguous"]
    coverage: CoverageShown
    message: str


@tool(
    toolset="code",
    not_for="code by meaning or by words: search_code",
    asked="go to definition; find usages before a refactoring",
    timeout_s=30,
    read_only=True,
    examples=(Example("who calls it", {"path": _PROJECT, "symbol": "Cart.Total", "relation": "callers"}),),
)
async def symbol_lookup(symbols: Symbols, ask: SymbolLookup, caller: Caller) -> SymbolFound:
    """Find a symbol's definition, references, callers and callees, and how sure each of them is."""
    found = await symbols.look_up(ask.path, ask.symbol, ask.relation, caller)
    return _symbol(found, ask)


def _symbol(found: Lookup, ask: SymbolLookup) -> SymbolFound:
    callers = _callers(found.references)
    wants_uses = ask.relation in ("all", "references")
    wants_callers = ask.relation in ("all", "callers")
    coverage = found.coverage
    return SymbolFound(
        symbol=ask.symbol,
        definitions=[_place(each) for each in found.definitions[: ask.limit]],
        references=[_use(each) for each in found.references[: ask.limit]] if wants_uses else [],
        callers=callers[: ask.limit] if wants_callers else [],
        callees=[_callee(each) for each in found.callees[: ask.limit]],
        totals={
            "definitions": len(found.definitions),
            "references": len(found.references),
            "callers": len(callers),
            "callees": len(found.callees),
        },
        resolution=found.resolution,
        coverage=CoverageShown(
            files_indexed=coverage.files,
            complete=coverage.complete,
            up_to_date=coverage.following,
            not_indexed=dict(coverage.left_out),
            folders_not_indexed=dict(list(coverage.folders.items())[: ask.limit]),
            files_partly_read=list(coverage.unread[: ask.limit]),
            note=_note(found),
        ),
        message=_message(found, ask),
    )


def _message(found: Lookup, ask: SymbolLookup) -> str:
    if found.definitions:
        return f"{len(found.definitions)} definitions, {len(found.references)} references"
    elsewhere = "search_code finds it by words, also where it is a field, inherited or a local name"
    return f"no symbol of this name is defined in what is indexed; {elsewhere}"


def _note(found: Lookup) -> str:
    """What an empty list means, and does not."""
    coverage = found.coverage
    if coverage.complete:
        return f"every source file of the tree is indexed; {_FOLLOWED}"
    parts = [f"{count} {reason.replace('_', ' ')}" for reason, count in coverage.left_out.items()]
    if coverage.unread:
        parts.append(f"{len(coverage.unread)} files not read whole")
    if not coverage.following:
        parts.append("changes since the last run")
    return f"uses in what is not indexed are not seen: {', '.join(parts)}; {_FOLLOWED}"


def _place(symbol: SymbolRow) -> Place:
    return Place(
        name=symbol.name,
        kind=symbol.kind,
        container=symbol.container,
        package=symbol.package,
        signature=symbol.signature,
        file=symbol.path,
        line=symbol.line,
        end_line=symbol.end_line,
    )


def _use(referred: Referred) -> Use:
    use = referred.use
    return Use(
        file=use.path,
        line=use.line,
        kind=use.kind,
        qualifier=use.qualifier,
        within=_full_name(use.within) if use.within else "",
        resolution=referred.certainty,
    )


def _full_name(symbol: SymbolRow) -> str:
    return f"{symbol.container}.{symbol.name}" if symbol.container else symbol.name


def _callers(references: list[Referred]) -> list[CallerShown]:
    """Calls by the symbol that they stand in."""
    by_caller: dict[tuple[str, int], list[Referred]] = {}
    for each in references:
        if each.use.kind == "call":
            line = each.use.within.line if each.use.within else 0
            by_caller.setdefault((each.use.path, line), []).append(each)
    callers = []
    for (path, line), calls in by_caller.items():
        within = calls[0].use.within
        sure = all(each.certainty == "exact" for each in calls)
        callers.append(
            CallerShown(
                name=_full_name(within) if within else "",
                file=path,
                line=line or calls[0].use.line,
                lines=sorted({each.use.line for each in calls}),
                test=bool(calls[0].use.marks & TEST),
                resolution="exact" if sure else "by_name",
            )
        )
    return callers


def _callee(called: Called) -> CalleeShown:
    return CalleeShown(
        name=called.name,
        qualifier=called.qualifier,
        lines=list(called.lines),
        definitions=[_place(each) for each in called.definitions[:10]],
        resolution=called.certainty,
    )


TOOLS = (symbol_lookup,)

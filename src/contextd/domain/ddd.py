"""Domain-driven design in code: what a type is by its structure first, and by its name second.

Judged a package at a time, because a type's methods may stand in other files than the type.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from contextd.domain.code import DddPattern
from contextd.domain.code_store import PatternRow, SymbolRow
from contextd.domain.words import split_words

_ENOUGH: Final = 2.0
"""Evidence that adds up to this makes a pattern. A name alone is worth less."""
_NAME: Final = 1.5

_IDENTITY: Final = re.compile(r"^(?:ID|Id|id|_id|uuid|UUID|Uuid|[a-z]+ID|[A-Z][a-z]+ID)$")
_READS: Final = frozenset("get find list load fetch search by query count exists all read lookup".split())
_WRITES: Final = frozenset(
    "save store create insert update delete remove add put upsert persist write".split()
)
_ENGINES: Final = frozenset(
    "db sql database tx pool conn connection mongo redis bolt pgx gorm sqlx".split()
)
_HANDLES: Final = frozenset("handle execute process serve run dispatch".split())

_NAMES: Final[Mapping[str, DddPattern]] = {
    "repository": "repository",
    "repo": "repository",
    "store": "repository",
    "service": "service",
    "aggregate": "aggregate",
    "entity": "entity",
    "command": "command",
    "cmd": "command",
    "query": "query",
    "handler": "handler",
}


@dataclass(slots=True)
class _Type:
    """A type with what the package says of it."""

    symbol: SymbolRow
    fields: list[tuple[str, str]]
    methods: list[SymbolRow] = field(default_factory=list)
    constructors: list[SymbolRow] = field(default_factory=list)

    @property
    def assigned(self) -> set[str]:
        return {str(name) for method in self.methods for name in _list(method.facts.get("assigns"))}

    @property
    def identity(self) -> str | None:
        own = f"{self.symbol.name}ID".lower()
        for name, _ in self.fields:
            if name.lower() in ("id", "uuid", own) or (_IDENTITY.match(name) and len(name) <= 4):
                return name
        return None


def patterns_of(symbols: Sequence[SymbolRow]) -> Iterator[PatternRow]:
    """The patterns of one package's types, each with its evidence, in order of the symbols."""
    types = _types(symbols)
    entities = {name for name, each in types.items() if each.identity and each.assigned}
    for each in types.values():
        judged = _interface(each.symbol) if each.symbol.kind == "interface" else _struct(each, entities)
        for pattern, evidence in judged.items():
            if sum(worth for _, worth in evidence) >= _ENOUGH:
                yield PatternRow(each.symbol.id, pattern, tuple(text for text, _ in evidence))


Judged = dict[DddPattern, list[tuple[str, float]]]


def _interface(symbol: SymbolRow) -> Judged:
    methods = [str(name) for name in _list(symbol.facts.get("methods"))]
    verbs = {name: set(split_words(name)[:1]) for name in methods}
    reads = [name for name, verb in verbs.items() if verb & _READS]
    writes = [name for name, verb in verbs.items() if verb & _WRITES]
    handles = [name for name, verb in verbs.items() if verb & _HANDLES]
    judged: Judged = defaultdict(list)
    if reads and writes:
        judged["repository"].append((f"an interface that reads ({reads[0]}) and writes ({writes[0]})", 2.0))
    elif reads or writes:
        judged["repository"].append(
            (f"an interface that keeps or finds things ({(reads + writes)[0]})", 1.0)
        )
    if len(methods) == 1 and handles:
        judged["handler"].append((f"an interface with one method, {handles[0]}", 2.0))
    if len(methods) > len(reads) + len(writes):
        judged["service"].append(("an interface of operations", 0.5))
    return _with_name(judged, symbol)


def _struct(each: _Type, entities: set[str]) -> Judged:
    judged: Judged = defaultdict(list)
    _as_entity(each, entities, judged)
    _as_value(each, judged)
    _as_service(each, judged)
    _as_repository(each, judged)
    handles = [method.name for method in each.methods if set(split_words(method.name)[:1]) & _HANDLES]
    if handles and len(each.methods) == 1:
        judged["handler"].append((f"its one method is {handles[0]}", 1.0))
    if each.fields and not each.methods:
        judged["command"].append(("fields and no methods", 0.5))
        judged["query"].append(("fields and no methods", 0.5))
    return _with_name(judged, each.symbol)


def _as_entity(each: _Type, entities: set[str], judged: Judged) -> None:
    """An identity that stays while the rest changes; an aggregate holds other entities, too."""
    identity, changed = each.identity, each.assigned - {each.identity or ""}
    if not identity:
        return
    judged["entity"].append((f"an identity: the field {identity}", 1.0))
    if changed:
        judged["entity"].append((f"its methods change {_some(changed)}", 1.0))
    held = [name for name, type in each.fields if _element(type) in entities - {each.symbol.name}]
    many = [name for name, type in each.fields if type.startswith(("[]", "map["))]
    if held and changed:
        judged["aggregate"] += [
            (f"an identity and methods that change {_some(changed)}", 1.0),
            (f"it holds entities: {_some(held)}", 1.0),
        ]
    elif many and set(many) & changed:
        judged["aggregate"] += [
            (f"an identity: the field {identity}", 1.0),
            (f"it guards a collection: {_some(set(many) & changed)}", 1.0),
        ]


def _as_value(each: _Type, judged: Judged) -> None:
    if each.identity or not each.fields or each.assigned:
        return
    by_value = each.methods and not any(method.facts.get("pointer") for method in each.methods)
    hidden = all(not name[:1].isupper() for name, _ in each.fields)
    if by_value:
        judged["value_object"].append(("no identity, and every method takes it by value", 1.0))
    if by_value and hidden:
        judged["value_object"].append(("its fields cannot be set from outside", 0.5))
    makes = [m.name for m in each.methods if _element(_first(m.facts.get("returns"))) == each.symbol.name]
    if by_value and makes:
        judged["value_object"].append((f"it is not changed: {makes[0]} answers with another", 0.5))
    if by_value and each.constructors:
        judged["value_object"].append((f"it is made by {each.constructors[0].name}", 0.5))
    if any(split_words(method.name)[:1] in (["equal"], ["equals"]) for method in each.methods):
        judged["value_object"].append(("it is compared by value", 1.0))


def _as_service(each: _Type, judged: Judged) -> None:
    """No state of its own to change: it works on others, which it is given when it is made."""
    if each.identity or each.assigned or not each.methods:
        return
    given = [name for name, type in each.fields if _names(type) & {"repository", "service", "repo"}]
    if given:
        judged["service"].append((f"it works on {_some(given)} and changes nothing of its own", 1.0))
    else:
        judged["service"].append(("methods, and no state that they change", 0.5))
    if given and each.constructors:
        judged["service"].append((f"it is given them by {each.constructors[0].name}", 1.0))


def _as_repository(each: _Type, judged: Judged) -> None:
    reads, writes = _verbs(each.methods)
    if each.identity or not (reads and writes):
        return
    judged["repository"].append((f"its methods read ({reads[0]}) and write ({writes[0]})", 1.0))
    kept = [name for name, type in each.fields if set(split_words(f"{name} {_element(type)}")) & _ENGINES]
    if kept:
        judged["repository"].append((f"it works on {_some(kept)}", 1.0))


def _verbs(methods: Sequence[SymbolRow]) -> tuple[list[str], list[str]]:
    """Names of methods that read, and of those that write, by their first word."""
    first = {method.name: set(split_words(method.name)[:1]) for method in methods}
    return [n for n, verb in first.items() if verb & _READS], [
        n for n, verb in first.items() if verb & _WRITES
    ]


def _with_name(judged: Judged, symbol: SymbolRow) -> Judged:
    """A name adds to what the structure says; alone it is enough only where the structure agrees at all."""
    words = split_words(symbol.name)
    pattern = _NAMES.get(words[-1]) if words else None
    if pattern is not None:
        judged[pattern].append((f"its name ends in {words[-1]}", _NAME))
    return judged


def _types(symbols: Sequence[SymbolRow]) -> dict[str, _Type]:
    types = {
        each.name: _Type(each, [(str(a), str(b)) for a, b in map(_list, _list(each.facts.get("fields")))])
        for each in symbols
        if each.kind in ("struct", "class", "interface")
    }
    for each in symbols:
        if each.kind == "method" and each.container in types:
            types[each.container].methods.append(each)
        elif each.kind == "function" and split_words(each.name)[:1] == ["new"]:
            made = _element(_first(each.facts.get("returns")))
            if made in types:
                types[made].constructors.append(each)
    return types


def _element(type: str) -> str:
    """`[]*OrderLine` and `map[string]OrderLine` as `OrderLine`."""
    return re.sub(r"^(?:\[\w*\]|\*|map\[[^\]]*\])+", "", type.strip()).rsplit(".", 1)[-1]


def _first(returns: object) -> str:
    """Of what a function returns: `(*Order, error)` as `*Order`."""
    return str(returns or "").strip("()").split(",", 1)[0]


def _names(type: str) -> set[str]:
    return set(split_words(_element(type))[-1:])


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:3])


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []

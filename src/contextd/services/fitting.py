"""An answer made to fit its budget: long texts are cut first, then emptied; items are dropped last.

Whatever leaves is given back whole as a part, so that it can be held under a ref. Fields stay: a client
that knows the answer's schema finds every one of them, only shorter.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias

from contextd.domain.answers import Answer, Count, as_json, weighed
from contextd.domain.cutting import Gap, Prices, gaps, pieces, rendered

Place: TypeAlias = "tuple[str | int, ...]"
Handle: TypeAlias = "Callable[[Sequence[Part]], str]"
"""The ref under which parts are to be held."""

_NAMES: Final = frozenset(
    "title name summary path file symbol query project_path error_type category package signature".split()
)
"""Fields by which an item is known. They are cut only when nothing else is left."""
_HANDLE: Final = re.compile("(.*_)?(id|ref|at|sha256|version)")
_OF_ITS_OWN_KIND: Final = ("enum", "const", "format")
"""A handle, a time or a choice is of no use unless it is whole."""
_WORTH_CUTTING: Final = 24
_WORTH_EMPTYING: Final = 6
_BESIDE_A_MARK: Final = 12
"""Tokens that a text keeps besides the mark, or it is emptied instead."""
_TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Part:
    """Something that was left out, whole: a text, or the items of a list, a line each."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Fitted:
    answer: Answer
    parts: tuple[Part, ...] = ()


def fitted(
    data: dict[str, Any],
    budget: int,
    count: Count,
    handle: Handle,
    *,
    schema: Mapping[str, Any] | None = None,
    warning: str = "",
) -> Fitted:
    """The answer within the budget, or as near to it as its fields allow.

    `schema` is the answer's: it tells which objects are open, so that entries of theirs may go.
    """
    whole = weighed(data, count, warning=warning)
    return cut(whole, budget, count, handle, schema=schema)


def cut(
    whole: Answer, budget: int, count: Count, handle: Handle, *, schema: Mapping[str, Any] | None = None
) -> Fitted:
    """The same for an answer that was weighed already."""
    if whole.tokens_used <= budget:
        return Fitted(whole)
    data, warning = whole.data, whole.warning
    work = _Work(data, budget, count, handle, schema or {}, warning)
    best = work.fit()
    saved = whole.tokens_used - best.answer.tokens_used
    if saved <= 0:
        # So little that marks and handles cost more than they save.
        return Fitted(whole)
    return replace(best, answer=replace(best.answer, tokens_cut=saved))


@dataclass(slots=True)
class _Text:
    """A text of the answer, and what is left of it: all, `room` tokens of it, or nothing."""

    place: Place
    text: str
    tokens: int
    named: bool
    room: int | None = None


@dataclass(slots=True)
class _Group:
    """A list or an open object, and how many of its items stay."""

    place: Place
    items: int
    keep: int


@dataclass(slots=True)
class _Lines:
    pieces: list[str]
    costs: list[int]


@dataclass
class _Work:
    data: dict[str, Any]
    budget: int
    count: Count
    handle: Handle
    schema: Mapping[str, Any]
    warning: str
    texts: dict[Place, _Text] = field(default_factory=dict)
    groups: dict[Place, _Group] = field(default_factory=dict)
    lines: dict[Place, _Lines] = field(default_factory=dict)
    cuts: dict[tuple[Place, int], tuple[Gap, ...]] = field(default_factory=dict)

    def fit(self) -> Fitted:
        """The first way that is good enough; the last when none is."""
        self._look(self.data, self.schema, (), open=False)
        best = self._done()
        for way in (self._cut_texts, self._empty_texts, self._drop_items, self._cut_names, self._drop_all):
            for smaller in way(best):
                best = smaller
                if best.answer.tokens_used <= self.budget:
                    return best
        return best

    # --- what there is ----------------------------------------------------------------

    def _look(self, value: Any, schema: Mapping[str, Any], place: Place, *, open: bool) -> None:
        schema = self._resolved(schema, value)
        if isinstance(value, str):
            if open or not _is_whole(place, schema):
                tokens = self.count(as_json(value)) if len(value) > _WORTH_EMPTYING else 0
                self.texts[place] = _Text(place, value, tokens, not open and place[-1] in _NAMES)
        elif isinstance(value, list):
            self.groups[place] = _Group(place, len(value), len(value))
            for at, item in enumerate(value):
                self._look(item, schema.get("items", {}), (*place, at), open=open)
        elif isinstance(value, dict):
            fields = schema.get("properties")
            if fields is None and place:
                self.groups[place] = _Group(place, len(value), len(value))
            for name, item in value.items():
                self._look(item, (fields or {}).get(name, {}), (*place, name), open=fields is None)

    def _resolved(self, schema: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
        """What stands behind a reference, or the alternative to null."""
        if "$ref" in schema:
            found: Mapping[str, Any] = self.schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]
            return found
        for part in schema.get("anyOf", ()) if "properties" not in schema else ():
            if part.get("type") != "null":
                return self._resolved(part, value)
        return schema

    # --- ways to make it smaller ------------------------------------------------------

    def _cut_texts(self, best: Fitted, *, named: bool = False) -> Iterator[Fitted]:
        """All long texts down to the same length, as far as it takes."""
        texts = [
            text for text in self.texts.values() if text.named is named and text.tokens > _WORTH_CUTTING
        ]
        least = self._prices.first + _BESIDE_A_MARK
        wanted = 0
        for _ in range(_TRIES):
            wanted += best.answer.tokens_used - self.budget
            cap = max(least, _level([text.tokens for text in texts], wanted))
            for text in texts:
                text.room = cap if text.tokens > cap else None
            best = self._done()
            yield best
            if cap == least:
                return

    def _empty_texts(self, best: Fitted) -> Iterator[Fitted]:
        """From the last, because the first items are the best."""
        over = best.answer.tokens_used - self.budget
        saved = 0
        for text in reversed(self.texts.values()):
            if text.named or text.tokens < _WORTH_EMPTYING:
                continue
            saved += min(text.tokens, text.room or text.tokens)
            text.room = 0
            if saved >= over:
                best = self._done()
                yield best
                over, saved = best.answer.tokens_used - self.budget, 0
        yield self._done()

    def _drop_items(self, best: Fitted, *, least: int = 1) -> Iterator[Fitted]:
        """From the end of the longest list; a first item stays as long as anything else can go."""
        while (group := self._longest(least)) is not None:
            over, saved = best.answer.tokens_used - self.budget, 0
            prices = self._item_prices(group)
            while group.keep > least and saved < over:
                group.keep -= 1
                saved += prices[group.keep]
            best = self._done()
            yield best

    def _drop_all(self, best: Fitted) -> Iterator[Fitted]:
        return self._drop_items(best, least=0)

    def _cut_names(self, best: Fitted) -> Iterator[Fitted]:
        return self._cut_texts(best, named=True)

    def _longest(self, least: int) -> _Group | None:
        """The list that costs the most, of those that are still there and can give something."""
        able = [group for group in self.groups.values() if group.keep > least and self._stays(group.place)]
        prices = {group.place: sum(self._item_prices(group)) for group in able}
        return max(able, key=lambda group: prices[group.place], default=None)

    def _stays(self, place: Place) -> bool:
        """Whether it is not within an item that was dropped."""
        for depth in range(len(place)):
            group = self.groups.get(place[:depth])
            if group is not None and self._at(place[:depth], place[depth]) >= group.keep:
                return False
        return True

    def _at(self, place: Place, key: str | int) -> int:
        return key if isinstance(key, int) else list(self._value(place)).index(key)

    def _item_prices(self, group: _Group) -> list[int]:
        value = self._value(group.place)
        kept = list(value)[: group.keep]
        keys: Sequence[str | int] = range(len(kept)) if isinstance(value, list) else kept
        parts: list[Part] = []
        shown = [self._shown(value[key], (*group.place, key), "", parts) for key in keys]
        return [self.count(as_json(each)) + 1 for each in shown]

    def _value(self, place: Place) -> Any:
        value: Any = self.data
        for key in place:
            value = value[key]
        return value

    # --- as it would be ---------------------------------------------------------------

    def _done(self) -> Fitted:
        """Twice, because the marks name the ref and the ref is made of the parts."""
        parts: list[Part] = []
        data = self._shown(self.data, (), "", parts)
        if not parts:
            return Fitted(weighed(data, self.count, warning=self.warning))
        ref = self.handle(parts)
        numbered: list[Part] = []
        many = len(parts) > 1
        data = self._shown(self.data, (), f"{ref}." if many else ref, numbered)
        answer = weighed(data, self.count, (ref,), self.warning, truncated=True)
        marks = sum(text.room is not None and text.room > 0 for text in self.texts.values())
        beside = answer.tokens_beside + marks * self._prices.first
        return Fitted(replace(answer, tokens_beside=beside), tuple(parts))

    def _shown(self, value: Any, place: Place, ref: str, parts: list[Part]) -> Any:
        if isinstance(value, str):
            return self._shown_text(place, value, ref, parts)
        if isinstance(value, list):
            keep = self.groups[place].keep
            shown = [self._shown(item, (*place, at), ref, parts) for at, item in enumerate(value[:keep])]
            if keep < len(value):
                left = "".join(f"{as_json(item)}\n" for item in value[keep:])
                parts.append(Part(f"{_written(place)}[{keep}:{len(value)}]", left))
            return shown
        if isinstance(value, dict):
            return self._shown_object(place, value, ref, parts)
        return value

    def _shown_object(
        self, place: Place, value: dict[str, Any], ref: str, parts: list[Part]
    ) -> dict[str, Any]:
        group = self.groups.get(place)
        names = list(value) if group is None else list(value)[: group.keep]
        shown = {name: self._shown(value[name], (*place, name), ref, parts) for name in names}
        if len(names) < len(value):
            rest = {name: item for name, item in value.items() if name not in shown}
            left = "".join(f"{as_json({name: item})}\n" for name, item in rest.items())
            parts.append(Part(f"{_written(place)}{{{len(rest)} fields}}", left))
        return shown

    def _shown_text(self, place: Place, value: str, ref: str, parts: list[Part]) -> str:
        text = self.texts.get(place)
        if text is None or text.room is None:
            return value
        if text.room == 0:
            parts.append(Part(_written(place), value))
            return ""
        lines = self._lines(place, value)
        left_out = self._gaps(text, lines, text.room)
        if not left_out:
            return value
        parts.append(Part(_written(place), value))
        own = f"{ref}{len(parts)}" if ref.endswith(".") else ref
        return rendered(lines.pieces, left_out, lambda gap, first: mark(gap, own if first else ""))

    def _gaps(self, text: _Text, lines: _Lines, room: int) -> tuple[Gap, ...]:
        known = self.cuts.get((text.place, room))
        if known is None:
            known = self.cuts[text.place, room] = gaps(lines.pieces, lines.costs, room, self._prices)
        return known

    def _lines(self, place: Place, text: str) -> _Lines:
        """Costs as they are in JSON, where a line's end is two characters."""
        if place not in self.lines:
            split = pieces(text)
            self.lines[place] = _Lines(split, [self.count(as_json(piece)[1:-1]) for piece in split])
        return self.lines[place]

    @cached_property
    def _prices(self) -> Prices:
        """Of marks with long numbers, so that none turns out dearer."""
        ref = f"{self.handle([Part('', '')])}.10"
        widest = Gap(10_000, 99_999, 10_000)
        named, bare = (self.count(as_json(mark(widest, each))) for each in (ref, ""))
        return Prices(named, bare)


def mark(gap: Gap, ref: str) -> str:
    """What stands where lines were left out: on the first the ref, on the others their numbers alone."""
    lines = f"lines {gap.first}-{gap.last}" if gap.last > gap.first else f"line {gap.first}"
    errors = f", {gap.telling} of them errors" if gap.telling else ""
    return f"[… {lines} left out{errors}{f': ref_get {ref}' if ref else ''} …]\n"


def _is_whole(place: Place, schema: Mapping[str, Any]) -> bool:
    name = next((key for key in reversed(place) if isinstance(key, str)), "")
    return bool(_HANDLE.fullmatch(name)) or any(mark in schema for mark in _OF_ITS_OWN_KIND)


def _level(heights: Sequence[int], wanted: int) -> int:
    """The height at which all that stands higher, cut off there, is worth so much."""
    saved = 0
    ordered = [*sorted(heights, reverse=True), 0]
    for above, (height, below) in enumerate(pairwise(ordered), start=1):
        if saved + (height - below) * above >= wanted:
            return height - -(-(wanted - saved) // above)
        saved += (height - below) * above
    return 0


def _written(place: Place) -> str:
    """`results[3].content`"""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
    return text.removeprefix(".")

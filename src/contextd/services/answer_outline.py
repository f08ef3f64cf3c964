"""An answer taken apart: its texts and lists, each of which can be made smaller, and put together again.

Whatever is left out is given back whole as a part, so that it can be held under a ref.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from contextd.domain.answers import Answer, Count, as_json, weighed
from contextd.domain.cutting import Gap, Prices, gaps, pieces, rendered

Place: TypeAlias = "tuple[str | int, ...]"
Handle: TypeAlias = "Callable[[Sequence[Part]], str]"
"""The ref under which parts are to be held."""

_NAMES: Final = frozenset(
    "title name summary path file symbol query project_path error_type error_pattern category package"
    " signature".split()
)
"""Fields by which an item is known."""
_HANDLE: Final = re.compile("(.*_)?(id|ref|at|sha256|version)")
_OF_ITS_OWN_KIND: Final = ("enum", "const", "format", "pattern", "minLength")
"""A handle, a time or a choice is of no use unless it is whole."""
_SHORT: Final = 6
"""Characters of a text that is not worth a look."""
_AROUND: Final = re.compile("context_(before|after)")
_AROUND_COUNTS: Final = 0.1
EMPTIED: Final = "[…]"
"""What stands for a text that was left out whole. An empty one would look like a value."""
MARKED: Final = re.compile(r"^\[… lines? \d+(-\d+)? left out.*…\]$", re.MULTILINE)
"""A mark, as it stands in a text that was cut."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that was left out, whole: a text, or the items of a list, a line each."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Fitted:
    answer: Answer
    parts: tuple[Part, ...] = ()


@dataclass(slots=True)
class Text:
    """A text of the answer, and what is left of it: all, `room` tokens of it, or nothing for 0."""

    place: Place
    tokens: int
    weight: float
    """How long it may be, beside a text of the first item."""
    named: bool
    """Whether an item is known by it."""
    item: bool
    """Whether it is an item itself, of a list or of an open object: it leaves as one."""
    room: int | None = None


@dataclass(slots=True)
class Group:
    """A list or an open object, and how many of its items stay."""

    place: Place
    order: Mapping[str | int, int]
    """Its items' keys, each with its number."""
    keep: int


@dataclass(frozen=True, slots=True)
class _Lines:
    pieces: list[str]
    costs: list[int]


class Outline:
    """Change `room` of texts and `keep` of groups; `put_together` shows what the answer is then."""

    def __init__(self, whole: Answer, schema: Mapping[str, Any], count: Count, handle: Handle) -> None:
        self.texts: dict[Place, Text] = {}
        self.groups: dict[Place, Group] = {}
        self._data = whole.data
        self._warning = whole.warning
        self._schema = schema
        self._count = count
        self._handle = handle
        self._lines: dict[Place, _Lines] = {}
        self._cuts: dict[tuple[Place, int], tuple[Gap, ...]] = {}
        self._look(whole.data, schema, (), open=False)

    # --- what there is ----------------------------------------------------------------

    def _look(self, value: Any, schema: Mapping[str, Any], place: Place, *, open: bool) -> None:
        schema = self._resolved(schema)
        if isinstance(value, str):
            if open or not _is_whole(place, schema):
                tokens = self._count(as_json(value)) if len(value) > _SHORT else 0
                named = not open and place[-1] in _NAMES
                self.texts[place] = Text(
                    place, tokens, _weight(place), named, item=place[:-1] in self.groups
                )
        elif isinstance(value, list):
            self.groups[place] = Group(place, {at: at for at in range(len(value))}, len(value))
            for at, item in enumerate(value):
                self._look(item, schema.get("items", {}), (*place, at), open=open)
        elif isinstance(value, dict):
            fields = schema.get("properties")
            if fields is None and place:
                self.groups[place] = Group(place, {name: at for at, name in enumerate(value)}, len(value))
            for name, item in value.items():
                self._look(item, (fields or {}).get(name, {}), (*place, name), open=fields is None)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """What stands behind a reference, or the alternative to null."""
        if "$ref" in schema:
            found: Mapping[str, Any] = self._schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]
            return found
        for part in schema.get("anyOf", ()) if "properties" not in schema else ():
            if part.get("type") != "null":
                return self._resolved(part)
        return schema

    def standing(self, least: int) -> Iterator[Group]:
        """The lists that have more items than this, and are not within an item that was dropped."""
        return (group for group in self.groups.values() if group.keep > least and self._stays(group.place))

    def standing_texts(self, *, named: bool) -> list[Text]:
        return [text for text in self.texts.values() if text.named is named and self._stays(text.place)]

    def _stays(self, place: Place) -> bool:
        for depth in range(len(place)):
            around = self.groups.get(place[:depth])
            if around is not None and around.order[place[depth]] >= around.keep:
                return False
        return True

    def prices(self, group: Group) -> list[int]:
        """What each item that stays costs, as it is now."""
        value = self._value(group.place)
        parts: list[Part] = []
        kept = list(group.order)[: group.keep]
        shown = [self._shown(value[key], (*group.place, key), self._any_ref, parts) for key in kept]
        if isinstance(value, dict):
            shown = [{key: each} for key, each in zip(kept, shown, strict=True)]
        return [self._count(as_json(each)) + 1 for each in shown]

    def _value(self, place: Place) -> Any:
        value: Any = self._data
        for key in place:
            value = value[key]
        return value

    # --- as it would be ---------------------------------------------------------------

    def put_together(self) -> Fitted:
        """Twice, because the marks name the ref and the ref is made of the parts."""
        parts: list[Part] = []
        data = self._shown(self._data, (), "", parts)
        if not parts:
            return Fitted(weighed(data, self._count, warning=self._warning))
        ref = self._handle(parts)
        data = self._shown(self._data, (), f"{ref}." if len(parts) > 1 else ref, [])
        answer = weighed(data, self._count, (ref,), self._warning, truncated=True)
        marks = sum(bool(text.room) for text in self.texts.values())
        beside = answer.tokens_beside + marks * self.mark_prices.first
        return Fitted(replace(answer, tokens_beside=beside), tuple(parts))

    def _shown(self, value: Any, place: Place, ref: str, parts: list[Part]) -> Any:
        if isinstance(value, str):
            return self._shown_text(place, value, ref, parts)
        if isinstance(value, list):
            return self._shown_list(place, value, ref, parts)
        if isinstance(value, dict):
            return self._shown_object(place, value, ref, parts)
        return value

    def _shown_list(self, place: Place, value: list[Any], ref: str, parts: list[Part]) -> list[Any]:
        keep = self.groups[place].keep
        shown = [self._shown(item, (*place, at), ref, parts) for at, item in enumerate(value[:keep])]
        if keep < len(value):
            left = "".join(f"{as_json(item)}\n" for item in value[keep:])
            parts.append(Part(f"{_written(place)}[{keep}:{len(value)}]", left))
        return shown

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
            return EMPTIED
        lines = self._split(place, value)
        left_out = self._gaps(text, lines, text.room)
        if not left_out:
            return value
        parts.append(Part(_written(place), value))
        own = f"{ref}{len(parts)}" if ref.endswith(".") else ref
        return rendered(lines.pieces, left_out, lambda gap, first: mark(gap, own if first else ""))

    def _gaps(self, text: Text, lines: _Lines, room: int) -> tuple[Gap, ...]:
        known = self._cuts.get((text.place, room))
        if known is None:
            known = self._cuts[text.place, room] = gaps(lines.pieces, lines.costs, room, self.mark_prices)
        return known

    def _split(self, place: Place, text: str) -> _Lines:
        """Costs as they are in JSON, where a line's end is two characters."""
        if place not in self._lines:
            split = pieces(text)
            self._lines[place] = _Lines(split, [self._count(as_json(piece)[1:-1]) for piece in split])
        return self._lines[place]

    @cached_property
    def mark_prices(self) -> Prices:
        """Of marks with long numbers, so that none turns out dearer."""
        widest = Gap(10_000, 99_999, 10_000)
        named, bare = (self._count(as_json(mark(widest, each))) for each in (f"{self._any_ref}100", ""))
        return Prices(named, bare)

    @cached_property
    def emptied_price(self) -> int:
        return self._count(as_json(EMPTIED))

    @cached_property
    def _any_ref(self) -> str:
        """As long as all of them."""
        return f"{self._handle([Part('', '')])}."


def mark(gap: Gap, ref: str) -> str:
    """What stands where lines were left out: on the first the ref, on the others their numbers alone."""
    lines = f"lines {gap.first}-{gap.last}" if gap.last > gap.first else f"line {gap.first}"
    errors = f", {gap.telling} of them errors" if gap.telling else ""
    return f"[… {lines} left out{errors}{f': ref_get {ref}' if ref else ''} …]\n"


def _is_whole(place: Place, schema: Mapping[str, Any]) -> bool:
    name = next((key for key in reversed(place) if isinstance(key, str)), "")
    return bool(_HANDLE.fullmatch(name)) or any(word in schema for word in _OF_ITS_OWN_KIND)


def _weight(place: Place) -> float:
    """Items are ranked, the best first; what stands around a hit matters less than the hit."""
    rank = next((key for key in place if isinstance(key, int)), 0)
    around = isinstance(place[-1], str) and _AROUND.fullmatch(place[-1])
    return 2 / (2 + rank) * (_AROUND_COUNTS if around else 1)


def _written(place: Place) -> str:
    """`results[3].content`"""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
    return text.removeprefix(".")

"""A skill as a SKILL.md and back. Nothing that is kept gets lost on the way.

The format knows a name of lower-case words, a description, a map of texts called metadata, and
Markdown. What a skill has besides stands in that map; what fits nowhere stands there as JSON.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from contextd.domain.errors import BadFormat
from contextd.domain.records import Json
from contextd.services.flat_yaml import DEEPEST_JSON, TooDeep, load_json
from contextd.services.front_matter import is_plain_key, read, typed, write
from contextd.services.skill_records import Skill

_LONGEST_SLUG: Final = 64
_REST: Final = "contextd"
_TOP: Final = ("name", "description", "metadata")
_OWN: Final = ("version", "author", "category", "tags")
"""Keys that stand in the map, and that others write above it."""
_IN_THE_MAP: Final = frozenset({*_OWN, "title", "prerequisites", "expected_outcome", "files", _REST})
FRONT_MATTER: Final = "frontmatter"
"""The key of a skill's metadata for the keys above the map that are not ours: license, allowed-tools."""
FILES: Final = "files"
"""The key of a skill's metadata for the paths of the other files in its folder."""


def slug(name: str, id: str = "") -> str:
    """The name as the format wants it: lower-case letters, digits and single hyphens, at most 64."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_SLUG].rstrip("-")
    return words or f"skill-{id[-8:]}".rstrip("-")


def front_matter(skill: Skill, name: str) -> dict[str, Json]:
    """With `name` in the format's spelling; the skill's own is its title where they differ."""
    above, others, rest = _sorted_out(skill.metadata)
    own = {
        "title": "" if skill.name == name else skill.name,
        "version": skill.version,
        "author": skill.author,
        "category": skill.category,
        "tags": _joined(skill.tags, ", "),
        "prerequisites": _joined(skill.prerequisites, "\n"),
        "expected_outcome": skill.expected_outcome,
        **others,
        _REST: json.dumps(rest, ensure_ascii=False) if rest else "",
    }
    said: dict[str, Json] = {key: value for key, value in own.items() if value or key in others}
    return {"name": name, "description": skill.description, **above, "metadata": said}


def to_markdown(front: Mapping[str, Json], content: str) -> str:
    return f"{write(front)}\n{content}\n"


def from_markdown(text: str, name: str, author: str) -> Skill:
    """`name` and `author` are for a file that names none; version and category may be empty then.

    Raises BadFormat.
    """
    fields, body = read(text)
    own = fields.get("metadata") or {}
    if not isinstance(own, dict):
        raise _wrong("metadata", "write it as indented lines of 'key: value'")
    given = {key: own.get(key, fields.get(key)) for key in _OWN}
    others = {key: typed(own[key]) for key in own if key not in _IN_THE_MAP}
    return Skill(
        name=_line(_text(own, "title") or _text(fields, "name") or name),
        description=_text(fields, "description") or _required("description"),
        content=body.removeprefix("\n").removesuffix("\n"),
        version=_version(_text(given, "version")),
        author=_line(_text(given, "author") or author),
        category=_line(_text(given, "category")),
        prerequisites=_list(own, "prerequisites", "\n"),
        expected_outcome=_text(own, "expected_outcome"),
        tags=_list(given, "tags", ","),
        metadata={**_rest(own), **_files(own), **_above(fields), **others},
    )


def _line(text: str) -> str:
    """As one line: a break or an escape sequence would forge lines wherever names are listed."""
    breaks = ("Cc", "Zl", "Zp")
    return "".join(" " if unicodedata.category(char) in breaks else char for char in text)


# --- out ------------------------------------------------------------------------------


def _sorted_out(
    metadata: Mapping[str, Json],
) -> tuple[dict[str, Json], dict[str, str], dict[str, Json]]:
    """What goes above the map, what goes into it as text, and what only JSON can hold."""
    above: dict[str, Json] = {}
    others: dict[str, str] = {}
    rest: dict[str, Json] = {}
    for key, value in metadata.items():
        if key == FRONT_MATTER and _fits_above(value):
            above = value
        elif key == FILES and _is_texts(value) and value:
            others[key] = _joined(value, "\n")
        elif isinstance(value, str) and is_plain_key(key) and key not in _IN_THE_MAP:
            others[key] = value
        else:
            rest[key] = value
    return above, others, rest


def _fits_above(value: Json) -> TypeGuard[dict[str, Json]]:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(is_plain_key(key) and key not in (*_TOP, *_OWN) for key in value)
    )


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _joined(items: Sequence[str], separator: str) -> str:
    """One text, for the map holds nothing else; as JSON when the separator is part of an item."""
    text = separator.join(items)
    return text if _parted(text, separator.strip(" ")) == list(items) else json.dumps(list(items))


# --- in -------------------------------------------------------------------------------


def _parted(text: str, separator: str) -> list[str]:
    listed = _json(text)
    if _is_texts(listed):
        return listed
    return [part for part in map(str.strip, text.split(separator)) if part]


def _json(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return None


def _rest(own: Mapping[str, Any]) -> dict[str, Json]:
    held = own.get(_REST)
    try:
        value = load_json(held) if isinstance(held, str) else held
    except TooDeep:
        raise _wrong(_REST, f"use at most {DEEPEST_JSON} levels in its JSON") from None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _files(own: Mapping[str, Any]) -> dict[str, Json]:
    files = list(_list(own, FILES, "\n"))
    return {FILES: [*files]} if files else {}


def _above(fields: Mapping[str, Any]) -> dict[str, Json]:
    others: dict[str, Json] = {
        key: typed(value) for key, value in fields.items() if key not in (*_TOP, *_OWN)
    }
    return {FRONT_MATTER: others} if others else {}


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if isinstance(value, bool | int | float):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise _wrong(key, "write it as text")
    return str(value or "")


def _list(fields: Mapping[str, Any], key: str, separator: str) -> tuple[str, ...]:
    value = fields.get(key)
    if isinstance(value, list):
        return tuple(str(each) for each in value)
    return tuple(_parted(_text(fields, key), separator))


def _version(text: str) -> str:
    """Many write `1.0` or `v2`: what is missing is zero."""
    short = re.fullmatch(r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+.*)?", text)
    return f"{short[1]}{short[2] or '.0'}{short[3] or '.0'}" if short else text


def _required(key: str) -> str:
    raise BadFormat("SKILL.md", f"{key} is missing from the front matter", f"add '{key}: …' to SKILL.md")


def _wrong(key: str, remedy: str) -> BadFormat:
    return BadFormat("SKILL.md", f"{key} in the front matter is not what it should be", remedy)

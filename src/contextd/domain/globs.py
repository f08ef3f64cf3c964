"""Globs: the one language in which files are chosen, in filters as in what to include and exclude.

A glob is matched against a path relative to the project's root, with slashes. Case counts.

- `*` is any run of characters within one component, `?` is one character, neither is a slash.
- `**` as a whole component is any number of components, none included: `src/**/test.go`.
- `[abc]`, `[a-z]` is one of these characters, `[!abc]` one of all others. A special character stands
  for itself in brackets, `[[]`, `[]]`, `[*]`; there is no other way to quote one.
- `{go,py}` is one of these alternatives, which may hold slashes, globs and further alternatives.
- Without a slash, a glob is matched against the name, at any depth: `*.md`.
- With a slash it is anchored at the root: `internal/auth/**`. A leading `/` or `./` says no more
  than that: `/*.md` are those in the root itself.
- What ends in a slash is everything below: `docs/` is `docs/**`.
- What names a folder exactly, with no wildcard in the last component, is everything below it too:
  `internal/auth` matches `internal/auth/x.go`, and `testdata` whatever is in a folder of that name.

What a pattern costs grows gently with its length and the path's. Every `*` stops at the first place
where what follows it fits, and does not come back to try the next: as alternatives are written out
first, what follows has one length only, so that a later place could never do better. The same holds
for `**`, counted in components.
"""

import re
from collections.abc import Iterable
from typing import Final

MAX_PATTERN_LENGTH: Final = 1_000
MAX_ALTERNATIVES: Final = 100
_MAX_WRITTEN_OUT: Final = 10_000
"""Characters of all alternatives together."""

_TOKENS: Final = re.compile(r"\[(?:[!^][^/]|[^/!^])[^\]/]*\]|\*+|.", re.DOTALL)
_RANGES: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_WILD: Final = re.compile(r"[*?[]")
_ANY_COMPONENTS: Final = "(?>[^/]+/)*?"
_COMPONENT_ENDS: Final = "(?![^/])"


def compile_glob(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression for whole paths. Raises ValueError, with a sentence to show."""
    if not pattern:
        raise ValueError("a pattern must not be empty")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ValueError(f"a pattern must have at most {MAX_PATTERN_LENGTH:,} characters")
    try:
        branches = [_path_regex(alternative) for alternative in _alternatives(pattern)]
    except ValueError as error:
        raise ValueError(f"the pattern {pattern!r} {error}") from None
    return re.compile(rf"\A(?:{'|'.join(dict.fromkeys(branches))})\Z", re.DOTALL)


def matches_any(path: str, globs: Iterable[re.Pattern[str]]) -> bool:
    return any(glob.match(path) for glob in globs)


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each way through its braces."""
    outer: list[tuple[list[str], list[str]]] = []
    finished: list[str] = []
    current = [""]
    for token in _TOKENS.findall(pattern):
        if token == "{":
            outer.append((finished, current))
            finished, current = [], [""]
        elif token == "," and outer:
            finished, current = finished + current, [""]
        elif token == "}":
            if not outer:
                raise ValueError("has a '}' without a '{'")
            inner = finished + current
            finished, before = outer.pop()
            _refuse_too_many(len(before) * len(inner))
            current = [start + end for start in before for end in inner]
        else:
            current = [start + token for start in current]
    if outer:
        raise ValueError("has a '{' without a '}'")
    _refuse_too_many(len(current), sum(map(len, current)))
    return current


def _refuse_too_many(alternatives: int, written_out: int = 0) -> None:
    if alternatives > MAX_ALTERNATIVES or written_out > _MAX_WRITTEN_OUT:
        raise ValueError(f"has too many alternatives: at most {MAX_ALTERNATIVES}, and fewer of long ones")


def _path_regex(pattern: str) -> str:
    if not pattern:
        raise ValueError("has an alternative that is empty")
    components = [component for component in pattern.split("/") if component not in ("", ".")]
    if ".." in components:
        raise ValueError("has a '..' component; it must stay beneath the root")
    if not components or pattern.endswith("/"):
        components.append("**")
    if "/" not in pattern:
        components.insert(0, "**")
    *blocks, last = _blocks(components)
    if not last:
        return _leading(blocks) + ".+"
    below = "" if _WILD.search(components[-1]) else "(?:/.*)?"
    return _leading(blocks) + (_ANY_COMPONENTS if blocks else "") + _block_regex(last) + below


def _blocks(components: list[str]) -> list[list[str]]:
    """The components between one `**` and the next; only the first and the last block may be empty."""
    blocks: list[list[str]] = [[]]
    for component in components:
        if component.strip("*") or component == "*":
            blocks[-1].append(component)
        elif blocks[-1] or len(blocks) == 1:
            blocks.append([])
    return blocks


def _leading(blocks: list[list[str]]) -> str:
    """The blocks that a `**` follows: the first at the root, each other as soon as it fits."""
    if not blocks:
        return ""
    first, *others = blocks
    anchored = _block_regex(first) + "/" if first else ""
    return anchored + "".join(f"(?>{_ANY_COMPONENTS}{_block_regex(block)}/)" for block in others)


def _block_regex(components: list[str]) -> str:
    return "/".join(map(_component_regex, components))


def _component_regex(component: str) -> str:
    pieces = [""]
    for token in _TOKENS.findall(component):
        if token[0] == "*":
            pieces.append("")
        else:
            pieces[-1] += _character_regex(token)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    found = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    return f"{first}{found}(?>[^/]*{last}{_COMPONENT_ENDS})"


def _character_regex(token: str) -> str:
    if token == "?":
        return "[^/]"
    if token in ("[", "]"):
        raise ValueError("has a bracket that is not one of a pair")
    if token[0] == "[":
        return _bracket_regex(token[1:-1])
    return re.escape(token)


def _bracket_regex(inside: str) -> str:
    negated = inside[0] in "!^"
    members = []
    for low, high, alone in _RANGES.findall(inside[negated:]):
        if low > high:
            raise ValueError(f"has the range {low}-{high}, which runs backwards")
        members.append(re.escape(alone) if alone else f"{re.escape(low)}-{re.escape(high)}")
    # A range may run over the slash, which no bracket matches.
    return f"[^/{''.join(members)}]" if negated else f"(?!/)[{''.join(members)}]"

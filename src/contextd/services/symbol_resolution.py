"""Which definition a use of a name means, and how sure that is.

Sure is what scope and imports decide: a name of the same package, a name that is imported from a file
that is indexed, a method called on the object itself. The rest is by name: true of the text, not proved.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

from contextd.domain.code import Import
from contextd.domain.code_store import SymbolRow, UseRow

Certainty = Literal["exact", "by_name"]

_OBJECT_ITSELF: Final = frozenset({"self", "this", "cls", "Self", "$this", "static", "@"})
_RECEIVER: Final = re.compile(r"func \((\w+) ")
_PACKAGED: Final = frozenset({"go", "java", "csharp", "php", "rust", "ruby", "c", "cpp"})
"""Languages in which files of one folder see each other's names, more or less."""
_BARE_METHODS: Final = frozenset({"java", "csharp", "cpp", "ruby", "php"})
"""Languages in which a method may be called without its object."""
_SUFFIXES: Final = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".py", ".rb", ".php")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The definitions that a use may mean; none when it means something else."""

    definitions: tuple[SymbolRow, ...]
    certainty: Certainty


_NOTHING: Final = Meaning((), "exact")


def meaning_of(
    use: UseRow, definitions: Sequence[SymbolRow], imports: Sequence[Import], module: str | None
) -> Meaning:
    """Of all definitions of the use's name. `imports` are of the use's file, `module` is the Go module."""
    same = [each for each in definitions if _same_language(each.language, use.language)]
    if not same:
        return _NOTHING
    if use.within is not None and _is_object_itself(use.qualifier, use.within):
        own = [each for each in same if each.container and each.container == use.within.container]
        return Meaning(tuple(own), "exact") if own else _by_name([each for each in same if each.container])
    if use.qualifier:
        return _qualified(use, same, imports, module)
    return _plain(use, same, imports)


def names_of(use: UseRow, imports: Sequence[Import]) -> list[str]:
    """Those that its definition may have: its own, and the one that it has where it is imported from."""
    renamed = [each.name for each in imports if each.alias == use.name and each.name and not use.qualifier]
    return list(dict.fromkeys([use.name, *renamed]))


def _is_object_itself(qualifier: str, within: SymbolRow) -> bool:
    """By the language's own word for it, or in Go by the name of the receiver."""
    receiver = _RECEIVER.match(within.signature) if within.language == "go" else None
    return qualifier in _OBJECT_ITSELF or (receiver is not None and receiver[1] == qualifier)


def _plain(use: UseRow, same: Sequence[SymbolRow], imports: Sequence[Import]) -> Meaning:
    """A name by itself: of this file, imported, or of this package."""
    every = [each for each in same if not each.container or use.language in _BARE_METHODS]
    free = [each for each in every if each.name == use.name]
    in_file = [each for each in free if each.path == use.path]
    if in_file:
        return _sure(in_file)
    for imported in imports:
        if use.name == (imported.alias or imported.name):
            names = (imported.name, use.name)
            found = [each for each in every if each.name in names and _is_module(each, imported, use)]
            if found:
                return _sure(found)
            handed_on = [each for each in every if each.name in names and _is_inside(each, imported, use)]
            if handed_on:
                return _by_name(handed_on)
    in_folder = [each for each in free if _folder(each.path) == _folder(use.path)]
    if use.language == "go" and in_folder:
        return _sure(in_folder)
    if in_folder and use.language in _PACKAGED:
        return _by_name(in_folder)
    # In Go and Python a name from elsewhere is imported, or means something else.
    strict = use.language in ("go", "python") and not any(each.alias in (".", "*") for each in imports)
    return _NOTHING if strict else _by_name(free)


def _qualified(
    use: UseRow, same: Sequence[SymbolRow], imports: Sequence[Import], module: str | None
) -> Meaning:
    first = use.qualifier.split(".", 1)[0].split("::", 1)[0]
    imported = [each for each in imports if each.alias == first]
    if imported and use.language == "go":
        found = [
            each
            for each in same
            if not each.container and any(_is_go_package(each, one, module) for one in imported)
        ]
        return _sure(found) if found else _NOTHING
    if imported:
        found = [each for each in same if any(_is_module(each, one, use) for one in imported)]
        if found:
            return _sure(found)
        if use.language == "python" and not any(one.name for one in imported):
            # A module, so that what stands behind its dot is one of its names, perhaps from further inside.
            free = [each for each in same if not each.container]
            return _by_name([each for each in free if any(_is_inside(each, one, use) for one in imported)])
    typed = [each for each in same if each.container and each.container == use.qualifier.rsplit(".", 1)[-1]]
    if typed:
        return _sure(typed)
    methods = [each for each in same if each.container]
    return _by_name(methods)


def _sure(definitions: Sequence[SymbolRow]) -> Meaning:
    """By scope; but where several stand in one scope (build tags, overloads) it is any of them."""
    return Meaning(tuple(definitions), "exact" if len(definitions) == 1 else "by_name")


def _by_name(definitions: Sequence[SymbolRow]) -> Meaning:
    return Meaning(tuple(definitions), "by_name")


def _same_language(one: str, other: str) -> bool:
    families = ({"javascript", "typescript", "tsx", "jsx"}, {"c", "cpp"})
    return one == other or any(one in family and other in family for family in families)


def _folder(path: str) -> str:
    return posixpath.dirname(path)


def _is_go_package(symbol: SymbolRow, imported: Import, module: str | None) -> bool:
    folder = _folder(symbol.path)
    if module is None:
        return bool(folder) and imported.module.endswith(folder)
    return imported.module == (f"{module}/{folder}" if folder else module)


def _is_module(symbol: SymbolRow, imported: Import, use: UseRow) -> bool:
    """Whether an import of this file means the file that the symbol is in."""
    target = _module_path(imported.module, use.path)
    stem = str(PurePosixPath(symbol.path).with_suffix(""))
    places = {stem, stem.removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")}
    wanted = {target, f"{target}/{imported.name}"} if imported.name else {target}
    if imported.module.startswith((".", "/")):
        return bool(places & wanted)
    return any(place == want or place.endswith(f"/{want}") for place in places for want in wanted if want)


def _is_inside(symbol: SymbolRow, imported: Import, use: UseRow) -> bool:
    """Whether the symbol's file is in the package that is imported, which may hand its names on."""
    target = _module_path(imported.module, use.path)
    return bool(target) and f"/{target}/" in f"/{symbol.path}"


def _module_path(module: str, path: str) -> str:
    """`./cart` beside this file, `..pkg.mod` and `shop.cart` as paths."""
    if module.startswith(("./", "../")):
        joined = posixpath.normpath(posixpath.join(_folder(path), module))
        return next((joined.removesuffix(end) for end in _SUFFIXES if joined.endswith(end)), joined)
    dots = len(module) - len(module.lstrip("."))
    slashed = module.lstrip(".").replace("::", "/").replace("\\", "/")
    slashed = slashed.replace(".", "/") if "/" not in slashed else slashed
    if not dots:
        return slashed
    folder = _folder(path)
    for _ in range(dots - 1):
        folder = posixpath.dirname(folder)
    return posixpath.join(folder, slashed).rstrip("/")

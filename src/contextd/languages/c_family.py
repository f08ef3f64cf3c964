"""What C and C++ have in common: how names are declared, and what only the preprocessor reads."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Node, text_of

DECORATORS: Final = frozenset({"attribute_specifier", "attribute_declaration", "ms_declspec_modifier"})


PLACES: Final = (
    "translation_unit",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
    "declaration_list",
)
"""Where declarations are symbols. They have the same shape in functions, where there are far too many."""


def in_each(places: Iterable[str], pattern: str) -> str:
    return "\n".join(f"({place} {pattern})" for place in places)


_ENUMERATOR: Final = """
(enum_specifier !name body: (enumerator_list (enumerator name: (identifier) @name) @constant))
"""

QUERY: Final = f"""
(preproc_include path: [(system_lib_string) (string_literal)] @module) @import

(preproc_def name: (identifier) @name value: (_)) @constant
(preproc_function_def name: (identifier) @name value: (_)? @body) @macro
(function_definition) @function
(type_definition) @type
(union_specifier name: (type_identifier) @name body: (_) @body) @struct
(enum_specifier name: (type_identifier) @name body: (_) @body) @enum
{in_each(PLACES, _ENUMERATOR)}

(call_expression function: (identifier) @call)
(call_expression function: (field_expression argument: (_) @qualifier field: (field_identifier) @call))
((type_identifier) @use)
"""
# A macro without a value is a header's guard or a switch.

_NAMES: Final = frozenset(
    "identifier field_identifier type_identifier destructor_name operator_name".split()
)
_TAGGED: Final = {"struct_specifier": "struct", "union_specifier": "struct", "enum_specifier": "enum"}
_WRAPPING: Final = frozenset(
    "function_declarator pointer_declarator reference_declarator array_declarator".split()
)
_STORAGE: Final = "storage_class_specifier"
_BODIES: Final = frozenset({"compound_statement", "field_initializer_list", "try_statement"})


@dataclass(frozen=True, slots=True)
class Declared:
    """A name that is declared, with the type before its `::`, if any."""

    name: Node
    kind: str
    container: Node | None = None


def definition(kind: str, captures: Captures) -> tuple[str, Captures] | None:
    """A declaration's names are deep inside: of pointers, arrays, parameters and scopes."""
    if "name" in captures:
        return kind, captures
    node = captures[kind][0]
    if node.type == "type_definition":
        return _type_definition(node)
    found = list(_declared(node))
    if not found or _says_nothing(node, found[0]):
        return None
    is_definition = node.type == "function_definition"
    if found[0].kind != "function" and not is_definition:
        return found[0].kind, _captures(found, None)
    end = [each for each in node.children if each.type in _BODIES] if is_definition else node.children[-1:]
    kind = "method" if found[0].container is not None else "function"
    return kind, _captures(found, end[0] if end else None)


def _says_nothing(node: Node, first: Declared) -> bool:
    """A static prototype announces what the same file defines; a field is seen in its type."""
    is_static = any(text_of(each) == "static" for each in node.children if each.type == _STORAGE)
    if node.type == "field_declaration":
        return first.kind == "variable" or (first.kind == "constant" and not is_static)
    return node.type == "declaration" and first.kind == "function" and is_static


def _captures(found: list[Declared], body: Node | None) -> Captures:
    made: dict[str, list[Node]] = {"name": [each.name for each in found]}
    if body is not None:
        made["body"] = [body]
    if found[0].container is not None:
        made["container"] = [found[0].container]
    return made


def _type_definition(node: Node) -> tuple[str, Captures] | None:
    """`typedef struct line {…} line_t;` gives a struct two names."""
    type = node.child_by_field_name("type")
    body = type.child_by_field_name("body") if type is not None and type.type in _TAGGED else None
    tag = type.child_by_field_name("name") if body is not None else None
    found = [Declared(tag, "")] if tag is not None else []
    found.extend(_declared(node))
    if not found:
        return None
    return _TAGGED[type.type] if body is not None else "type", _captures(found, body or node.children[-1])


def _declared(node: Node) -> Iterator[Declared]:
    for declarator in node.children_by_field_name("declarator"):
        found = _named(declarator, node)
        if found is not None:
            yield found


def _named(declarator: Node, node: Node) -> Declared | None:
    here: Node | None = declarator
    container: Node | None = None
    wrapped = ""
    is_constant = _is_constant(node)
    while here is not None and here.type not in _NAMES:
        if here.type == "operator_cast":
            return Declared(here.children[0], "function", container)
        if here.type == "qualified_identifier":
            container = here.child_by_field_name("scope")
        elif here.type in _WRAPPING:
            wrapped = here.type
            is_constant = _is_constant(here) if wrapped == "pointer_declarator" else is_constant
        here = _inside(here)
    if here is None:
        return None
    if container is not None and container.type == "template_type":
        container = container.child_by_field_name("name")
    kind = "constant" if is_constant else "variable"
    return Declared(here, "function" if wrapped == "function_declarator" else kind, container)


def _inside(here: Node) -> Node | None:
    within: Node | None = here.child_by_field_name("declarator") or here.child_by_field_name("name")
    if within is None and here.type in ("reference_declarator", "parenthesized_declarator"):
        return next(iter(reversed(here.named_children)), None)
    return within


def _is_constant(node: Node) -> bool:
    """`const char *name` is a variable still; `const char *const name` is none."""
    words = {text_of(each) for each in node.children if each.type == "type_qualifier"}
    return not words.isdisjoint(("const", "constexpr", "constinit"))


def is_static(name: str, head: str) -> bool:
    return "static" in head.partition(name)[0].split()


_VALUE: Final = re.compile(r"\s*=.*")


def signature(kind: str, text: str) -> str:
    """Values that go on below are left out."""
    short = text.rstrip("\\").rstrip()
    goes_on = kind in ("constant", "variable") and text.endswith(("{", "(", ",", "["))
    return _VALUE.sub("", short) if goes_on else short


def included(captures: Captures) -> Import:
    module = text_of(captures["module"][0]).strip('<>"')
    return Import(module, PurePosixPath(module).stem)


_LINKAGE: Final = re.compile(
    r"""
    ^[ \t]*\#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t]*\(?[ \t]*)__cplusplus[ \t]*\)?[ \t]*\r?\n
    [ \t]*(?:extern[ \t]+"C"[ \t\r\n]*\{|\})[^\n]*\n
    [ \t]*\#[ \t]*endif[^\n]*
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Headers for both languages open a brace under one condition and close it under another."""

_KEYWORD: Final = r"""
(?:auto|bool|char|class|const|constexpr|double|enum|explicit|extern|float|friend|inline|int|long|namespace
  |private|protected|public|short|signed|size_t|static|struct|template|typedef|typename|union|unsigned
  |using|virtual|void|\w+_t)\b
"""
_LINE: Final = r"^(?<!\\\n)(?<!\\\r\n)"
"""The beginning of a line that is no continuation of a macro's value."""
_MACRO: Final = r"[A-Z_][A-Z0-9_]{2,}+"
_MACRO_BEFORE: Final = re.compile(
    rf"""
    {_LINE}(?P<kept>[ \t]*
      (?:template[ \t]*<[^\n]*>[ \t]*)?
      (?:(?:static|extern|inline|friend|constexpr|virtual|explicit|class|struct)[ \t]+)*+)
    (?P<macro>{_MACRO}(?:[ \t]+{_MACRO})*)
    (?=[ \t\r\n]+(?:{_KEYWORD}|\w+[ \t]+[*&]*\w+[ \t]*\(|\w+[ \t]+(?:final[ \t]+)?:[ \t]|\w+[ \t]*\{{))
    """,
    re.MULTILINE | re.VERBOSE,
)
"""`SHOP_API int total(void);`, `class SHOP_API Order {`: a macro that stands for attributes."""

_MACRO_ALONE: Final = re.compile(
    rf"""
    {_LINE}[ \t]*{_MACRO}[ \t]*(?:
      \([^()\n]*\)[ \t]*(?=\r?\n[ \t]*(?:[\#/\r\n]|\Z|[A-Za-z_]\w*+(?![ \t]*\()))
      | (?=\r?\n[ \t]*\r?\n\s*+(?!\}}))
    )
    """,
    re.MULTILINE | re.VERBOSE,
)
"""On a line of its own, with arguments, or to open or close a namespace. Above a name that has no type, it
is the type."""

_NOT_AN_END: Final = re.compile(r"[^\r\n]")


def readable(text: str) -> str:
    """With blanks instead of what only the preprocessor understands."""
    text = _LINKAGE.sub(lambda found: _NOT_AN_END.sub(" ", found[0]), text)
    text = _MACRO_BEFORE.sub(lambda found: found["kept"] + " " * len(found["macro"]), text)
    return _MACRO_ALONE.sub(lambda found: " " * len(found[0]), text)


BUILTINS: Final = frozenset(
    """
    size_t ssize_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t
    uint64_t off_t time_t va_list FILE bool wchar_t abort abs assert atoi atol calloc close errno exit
    fclose fflush fgets fopen fprintf fputc fputs fread free fseek fwrite getenv isalnum isalpha isdigit
    isspace malloc memchr memcmp memcpy memmove memset offsetof open perror printf putchar puts qsort rand
    read realloc snprintf sprintf sscanf strcasecmp strcat strchr strcmp strcpy strdup strerror strlen
    strncat strncmp strncpy strrchr strstr strtod strtol strtoll strtoul strtoull time tolower toupper
    va_arg va_copy va_end va_start vfprintf vprintf vsnprintf vsprintf write
    """.split()
)

"""JavaScript, and what TypeScript has in common with it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, Node, text_of

_FUNCTION: Final = """[
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
  (generator_function body: (_) @body)
]"""

DECLARED: Final = f"""
(_ (variable_declarator name: (identifier) @name value: {_FUNCTION})) @function
(_ (variable_declarator name: (identifier) @name value: (class body: (_) @body))) @class
((_ (variable_declarator name: (identifier) @name
  value: (call_expression function: (_) @_wrapper arguments: (arguments . {_FUNCTION})))) @function
  (#match? @_wrapper "^(React[.])?(memo|forwardRef)$"))
((lexical_declaration kind: "const"
  (variable_declarator name: (identifier) @name value: (_) @_value)
  ("," (variable_declarator name: (identifier) @name))*) @constant
  (#not-match? @_value "^(await )?(require|import)[(]"))
((lexical_declaration kind: "const"
  (variable_declarator name: (object_pattern
    (shorthand_property_identifier_pattern) @name
    ("," (shorthand_property_identifier_pattern) @name)*) value: (_) @_value)) @constant
  (#not-match? @_value "^(await )?(require|import)[(]"))
(lexical_declaration kind: "let"
  (variable_declarator name: (identifier) @name)
  ("," (variable_declarator name: (identifier) @name))*) @variable
((variable_declaration
  (variable_declarator name: (identifier) @name value: (_)? @_value)
  ("," (variable_declarator name: (identifier) @name))*) @variable
  (#not-match? @_value "^(await )?(require|import)[(]"))
"""
"""What counts only at the top: functions and values that are bound to names."""

TOP: Final = ("(program {})", "(export_statement {})")

_DEFAULT: Final = f"""
(export_statement "default" @name value: {_FUNCTION}) @function
(export_statement "default" @name value: (class body: (_) @body)) @class
(export_statement "default" @name value: [
  (object) (array) (call_expression) (new_expression) (string) (template_string)
]) @constant
"""
"""What is exported without a name goes by the name under which others import it."""

SHARED: Final = (
    _DEFAULT
    + """
(import_statement) @import
(export_statement source: (_)) @import
((call_expression function: (identifier) @_require arguments: (arguments . (string))) @import
  (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string))) @import

(export_statement (export_clause (export_specifier name: (identifier) @exported)) !source)
(export_statement value: (identifier) @exported)

(function_declaration name: (identifier) @name body: (_) @body) @function
(generator_function_declaration name: (identifier) @name body: (_) @body) @function
(class_declaration name: (_) @name body: (class_body) @body) @class
(class_body "{" @public)
(class_body (method_definition
  name: [(property_identifier) (private_property_identifier) (computed_property_name)] @name
  body: (_) @body) @method)

(call_expression function: (identifier) @call)
(call_expression function: (member_expression object: (_) @qualifier
  property: [(property_identifier) (private_property_identifier)] @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression
  object: (_) @qualifier property: (property_identifier) @call))
(decorator (identifier) @call)
(decorator (member_expression object: (_) @qualifier property: (property_identifier) @call))
(binary_expression operator: "instanceof" right: (identifier) @use)
"""
)

JSX: Final = """
(jsx_opening_element name: [
  ((identifier) @call (#match? @call "^[A-Z]"))
  (member_expression object: (_) @qualifier property: (property_identifier) @call)
])
(jsx_self_closing_element name: [
  ((identifier) @call (#match? @call "^[A-Z]"))
  (member_expression object: (_) @qualifier property: (property_identifier) @call)
])
"""

_COMMON_JS: Final = f"""
((assignment_expression left: (member_expression) @_left right: [
  (identifier) @exported
  (object (shorthand_property_identifier) @exported)
  (object (pair value: (identifier) @exported))
]) (#match? @_left "^(module[.])?exports([.]|$)"))
((variable_declarator name: (identifier) @exported value: [
  (assignment_expression) (parenthesized_expression)
] @_value) (#match? @_value "^[(]?(module[.])?exports *="))

(program (expression_statement ((assignment_expression
  left: (member_expression object: (_) @_of property: (property_identifier) @name)
  right: {_FUNCTION}) @function (#any-of? @_of "exports" "module.exports"))))
(program (expression_statement ((assignment_expression
  left: (member_expression object: (_) @_of property: (property_identifier) @name)
  right: [
    (object) (array) (call_expression) (new_expression) (string) (number) (template_string) (regex)
    (true) (false) (null)
  ]) @variable (#any-of? @_of "exports" "module.exports") (#not-match? @name "^__"))))
(program (expression_statement ((assignment_expression left: (member_expression) @_left right: [
  (function_expression name: (identifier) @name body: (_) @body) @function
  (class name: (_) @name body: (_) @body) @class
]) (#eq? @_left "module.exports"))))
(program (expression_statement ((assignment_expression
  left: (member_expression object: [
    (identifier) @container
    ((member_expression object: (identifier) @container property: (property_identifier) @_prototype)
      (#eq? @_prototype "prototype"))
  ] property: (property_identifier) @name)
  right: {_FUNCTION}) @method (#not-eq? @container "exports") (#not-eq? @name "exports"))))
"""
"""Exports by assignment, and methods that are assigned to what they belong to."""

_OWN: Final = """
(class_body (field_definition property: [(property_identifier) (private_property_identifier)] @name value: [
  (arrow_function body: (_) @body) (function_expression body: (_) @body)
]) @method)
((class_body (field_definition "static" property: (property_identifier) @name) @constant)
  (#match? @name "^[A-Z][A-Z0-9_]*$"))
(class_heritage (identifier) @use)
(class_heritage (member_expression object: (_) @qualifier property: (property_identifier) @use))
"""


def placed(patterns: str, places: Iterable[str]) -> str:
    """Each of the patterns, which begin with their lines, in each of the places."""
    each = re.split(r"\n(?=\()", patterns.strip())
    return "\n".join(place.replace("{}", pattern) for place in places for pattern in each)


_EXPORT: Final = re.compile(r"(?:^|\s)export\s|(?:module\s*\.\s*)?exports\b|[\w$.]+\s*=[^=]")


def exported(name: str, head: str) -> bool:
    """A class says `public` of its members, and these may say otherwise; all else must be exported."""
    if head.startswith("public "):
        own = head.removeprefix("public ").lstrip()
        return not own.startswith(("private ", "protected ")) and not name.startswith("#")
    return bool(_EXPORT.match(head)) or _DECORATED_EXPORT.search(head) is not None


_DECORATED_EXPORT: Final = re.compile(r"^@[^;]*\sexport\s+(?:default\s+)?(?:abstract\s+)?class\b")


def signature(kind: str, text: str) -> str:
    return text.removesuffix("=>").rstrip()


def imports(captures: Captures) -> Iterator[Import]:
    node = captures["import"][0]
    source = node.child_by_field_name("source")
    if node.type == "call_expression":
        yield from _required(node)
    elif source is not None:
        module = _bare(source)
        names = list(_taken(node, module))
        yield from names or [Import(module, "*" if node.type == "export_statement" else "")]
    else:
        for clause in node.named_children:
            if clause.type == "import_require_clause":
                yield Import(_bare(clause.child_by_field_name("source")), text_of(clause.named_children[0]))


def _bare(string: Node | None) -> str:
    return text_of(string).strip("'\"`")


def _taken(statement: Node, module: str) -> Iterator[Import]:
    """`import a, { b as c } from …`, `import * as d from …`, `export { e } from …`."""
    waiting: list[Any] = list(statement.named_children)
    while waiting:
        here = waiting.pop(0)
        if here.type == "identifier":
            yield Import(module, text_of(here), "default")
        elif here.type in ("namespace_import", "namespace_export"):
            yield Import(module, text_of(here.named_children[0]))
        elif here.type in ("import_specifier", "export_specifier"):
            name = text_of(here.child_by_field_name("name"))
            yield Import(module, text_of(here.child_by_field_name("alias")) or name, name)
        elif here.type in ("import_clause", "named_imports", "export_clause"):
            waiting.extend(here.named_children)


def _required(call: Node) -> Iterator[Import]:
    """`const a = require(…)`, `const { b: c } = require(…)`, `const d = require(…).d`."""
    module = _bare(call.child_by_field_name("arguments").named_children[0])
    taken = ""
    around = call.parent
    while around is not None and around.type in (
        "member_expression",
        "await_expression",
        "call_expression",
    ):
        taken = taken or text_of(around.child_by_field_name("property"))
        around = around.parent
    name = around.child_by_field_name("name") if around is not None else None
    if name is None or around.type != "variable_declarator":
        yield Import(module, "")
    elif name.type == "object_pattern":
        for part in name.named_children:
            key = part.child_by_field_name("key") or part.child_by_field_name("left") or part
            value = part.child_by_field_name("value") or key
            yield Import(module, text_of(value.child_by_field_name("left") or value), text_of(key))
    else:
        yield Import(module, text_of(name), taken)


BUILTINS: Final = frozenset(
    """
    AbortController AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean Buffer
    DataView Date Error EvalError Float32Array Float64Array Function Int16Array Int32Array Int8Array Map
    Number Object Promise Proxy RangeError ReferenceError RegExp Set SharedArrayBuffer String Symbol
    SyntaxError TextDecoder TextEncoder TypeError URIError URL URLSearchParams Uint16Array Uint32Array
    Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet
    afterAll afterEach beforeAll beforeEach clearImmediate clearInterval clearTimeout decodeURI
    decodeURIComponent describe encodeURI encodeURIComponent eval expect isFinite isNaN it parseFloat
    parseInt queueMicrotask require setImmediate setInterval setTimeout structuredClone
    """.split()
)
"""With what the test runners bring."""

TESTS: Final = (
    "*.test.*",
    "*.spec.*",
    "*-test.*",
    "*-spec.*",
    "*_test.*",
    "*.cy.*",
    "**/__tests__/**",
    "**/__mocks__/**",
    "**/test/**",
    "**/tests/**",
    "**/e2e/**",
)

WRAPPERS: Final = frozenset(
    {"export_statement", "expression_statement", "assignment_expression", "ambient_declaration"}
)

LANGUAGE = Language(
    name="javascript",
    suffixes=(".js", ".jsx", ".mjs", ".cjs"),
    grammar="tree_sitter_javascript",
    query=placed(DECLARED, TOP) + SHARED + JSX + _COMMON_JS + _OWN,
    wrappers=WRAPPERS,
    between=frozenset({"decorator"}),
    decorators=frozenset({"decorator"}),
    exported=exported,
    signature=signature,
    builtins=BUILTINS,
    imports=imports,
    tests=TESTS,
)

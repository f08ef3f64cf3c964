"""Go."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from contextd.domain.code import Facts, Import
from contextd.domain.records import Json
from contextd.languages.language import Captures, Language, Node, text_of

_QUERY: Final = """
(package_clause (package_identifier) @package)
(package_clause (package_identifier) @name) @module
(source_file . (comment) @build (#match? @build "^//(go:build| [+]build) "))
(source_file (comment) @build . (package_clause) (#match? @build "^//(go:build| [+]build) "))

(import_spec name: [(package_identifier) (blank_identifier) (dot)]? @alias path: (_) @module) @import

(function_declaration name: (identifier) @name body: (block)? @body) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (pointer_type (type_identifier) @container)
    (generic_type type: (type_identifier) @container)
    (pointer_type (generic_type type: (type_identifier) @container))
  ]))
  name: (field_identifier) @name body: (block)? @body) @method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @struct
(type_spec name: (type_identifier) @name type: (interface_type) @body) @interface
(type_spec name: (type_identifier) @name type: [
  (type_identifier) (qualified_type) (pointer_type) (array_type) (slice_type) (map_type) (channel_type)
  (function_type) (generic_type) (parenthesized_type)
]) @type
(type_alias name: (type_identifier) @name) @type
(source_file (const_declaration
  (const_spec name: (identifier) @name ("," name: (identifier) @name)*) @constant
  (#any-not-eq? @name "_")))
(source_file (var_declaration
  (var_spec name: (identifier) @name ("," name: (identifier) @name)*) @variable
  (#any-not-eq? @name "_")))
(source_file (var_declaration (var_spec_list
  (var_spec name: (identifier) @name ("," name: (identifier) @name)*) @variable
  (#any-not-eq? @name "_"))))

(call_expression function: (identifier) @call)
(call_expression function: (selector_expression operand: (_) @qualifier field: (field_identifier) @call))
(call_expression function: (type_instantiation_expression type: (type_identifier) @call))
(call_expression function: (index_expression operand: (identifier) @call))
(type_conversion_expression type: (generic_type type: [
  (type_identifier) @call
  (qualified_type package: (package_identifier) @qualifier name: (type_identifier) @call)
]))
(qualified_type package: (package_identifier) @qualifier name: (type_identifier) @use)
((type_identifier) @use)
(type_parameter_declaration name: (identifier) @parameter)
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @parameter)))
  (pointer_type (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @parameter))))
])))
"""


_VERSION: Final = re.compile(r"[/.]v[0-9]+$")
_DIRECTIVE: Final = re.compile(r"^(?:[a-z0-9]+:[a-z0-9].*|[+]build .*)\n?", re.MULTILINE)


def _exported(name: str, head: str) -> bool:
    return name[:1].isupper() or head.startswith("package ")


def _doc(text: str) -> str:
    """Without `//go:embed`, `//nolint:all` and the like: they speak to tools."""
    return _DIRECTIVE.sub("", text).strip()


def _signature(kind: str, text: str) -> str:
    """Grouped declarations have their keyword once, before the group."""
    keyword = {
        "struct": "type",
        "interface": "type",
        "type": "type",
        "constant": "const",
        "variable": "var",
    }
    first = keyword.get(kind)
    whole = f"{text} interface" if kind == "interface" else text
    return f"{first} {whole}" if first else whole


def _imports(captures: Captures) -> Iterable[Import]:
    module = text_of(captures["module"][0]).strip('"`')
    yield Import(module, text_of(captures["alias"][0]) if "alias" in captures else _assumed(module))


def _assumed(module: str) -> str:
    """The name of a package that is not at hand: `gopkg.in/yaml.v3` is `yaml`, as Go's own tools guess."""
    last = _VERSION.sub("", module).rsplit("/", 1)[-1]
    return last.removeprefix("go-").split("-", 1)[0].split(".", 1)[0]


def _facts(node: Node, kind: str, captures: Captures) -> Facts:
    if kind == "struct":
        return {"fields": list(_fields(captures["body"][0]))}
    if kind == "interface":
        return {"methods": list(_interface_methods(captures["body"][0]))}
    if kind == "function":
        return {"returns": text_of(node.child_by_field_name("result"))}
    if kind == "method":
        return _method_facts(node, captures)
    return {}


def _fields(body: Node) -> Iterator[Json]:
    for declared in body.named_children:
        if declared.type != "field_declaration":
            continue
        type = text_of(declared.child_by_field_name("type"))
        names = [text_of(each) for each in declared.named_children if each.type == "field_identifier"]
        for name in names:
            yield [name, type]
        if not names:
            # What is embedded goes by the name of its type, without package and type arguments.
            star = "*" if declared.children[0].type == "*" else ""
            yield [type.split("[", 1)[0].rsplit(".", 1)[-1], star + type]


def _interface_methods(body: Node) -> Iterator[Json]:
    for element in body.named_children:
        if element.type == "method_elem":
            yield text_of(element.child_by_field_name("name"))


def _method_facts(node: Node, captures: Captures) -> Facts:
    receiver = node.child_by_field_name("receiver").named_children[0]
    name = text_of(receiver.child_by_field_name("name"))
    pointer = receiver.child_by_field_name("type").type == "pointer_type"
    body = captures["body"][0] if "body" in captures else None
    assigned = sorted(set(_assigned(body, name))) if body is not None and name else []
    return {
        "pointer": pointer,
        "assigns": list[Json](assigned),
        "returns": text_of(node.child_by_field_name("result")),
    }


def _assigned(body: Node, receiver: str) -> Iterator[str]:
    """Fields of the receiver that a body assigns: `o.lines = …`, `o.count++`, `o.byID[id] = …`."""
    waiting: list[Node] = [body]
    while waiting:
        node = waiting.pop()
        if node.type in ("assignment_statement", "inc_statement", "dec_statement"):
            target = node.named_children[0]
            targets = target.named_children if target.type == "expression_list" else [target]
            for each in targets:
                text = text_of(each)
                if text.startswith(f"{receiver}."):
                    yield text[len(receiver) + 1 :].split(".", 1)[0].split("[", 1)[0]
        if node.type in _HOLD_STATEMENTS:
            waiting.extend(node.named_children)


_HOLD_STATEMENTS: Final = frozenset(
    """
    block statement_list if_statement for_statement expression_switch_statement expression_case default_case
    type_switch_statement type_case select_statement communication_case labeled_statement
    """.split()
)

_BUILTINS: Final = frozenset(
    """
    any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune
    string uint uint8 uint16 uint32 uint64 uintptr append cap clear close complex copy delete imag len make
    max min new panic print println real recover
    """.split()
)

LANGUAGE = Language(
    name="go",
    suffixes=(".go",),
    grammar="tree_sitter_go",
    query=_QUERY,
    wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration", "var_spec_list"}),
    exported=_exported,
    signature=_signature,
    doc=_doc,
    builtins=_BUILTINS,
    imports=_imports,
    facts=_facts,
    tests=("*_test.go",),
)

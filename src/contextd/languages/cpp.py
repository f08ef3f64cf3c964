"""C++."""

from collections.abc import Iterable
from typing import Final

from contextd.domain.code import Import
from contextd.languages.c_family import (
    BUILTINS,
    DECORATORS,
    PLACES,
    QUERY,
    definition,
    in_each,
    included,
    is_static,
    readable,
    signature,
)
from contextd.languages.language import Captures, Language, text_of

_PLACES: Final = (*PLACES, "linkage_specification", "template_declaration", "field_declaration_list")
_NAMED: Final = "name: [(type_identifier) @name (template_type name: (type_identifier) @name)]"

_QUERY: Final = f"""
{QUERY}
{in_each(PLACES, "(using_declaration) @import")}
(namespace_alias_definition name: (_) @alias [(namespace_identifier) (nested_namespace_specifier)] @module)
  @import

(class_specifier body: (field_declaration_list "{{" @private))
(struct_specifier body: (field_declaration_list "{{" @public))
(namespace_definition !name body: (declaration_list "{{" @private))
((access_specifier) @public (#eq? @public "public"))
((access_specifier) @private (#match? @private "^pr"))

(namespace_definition name: (_) @name body: (_) @body) @module
{in_each(_PLACES, "(declaration) @variable")}
(field_declaration) @variable
(alias_declaration name: (type_identifier) @name ";" @body) @type
(concept_definition name: (identifier) @name "=" @body) @trait
(class_specifier {_NAMED} body: (_) @body) @class
(struct_specifier {_NAMED} body: (_) @body) @struct

(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (field_expression argument: (_) @qualifier field: [
  (template_method name: (field_identifier) @call)
  (dependent_name (template_method name: (field_identifier) @call))
]))
(call_expression function: (qualified_identifier scope: (_) @qualifier
  name: [(identifier) @call (template_function name: (identifier) @call)]))
(call_expression function: (qualified_identifier name: (qualified_identifier scope: (_) @qualifier
  name: [(identifier) @call (template_function name: (identifier) @call)])))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (qualified_identifier
  scope: (_) @qualifier name: [(identifier) @call (template_function name: (identifier) @call)]))))
(new_expression type: [(type_identifier) @call (template_type name: (type_identifier) @call)])
(qualified_identifier scope: (_) @qualifier
  name: [(type_identifier) @use (template_type name: (type_identifier) @use)])
(type_parameter_declaration (type_identifier) @parameter)
(optional_type_parameter_declaration name: (type_identifier) @parameter)
(variadic_type_parameter_declaration (type_identifier) @parameter)
"""


def _exported(name: str, head: str) -> bool:
    """Members by their section; elsewhere what is static, or in a namespace without a name, is internal."""
    if head.startswith(("public ", "private ")):
        return head.startswith("public ")
    return not is_static(name, head)


def _imports(captures: Captures) -> Iterable[Import]:
    """Headers, and names that a `using` or an alias makes known."""
    node = captures["import"][0]
    if node.type == "preproc_include":
        yield included(captures)
    elif node.type == "namespace_alias_definition":
        yield Import(text_of(captures["module"][0]), text_of(captures["alias"][0]))
    elif any(child.type == "namespace" for child in node.children):
        yield Import(text_of(node.named_children[0]), "*")
    else:
        module, _, name = text_of(node.named_children[0]).rpartition("::")
        yield Import(module, name, name)


LANGUAGE = Language(
    name="cpp",
    suffixes=(".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".inl", ".tpp"),
    source=readable,
    grammar="tree_sitter_cpp",
    query=_QUERY,
    wrappers=frozenset({"template_declaration", "field_declaration"}),
    decorators=DECORATORS,
    definition=definition,
    exported=_exported,
    signature=signature,
    builtins=BUILTINS,
    imports=_imports,
    tests=(
        "**/test/**",
        "**/tests/**",
        "test_*.cc",
        "test_*.cpp",
        "*_test.cc",
        "*_test.cpp",
        "*-test.cc",
        "*_unittest.cc",
        "*Test.cpp",
    ),
)

"""TypeScript, and TSX, which has a grammar of its own."""

from typing import Final

from contextd.languages.javascript import (
    BUILTINS,
    DECLARED,
    JSX,
    SHARED,
    TESTS,
    TOP,
    WRAPPERS,
    exported,
    imports,
    placed,
    signature,
)
from contextd.languages.language import Language

_PLACES: Final = (*TOP, "(internal_module body: (statement_block {}))")

_OWN: Final = """
(abstract_class_declaration name: (_) @name body: (class_body) @body) @class
(interface_declaration name: (type_identifier) @name body: (interface_body) @body) @interface
(enum_declaration name: (identifier) @name body: (enum_body) @body) @enum
(type_alias_declaration name: (type_identifier) @name) @type
(internal_module name: (_) @name body: (statement_block) @body) @module
(module name: [(identifier) @name (nested_identifier) @name (string (string_fragment) @name)]
  body: (statement_block) @body) @module
(function_signature name: (identifier) @name) @function
(ambient_declaration
  (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name)) @constant)
(ambient_declaration (_ . (variable_declarator name: (identifier) @name)) @variable)
(export_statement "=" (identifier) @exported)

(interface_body "{" @public)
(interface_body (method_signature name: (_) @name) @method)
(class_body (method_signature name: (_) @name) @method)
(class_body (abstract_method_signature name: (_) @name) @method)
(class_body (public_field_definition
  name: [(property_identifier) (private_property_identifier)] @name value: [
    (arrow_function body: (_) @body) (function_expression body: (_) @body)
  ]) @method)
(class_body (public_field_definition "static" "readonly" name: (property_identifier) @name) @constant)

(extends_clause value: (identifier) @use)
(extends_clause value: (member_expression object: (_) @qualifier property: (property_identifier) @use))
(nested_type_identifier module: (_) @qualifier name: (type_identifier) @use)
((type_identifier) @use)
(type_parameter name: (type_identifier) @parameter)
(infer_type . (type_identifier) @parameter)
(mapped_type_clause name: (type_identifier) @parameter)
"""

_BUILTINS: Final = BUILTINS | frozenset(
    """
    Array AsyncGenerator AsyncIterable AsyncIterableIterator AsyncIterator Awaited Capitalize
    ConstructorParameters Exclude Extract Generator InstanceType Iterable IterableIterator Iterator
    Lowercase NonNullable Omit Parameters Partial Pick PromiseLike PropertyKey Readonly ReadonlyArray
    ReadonlyMap ReadonlySet Record Required ReturnType ThisType Uncapitalize Uppercase
    """.split()
)


def _made(name: str, suffixes: tuple[str, ...], query: str) -> Language:
    return Language(
        name=name,
        suffixes=suffixes,
        grammar=f"tree_sitter_typescript:language_{name}",
        query=query,
        wrappers=WRAPPERS,
        between=frozenset({"decorator"}),
        decorators=frozenset({"decorator"}),
        exported=exported,
        signature=signature,
        builtins=_BUILTINS,
        imports=imports,
        tests=TESTS,
    )


_QUERY: Final = placed(DECLARED, _PLACES) + SHARED + _OWN

LANGUAGES = (
    _made("typescript", (".ts", ".mts", ".cts"), _QUERY),
    _made("tsx", (".tsx",), _QUERY + JSX),
)

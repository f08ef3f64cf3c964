"""Rust."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, Node, text_of

_QUERY: Final = """
(use_declaration argument: (_) @module) @import
(extern_crate_declaration name: (identifier) @module alias: (identifier)? @alias) @import

(impl_item type: [
  (type_identifier) @name
  (primitive_type) @name
  (array_type) @name
  (tuple_type) @name
  (unit_type) @name
  (pointer_type) @name
  (function_type) @name
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (dynamic_type trait: (_) @name)
  (reference_type type: (type_identifier) @name)
  (reference_type type: (generic_type type: (type_identifier) @name))
  (reference_type type: [(primitive_type) (array_type) (dynamic_type) (reference_type)] @name)
]) @scope
(impl_item trait: (_) body: (declaration_list "{" @public))
(trait_item body: (declaration_list "{" @public))
((attribute_item (attribute (identifier) @_export)) . (macro_definition "macro_rules!" @public)
  (#eq? @_export "macro_export"))
((attribute_item (attribute (identifier) @_export)) . (attribute_item)
  . (macro_definition "macro_rules!" @public) (#eq? @_export "macro_export"))

(mod_item name: (identifier) @name
  body: (declaration_list . (line_comment inner: (_))* @doc)? @body) @module
(function_item name: (identifier) @name body: (block) @body) @function
(function_signature_item name: (identifier) @name ";" @body) @function
(struct_item name: (type_identifier) @name [(field_declaration_list) ";"] @body) @struct
(union_item name: (type_identifier) @name body: (field_declaration_list) @body) @struct
(enum_item name: (type_identifier) @name body: (enum_variant_list) @body) @enum
(trait_item name: (type_identifier) @name body: (declaration_list) @body) @trait
(type_item name: (type_identifier) @name ";" @body) @type
(associated_type name: (type_identifier) @name ";" @body) @type
((const_item name: (identifier) @name) @constant (#not-eq? @name "_"))
(static_item name: (identifier) @name) @variable
(macro_definition name: (identifier) @name . ["(" "[" "{"] @body) @macro

(call_expression function: (identifier) @call)
(call_expression function: (field_expression value: (_) @qualifier field: (field_identifier) @call))
(call_expression function: (scoped_identifier path: (_)? @qualifier name: (identifier) @call))
(generic_function function: (identifier) @call)
(generic_function function: (field_expression value: (_) @qualifier field: (field_identifier) @call))
(generic_function function: (scoped_identifier path: (_)? @qualifier name: (identifier) @call))
(macro_invocation macro: (identifier) @call)
(macro_invocation macro: (scoped_identifier path: (_)? @qualifier name: (identifier) @call))
(token_tree (identifier) @call . (token_tree . "(") @arguments)
(token_repetition (identifier) @call . (token_tree . "(") @arguments)
(token_tree
  [(identifier) (self)] @qualifier . ["." "::"] . (identifier) @call . (token_tree . "(") @arguments)
(token_tree (identifier) @call . "!" . (token_tree))
(scoped_type_identifier path: (_) @qualifier name: (type_identifier) @use)
((scoped_identifier path: (identifier) @use) (#match? @use "^[A-Z]"))
((scoped_identifier path: (scoped_identifier path: (_) @qualifier name: (identifier) @use))
  (#match? @use "^[A-Z]"))
((type_identifier) @use)
(type_parameter name: (type_identifier) @parameter)
"""
# A macro's arguments are not parsed: calls in `assert_eq!(total(&order), 3)` are told by their looks.

_PUBLIC: Final = re.compile(r"pub(?:lic)?\s")


def _exported(name: str, head: str) -> bool:
    """Visible outside of the crate: `pub(crate)` is not. Members of a trait are as public as the trait."""
    return _PUBLIC.match(head) is not None


def _signature(kind: str, text: str) -> str:
    """Without the end of a `where`, and without a value that goes on below."""
    short = text.rstrip(",;")
    goes_on = kind in ("constant", "variable") and short.endswith(("[", "(", "{", "|"))
    return short.split(" = ", 1)[0] if goes_on else short


def _imports(captures: Captures) -> Iterable[Import]:
    module = captures["module"][0]
    if captures["import"][0].type == "extern_crate_declaration":
        alias = captures["alias"][0] if "alias" in captures else module
        yield Import(text_of(module), text_of(alias))
    else:
        yield from _used(module, "")


def _used(tree: Node, before: str) -> Iterator[Import]:
    """Each name of a `use`, with the path before it: `std::{fmt, io::{self, Read as R}}` has three."""
    if tree.type == "use_list":
        for each in tree.named_children:
            yield from _used(each, before)
    elif tree.type == "scoped_use_list":
        path = text_of(tree.child_by_field_name("path"))
        yield from _used(tree.child_by_field_name("list"), _joined(before, path))
    elif tree.type == "use_wildcard":
        path = text_of(tree.named_children[0]) if tree.named_children else ""
        yield Import(_joined(before, path), "*")
    elif tree.type == "use_as_clause":
        path = _joined(before, text_of(tree.child_by_field_name("path")))
        yield _named(path, text_of(tree.child_by_field_name("alias")))
    elif tree.type not in ("line_comment", "block_comment"):
        yield _named(_joined(before, text_of(tree)), "")


def _joined(before: str, path: str) -> str:
    return f"{before}::{path}" if before and path else before or path


def _named(path: str, alias: str) -> Import:
    """The last part of a path is the name that is taken, unless it is the module itself."""
    path = path.removeprefix("::").removesuffix("::self")
    module, _, name = path.rpartition("::")
    return Import(module or path, alias or name, name if module else "")


_BUILTINS: Final = frozenset(
    """
    Self String Vec Box Option Result Some None Ok Err Clone Copy Send Sync Sized Unpin Drop Fn FnMut FnOnce
    Iterator IntoIterator DoubleEndedIterator ExactSizeIterator FromIterator Extend Default PartialEq Eq
    PartialOrd Ord AsRef AsMut Into From TryFrom TryInto ToString ToOwned drop Debug Hash any all not derive
    assert assert_eq assert_ne cfg column compile_error concat dbg debug_assert debug_assert_eq
    debug_assert_ne env eprint eprintln file format format_args include include_bytes include_str line
    matches module_path option_env panic print println stringify thread_local todo try unimplemented
    unreachable vec write writeln
    """.split()
)

LANGUAGE = Language(
    name="rust",
    suffixes=(".rs",),
    grammar="tree_sitter_rust",
    query=_QUERY,
    comments=frozenset({"line_comment", "block_comment"}),
    between=frozenset({"attribute_item"}),
    exported=_exported,
    signature=_signature,
    builtins=_BUILTINS,
    imports=_imports,
    tests=("**/tests/**", "*_test.rs", "*_tests.rs", "test_*.rs", "tests.rs"),
)

"""PHP."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, Node, text_of

_INCLUDES: Final = "\n".join(
    f"""
    ({how}_expression [
      (string (string_content) @module)
      (encapsed_string . (string_content) @module .)
      (binary_expression right: (string (string_content) @module))
      (parenthesized_expression (string (string_content) @module))
    ]) @import"""
    for how in ("require", "require_once", "include", "include_once")
)

_TYPE: Final = "[(name) @use (qualified_name prefix: (_)? @qualifier (name) @use)]"

_QUERY: Final = f"""
(namespace_definition name: (namespace_name) @package)
(namespace_definition name: (namespace_name) @name body: (_) @body) @module
(namespace_use_declaration) @import
{_INCLUDES}

(function_definition name: (name) @name body: (_)? @body) @function
(class_declaration name: (name) @name body: (_) @body) @class
(interface_declaration name: (name) @name body: (_) @body) @interface
(trait_declaration name: (name) @name body: (_) @body) @trait
(enum_declaration name: (name) @name body: (_) @body) @enum
(anonymous_class) @scope
(method_declaration name: (name) @name body: (_)? @body) @method
(const_declaration) @constant
((expression_statement (function_call_expression function: (name) @_define
    arguments: (arguments . (argument (string (string_content) @name))))) @constant
  (#eq? @_define "define"))

(function_call_expression function: (name) @call)
(function_call_expression function: (qualified_name prefix: (_)? @qualifier (name) @call))
(member_call_expression object: (_) @qualifier name: (name) @call)
(nullsafe_member_call_expression object: (_) @qualifier name: (name) @call)
(scoped_call_expression scope: (_) @qualifier name: (name) @call)
(scoped_call_expression scope: {_TYPE})
(scoped_property_access_expression scope: {_TYPE})
(class_constant_access_expression . {_TYPE})
(object_creation_expression [(name) @call (qualified_name prefix: (_)? @qualifier (name) @call)])
(named_type {_TYPE})
(base_clause {_TYPE})
(class_interface_clause {_TYPE})
(use_declaration {_TYPE})
(attribute {_TYPE})
(binary_expression operator: "instanceof" right: {_TYPE})
"""
# Variables of a script are none of its symbols: any file that includes it may set them again.


def _definition(kind: str, captures: Captures) -> tuple[str, Captures]:
    """Constants that are declared in one statement; to match such lists in a query takes squared time."""
    node = captures[kind][0]
    if node.type != "const_declaration":
        return kind, captures
    elements = [each for each in node.named_children if each.type == "const_element"]
    return kind, {kind: [node], "name": [each.named_children[0] for each in elements]}


_HIDDEN: Final = re.compile(r"(?:^|[\s\]])(?:private|protected)\s+(?:\w+\s+)*?(?:function|const)\b")


def _exported(name: str, head: str) -> bool:
    return _HIDDEN.search(head) is None


_VALUE: Final = re.compile(r"\s*=.*")


def _signature(kind: str, text: str) -> str:
    """Without a value that goes on below."""
    return _VALUE.sub("", text) if kind == "constant" and text.endswith(("[", "(", ",", ".")) else text


def _imports(captures: Captures) -> Iterable[Import]:
    node = captures["import"][0]
    if node.type == "namespace_use_declaration":
        yield from _used(node)
    else:
        path = text_of(captures["module"][0])
        module = f".{path}" if path.startswith("/") else path
        yield Import(module, module.rsplit("/", 1)[-1].removesuffix(".php"))


def _used(node: Node) -> Iterator[Import]:
    """`use App\\{Order, Lines\\Line as Row};` takes two names."""
    before = next((text_of(each) for each in node.named_children if each.type == "namespace_name"), "")
    group = node.child_by_field_name("body") or node
    for clause in group.named_children:
        if clause.type != "namespace_use_clause":
            continue
        alias = clause.child_by_field_name("alias")
        taken = next(each for each in clause.named_children if each.type in ("name", "qualified_name"))
        path = f"{before}\\{text_of(taken)}" if before else text_of(taken)
        module, _, name = path.strip("\\").rpartition("\\")
        yield Import(module or name, text_of(alias) or name, name if module else "")


_BUILTINS: Final = frozenset(
    """
    self static parent mixed iterable callable object null true false array_column array_combine array_diff
    array_fill array_filter array_flip array_intersect array_key_exists array_key_first array_key_last
    array_keys array_map array_merge array_pop array_push array_reduce array_reverse array_search
    array_shift array_slice array_splice array_sum array_unique array_unshift array_values array_walk
    arsort asort assert basename call_user_func call_user_func_array ceil class_exists compact count date
    define defined dirname explode extract fclose feof fgets file_exists file_get_contents
    file_put_contents floor fopen fputs fread func_get_args function_exists fwrite get_class gettype hash
    header htmlspecialchars implode in_array intdiv intval is_array is_bool is_callable is_dir is_file
    is_float is_int is_null is_numeric is_object is_string iterator_to_array join json_decode json_encode
    krsort ksort lcfirst ltrim max mb_strlen mb_strtolower mb_substr md5 method_exists microtime min mkdir
    number_format preg_match preg_match_all preg_quote preg_replace preg_replace_callback preg_split
    print_r printf property_exists rand range round rsort rtrim serialize sha1 sort spl_object_id sprintf
    str_contains str_ends_with str_pad str_repeat str_replace str_split str_starts_with strcmp stripos
    strlen strpos strrpos strtolower strtotime strtoupper strtr strval substr substr_count time
    trigger_error trim uasort ucfirst ucwords uksort unlink unserialize unset usort var_dump vsprintf
    """.split()
)

LANGUAGE = Language(
    name="php",
    suffixes=(".php", ".phtml"),
    grammar="tree_sitter_php:language_php",
    query=_QUERY,
    decorators=frozenset({"attribute_list"}),
    definition=_definition,
    exported=_exported,
    signature=_signature,
    builtins=_BUILTINS,
    imports=_imports,
    tests=("**/tests/**", "**/test/**", "*Test.php"),
)

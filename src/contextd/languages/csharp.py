"""C#."""

import re
from collections.abc import Iterator
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, text_of

_NAMED: Final = "[(identifier) @{0} (generic_name . (identifier) @{0})]"
_TYPE: Final = f"""[
  (identifier) @use
  (qualified_name qualifier: (_) @qualifier name: {_NAMED.format("use")})
]"""
_CALLED: Final = _NAMED.format("call")
_BODY: Final = "[(block) (arrow_expression_clause)]"

_QUERY: Final = f"""
(using_directive) @import
(file_scoped_namespace_declaration name: (_) @package)
(namespace_declaration name: (_) @package)
(namespace_declaration name: (_) @name body: (declaration_list) @body) @module

(class_declaration name: (identifier) @name body: (declaration_list) @body) @class
(struct_declaration name: (identifier) @name body: (declaration_list) @body) @struct
(record_declaration "struct" name: (identifier) @name [(declaration_list) ";"] @body) @struct
(record_declaration name: (identifier) @name [(declaration_list) ";"] @body) @class
(interface_declaration name: (identifier) @name body: (declaration_list) @body) @interface
(interface_declaration body: (declaration_list "{{" @public))
(enum_declaration name: (identifier) @name body: (enum_member_declaration_list) @body) @enum
(delegate_declaration name: (identifier) @name ";" @body) @type

(method_declaration name: (identifier) @name body: {_BODY}? @body) @method
(constructor_declaration name: (identifier) @name body: {_BODY} @body) @method
(destructor_declaration name: (identifier) @name body: {_BODY} @body) @method
(operator_declaration operator: _ @name body: {_BODY} @body) @method
(property_declaration name: (identifier) @name value: (arrow_expression_clause) @body) @method
(property_declaration name: (identifier) @name
  accessors: (accessor_list (accessor_declaration body: {_BODY})) @body) @method
(indexer_declaration "this" @name value: (arrow_expression_clause) @body) @method
(indexer_declaration "this" @name accessors: (accessor_list) @body) @method
(compilation_unit (global_statement
  (local_function_statement name: (identifier) @name body: {_BODY} @body) @function))
(field_declaration (modifier "const") (variable_declaration
  (variable_declarator name: (identifier) @name)
  ("," (variable_declarator name: (identifier) @name))*)) @constant
(field_declaration (modifier "static") (modifier "readonly") (variable_declaration
  (variable_declarator name: (identifier) @name)
  ("," (variable_declarator name: (identifier) @name))*)) @constant

(invocation_expression function: {_CALLED})
(invocation_expression function: (member_access_expression expression: _ @qualifier name: {_CALLED}))
(invocation_expression function: (conditional_access_expression
  condition: _ @qualifier (member_binding_expression name: {_CALLED})))
(object_creation_expression type: {_CALLED})
(object_creation_expression type: (qualified_name qualifier: (_) @qualifier name: {_CALLED}))

(_ type: {_TYPE})
(method_declaration returns: {_TYPE})
(base_list {_TYPE})
(type_argument_list {_TYPE})
(generic_name . (identifier) @use)
(as_expression right: {_TYPE})
(is_pattern_expression pattern: [
  (constant_pattern (identifier) @use) (negated_pattern (constant_pattern (identifier) @use))
])
(attribute name: {_TYPE})
(type_parameter name: (identifier) @parameter)
"""

_AFTER_MODIFIERS: Final = re.compile(r"[(=<]")


def _exported(name: str, head: str) -> bool:
    """An interface says `public` of its members, and these may say otherwise."""
    words = _AFTER_MODIFIERS.split(head, maxsplit=1)[0].split()
    hidden = {"private", "protected", "internal"}.intersection(words)
    return ("public" in words and not hidden) or words[:1] == ["namespace"]


def _imports(captures: Captures) -> Iterator[Import]:
    """`using` brings all names of a namespace or, with `static`, of a type."""
    statement = captures["import"][0]
    alias = statement.child_by_field_name("name")
    if statement.named_children:
        yield Import(text_of(statement.named_children[-1]), text_of(alias) or "*")


_NAMING: Final = re.compile(
    r"""<(?:see|seealso|paramref|typeparamref)\s+(?:cref|name|langword)=["'](?:[A-Z]:)?([^"']*)["']\s*/>"""
)
_PART: Final = re.compile(r"""<(?:type)?param\s+name=["']([^"']*)["']\s*>""")
_MARKUP: Final = re.compile(r"</?\w+(?:\s[^<>]*)?/?>")


def _doc(text: str) -> str:
    """XML comments without their tags: what these enclose or name stays."""
    if "<" not in text:
        return text
    bare = _MARKUP.sub("", _PART.sub(r"\1: ", _NAMING.sub(r"\1", text)))
    return "\n".join(line.strip() for line in bare.splitlines() if line.strip())


_BUILTINS: Final = frozenset(
    """
    Action ArgumentException ArgumentNullException ArgumentOutOfRangeException Array Boolean
    CancellationToken Char DateOnly DateTime DateTimeOffset Decimal Dictionary Double Enum Exception Func
    Guid HashSet IAsyncEnumerable ICollection IComparable IDictionary IDisposable IEnumerable IEnumerator
    IEquatable IList IQueryable IReadOnlyCollection IReadOnlyDictionary IReadOnlyList ISet Int16 Int32 Int64
    InvalidOperationException KeyValuePair Lazy List Math NotImplementedException NotSupportedException
    Nullable Object Predicate Queue ReadOnlySpan Single Span Stack String StringBuilder Task TimeOnly
    TimeSpan Tuple UInt16 UInt32 UInt64 Uri ValueTask Void nameof
    Flags Obsolete Serializable
    """.split()
)

LANGUAGE = Language(
    name="csharp",
    suffixes=(".cs", ".csx"),
    grammar="tree_sitter_c_sharp",
    query=_QUERY,
    decorators=frozenset({"attribute_list"}),
    exported=_exported,
    doc=_doc,
    builtins=_BUILTINS,
    imports=_imports,
    tests=(
        "*Test.cs",
        "*Tests.cs",
        "*Spec.cs",
        "*Specs.cs",
        "**/*Tests/**",
        "**/*.Test/**",
        "**/test/**",
        "**/tests/**",
    ),
)

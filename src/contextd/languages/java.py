"""Java."""

import re
from collections.abc import Iterator
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, text_of

_MEMBERS: Final = """[
  (method_declaration name: (identifier) @name body: (block)? @body)
  (constructor_declaration name: (identifier) @name body: (constructor_body) @body)
  (compact_constructor_declaration name: (identifier) @name body: (block) @body)
] @method"""

_CONSTANT: Final = """((field_declaration (modifiers) @_modifiers
  declarator: (variable_declarator name: (identifier) @name)
  ("," declarator: (variable_declarator name: (identifier) @name))*) @constant
  (#match? @_modifiers "static") (#match? @_modifiers "final"))"""

_QUERY: Final = f"""
(package_declaration [(scoped_identifier) (identifier)] @package)
(program (package_declaration [(scoped_identifier) (identifier)] @name) @module .)
(module_declaration name: (_) @name body: (module_body) @body) @module
(import_declaration) @import

(class_declaration name: (identifier) @name body: (class_body) @body) @class
(record_declaration name: (identifier) @name body: (class_body) @body) @class
(interface_declaration name: (identifier) @name body: (interface_body) @body) @interface
(annotation_type_declaration name: (identifier) @name body: (annotation_type_body) @body) @interface
(enum_declaration name: (identifier) @name body: (enum_body) @body) @enum
(class_declaration body: (class_body {_MEMBERS}))
(record_declaration body: (class_body {_MEMBERS}))
(enum_body_declarations {_MEMBERS})
(interface_body (method_declaration name: (identifier) @name body: (block)? @body) @method)
(annotation_type_element_declaration name: (identifier) @name) @method
(class_body {_CONSTANT})
(enum_body_declarations {_CONSTANT})
(constant_declaration
  declarator: (variable_declarator name: (identifier) @name)
  ("," declarator: (variable_declarator name: (identifier) @name))*) @constant
(interface_body "{{" @public)
(annotation_type_body "{{" @public)

(method_invocation !object name: (identifier) @call)
(method_invocation object: (_) @qualifier name: (identifier) @call)
(method_reference . (_) @qualifier "::" (identifier) @call)
(method_reference . (identifier) @call "::" "new")
(object_creation_expression type: [
  (type_identifier) @call
  (generic_type . (type_identifier) @call)
  (scoped_type_identifier (_) @qualifier (type_identifier) @call .)
  (generic_type . (scoped_type_identifier (_) @qualifier (type_identifier) @call .))
])
(marker_annotation name: (identifier) @use)
(annotation name: (identifier) @use)
((scoped_type_identifier (_) @qualifier (type_identifier) @use .) (#match? @use "^[^a-z]"))
((type_identifier) @use (#match? @use "^[^a-z]"))
(type_parameter (type_identifier) @parameter)
"""


_AFTER_MODIFIERS: Final = re.compile(r"[(=<]")


def _exported(name: str, head: str) -> bool:
    """An interface says `public` of its members, and these may say `private`."""
    words = _AFTER_MODIFIERS.split(head, maxsplit=1)[0].split()
    return ("public" in words and "private" not in words) or words[:1] in (
        ["package"],
        ["module"],
        ["open"],
    )


def _imports(captures: Captures) -> Iterator[Import]:
    statement = captures["import"][0]
    path = next(
        (text_of(each) for each in statement.named_children if each.type.endswith("identifier")), ""
    )
    if any(each.type == "asterisk" for each in statement.named_children):
        yield Import(path, "*")
    else:
        package, _, name = path.rpartition(".")
        yield Import(package, name, name)


_TAG: Final = re.compile(r"\{@(?:link(?:plain)?\s+\S+\s+|\w+\s+)([^{}]*)\}")
_MARKUP: Final = re.compile(
    r"</?(?:p|b|i|em|strong|code|pre|ul|ol|li|br|tt|a|h[1-6])\b[^<>]*>", re.IGNORECASE
)


def _doc(text: str) -> str:
    """Javadoc without its tags and HTML: what they enclose stays."""
    return _MARKUP.sub("", _TAG.sub(r"\1", text)).strip()


_BUILTINS: Final = frozenset(
    """
    Boolean Byte CharSequence Character Class ClassLoader Cloneable Comparable Deprecated Double Enum
    Error Exception Float FunctionalInterface IllegalArgumentException IllegalStateException
    IndexOutOfBoundsException Integer InterruptedException Iterable Long Math NullPointerException Number
    NumberFormatException Object Override Process Record ReflectiveOperationException Runnable Runtime
    RuntimeException SafeVarargs Short StringBuffer StringBuilder String SuppressWarnings System Thread
    ThreadLocal Throwable UnsupportedOperationException Void
    ArithmeticException ArrayIndexOutOfBoundsException AssertionError AutoCloseable ClassCastException
    ClassNotFoundException CloneNotSupportedException StackTraceElement
    """.split()
)

LANGUAGE = Language(
    name="java",
    suffixes=(".java",),
    grammar="tree_sitter_java",
    query=_QUERY,
    comments=frozenset({"line_comment", "block_comment"}),
    decorators=frozenset({"annotation", "marker_annotation"}),
    exported=_exported,
    doc=_doc,
    builtins=_BUILTINS,
    imports=_imports,
    tests=(
        "*Test.java",
        "*Tests.java",
        "*TestCase.java",
        "*IT.java",
        "Test*.java",
        "**/src/test/**",
        "**/src/*Test/**",
    ),
)

"""Python."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, Node, text_of

_DOC: Final = ". (expression_statement (string (string_content) @doc))?"
"""A string after an assignment tells what it is for, as documentation tools have it."""
_MADE: Final = """right: (call function: [
    (identifier) @_maker (attribute attribute: (identifier) @_maker)
  ])"""
_SEVERAL: Final = """
    (pattern_list (identifier) @name ("," (identifier) @name)*)
    (tuple_pattern (identifier) @name ("," (identifier) @name)*)
"""

_QUERY: Final = f"""
(import_statement) @import
(import_from_statement) @import
((assignment left: (identifier) @_all right: [
  (list (string (string_content) @exported)) (tuple (string (string_content) @exported))
]) (#eq? @_all "__all__"))

(function_definition name: (identifier) @name body: (block) @body) @function
(class_definition name: (identifier) @name body: (block) @body) @class
(module (expression_statement
  (assignment left: (identifier) @name right: (lambda body: (_) @body))) @function)
(type_alias_statement left: (type [(identifier) @name (generic_type . (identifier) @name)])) @type

(module (expression_statement (assignment left: (identifier) @name
  type: (type (identifier) @_type) (#eq? @_type "TypeAlias"))) @type {_DOC})
(module (expression_statement (assignment left: (identifier) @name {_MADE}
  (#any-of? @_maker "NewType" "TypeVar" "ParamSpec" "TypeVarTuple"))) @type {_DOC})
(module (expression_statement (assignment left: (identifier) @name {_MADE}
  (#any-of? @_maker "namedtuple" "NamedTuple" "TypedDict"))) @class {_DOC})
(module (expression_statement (assignment left: (identifier) @name
  type: (type [(identifier) @_type (generic_type . (identifier) @_type)])
  (#eq? @_type "Final"))) @constant {_DOC})
(module (expression_statement (assignment left: [(identifier) @name {_SEVERAL}]
  (#match? @name "^_*[A-Z][A-Z0-9_]*$"))) @constant {_DOC})
(module (expression_statement (assignment
  left: (identifier) @name right: (assignment left: (identifier) @name)?)) @variable {_DOC})
(module (expression_statement (assignment left: [{_SEVERAL}])) @variable {_DOC})

(call function: (identifier) @call)
(call function: (attribute object: (_) @qualifier attribute: (identifier) @call))
(decorator (identifier) @call)
(decorator (attribute object: (_) @qualifier attribute: (identifier) @call))

(_ type: (type) @uses)
(function_definition return_type: (type) @uses)
(type_alias_statement right: (type) @uses)
(class_definition superclasses: (argument_list) @uses)
(except_clause value: (_) @uses)
((raise_statement . (identifier) @use) (#match? @use "^_*[A-Z]"))
((raise_statement . (attribute object: (_) @qualifier attribute: (identifier) @use))
  (#match? @use "^_*[A-Z]"))
((assignment type: (type (identifier) @_type) right: (_) @uses) (#eq? @_type "TypeAlias"))
(_ type_parameters: (type_parameter (type (constrained_type (type) . (type) @uses))))
(class_pattern (dotted_name (identifier)? @qualifier . (identifier) @use .))
(_ type_parameters: (type_parameter (type [
  (identifier) @parameter (constrained_type . (type (identifier) @parameter))
])))
(type_alias_statement left: (type (generic_type (type_parameter (type (identifier) @parameter)))))
"""


def _exported(name: str, head: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _imports(captures: Captures) -> Iterator[Import]:
    """`import a.b` is named `a.b`, as the code writes it."""
    statement = captures["import"][0]
    module = text_of(statement.child_by_field_name("module_name"))
    for each in statement.named_children[1 if module else 0 :]:
        if each.type == "wildcard_import":
            yield Import(module, "*")
        elif each.type in ("dotted_name", "aliased_import"):
            name = text_of(each.child_by_field_name("name") or each)
            alias = text_of(each.child_by_field_name("alias")) or name
            yield Import(module, alias, name) if module else Import(name, alias)


_NAME: Final = re.compile(r"[^\W\d]\w*")


def _uses(node: Node) -> Iterable[tuple[Any, Any]]:
    """Annotations are expressions: every name in them is a type, in quotes too, but for a literal's."""
    waiting: list[Any] = [node]
    while waiting:
        here = waiting.pop()
        if here.type == "identifier":
            yield here, None
        elif here.type == "attribute":
            yield here.child_by_field_name("attribute"), here.child_by_field_name("object")
        elif here.type == "string":
            yield from ((part, None) for part in here.named_children if _NAME.fullmatch(text_of(part)))
        elif here.type == "keyword_argument":
            waiting.extend(each for each in here.named_children[1:] if each.type != "string")
        elif here.type not in _NOT_TYPES and not _is_literal(here):
            waiting.extend(here.named_children)


def _is_literal(node: Node) -> bool:
    """`Literal["open"]`, whose strings are values."""
    return bool(node.children) and text_of(node.children[0]).endswith("Literal")


_NOT_TYPES: Final = frozenset({"call", "as_pattern_target", "lambda", "comment"})

_BUILTINS: Final = frozenset(
    """
    abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod cls
    compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr
    globals hasattr hash help hex id input int isinstance issubclass iter len list locals map max
    memoryview min next object oct open ord pow print property range repr reversed round set setattr
    slice sorted staticmethod str sum super tuple type vars zip __import__
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError
    BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError
    ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError EncodingWarning Exception
    ExceptionGroup FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError
    ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError
    KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError
    NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError ProcessLookupError
    RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration
    StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError
    UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError
    UnicodeWarning UserWarning ValueError Warning ZeroDivisionError
    Annotated Any ClassVar Concatenate Final Generic Literal LiteralString Never NoReturn NotRequired
    Optional ParamSpec Required Self TypeAlias TypeGuard TypeVar TypeVarTuple Union Unpack
    """.split()
)
"""With the special forms of `typing`, which are imported and yet are no types of anybody's."""

LANGUAGE = Language(
    name="python",
    suffixes=(".py", ".pyi", ".pyw"),
    names=("SConstruct", "SConscript", "wscript"),
    grammar="tree_sitter_python",
    query=_QUERY,
    wrappers=frozenset({"decorated_definition"}),
    doc_inside=True,
    exported=_exported,
    builtins=_BUILTINS,
    imports=_imports,
    uses=_uses,
    tests=("test_*.py", "*_test.py", "conftest.py", "**/tests/**", "**/test/**"),
)

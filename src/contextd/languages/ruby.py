"""Ruby."""

import re
from collections.abc import Iterable
from typing import Final

from contextd.domain.code import Import
from contextd.languages.language import Captures, Language, Node, text_of

_NAMED: Final = "name: [(constant) @name (scope_resolution scope: (_)? @container name: (constant) @name)]"

_QUERY: Final = f"""
((call !receiver method: (identifier) @_how
    arguments: (argument_list (simple_symbol)? @name (string (string_content) @module))) @import
  (#any-of? @_how "require" "require_relative" "load" "autoload"))

(module {_NAMED} body: (_)? @body) @module
(class {_NAMED} body: (_)? @body) @class
(method name: (_) @name body: (_)? @body) @function
(singleton_method name: (_) @name body: (_)? @body) @method
(assignment left: (constant) @name) @constant
(assignment left: (left_assignment_list . (constant) @name ("," (constant) @name)*)) @constant
(program (assignment left: (global_variable) @name) @variable)

((body_statement (identifier) @private) (#any-of? @private "private" "protected"))
((body_statement (identifier) @public) (#any-of? @public "public" "module_function"))

(call !receiver method: (identifier) @call)
(call receiver: (_) @qualifier method: (identifier) @call)
(method body: (body_statement (identifier) @call))
(scope_resolution scope: (_) @qualifier name: (constant) @use)
((constant) @use)
"""
# `private :name` after a definition is not looked at: such methods count as exported.

_MADE: Final = {
    "Struct.new": "struct",
    "Data.define": "struct",
    "Class.new": "class",
    "Module.new": "module",
}
_HOLDERS: Final = frozenset({"class", "module", "singleton_class", "do_block", "block"})


def _definition(kind: str, captures: Captures) -> tuple[str, Captures]:
    """`Point = Struct.new(:x) do …` is a type, and a `def` that is in none is a function."""
    node = captures[kind][0]
    if kind == "function":
        return "method" if _is_held(node) else "function", captures
    made = node.child_by_field_name("right") if kind == "constant" else None
    if made is None or made.type != "call":
        return kind, captures
    block = made.child_by_field_name("block")
    how = text_of(made.child_by_field_name("method"))
    type = _MADE.get(f"{text_of(made.child_by_field_name('receiver'))}.{how}", kind)
    return type, captures if type == kind or block is None else {**captures, "body": [block]}


def _is_held(node: Node) -> bool:
    around = node.parent
    while around is not None and around.type not in _HOLDERS:
        around = around.parent
    return around is not None


_HIDDEN: Final = re.compile(
    r"(?:public )?(?:private_class_method |(?:private |protected )+(?:\w+ )*def (?!self\.))"
)
"""A bare `private` speaks of the instance's methods only, not of `def self.name`."""


def _exported(name: str, head: str) -> bool:
    return _HIDDEN.match(head) is None


_END: Final = re.compile(r"\s*;?\s*\bend$|\s+do$|;$")
_VALUE: Final = re.compile(r"\s*=.*")


def _signature(kind: str, text: str) -> str:
    short = _END.sub("", text)
    goes_on = kind == "constant" and short.endswith(("[", "{", "(", ",", "|", "\\"))
    return _VALUE.sub("", short) if goes_on else short


def _doc(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if line not in ("=begin", "=end")).strip()


def _imports(captures: Captures) -> Iterable[Import]:
    how = text_of(captures["_how"][0])
    module = text_of(captures["module"][0])
    if how == "require_relative" and not module.startswith("."):
        module = f"./{module}"
    name = text_of(captures["name"][0]).lstrip(":") if "name" in captures else ""
    yield Import(module, name or module.rsplit("/", 1)[-1].removesuffix(".rb"), name)


_BUILTINS: Final = frozenset(
    """
    Array BasicObject Class Comparable Data Dir Encoding Enumerable Enumerator ENV Exception FalseClass File
    Float Hash Integer IO Kernel Math Method Module Mutex NilClass Numeric Object Proc Process Queue Random
    Range Rational Regexp Set String Struct Symbol Thread Time TrueClass ArgumentError EOFError IOError
    IndexError KeyError LoadError NameError NoMethodError NotImplementedError RangeError RuntimeError
    ScriptError StandardError StopIteration SyntaxError SystemExit TypeError ZeroDivisionError abort
    alias_method at_exit attr_accessor attr_reader attr_writer autoload binding block_given? caller catch
    class_eval const_get define_method exit extend fail format gets include include? instance_eval
    instance_variable_get instance_variable_set lambda load loop method_missing module_function new p pp
    prepend print printf private private_class_method private_constant proc protected public public_send
    puts raise rand refine require require_relative respond_to? send sleep sprintf srand super system tap
    throw undef_method using warn yield
    """.split()
)

LANGUAGE = Language(
    name="ruby",
    suffixes=(".rb", ".rake", ".gemspec", ".ru"),
    names=("Gemfile", "Rakefile", "Guardfile", "Vagrantfile", "Capfile", "Podfile", "Brewfile"),
    grammar="tree_sitter_ruby",
    query=_QUERY,
    wrappers=frozenset({"argument_list", "call"}),
    definition=_definition,
    exported=_exported,
    signature=_signature,
    doc=_doc,
    builtins=_BUILTINS,
    imports=_imports,
    tests=("**/spec/**", "**/test/**", "*_spec.rb", "*_test.rb", "test_*.rb"),
)

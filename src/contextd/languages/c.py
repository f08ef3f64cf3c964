"""C. Its headers, too, unless what they hold is C++."""

import re
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
from contextd.languages.language import Captures, Language

_QUERY: Final = f"""
{QUERY}
{in_each(PLACES, "(declaration) @variable")}
(struct_specifier name: (type_identifier) @name body: (_) @body) @struct
"""

_CPP: Final = re.compile(
    r"""
    ^[ \t]*(?:
      namespace\b | template[ \t]*< | using[ \t]+namespace\b | using[ \t]+\w+[ \t]*=
      | (?:public|private|protected)[ \t]*: | (?:enum[ \t]+)?class[ \t]+\w+[^;(){}\n]*[{\r\n]
    )
    """,
    re.MULTILINE | re.VERBOSE,
)


def _dialect(text: str) -> str:
    return "cpp" if _CPP.search(text) else "c"


def _exported(name: str, head: str) -> bool:
    return not is_static(name, head)


def _imports(captures: Captures) -> Iterable[Import]:
    yield included(captures)


LANGUAGE = Language(
    name="c",
    suffixes=(".c", ".h"),
    dialect=_dialect,
    source=readable,
    grammar="tree_sitter_c",
    query=_QUERY,
    decorators=DECORATORS,
    definition=definition,
    exported=_exported,
    signature=signature,
    builtins=BUILTINS,
    imports=_imports,
    tests=("**/test/**", "**/tests/**", "test_*.c", "*_test.c", "*_tests.c"),
)

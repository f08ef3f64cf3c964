"""A caller's regular expression, which no line can make slow."""

from collections.abc import Callable
from typing import Final

from contextd.domain.errors import BadFormat

_MOST_MEMORY: Final = 1 << 20


def line_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a line matches; `$` is its end, before any line break. Raises BadFormat."""
    import re2

    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error:
        raise BadFormat(
            "pattern",
            "pattern is not a regular expression",
            "use RE2 syntax: no look-around, no back-references",
        ) from None
    return lambda line: compiled.search(line.rstrip("\r\n")) is not None

"""Programs that take code of another language on their command line."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from contextd.domain.command_risk.options import operands, option_values
from contextd.domain.command_risk.sql import sql_dangers
from contextd.domain.command_risk.syntax import Call, Danger, Finding, Rule, Runs

_REMOVES: Final = re.compile(
    r"rmtree|remove_tree|rm_rf|rm_r\b|\brimraf|removedirs|remove_dir_all|RemoveAll|deltree|\bunlink"
    r"|\brmdir(?:Sync)?\s*\(|\brmSync\s*\(|os\.remove\b|(?:File|Dir)\.(?:delete|rmdir|unlink)|fs\.(?:rm|rmdir)\b"
    r"|FileUtils\.(?:rm|remove)"
)
_RUNS: Final = re.compile(
    r"system|popen|\bexec|spawn|subprocess|check_output|check_call|shell_exec|passthru"
    r"|qx\b|`|%x|do shell script"
)
_INTERPRETS: Final = re.compile(r"\b(?:exec|eval|compile|Function)\b")
_DECODES: Final = re.compile(r"b64decode|fromhex|decode\(|\batob\b|unhexlify|from_base64|decode64")
_LITERAL: Final = re.compile(
    r"'((?:[^'\\]|\\.?)*)(?:'|\Z)|\"((?:[^\"\\]|\\.?)*)(?:\"|\Z)|`([^`]*)(?:`|\Z)|(?:qx|%x)[{(/]([^})/]*)",
    re.DOTALL,
)
_MOST_LITERALS: Final = 60
_MOST_STARTS: Final = 6

_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "python": ("-c",),
    "pypy": ("-c",),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "node": ("-e", "--eval", "-p", "--print"),
    "nodejs": ("-e", "--eval", "-p"),
    "bun": ("-e", "--eval"),
    "php": ("-r",),
    "lua": ("-e",),
    "julia": ("-e",),
    "rscript": ("-e",),
    "elixir": ("-e",),
    "osascript": ("-e",),
    "groovy": ("-e",),
}
_AWKS: Final = ("awk", "gawk", "mawk", "nawk")


def interpreter(call: Call) -> Iterator[Finding]:
    for word in option_values(call.args, *_OPTIONS[call.program]):
        yield from code_findings(word.text)
    if call.stdin is not None and not operands([text for text in call.texts if text != "-"]):
        yield from code_findings(call.stdin)


def deno(call: Call) -> Iterator[Finding]:
    if call.texts[:1] == ["eval"]:
        yield from code_findings(" ".join(call.texts[1:]))


def awk(call: Call) -> Iterator[Finding]:
    for text in operands(call.texts, frozenset(("-F", "-v", "-f")))[:1]:
        if "system" in text or "| " in text:
            yield from _shell_strings(text)


def code_findings(code: str) -> Iterator[Finding]:
    if _REMOVES.search(code):
        yield Danger("the code removes files or folders")
    if _INTERPRETS.search(code) and _DECODES.search(code):
        yield Danger("the code runs decoded text that cannot be read here")
    if "fork" in code and "while" in code:
        yield Danger("starts copies of itself without end")
    if _RUNS.search(code):
        yield from _shell_strings(code)
    for literal in _literals(code):
        yield from sql_dangers(literal)


def _shell_strings(code: str) -> Iterator[Finding]:
    """What may be a command: each string, and those from it on, as in `run(["rm", "-rf", "/"])`."""
    literals = _literals(code)
    yield from (Runs(literal) for literal in literals)
    yield from (Runs(" ".join(literals[start:])) for start in range(min(len(literals) - 1, _MOST_STARTS)))


def _literals(code: str) -> list[str]:
    found = (next(filter(None, match.groups()), "") for match in _LITERAL.finditer(code))
    return [text for text, _ in zip(found, range(_MOST_LITERALS), strict=False)]


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_OPTIONS, interpreter),
    **dict.fromkeys(_AWKS, awk),
    "deno": deno,
}

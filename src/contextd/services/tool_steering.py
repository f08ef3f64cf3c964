"""What a coding agent's own tools may do: let through, turned down, or sent to the safe tools."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

from contextd.domain.command_risk import assess
from contextd.domain.command_risk.files import SYSTEM
from contextd.domain.records import Json
from contextd.domain.secret_files import is_secret_file, secret_files_shown

Mode = Literal["protect", "steer", "off"]

_ASK: Final = "Ask the user."
_WRITING: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_LONGEST_ARGUMENT: Final = 1_000
_GUARDED: Final = re.compile(
    r"/(?:\.git/(?:hooks/|config$)|\.ssh/|\.claude/settings(?:\.local)?\.json$|\.cursor/hooks\.json$"
    r"|\.codex/|\.gemini/settings\.json$|\.(?:bashrc|bash_profile|profile|zshrc|zprofile|zshenv|gitconfig)$)"
)
"""Files through which a write becomes a command later on, or takes this guard away."""
_SYSTEM: Final = re.compile(r"/(?:etc|boot|usr|bin|sbin|lib|sys|proc)/")


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool that an agent is about to call."""

    tool: str
    input: Mapping[str, Json]
    project: str
    """The folder that the agent works in."""
    cwd: str

    def text(self, field: str) -> str:
        value = self.input.get(field)
        return value if isinstance(value, str) else ""

    def number(self, field: str) -> int | None:
        value = self.input.get(field)
        return value if isinstance(value, int) else None


@dataclass(frozen=True, slots=True)
class Instead:
    """A safe tool that does what was wished."""

    tool: str
    arguments: Mapping[str, Json]

    def __str__(self) -> str:
        shown = {name: _short(value) for name, value in self.arguments.items()}
        given = json.dumps(shown, ensure_ascii=False)
        return f"contextd's {self.tool} (mcp__contextd__{self.tool}) with {given}"


def refusal(wish: Wish, mode: Mode) -> str | None:
    """Why the call must not be made, and what to call instead; None lets it through."""
    if mode == "off":
        return None
    if wish.tool in _WRITING and _is_guarded(wish):
        return f"contextd: this file decides what runs later, or guards this session. {_ASK}"
    instead = _INSTEAD[wish.tool](wish) if wish.tool in _INSTEAD else None
    if why := _danger(wish):
        is_helpless = instead is None or SYSTEM in why
        return f"contextd: {why}. {_ASK if is_helpless else f'If it is wanted, call {instead}.'}"
    if mode == "steer" and instead:
        return f"contextd: {wish.tool} is not used here. Call {instead}."
    return None


def _danger(wish: Wish) -> str | None:
    match wish.tool:
        case "Bash":
            return _command_danger(wish.text("command"))
        case "Read" | "NotebookRead":
            if is_secret_file(wish.text("file_path")):
                return "this file is known to hold secrets; safe_read shows it with the secrets removed"
        case "Grep":
            if is_secret_file(wish.text("path")) or is_secret_file(wish.text("glob")):
                return "this would print lines of a file that is known to hold secrets"
    return None


def _is_guarded(wish: Wish) -> bool:
    path = PurePosixPath(wish.cwd) / (wish.text("file_path") or wish.text("notebook_path"))
    if _GUARDED.search(str(path)):
        return True
    return bool(_SYSTEM.match(str(path))) and not path.is_relative_to(wish.project)


def _command_danger(command: str) -> str | None:
    risk = assess(command)
    if risk.destructive:
        return f"this command {'; it '.join(risk.reasons)}"
    if shown := next(secret_files_shown(command), None):
        name = PurePosixPath(shown).name
        return f"this command would print {name}, which is known to hold secrets; safe_bash removes them"
    return None


def _bash(wish: Wish) -> Instead:
    arguments: dict[str, Json] = {"command": wish.text("command"), "project_path": wish.project}
    if wish.cwd != wish.project and PurePosixPath(wish.cwd).is_relative_to(wish.project):
        arguments["cwd"] = wish.cwd
    if milliseconds := wish.number("timeout"):
        arguments["timeout_s"] = max(1, milliseconds // 1000)
    return Instead("safe_bash", arguments)


def _read(wish: Wish) -> Instead:
    arguments: dict[str, Json] = {"path": wish.text("file_path"), "project_path": wish.project}
    first, count = wish.number("offset"), wish.number("limit")
    if first is not None or count is not None:
        arguments["start_line"] = max(1, first or 1)
    if count is not None:
        arguments["end_line"] = max(1, first or 1) + count - 1
    return Instead("safe_read", arguments)


def _grep(wish: Wish) -> Instead | None:
    """Of one file. To look through many, safe_bash has grep."""
    if not is_secret_file(wish.text("path")):
        return None
    arguments: dict[str, Json] = {"path": wish.text("path"), "project_path": wish.project}
    return Instead("safe_read", {**arguments, "pattern": wish.text("pattern")})


def _write(wish: Wish) -> Instead:
    return Instead(
        "safe_write",
        {
            "path": wish.text("file_path"),
            "project_path": wish.project,
            "mode": "overwrite",
            "content": wish.text("content"),
        },
    )


def _edit(wish: Wish) -> Instead:
    given = wish.input.get("edits")
    several = [edit for edit in given if isinstance(edit, dict)] if isinstance(given, list) else []
    wanted: list[Json] = [
        {
            "old": edit.get("old_string", ""),
            "new": edit.get("new_string", ""),
            **({"replace_all": True} if edit.get("replace_all") else {}),
        }
        for edit in several or [dict(wish.input)]
    ]
    return Instead(
        "safe_write",
        {"path": wish.text("file_path"), "project_path": wish.project, "mode": "edit", "edits": wanted},
    )


_INSTEAD: Final[Mapping[str, Callable[[Wish], Instead | None]]] = {
    "Bash": _bash,
    "Read": _read,
    "Grep": _grep,
    "Write": _write,
    "Edit": _edit,
    "MultiEdit": _edit,
}


def _short(value: Json) -> Json:
    """The agent has the whole of it: what is long is named, not repeated."""
    match value:
        case str() if len(value) > _LONGEST_ARGUMENT:
            return "<the same text>"
        case list():
            return [_short(each) for each in value]
        case dict():
            return {name: _short(each) for name, each in value.items()}
        case _:
            return value

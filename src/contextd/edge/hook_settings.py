"""Where Claude Code is told of the hooks: an entry in its settings, beside what others have put there."""

import copy
import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from contextd.domain.errors import Misconfigured

_TIMEOUT_S: Final = 15
_EVENTS: Final = {
    "PreToolUse": ("pre-tool-use", "Bash|Read|Grep|Write|Edit|MultiEdit|NotebookEdit"),
    "PostToolUse": ("post-tool-use", "*"),
    "PostToolUseFailure": ("post-tool-use", "*"),
}


def hook_entries(mode: str | None) -> dict[str, Any]:
    """By event. The interpreter by its own path, and never with the project's folder on its search path."""
    extra = ["--mode", mode] if mode else []
    return {
        event: {
            "matcher": matcher,
            "hooks": [
                {
                    "type": "command",
                    "command": shlex.join([sys.executable, "-P", "-m", "contextd", "hook", name, *extra]),
                    "timeout": _TIMEOUT_S,
                }
            ],
        }
        for event, (name, matcher) in _EVENTS.items()
    }


def with_hooks(settings: dict[str, Any], entries: dict[str, Any]) -> dict[str, Any]:
    """The settings with these hooks and none of ours from before; all else stays."""
    changed = copy.deepcopy(settings)
    hooks = changed.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise Misconfigured("the hooks in the client's settings are no object", "mend the file first")
    for event in {*hooks, *entries}:
        groups = hooks.get(event, [])
        others = [group for group in groups if not _is_ours(group)] if isinstance(groups, list) else groups
        wanted = [entries[event]] if event in entries else []
        if isinstance(others, list) and (others or wanted):
            hooks[event] = [*others, *wanted]
        elif isinstance(others, list):
            del hooks[event]
    if not hooks:
        del changed["hooks"]
    return changed


def read_settings(file: Path) -> dict[str, Any]:
    """Raises Misconfigured: what cannot be read is not written over."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{file} cannot be read ({error})", "mend it, or use --print") from error
    if not isinstance(settings, dict):
        raise Misconfigured(f"{file} is no JSON object", "mend it, or use --print")
    return settings


def write_settings(file: Path, settings: dict[str, Any]) -> Path | None:
    """Whole or not at all, with a copy of what was there, which is returned."""
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = target.with_name(f"{target.name}.before-contextd") if target.exists() else None
    if backup is not None:
        shutil.copy2(target, backup)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".settings-")
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
    if backup is not None:
        shutil.copymode(target, temporary)
    Path(temporary).replace(target)
    return backup


def _is_ours(group: object) -> bool:
    match group:
        case {"hooks": [*hooks]} if hooks:
            return all(_runs_us(hook) for hook in hooks)
    return False


def _runs_us(hook: object) -> bool:
    match hook:
        case {"command": str(command)}:
            return "contextd hook p" in command
    return False

"""`contextd hook`: what a coding agent's client asks before and after each of its own tools."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

_MODES: Final = click.Choice(["protect", "steer", "off"])
_REFUSED: Final = 2
"""The exit status that clients take as a refusal, with its reason on standard error."""
_mode = click.option("--mode", type=_MODES, help="Instead of CONTEXTD_HOOK.")


@click.group()
def hook() -> None:
    """Guard the tools that a coding agent brings itself.

    \b
    contextd hook install --project     tell Claude Code, for this project
    contextd hook install --print       show what would be written
    """


@hook.command(name="pre-tool-use")
@_mode
def pre_tool_use(mode: str | None) -> int:
    """Judge a call, given as the client's JSON on standard input. Ends with 2 to refuse it."""
    return _guarded(mode, _judge)


@hook.command(name="post-tool-use")
@_mode
def post_tool_use(mode: str | None) -> int:
    """Remove secrets from a tool's output, given as the client's JSON on standard input."""
    return _guarded(mode, _clean)


def _guarded(given: str | None, work: Callable[[dict[str, Any], str], int]) -> int:
    """A fault of ours must not end the agent's work: it is told, and refuses only where all is steered."""
    mode = given or "protect"
    try:
        mode = given or _setting()
        asked = json.loads(sys.stdin.buffer.read())
        if not isinstance(asked, dict):
            raise TypeError("the client's JSON is no object")  # noqa: TRY301 - told as any other fault is
        return 0 if mode == "off" else work(asked, mode)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client must get an answer
        click.echo(f"contextd hook: {type(error).__name__}; the call was not judged", err=True)
        return _REFUSED if mode == "steer" else 0


def _setting() -> str:
    from contextd.settings import load_settings

    return load_settings().hook


def _judge(asked: dict[str, Any], mode: str) -> int:
    from contextd.services.tool_steering import Wish, refusal

    given = asked.get("tool_input")
    cwd = str(asked.get("cwd") or Path.cwd())
    wish = Wish(
        tool=str(asked.get("tool_name", "")),
        input=given if isinstance(given, dict) else {},
        project=os.environ.get("CLAUDE_PROJECT_DIR") or cwd,
        cwd=cwd,
    )
    reason = refusal(wish, "steer" if mode == "steer" else "protect")
    if reason is None:
        # Nothing is said: `allow` would skip the question that the client may have for its user.
        return 0
    click.echo(reason, err=True)
    return _REFUSED


def _clean(asked: dict[str, Any], mode: str) -> int:
    from contextd.adapters.secret_key import kept_key
    from contextd.scrubbing.scrubber import SecretScrubber
    from contextd.settings import load_settings

    key_file = load_settings().data_dir / "placeholders.key"
    scrubber = SecretScrubber(key=lambda: kept_key(key_file))
    event = str(asked.get("hook_event_name") or "PostToolUse")
    shown = asked.get("error") if event == "PostToolUseFailure" else asked.get("tool_response")
    clean, found = scrubber.scrub_json(shown)
    if found:
        told: dict[str, Any] = {"hookEventName": event, "additionalContext": _warning(dict(found))}
        if event == "PostToolUse":
            told["updatedToolOutput"] = clean
        click.echo(json.dumps({"hookSpecificOutput": told}))
    return 0


def _warning(found: dict[str, int]) -> str:
    rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(found.items()))
    return (
        f"contextd found secrets in the output of this tool: {rules}. Where a value can still be seen, do"
        " not repeat, store or send it. Read such files with contextd's safe_read and run such commands"
        " with its safe_bash: they remove secrets."
    )


@hook.command()
@click.option("--client", type=click.Choice(["claude"]), default="claude", show_default=True)
@click.option("--project", is_flag=True, help="In .claude of this folder, instead of your home's.")
@click.option("--remove", is_flag=True, help="Take the hooks away again.")
@click.option("--print", "shows", is_flag=True, help="Show the settings and write nothing.")
@_mode
def install(client: str, project: bool, remove: bool, shows: bool, mode: str | None) -> None:
    """Tell the client to ask contextd before and after its tools. Doing it twice is doing it once."""
    from contextd.edge.hook_settings import hook_entries, read_settings, with_hooks, write_settings

    file = (Path.cwd() if project else Path.home()) / ".claude" / "settings.json"
    settings = read_settings(file)
    changed = with_hooks(settings, {} if remove else hook_entries(mode))
    if shows:
        click.echo(json.dumps(changed, ensure_ascii=False, indent=2))
        return
    if changed == settings:
        click.echo(f"{file} is as it should be", err=True)
        return
    backup = write_settings(file, changed)
    click.echo(f"wrote {file}" + (f"; what was there is in {backup.name}" if backup else ""), err=True)

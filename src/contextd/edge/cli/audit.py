"""`contextd audit`: what was called, whether the record of it is whole, and a copy for others."""

import csv
import json
import shutil
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from contextd.edge.cli.terminal import clipped, prepare_terminal, visible

Fields = dict[str, Any]

_COLOURS: Final = {"ok": "green", "refused": "yellow", "failed": "red", "cancelled": "yellow"}
_LOOK_AGAIN_S: Final = 0.3
_HEADING: Final = f"{'SEQ':>7}  {'TIME (UTC)':19}  {'OUTCOME':9}  {'MS':>8}  {'TOOL':18}  CALL"
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@click.group()
def audit() -> None:
    """The record of every call: look at it, prove it whole, hand it on.

    \b
    contextd audit tail -n 20
    contextd audit verify
    contextd audit export --since 7d --format csv > calls.csv
    """
    prepare_terminal()


@audit.command()
@click.option("-n", "count", default=10, show_default=True, type=click.IntRange(0), help="How many.")
@click.option("-f", "follow", is_flag=True, help="Go on with what is called from now on.")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--project", help="Only calls about the project at this path.")
def tail(count: int, follow: bool, tool: str | None, project: str | None) -> None:
    """Show the last calls, a line each."""
    from contextd.adapters.audit_reader import AuditReader

    where = str(Path(project).expanduser().absolute()) if project else None

    def wanted(fields: Fields) -> bool:
        return (tool is None or fields.get("tool") == tool) and (
            where is None or fields.get("project") in (where, project)
        )

    reader = AuditReader(_folder())
    click.secho(_HEADING, bold=True)
    rows = reader.last(count, wanted)
    _show(rows)
    if not (rows or follow):
        click.echo("no such call has been written", err=True)
    try:
        while follow:
            time.sleep(_LOOK_AGAIN_S)
            _show(reader.more(wanted))
    except KeyboardInterrupt:
        return


def _show(rows: Iterable[Fields]) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for fields in rows:
        click.echo(_noted(fields) if "mended" in fields else _row(fields, width))


def _row(fields: Fields, width: int) -> str:
    outcome = str(fields.get("outcome"))
    head = f"{fields.get('seq'):>7}  {str(fields.get('time'))[:19].replace('T', ' ')}  "
    shown = click.style(f"{outcome:9}", fg=_COLOURS.get(outcome))
    body = f"  {fields.get('duration_ms', 0):8.1f}  {fields.get('tool', '')!s:18}  {_told(fields)}"
    return f"{head}{shown}{visible(clipped(body, max(40, width - len(head) - 10)))}"


def _told(fields: Fields) -> str:
    """What tells one call from another: how it ended, where it ran, who called, and what it was given."""
    secrets = sum(fields.get("secrets_tool", {}).values()) + sum(fields.get("secrets_server", {}).values())
    said = [
        fields.get("error_id"),
        None if fields.get("exit_code") is None else f"exit {fields['exit_code']}",
        fields.get("isolation"),
        f"{secrets} secrets removed" if secrets else None,
        f"by {fields.get('principal')}/{fields.get('client')}",
        fields.get("project"),
        json.dumps(fields.get("input"), ensure_ascii=False),
    ]
    return "  ".join(str(part) for part in said if part)


def _noted(fields: Fields) -> str:
    mended = ", ".join(f"{name} {value}" for name, value in fields["mended"].items())
    when = str(fields.get("time"))[:19].replace("T", " ")
    said = click.style(visible(f"the log mended itself: {mended}"), dim=True)
    return f"{fields.get('seq'):>7}  {when}  {said}"


@audit.command()
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
def verify(path: Path | None) -> int:
    """Prove that no line was changed, moved, added or cut off.

    PATH is one file, or a folder of them with the key beside it; by default the log of this data folder.
    Ends with 1 and the first line that is not as it was written.
    """
    from contextd.adapters.audit_proof import prove_file, prove_log

    if path is not None and path.is_file():
        verdict = prove_file(path)
    else:
        verdict = prove_log(_folder() if path is None else _within(path))
    for note in verdict.notes:
        click.echo(f"note: {visible(note)}", err=True)
    if breach := verdict.breach:
        where = f"{breach.path}:{breach.line}" if breach.line else str(breach.path)
        click.secho(f"{visible(where)}: {breach.what}", fg="red")
        return 1
    files = "1 file" if verdict.files == 1 else f"{verdict.files} files"
    click.echo(f"whole: {verdict.lines} lines in {files}")
    return 0


def _within(path: Path) -> Path:
    """A data folder, or its audit folder."""
    return path / "audit" if (path / "audit").is_dir() else path


@audit.command()
@click.option("--since", metavar="TIME", help="Such as 2026-01-31, 2026-01-31T12:00, or 7d, 12h, 30m ago.")
@click.option("--until", metavar="TIME", help="Up to this time, and not the time itself.")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
def export(since: str | None, until: str | None, form: str) -> None:
    """Print the calls of a time, oldest first."""
    from contextd.adapters.audit_reader import AuditReader

    after, before = _moment(since, "--since"), _moment(until, "--until")

    def wanted(fields: Fields) -> bool:
        at = str(fields.get("time", ""))
        return (after is None or at >= after) and (before is None or at < before)

    rows = AuditReader(_folder()).every(wanted)
    if form == "csv":
        _write_csv(fields for _, fields in rows)
        return
    for raw, _ in rows:
        click.echo(raw, nl=False)


def _write_csv(rows: Iterable[Fields]) -> None:
    """What is nested stays JSON. A cell that a spreadsheet would run is quoted."""
    writer: csv.DictWriter[str] | None = None
    for fields in rows:
        if "mended" in fields:
            continue
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(fields), extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in fields.items()})


def _cell(value: object) -> object:
    text = json.dumps(value) if isinstance(value, dict | list) else value
    is_run = isinstance(text, str) and text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{text}" if is_run else text


def _moment(text: str | None, option: str) -> str | None:
    """As the log writes times, so that they compare as texts."""
    if text is None:
        return None
    try:
        if text[-1:] in _UNITS and text[:-1].isdecimal():
            at = datetime.now(UTC) - timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
        else:
            at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise click.BadParameter("give a date, a time, or 7d, 12h, 30m", param_hint=option) from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{at.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def _folder() -> Path:
    from contextd.settings import load_settings

    return load_settings().data_dir / "audit"

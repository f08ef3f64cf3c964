"""`contextd doctor`, and `contextd docs` for the generated pages."""

from pathlib import Path

import click

_SIGNS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}


@click.command()
def doctor() -> int:
    """Check what contextd needs, and say how to mend what is wrong."""
    from contextd.edge.cli.start import run
    from contextd.edge.doctor import examine
    from contextd.settings import load_settings

    findings = run(examine(load_settings()))
    for finding in findings:
        sign, colour = _SIGNS[finding.state]
        click.echo(f"{click.style(sign, fg=colour)}  {finding.what:10s} {finding.says}")
        if finding.remedy:
            click.echo(f"      {'':10s} -> {finding.remedy}")
    return 1 if any(finding.state == "fail" for finding in findings) else 0


@click.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def docs(folder: Path) -> None:
    """Write the pages that are generated from the code."""
    from contextd.edge.reference import pages

    for name, text in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(folder / name)

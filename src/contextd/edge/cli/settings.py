"""`contextd config`, `contextd version` and `contextd completion`."""

import click

from contextd import __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def config(as_json: bool) -> None:
    """Show each setting, its value and where it came from."""
    import json
    import os
    from dataclasses import asdict

    from contextd.settings import config_file, load_settings

    settings = load_settings()
    if as_json:
        click.echo(json.dumps([asdict(source) for source in settings.sources], indent=2))
        return
    click.echo(f"settings file: {config_file(os.environ)}\n")
    width = max(len(source.env) for source in settings.sources)
    for source in settings.sources:
        origin = "" if source.origin == "default" else f"  <- {source.origin}"
        value = click.style(source.shown or "-", bold=source.origin != "default")
        click.echo(f"{source.env:{width}}  {value}{click.style(origin, fg='cyan')}")
        click.echo(click.style(f"{'':{width}}  {source.meaning}", dim=True))
    for warning in settings.warnings:
        click.secho(warning, fg="yellow", err=True)


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  contextd completion bash >> ~/.bashrc
    zsh:   contextd completion zsh >> ~/.zshrc
    fish:  contextd completion fish > ~/.config/fish/completions/contextd.fish
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "contextd", "_CONTEXTD_COMPLETE").source())

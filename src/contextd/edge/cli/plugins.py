"""`contextd plugin`: tools that are processes of their own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.adapters.tool_processes.installed import InstalledPlugins
    from contextd.domain.tool_processes import Installed
    from contextd.wiring import House


@click.group()
def plugin() -> None:
    """Install, list and remove plugins whose tools run as processes of their own, in the sandbox."""


@plugin.command()
@click.argument("source")
@click.option(
    "--sha256", metavar="HEX", help="Of an archive: required, and compared before it is unpacked."
)
@click.option("--yes", is_flag=True, help="Enable it without asking.")
def install(source: str, sha256: str | None, yes: bool) -> int:
    """Fetch a plugin, show what it offers and asks for, and enable it if you say so.

    \b
    contextd plugin install ./wordcount
    contextd plugin install git+https://example.org/wordcount.git@<commit>
    contextd plugin install https://example.org/wordcount-1.0.0.tar.gz --sha256 <hex>
    """
    from contextd.edge.cli.start import run, start

    return run(_install(start({"log_level": "warning"}), source, sha256, yes))


async def _install(house: "House", said: str, sha256: str | None, yes: bool) -> int:
    from contextd.adapters.tool_processes.installing import fetched
    from contextd.adapters.tool_processes.sources import Source
    from contextd.plugins import fitting_tools, load_extensions

    plugins = _plugins()
    try:
        async with fetched(plugins, house.sandbox, Source(said, sha256)) as found:
            fitting_tools(found, load_extensions(house.settings.plugins))
            for line in _shown(found):
                click.echo(line, err=True)
            if not (yes or click.confirm("Enable it?", err=True)):
                click.echo("nothing was installed", err=True)
                return 1
            plugins.take_in(found)
    finally:
        await house.sandbox.close()
    named = f"{found.manifest.name} {found.manifest.version}"
    click.echo(f"installed {named}; restart a running daemon to use it", err=True)
    return 0


@plugin.command(name="list")
def list_plugins() -> None:
    """List the installed plugins and their tools."""
    known = list(_plugins())
    if not known:
        click.echo("there are none: 'contextd plugin install SOURCE' adds one", err=True)
    for each in known:
        tools = ", ".join(f"{each.manifest.name}_{tool.name}" for tool in each.tools)
        click.echo(f"{each.manifest.name:24s} {each.manifest.version:12s} {tools}")


@plugin.command()
@click.argument("name")
def info(name: str) -> None:
    """Show what a plugin offers, what it was granted and where it came from."""
    for line in _shown(_plugins()[name]):
        click.echo(line)


@plugin.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a plugin and its files."""
    _plugins().remove(name)
    click.echo(f"removed {name}; a running daemon forgets it at its next start", err=True)


def _shown(installed: "Installed") -> Iterator[str]:
    """Names and words are the plugin's own: what would steer a terminal is written out."""
    from contextd.edge.cli.terminal import visible

    manifest = installed.manifest
    head = click.style(f"{manifest.name} {manifest.version}", bold=True)
    yield f"{head}  {visible(manifest.description)}"
    for what, values in (
        ("from", (installed.source,)),
        ("starts", (" ".join(manifest.command),)),
        ("may read", ("its own folder", *manifest.readable)),
        ("may reach", manifest.hosts or ("no host",)),
        ("is given", manifest.environment or ("no variable",)),
    ):
        yield f"  {what:10s} {visible(', '.join(values))}"
    for tool in installed.tools:
        hint = "  (only reads)" if tool.read_only else ""
        yield f"  {manifest.name}_{tool.name}  {visible(tool.description)}{hint}"


def _plugins() -> "InstalledPlugins":
    from contextd.adapters.tool_processes.installed import InstalledPlugins
    from contextd.settings import load_settings

    return InstalledPlugins(load_settings().data_dir)

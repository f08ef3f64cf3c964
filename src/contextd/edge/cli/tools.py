"""`contextd tools`: the registry as a list, and as folders for agents that run programs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from contextd.settings import Settings
    from contextd.tools.declaration import AnyTool
    from contextd.tools.registry import Registry


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="As tools/list gives them.")
@click.option("--tokens", is_flag=True, help="What listing them costs a context window.")
@click.option("--toolsets", help="As if served with these: lean, or groups separated by commas.")
@click.pass_context
def tools(context: click.Context, as_json: bool, tokens: bool, toolsets: str | None) -> None:
    """List the tools, by group; those that CONTEXTD_TOOLSETS leaves out, too, for they answer.

    With a command: write them as folders for an agent, or remove those.
    """
    if context.invoked_subcommand is None:
        _list(as_json, tokens, toolsets)


def _list(as_json: bool, tokens: bool, toolsets: str | None) -> None:
    from contextd.plugins import load_extensions
    from contextd.settings import load_settings
    from contextd.tools.registry import Registry

    settings = load_settings(overrides={"toolsets": toolsets})
    registry = Registry(
        tuple(load_extensions(settings.plugins, settings.data_dir).tools), settings.toolsets
    )
    if as_json:
        click.echo(registry.listing())
        return
    lines = _costs(registry, settings.toolsets) if tokens else _groups(registry)
    for line in lines:
        click.echo(line)


def _groups(registry: "Registry") -> Iterator[str]:
    for toolset in dict.fromkeys(tool.toolset for tool in registry):
        yield click.style(toolset, bold=True)
        for tool in registry:
            if tool.toolset == toolset:
                yield f"  {tool.name:22s} {tool.description}"


def _costs(registry: "Registry", toolsets: tuple[str, ...]) -> Iterator[str]:
    """What each choice costs, then what the chosen one is made of, the dearest first."""
    from contextd.adapters.tokens import O200kCounter
    from contextd.edge.reference import listing_costs

    yield click.style("  tokens  tools  toolsets", bold=True)
    for each in listing_costs(tuple(registry)):
        yield f"{each.tokens:8,d} {each.tools:6d}  {each.toolset}"
    counter = O200kCounter()
    costs = {each["name"]: counter.count(_compact(each)) for each in registry.listings}
    yield ""
    yield click.style(f"  tokens  listed with {','.join(toolsets)}", bold=True)
    for name, cost in sorted(costs.items(), key=lambda each: -each[1]):
        yield f"{cost:8,d}  {name}"
    yield f"{counter.count(registry.listing()):8,d}  in all"


def _compact(listing: dict[str, Any]) -> str:
    return json.dumps(listing, separators=(",", ":"), ensure_ascii=False)


_DIR = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".claude/tools"),
    show_default=True,
    help="Where the agent looks for tools.",
)


@tools.command()
@click.argument("names", nargs=-1)
@_DIR
@click.option("--toolsets", help="Those of these groups, by commas (default all).")
@click.option("--force", is_flag=True, help="Replace files that contextd did not write.")
def install(names: tuple[str, ...], folder: Path, toolsets: str | None, force: bool) -> None:
    """Write each tool as a folder: schema.json, TOOL.md, and a program of the tool's name.

    \b
    contextd tools install safe_bash safe_read safe_write
    .claude/tools/safe_bash/safe_bash --command 'make test'
    """
    from contextd.edge.tool_folders import ToolFolders
    from contextd.settings import load_settings

    settings = load_settings(overrides={"toolsets": toolsets})
    chosen = _chosen(settings, names)
    changed = ToolFolders(folder).install(chosen, _launcher(settings), force=force)
    click.echo(f"{len(chosen)} tools in {folder}, {len(changed)} files new or changed", err=True)


@tools.command()
@click.argument("names", nargs=-1)
@_DIR
def uninstall(names: tuple[str, ...], folder: Path) -> int:
    """Remove what install wrote, and nothing else."""
    from contextd.edge.tool_folders import ToolFolders

    removed, left = ToolFolders(folder).uninstall(names)
    click.echo(f"{len(removed)} files removed from {folder}", err=True)
    for path in left:
        click.echo(f"left as it is, because it was changed: {path}", err=True)
    return 1 if left else 0


def _chosen(settings: "Settings", names: tuple[str, ...]) -> "list[AnyTool]":
    """By name, or all of the toolsets; what is only there to find others is of no use as a program."""
    from contextd.plugins import load_extensions
    from contextd.tools.registry import Registry

    registry = Registry(
        tuple(load_extensions(settings.plugins, settings.data_dir).tools), settings.toolsets
    )
    if names:
        return [registry[name] for name in names]
    return [tool for tool in registry.listed if not tool.lean_only]


def _launcher(settings: "Settings") -> Path:
    import sys

    from contextd.edge.tool_folders import write_launcher

    sockets = [place for place in settings.grpc if place.startswith("unix:")]
    place = settings.data_dir / "bin" / "contextd-proxy"
    return write_launcher(place, sys.executable, settings.data_dir, next(iter(sockets), None))

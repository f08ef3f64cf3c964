"""`contextd call` and `contextd tools`: the same registry, by hand."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from contextd.tools.registry import Registry


def _tool_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from contextd.plugins import load_extensions

    return [tool.name for tool in load_extensions().tools if tool.name.startswith(incomplete)]


@click.command()
@click.argument("name", shell_complete=_tool_names)
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("--json", "document", help="All fields as one JSON object; - reads it from standard input.")
def call(name: str, fields: tuple[str, ...], document: str | None) -> int:
    """Call a tool and print its answer as JSON.

    Values are read as JSON where they are JSON, and as text otherwise; put a JSON string in quotes
    to keep a number as text.

    \b
    contextd call checkpoint_save summary="Login works" project_path=$PWD tags='["auth"]'
    contextd call checkpoint_search query="how did we do login"
    echo '{"limit": 3}' | contextd call checkpoint_list --json -
    """
    from contextd.domain.errors import Fault
    from contextd.edge.cli.start import run, start
    from contextd.edge.error_map import body, codes

    arguments = {**_document(document), **dict(_field(field) for field in fields)}
    try:
        answer = run(_answer(start({"log_level": "error"}), name, arguments))
    except Fault as fault:
        click.secho(fault.message, fg="red", err=True)
        click.echo(json.dumps(body(fault), ensure_ascii=False))
        return codes(fault).exit
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))
    return 0


async def _answer(house: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from contextd.domain.callers import Caller
    from contextd.edge.call_pipeline import pipeline_of
    from contextd.wiring import open_house

    async with open_house(house, follows=False):
        answer = await pipeline_of(house).call(name, arguments, Caller(transport="cli"))
    return {**answer.data, **answer.envelope()}


def _document(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON ({error})", param_hint="--json") from error
    if not isinstance(value, dict):
        raise click.BadParameter("give a JSON object of named fields", param_hint="--json")
    return value


def _field(field: str) -> tuple[str, Any]:
    name, equals, text = field.partition("=")
    if not equals:
        raise click.BadParameter(f"write {name}=VALUE", param_hint="FIELD=VALUE")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As tools/list gives them.")
@click.option("--tokens", is_flag=True, help="What listing them costs a context window.")
@click.option("--toolsets", help="As if served with these: lean, or groups separated by commas.")
def tools(as_json: bool, tokens: bool, toolsets: str | None) -> None:
    """List the tools, by group; those that CONTEXTD_TOOLSETS leaves out, too, for they answer."""
    from contextd.plugins import load_extensions
    from contextd.settings import load_settings
    from contextd.tools.registry import Registry

    settings = load_settings(overrides={"toolsets": toolsets})
    registry = Registry(tuple(load_extensions(settings.plugins).tools), settings.toolsets)
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

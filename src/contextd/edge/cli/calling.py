"""`contextd call` and `contextd tools`: the same registry, by hand."""

import json
import sys
from typing import Any

import click


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
def tools(as_json: bool, tokens: bool) -> None:
    """List the tools, by group; those that CONTEXTD_TOOLSETS leaves out, too, for they answer."""
    from contextd.plugins import load_extensions
    from contextd.settings import load_settings
    from contextd.tools.declaration import Registry

    settings = load_settings()
    registry = Registry(tuple(load_extensions(settings.plugins).tools), settings.toolsets)
    if as_json or tokens:
        from contextd.adapters.tokens import O200kCounter

        listed = {tool.name: json.dumps(tool.listing, separators=(",", ":")) for tool in registry.listed}
        if as_json:
            click.echo(f"[{','.join(listed.values())}]")
            return
        counter = O200kCounter()
        for name, text in listed.items():
            click.echo(f"{counter.count(text):6d}  {name}")
        click.echo(f"{counter.count(','.join(listed.values())):6d}  in all")
        return
    for toolset in dict.fromkeys(tool.toolset for tool in registry):
        click.secho(toolset, bold=True)
        for tool in registry:
            if tool.toolset == toolset:
                click.echo(f"  {tool.name:22s} {tool.description}")

"""`contextd call`: the same registry, by hand."""

import json
import sys
from typing import Any

import click


def _tool_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from contextd.plugins import load_extensions
    from contextd.settings import load_settings

    tools = load_extensions(data_dir=load_settings().data_dir).tools
    return [tool.name for tool in tools if tool.name.startswith(incomplete)]


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
    from contextd.domain.answers import as_json
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
    if sys.stdout.isatty():
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        # As it was weighed: an agent that reads this gets as many tokens as it says.
        click.echo(as_json(answer))
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

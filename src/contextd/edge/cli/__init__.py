"""The command line. Commands import what they need when they run, so that `--help` is quick."""

import click

from contextd import __version__
from contextd.domain.errors import Fault
from contextd.edge.cli.audit import audit
from contextd.edge.cli.calling import call
from contextd.edge.cli.certificates import cert
from contextd.edge.cli.code import index, search, watch
from contextd.edge.cli.hook import hook
from contextd.edge.cli.plugins import plugin
from contextd.edge.cli.sandbox import sandbox
from contextd.edge.cli.scrub import scrub
from contextd.edge.cli.serving import mcp, serve
from contextd.edge.cli.settings import completion, config, version
from contextd.edge.cli.skills import skill
from contextd.edge.cli.stopping import stop
from contextd.edge.cli.tokens import token
from contextd.edge.cli.tools import tools
from contextd.edge.cli.upkeep import docs, doctor


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="contextd")
def contextd() -> None:
    """Memory, search and safe tools for coding agents, on your own machine.

    \b
    Start it:            contextd serve
    Give it to an agent: claude mcp add --transport http contextd http://127.0.0.1:8080/mcp
    Try a tool:          contextd call status
    """


for command in (
    serve,
    stop,
    mcp,
    call,
    tools,
    index,
    search,
    watch,
    config,
    doctor,
    sandbox,
    plugin,
    skill,
    token,
    audit,
    cert,
    hook,
    scrub,
    completion,
    version,
    docs,
):
    contextd.add_command(command)


def run(arguments: list[str]) -> int:
    """The exit status: 0 done, 1 failed, 2 wrong usage or input."""
    from contextd.edge.error_map import codes

    if arguments[:1] == ["--mcp"]:
        arguments = ["mcp", *arguments[1:]]
    try:
        outcome = contextd.main(arguments, prog_name="contextd", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Abort:
        return 130
    except Fault as fault:
        click.secho(f"contextd: {fault.problem}", fg="red", err=True)
        click.echo(f"  {fault.remedy}", err=True)
        return codes(fault).exit
    return outcome if isinstance(outcome, int) else 0

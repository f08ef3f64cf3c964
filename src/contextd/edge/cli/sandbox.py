"""`contextd sandbox`: a command as safe_bash would run it, and the policy that it would run under."""

import shlex
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.domain.sandboxing import Finished, Job, Policy, Stream
    from contextd.wiring import House

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True)


@click.group()
def sandbox() -> None:
    """Run a command apart from all else, or see what it might touch."""


@sandbox.command(name="run", context_settings={"ignore_unknown_options": True})
@click.option("--project", type=_FOLDER, default=".", help="The project's folder (default: this one).")
@click.option(
    "--timeout", "timeout_s", type=float, help="Seconds (default: the most that the policy gives)."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(project: Path, timeout_s: float | None, command: tuple[str, ...]) -> int:
    """Run COMMAND in the project's sandbox; the exit code is the command's.

    One word is a line for bash, several are a program and its arguments. Standard input is passed on
    unless it is a terminal.

    \b
    contextd sandbox run -- make test
    contextd sandbox run -- 'cat /etc/shadow; env'
    """
    import asyncio

    from contextd.domain.sandboxing import SIGNALLED, Job
    from contextd.edge.cli.start import run, start

    house = start({"log_level": "error"})
    policy = house.policies.policy(str(project))
    line = command[0] if len(command) == 1 else shlex.join(command)
    given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    most = policy.limits.timeout_s
    if timeout_s is not None and not 0 < timeout_s <= most:
        raise click.BadParameter(f"give more than 0 and at most {most:g} seconds", param_hint="--timeout")
    job = Job(line, str(project), str(project), timeout_s or most, stdin=given)
    try:
        finished = run(_finished(house, job, policy))
    except asyncio.CancelledError:
        return SIGNALLED + signal.SIGTERM
    if finished.timed_out:
        click.echo(f"contextd: ended after {job.timeout_s:g} s", err=True)
    if finished.dropped_bytes:
        click.echo(f"contextd: {finished.dropped_bytes} bytes of output were dropped", err=True)
    if finished.refused_hosts:
        click.echo(f"contextd: not allowed to reach {', '.join(finished.refused_hosts)}", err=True)
    return finished.exit_code


async def _finished(house: "House", job: "Job", policy: "Policy") -> "Finished":
    """Only the sandbox of the house: nothing is stored, so nothing else is opened.

    Being told to end is no reason to leave what the command made where programs outside obey it.
    """
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await house.sandbox.run(job, policy, _print)
    finally:
        await house.sandbox.close()


def _print(stream: "Stream", piece: bytes) -> None:
    out = sys.stdout.buffer if stream == "stdout" else sys.stderr.buffer
    out.write(piece)
    out.flush()


@sandbox.command()
@click.argument("folder", type=_FOLDER, default=".")
def policy(folder: Path) -> None:
    """Show the policy of the project in FOLDER, and where it came from."""
    from contextd.edge.cli.start import start

    house = start({"log_level": "error"})
    in_force = house.policies.policy(str(folder))
    click.echo(f"# {house.policies.origin(str(folder))}")
    values = asdict(in_force)
    limits = values.pop("limits")
    for name, value in values.items():
        click.echo(f"{name} = {list(value)}".replace("'", '"'))
    click.echo("\n[limits]")
    for name, value in limits.items():
        click.echo(f"{name} = {value}")

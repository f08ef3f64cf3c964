"""`contextd index`, `contextd search` and `contextd watch`: the code index, by hand."""

import os
import sys
import time
from typing import Any, Final

import click

_INTERRUPTED: Final = 130
_AS_IT_WAS: Final = "stopped: the index stands as it was"


def _kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from typing import get_args

    from contextd.domain.code import DddPattern, SymbolKind

    choices = get_args(SymbolKind if param.name == "types" else DddPattern)
    return [each for each in choices if each.startswith(incomplete)]


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--force", is_flag=True, help="Read every file anew.")
@click.option("--no-tests", is_flag=True, help="Leave test files out.")
@click.option("--vendor", is_flag=True, help="Take vendor folders in.")
@click.option("--include", multiple=True, metavar="GLOB", help="Files like this; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No files like this; may be repeated.")
@click.option("--max-file-size", type=int, metavar="BYTES", help="No files that are larger.")
@click.option("--json", "as_json", is_flag=True, help="The tool's answer, for programs.")
def index(
    path: str,
    force: bool,
    no_tests: bool,
    vendor: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    max_file_size: int | None,
    as_json: bool,
) -> int:
    """Index a project, or bring its index up to date.

    PATH is the current folder, if it is not given. With --include, --exclude or --max-file-size, files
    of any kind are indexed, beside the code.

    \b
    contextd index
    contextd index ~/src/shop --no-tests
    contextd index --include '*.md' --include 'docs/**'
    """
    from contextd.domain.errors import Fault
    from contextd.edge.cli.code_calls import indexed
    from contextd.edge.cli.code_output import complain, files_lines, indexed_lines
    from contextd.edge.cli.start import run, start
    from contextd.edge.cli.terminal import prepare_terminal

    prepare_terminal()
    of_code = {"force_reindex": force, "include_tests": not no_tests, "include_vendor": vendor}
    of_files = _given(
        include_patterns=list(include), exclude_patterns=list(exclude), max_file_size=max_file_size
    )
    if of_files and (force or no_tests or vendor):
        raise click.UsageError(
            "--force, --no-tests and --vendor are about code: "
            "leave out --include, --exclude and --max-file-size"
        )
    arguments = {"path": _absolute(path), **(of_files or of_code)}
    started = time.perf_counter()
    try:
        house = start({"log_level": "error"})
        answer = run(indexed(house, "index_repository" if of_files else "index_codebase", arguments))
    except KeyboardInterrupt:
        return _stopped(_AS_IT_WAS, _INTERRUPTED)
    except Fault as fault:
        return complain(fault, as_json)
    took = time.perf_counter() - started
    if as_json:
        _print_json(answer)
    else:
        click.echo("\n".join(files_lines(answer, took) if of_files else indexed_lines(answer)))
    return 0


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--path", default=".", type=click.Path(), help="The project, or a folder in it (default .).")
@click.option("-n", "--limit", type=int, default=10, show_default=True, help="At most so many hits.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "keyword"]),
    default="hybrid",
    show_default=True,
    help="By meaning and words, by meaning alone, by words alone.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="KIND",
    shell_complete=_kinds,
    help="Only function, method, struct, interface, type, class ...; may be repeated.",
)
@click.option("--file", "glob", metavar="GLOB", help="Only files like this, seen from the project's root.")
@click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="Only this package, by name, folder or import path; may be repeated.",
)
@click.option(
    "--ddd",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    shell_complete=_kinds,
    help="Only aggregate, entity, value_object, repository, service ...; may be repeated.",
)
@click.option("--min-relevance", type=float, metavar="SCORE", help="No hits below this, from 0 to 1.")
@click.option("--full", is_flag=True, help="All lines of each hit.")
@click.option("--json", "as_json", is_flag=True, help="The tool's answer, for programs.")
def search(
    query: tuple[str, ...],
    path: str,
    limit: int,
    mode: str,
    types: tuple[str, ...],
    glob: str | None,
    packages: tuple[str, ...],
    patterns: tuple[str, ...],
    min_relevance: float | None,
    full: bool,
    as_json: bool,
) -> int:
    """Search an indexed project, by meaning and by words.

    The status is 0 if something was found, 1 if nothing was, 2 if it could not be searched.

    \b
    contextd search where are panics recovered
    contextd search ParseFile --type function --type method
    contextd search '"connection refused"' --file 'internal/**' --full
    """
    from contextd.domain.errors import Fault
    from contextd.edge.cli.code_calls import searched
    from contextd.edge.cli.code_output import Hits, complain, summary
    from contextd.edge.cli.start import run, start
    from contextd.edge.cli.terminal import prepare_terminal

    prepare_terminal()
    words = " ".join(query)
    filters = _given(
        symbol_types=list(types),
        file_pattern=glob,
        packages=list(packages),
        ddd_patterns=list(patterns),
        min_relevance=min_relevance,
    )
    place = {"path": _absolute(path), "query": words, "limit": limit, "search_mode": mode}
    try:
        answer, below = run(searched(start({"log_level": "error"}), {**place, "filters": filters}))
    except Fault as fault:
        complain(fault, as_json)
        return 2
    if as_json:
        _print_json(answer)
    elif answer["results"]:
        click.echo("\n".join(Hits(words, path, below, full=full).lines(answer)))
    else:
        click.echo(f"nothing found: {summary(answer['statistics'])}", err=True)
    return 0 if answer["results"] else 1


@click.command()
@click.argument("path", default=".", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One object a line, for programs.")
def watch(path: str, as_json: bool) -> int:
    """Index a project and follow its files, until Ctrl-C.

    PATH is the current folder, if it is not given; in an indexed project, it means the project. What is
    indexed already is followed as it was chosen.

    \b
    contextd watch
    contextd watch ~/src/shop
    """
    from contextd.domain.errors import Fault
    from contextd.edge.cli.code_output import complain
    from contextd.edge.cli.code_watch import Watch
    from contextd.edge.cli.start import run, start
    from contextd.edge.cli.terminal import prepare_terminal

    prepare_terminal()
    watched = Watch(start({"log_level": "error"}), as_json)
    try:
        run(watched.run(_absolute(path)))
    except KeyboardInterrupt:
        # Once it follows, this is how it is meant to end.
        return _stopped("stopped", 0) if watched.listens else _stopped(_AS_IT_WAS, _INTERRUPTED)
    except Fault as fault:
        return complain(fault, as_json)
    return 0


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - a link stays in the name; the tool follows it


def _given(**options: object) -> dict[str, Any]:
    """Those that were given: the tool has the defaults."""
    return {name: value for name, value in options.items() if value is not None and value != []}


def _print_json(answer: object) -> None:
    from contextd.edge.cli.terminal import json_text

    click.echo(json_text(answer, indent=2 if sys.stdout.isatty() else None))


def _stopped(what: str, status: int) -> int:
    # The terminal has written ^C at the beginning of the line.
    click.echo(f"\n{what}" if sys.stderr.isatty() else what, err=True)
    return status

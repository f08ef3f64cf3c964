"""`contextd serve` and `contextd mcp`."""

from collections.abc import Sequence

import click


@click.command()
@click.option("--host", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", type=int, help="Port to listen on (default 8080; 0 takes a free one).")
@click.option(
    "--background",
    is_flag=True,
    help="As contextd-proxy starts it: on any free port, and not at all if gRPC is served already.",
)
@click.option("--toolsets", help="Groups of tools to list, by commas (default all; lean: a few, briefly).")
def serve(host: str | None, port: int | None, background: bool, toolsets: str | None) -> None:
    """Run the daemon: MCP at /mcp, the automation API at /api, metrics at /metrics."""
    from contextd.edge.cli.start import run, start
    from contextd.edge.daemon import serve_http

    house = start({"http_host": host, "http_port": port, "toolsets": toolsets})

    def announce(address: str, grpc: Sequence[str]) -> None:
        click.echo(f"contextd is listening on {click.style(address, bold=True)}", err=True)
        click.echo(f"  MCP   {address}/mcp", err=True)
        click.echo(f"  API   {address}/api", err=True)
        for place in grpc:
            click.echo(f"  gRPC  {place}", err=True)
        click.echo(f"  data  {house.settings.data_dir}", err=True)

    run(serve_http(house, announce, background=background))


@click.command()
@click.option("--toolsets", help="Groups of tools to list, by commas (default all; lean: a few, briefly).")
def mcp(toolsets: str | None) -> None:
    """Serve one agent over standard input and output.

    It shares the data of a running daemon and of other such servers; none needs the others.
    """
    from contextd.edge.cli.start import run, start
    from contextd.edge.daemon import serve_stdio

    run(serve_stdio(start({"toolsets": toolsets})))

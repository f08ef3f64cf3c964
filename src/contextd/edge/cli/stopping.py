"""`contextd stop`: for a daemon that nobody has in a terminal."""

import time
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from contextd.proxy.place import Place

_PATIENCE_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.05


@click.command()
def stop() -> int:
    """Stop the daemon that serves gRPC from this data folder; calls in flight finish."""
    from contextd.proxy.http2 import Broken, Connection
    from contextd.proxy.place import Place
    from contextd.settings import load_settings

    settings = load_settings()
    named = [place for place in settings.grpc if place.startswith("unix:")]
    address = next(iter(named), f"unix:{settings.data_dir}/run/contextd.sock")
    place = Place(address, str(settings.data_dir))
    try:
        with place.connect() as sock:
            Connection(sock).call("/contextd.v1.ManagementService/Shutdown", b"", {})
    except Broken:
        pass  # it went before it had answered
    except (ConnectionError, FileNotFoundError):
        click.echo("no daemon runs here", err=True)
        return 1
    if not _is_gone(place):
        raise click.ClickException(f"it still listens after {_PATIENCE_S:g} s: end its process")
    click.echo("stopped", err=True)
    return 0


def _is_gone(place: "Place") -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            place.connect().close()
        except (ConnectionError, FileNotFoundError):
            return True
        time.sleep(_LOOK_AGAIN_S)
    return False

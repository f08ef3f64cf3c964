"""How contextd and a tool process find each other: variables that it is given, one line that it prints."""

from typing import Final

COOKIE: Final = "CONTEXTD_PLUGIN_COOKIE"
"""New at every start. Who has it was started by contextd, or is contextd."""
SOCKET: Final = "CONTEXTD_PLUGIN_SOCKET"
"""Where to listen."""
SCRATCH: Final = "CONTEXTD_PLUGIN_SCRATCH"
"""The one folder that it may write, empty at the start and gone at the end."""
COOKIE_HEADER: Final = "contextd-cookie"
"""What contextd shows with every request."""

VERSION: Final = 1
"""Of this handshake."""
WIRE: Final = 1
"""Of contextd.plugin.v1."""


def greeting(socket: str) -> str:
    """The line, without its end: `CONTEXTD-PLUGIN 1 unix /tmp/…/socket 1`."""
    return f"CONTEXTD-PLUGIN {VERSION} unix {socket} {WIRE}"

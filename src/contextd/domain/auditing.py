"""What the audit says of a call. Never what the call answered."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

NOTHING_FOUND: Final[Mapping[str, int]] = MappingProxyType({})


class AuditEntry(NamedTuple):
    """One call, as it ended. The log adds `seq`, the keyed hashes and the chain.

    A tuple, because every call makes one: a frozen dataclass of as many fields takes three times as long.
    """

    at: datetime
    request_id: str
    trace_id: str | None
    principal: str
    client: str | None
    session: str | None
    branch: str | None
    project: str | None
    tool: str
    input: object
    """As it came. The log writes it scrubbed and bounded, and hashes the whole under its key."""
    output: str
    """The answer as it left: hashed under the log's key, and never written."""
    tokens: int
    secrets_tool: Mapping[str, int] = NOTHING_FOUND
    """By rule, found by the tool itself in what it read or ran."""
    secrets_server: Mapping[str, int] = NOTHING_FOUND
    """By rule, found by the server in the answer."""
    isolation: str | None = None
    exit_code: int | None = None
    duration_ms: float = 0.0
    outcome: str = "ok"
    """`ok`, `refused`, `failed` or `cancelled`."""
    error_id: str | None = None


class AuditLog(Protocol):
    """Append-only; any edit, cut or reorder can be found. Raises AuditUnavailable, to those who wait."""

    async def append(self, entry: AuditEntry, *, durable: bool) -> None:
        """`durable` returns when the line is on disk; otherwise it follows within moments."""

    async def ready(self) -> None:
        """Returns when a line could be written now: asked before what must not go unrecorded."""

    async def close(self) -> None: ...

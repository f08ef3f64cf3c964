"""What the house needs from outside, as small protocols. Adapters fill them; tests may too."""

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from contextd.domain.records import (
    Drawer,
    Embedding,
    Entry,
    Filter,
    Hit,
    Json,
    Order,
    Page,
    Project,
    Purpose,
    Query,
    Record,
    Vector,
)


class Store(Protocol):
    """Keeps records. A write has returned when it is durable; a reader then sees it, in any process.

    Raises StoreUnavailable when the engine cannot be reached, and nothing half-written is left.
    """

    async def put(self, entries: Sequence[Entry]) -> None:
        """Insert, or replace by id. All or nothing within one project."""

    async def swap(self, entry: Entry, old: Record | None, beside: Sequence[Entry] = ()) -> bool:
        """Put the entry if the record of its id is still `old`, or if there is none when None.

        A record is `old` by its `updated_at`. Returns whether the entry was put: of several who try at
        once, in any process, one has put it. Entries `beside` it, of the same project, are there when it
        is; when it was not put, they may be there or not.
        """

    async def get(self, project: Project, id: str) -> Record | None: ...

    async def delete(self, project: Project, ids: Sequence[str]) -> int:
        """Returns how many were there."""

    async def page(self, filter: Filter, order: Order, offset: int, limit: int) -> Page:
        """Newest first by `order`, then by id."""

    async def search(self, query: Query, coming: Awaitable[Embedding | None] | None = None) -> list[Hit]:
        """Best first. Vectors of another model than the query's are not compared.

        `coming` is the query's vector while it is being made: what needs none can be done meanwhile.
        """

    async def unembedded(self, model: str, limit: int) -> list[Record]:
        """Records with words and no vector of this model, oldest first."""

    async def attach(self, entries: Sequence[Entry]) -> None:
        """Give records their vectors. One that went away, or whose `updated_at` moved on, gets none."""

    async def create(self, project: Project) -> bool:
        """Make the project's drawer; False if it was there."""

    async def drop(self, project: Project) -> Drawer | None:
        """Empty and forget the drawer; None if there was none."""

    async def drawers(self) -> list[Drawer]: ...

    async def check(self) -> None:
        """Prove that the engine answers."""

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Raises EmbedderUnavailable; a caller goes on by keyword."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]: ...

    def count_tokens(self, text: str) -> int:
        """How many pieces of this text the model sees."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Scrubbed:
    text: str
    findings: Mapping[str, int]
    """Rule name to count; empty when nothing was found."""
    replaced: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Placeholder to the secret that it stands for, unless two share it. Never to be stored or shown."""


class Scrubber(Protocol):
    def scrub(self, text: str, *, keep_lines: bool = False) -> Scrubbed:
        """`keep_lines` leaves every line where it was: a secret of several leaves as many behind."""

    def scrub_json(self, value: Json) -> tuple[Json, Mapping[str, int]]:
        """The same value with every string (keys too) scrubbed; the same object when clean."""


class ScrubStream(Protocol):
    """Text that comes in pieces: joined, what comes out is what `scrub` makes of the whole."""

    @property
    def findings(self) -> Mapping[str, int]:
        """By rule, what was removed so far."""

    def feed(self, chunk: bytes) -> str:
        """What is safe to show by now."""

    def finish(self) -> str:
        """What was held back."""


class StreamScrubber(Scrubber, Protocol):
    def byte_stream(self, *, keep_lines: bool = False) -> ScrubStream:
        """For a command's output, as it comes."""

    def learn(self, text: str, kind: str = ...) -> int:
        """Look for the secrets of this file of credentials in every form from now on; how many are new."""


class Span(Protocol):
    def set(self, key: str, value: str | int | float | bool) -> None: ...

    def fail(self, reason: str) -> None: ...


class Telemetry(Protocol):
    """Traces and metrics. Names and labels are fixed vocabulary, never content."""

    def span(self, name: str, **attributes: str | int | float | bool) -> AbstractContextManager[Span]: ...

    def count(self, name: str, value: int = 1, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...

    def gauge(self, name: str, change: int, **labels: str) -> None: ...

    def trace_id(self) -> str | None:
        """Of the span under way, for logs."""


LISTING: Final = "tools/list"
"""The event of a client that was told the tools. Not a call: it is of no project, and no tool's use."""


@dataclass(frozen=True, slots=True)
class Event:
    """One finished call, for analytics. Holds no content."""

    at: datetime
    tool: str
    project: str | None
    session: str | None
    principal: str
    outcome: str
    """`ok`, or the id of the fault."""
    duration_ms: float
    tokens_out: int
    """The whole answer as text, envelope included."""
    tokens_envelope: int = 0
    """Of `tokens_out`: the envelope's own fields and the markers of cuts."""
    tokens_kept_out: int = 0
    """Of what the same call at full detail would have answered besides."""
    tokens_cut: int = 0
    """Of what the same answer without a budget would have held besides."""
    tokens_folded: int = 0
    """Of a `return`: what was charged to its branch, less the summary that the parent got."""
    cache_hits: int = 0
    cache_misses: int = 0


@dataclass(frozen=True, slots=True)
class ToolTally:
    """The events of one tool within a time, added up."""

    tool: str
    calls: int
    ok: int
    duration_ms: float
    tokens_out: int
    tokens_envelope: int
    tokens_kept_out: int
    tokens_cut: int
    tokens_folded: int
    cache_hits: int
    cache_misses: int


@dataclass(frozen=True, slots=True)
class Tallies:
    tools: tuple[ToolTally, ...]
    """Listings are none of them."""
    sessions: int
    tokens_listed: int
    """What clients were told about the tools before they called any."""


class EventLog(Protocol):
    """Finished calls. Old ones are rolled up by day, so the log stays bounded and sums stay right."""

    async def append(self, events: Sequence[Event]) -> None: ...

    async def tallies(
        self, since: datetime | None, until: datetime | None, projects: Collection[str] | None
    ) -> Tallies:
        """Sums over `since <= at < until`, of the projects with these keys, or of all for None.

        A session that worked in several counts once. A listing belongs to the projects that its session
        called in, at whatever time.
        """

    async def session(self, session: str, principal: str, projects: Collection[str] | None) -> Tallies:
        """Sums over the session of this principal, but for what was rolled up: a day names no session.

        With `projects`, calls in others are left out; calls in none are not.
        """

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """Something was used, and how that went: `good` None while it is not known."""

    subject: str
    at: datetime
    good: bool | None = None
    source: str = "caller"
    """`caller` says so, or `machine` saw it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The outcomes of one subject, added up."""

    uses: int = 0
    good: int = 0
    bad: int = 0
    last: datetime | None = None

    @classmethod
    def together(cls, usages: Sequence["Usage"]) -> "Usage":
        return cls(
            uses=sum(usage.uses for usage in usages),
            good=sum(usage.good for usage in usages),
            bad=sum(usage.bad for usage in usages),
            last=max((usage.last for usage in usages if usage.last), default=None),
        )

    @property
    def success_rate(self) -> float | None:
        """None while nothing is known: never an invented figure."""
        known = self.good + self.bad
        return self.good / known if known else None


class OutcomeLog(Protocol):
    """What was used and how it went, for whatever has an id. Counts are added up from what was noted."""

    async def note(self, outcomes: Sequence[Outcome]) -> None:
        """Durable when it returns."""

    async def usage(self, subjects: Sequence[str]) -> dict[str, Usage]:
        """For each subject; an empty Usage for one that was never used."""

    async def total(self, since: datetime | None, until: datetime | None, project: str | None) -> Usage:
        """Of all subjects over `since <= at < until`; of one project's if its key is given."""

    async def forget(self, subject: str) -> None: ...

    async def close(self) -> None: ...


class LanguageModel(Protocol):
    """An LLM that may help and is never needed. Raises LanguageModelUnavailable."""

    @property
    def name(self) -> str: ...

    async def complete(self, instructions: str, question: str) -> str: ...

    async def close(self) -> None: ...


class TokenCounter(Protocol):
    """Counts tokens as a model's context window does."""

    def count(self, text: str) -> int: ...


class Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, as it is listed: never the secret."""

    name: str
    projects: tuple[str, ...] | None
    created_at: datetime


class TokenVault(Protocol):
    """Bearer tokens, kept as hashes."""

    def create(self, name: str, projects: tuple[str, ...] | None) -> str:
        """The secret, shown this once. Raises Conflict when the name is taken."""

    def verify(self, secret: str) -> Token | None: ...

    def revoke(self, name: str) -> bool: ...

    def __iter__(self) -> Iterator[Token]: ...

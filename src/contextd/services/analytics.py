"""Counting what happened. Events are gathered and written together, off the road of a call."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal

from contextd.domain.callers import Caller
from contextd.domain.errors import BadFormat, OutOfRange, StoreUnavailable
from contextd.domain.ports import LISTING, Clock, Event, EventLog, OutcomeLog, Tallies, Usage

logger = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_MOST_WAITING: Final = 10_000
_FIRST_DAY: Final = date(1970, 1, 1)
_LAST_DAY: Final = date(9998, 12, 31)
"""Dates beyond have no day after them, or no month before them."""

Period = Literal["daily", "weekly", "monthly", "all-time"]
_PERIODS: Final[Mapping[Period, timedelta | None]] = {
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
    "monthly": timedelta(days=30),
    "all-time": None,
}


@dataclass(frozen=True, slots=True)
class Rates:
    """What the person who pays says a token is worth; None where nobody said."""

    usd_per_million_tokens: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Span:
    since: datetime | None
    until: datetime


@dataclass(frozen=True, slots=True)
class Tokens:
    """What contextd put into contexts, and what it kept out of them."""

    answered: int = 0
    """`envelopes` are within."""
    schemas: int = 0
    envelopes: int = 0
    detail: int = 0
    cut: int = 0
    folded: int = 0

    @classmethod
    def of(cls, tallies: Tallies) -> "Tokens":
        return cls(
            answered=sum(tally.tokens_out for tally in tallies.tools),
            schemas=tallies.tokens_listed,
            envelopes=sum(tally.tokens_envelope for tally in tallies.tools),
            detail=sum(tally.tokens_kept_out for tally in tallies.tools),
            cut=sum(tally.tokens_cut for tally in tallies.tools),
            folded=sum(tally.tokens_folded for tally in tallies.tools),
        )

    @property
    def kept_out(self) -> int:
        """`folded` is no part of it: only a client knows whether the branch had a window of its own."""
        return self.detail + self.cut

    @property
    def net(self) -> int:
        return self.kept_out - self.answered - self.schemas

    @property
    def reduction_pct(self) -> float | None:
        whole = self.answered + self.kept_out
        return 100 * self.kept_out / whole if whole else None


@dataclass(frozen=True, slots=True)
class Report:
    span: Span
    tallies: Tallies
    tokens: Tokens
    session: Tokens | None
    """Of the session that asks; None where it has none."""
    feedback: Usage
    rates: Rates

    @property
    def time_saved_min(self) -> float | None:
        per_minute = self.rates.tokens_per_minute
        return self.tokens.kept_out / per_minute if per_minute else None

    @property
    def cost_saved_usd(self) -> float | None:
        price = self.rates.usd_per_million_tokens
        return self.tokens.net * price / 1_000_000 if price else None

    def mean_ms(self, tools: Callable[[str], bool]) -> float | None:
        meant = [tally for tally in self.tallies.tools if tools(tally.tool)]
        calls = sum(tally.calls for tally in meant)
        return sum(tally.duration_ms for tally in meant) / calls if calls else None

    @property
    def success_rate(self) -> float | None:
        return _share(sum(t.ok for t in self.tallies.tools), sum(t.calls for t in self.tallies.tools))

    @property
    def cache_hit_rate(self) -> float | None:
        hits = sum(t.cache_hits for t in self.tallies.tools)
        return _share(hits, hits + sum(t.cache_misses for t in self.tallies.tools))


class Analytics:
    def __init__(
        self,
        log: EventLog,
        outcomes: OutcomeLog,
        clock: Clock,
        rates: Rates,
    ) -> None:
        self._log = log
        self._outcomes = outcomes
        self._clock = clock
        self._rates = rates
        self._waiting: list[Event] = []
        self._flushing = asyncio.Lock()
        self._lost = 0

    def record(self, event: Event) -> None:
        """Never waits and never fails a call; if the log is away for long, the newest are dropped."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(event)
        else:
            self._lost += 1

    async def flush(self) -> None:
        """Write what is waiting, so that a reader sees every call that has ended."""
        # One at a time: what another flush has taken is not written yet while that one waits.
        async with self._flushing:
            events, self._waiting = self._waiting, []
            if not events:
                return
            try:
                await self._log.append(events)
            except StoreUnavailable as fault:
                self._waiting = events + self._waiting
                logger.warning("analytics wait: %s", fault.problem)
        if self._lost:
            logger.warning("%d analytics events were dropped", self._lost)
            self._lost = 0

    def listed(self, caller: Caller, tokens: int) -> None:
        """A client was told so much about the tools: what contextd costs before it is of any use."""
        self.record(
            Event(
                at=self._clock.now(),
                tool=LISTING,
                project=None,
                session=caller.session,
                principal=caller.principal.name,
                outcome="ok",
                duration_ms=0.0,
                tokens_out=tokens,
            )
        )

    async def report(self, span: Span, projects: Collection[str] | None, caller: Caller) -> Report:
        """Added up from what was recorded, calls that just ended included; None is every project."""
        await self.flush()
        tallies = await self._log.tallies(span.since, span.until, projects)
        return Report(
            span,
            tallies,
            Tokens.of(tallies),
            await self._session(caller),
            await self._feedback(span, projects),
            self._rates,
        )

    async def _session(self, caller: Caller) -> Tokens | None:
        if caller.session is None:
            return None
        who = caller.principal
        return Tokens.of(await self._log.session(caller.session, who.name, who.projects))

    async def _feedback(self, span: Span, projects: Collection[str] | None) -> Usage:
        whose = [None] if projects is None else projects
        return Usage.together([await self._outcomes.total(span.since, span.until, each) for each in whose])

    def span(self, period: Period, start: date | None, end: date | None) -> Span:
        """The period up to now; a date that is given takes the place of its end of it.

        Raises OutOfRange and BadFormat for dates between which nothing can lie.
        """
        now = self._clock.now()
        _refuse_dates(start, end, now.astimezone(UTC).date())
        until = now if end is None else datetime.combine(end + timedelta(days=1), time.min, UTC)
        if start is not None:
            return Span(datetime.combine(start, time.min, UTC), until)
        length = _PERIODS[period]
        return Span(None if length is None else until - length, until)

    async def keep_flushing(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.flush()

    async def close(self) -> None:
        await self.flush()
        await self._log.close()
        await self._outcomes.close()


def _refuse_dates(start: date | None, end: date | None, today: date) -> None:
    for field, day in (("start_date", start), ("end_date", end)):
        if day is not None and not _FIRST_DAY <= day <= _LAST_DAY:
            raise OutOfRange(field, f"{field} must be from {_FIRST_DAY} to {_LAST_DAY}")
    if start is not None and end is not None and end < start:
        raise BadFormat("end_date", "end_date is before start_date", "give a later end_date")
    if start is not None and start > today:
        raise BadFormat("start_date", "start_date is in the future", f"give a date up to {today} (UTC)")


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

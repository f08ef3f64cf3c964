"""Who has branches open: one small list for all projects, so that a limit is held without a search."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from contextd.domain.errors import DaemonFull, TooManyBranches
from contextd.domain.limits import MAX_BRANCHES, MAX_CALLER_BRANCHES
from contextd.domain.ports import Clock, Store
from contextd.domain.records import SHARED, Entry, Record

_ID: Final = "open-shared-branches"
_KIND: Final = "open_branches"

Seats = dict[str, tuple[str, str]]
"""By branch: its caller, and until when it may stay."""


class OpenBranches:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def take(self, branch_id: str, caller: str, deadline: datetime) -> None:
        """A seat for a branch that is about to be opened. Raises TooManyBranches, DaemonFull."""

        def sit(seats: Seats) -> None:
            own = [id for id, (who, _) in seats.items() if who == caller]
            if len(own) >= MAX_CALLER_BRANCHES:
                problem = f"{MAX_CALLER_BRANCHES} branches are open already"
                raise TooManyBranches(problem, f"return one of them first: {', '.join(own)}", {"open": own})
            if len(seats) >= MAX_BRANCHES:
                raise DaemonFull(f"{MAX_BRANCHES} branches are open in this daemon")
            seats[branch_id] = (caller, deadline.isoformat())

        await self._change(sit)

    async def leave(self, branch_ids: Collection[str]) -> None:
        def stand_up(seats: Seats) -> None:
            for id in branch_ids:
                seats.pop(id, None)

        await self._change(stand_up)

    async def _change(self, change: Callable[[Seats], None]) -> None:
        """From whatever it is by now. Those whose time is over have left."""
        while True:
            old = await self._store.get(SHARED, _ID)
            now = self._clock.now()
            seats = _seated(old, now)
            change(seats)
            at = now if old is None else max(now, old.updated_at + timedelta(microseconds=1))
            kept = {name: list(seat) for name, seat in seats.items()}
            new = Record(_ID, _KIND, SHARED, "", "", {"seats": cast(Any, kept)}, at, at)
            if await self._store.swap(Entry(new), old):
                return


def _seated(record: Record | None, now: datetime) -> Seats:
    if record is None:
        return {}
    kept = cast(Mapping[str, Any], record.fields["seats"])
    return {
        name: (who, until) for name, (who, until) in kept.items() if datetime.fromisoformat(until) > now
    }

#!/usr/bin/env python3
"""Orders of a shop, and how they are kept."""

from __future__ import annotations

import asyncio
import os.path
import xml.etree.ElementTree as tree
from collections import namedtuple
from dataclasses import dataclass, field as column
from typing import *
from typing import TYPE_CHECKING, Final, Literal, NewType, Protocol, TypeAlias, TypeVar, overload

from . import ledger
from ..shop.clock import Clock, now as current_time

if TYPE_CHECKING:
    from shop.people import Customer

__all__ = ["Order", "_legacy_total"]
__version__ = "1.2"

MAX_LINES: int = 100
"""The most lines that an order may have."""

# Seconds that a reader waits for the ledger.
timeout: Final = 2.5
EUR, USD = "EUR", "USD"
first = second = None
left, (right, *rest) = 1, (2, 3)
registry: dict[str, type[Order]] = {}
registry["plain"] = None
Point = namedtuple("Point", "x y")
OrderId = NewType("OrderId", str)
Item = TypeVar("Item", bound="Order")
Handler: TypeAlias = Callable[["Order"], ledger.Entry]
type Pair[T] = tuple[T, T]


class State(enum.Enum, table="states"):
    OPEN = 1
    PAID = 2


class Repository(Protocol[Item]):
    """Where orders are kept.

    Nothing is said of how.
    """

    async def find(self, id: OrderId, /) -> Item | None: ...

    def _key(self, id: OrderId) -> str:
        return f"order:{id}"


@dataclass(frozen=True)
class Order(ledger.Entry, Base[int], metaclass=Meta):
    """One purchase."""

    id: OrderId
    lines: list[Line] = column(default_factory=list)
    LIMIT: ClassVar[int] = 3

    class Line:
        def worth(self): return self.price * 2

    # Not in the docstring, but it will do.
    @property
    def total(self) -> float:
        return sum(line.worth() for line in self.lines)

    @total.setter
    def total(self, value: float) -> None:
        raise ledger.Frozen

    @staticmethod
    def of(
        *lines: Order.Line,  # as they were entered
        customer: Customer | None = None,
        state: typing.Literal["open", "paid"] = "open",
        clock: "Clock" = Clock(),
    ) -> Order:
        """Make an order of lines."""

        def key(line):
            return line.price

        class Local:
            def method(self):
                return key

        return Order(OrderId(make_id()), sorted(lines, key=key))


@overload
def parse(text: str) -> Order: ...
@overload
def parse(text: bytes) -> Order: ...
@retry(times=3)
@ledger.logged
def parse(text: str | bytes) -> Order:
    r"""Read an order \ from a line."""
    try:
        return Order.of(*tree.fromstring(text).iter())
    except (ledger.Broken, TooLong) as error:
        raise BadOrder(text) from error


async def watch[K: Hashable](repository: Repository[Order], keys: Mapping[K, OrderId]) -> K:
    match await repository.find(keys[0]):
        case Order(id=found) | ledger.Entry(found):
            return os.path.basename(found)


def _legacy_total(orders): return sum(map(lambda order: order.total, orders))


größe = lambda länge: länge * 2

if __name__ == "__main__":
    parsed = parse("")
    asyncio.run(watch(parsed))

"""Batches are made while the one before is being learnt."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_MADE: Final = 8
_THREADS: Final = 4
_KNOWN: Final = 64


def ahead(make: Callable[[T], U], wanted: Iterable[T]) -> Iterator[U]:
    """In order. What is wanted is found out in a thread of its own: the order of the next epoch is drawn
    while this one ends."""
    source = iter(wanted)
    with ThreadPoolExecutor(1) as teller, ThreadPoolExecutor(_THREADS) as pool:
        told: deque[Future[T | None]] = deque(teller.submit(next, source, None) for _ in range(_KNOWN))
        coming: deque[Future[U]] = deque()
        while told or coming:
            while told and len(coming) < _MADE:
                each = told.popleft().result()
                if each is None:
                    told.clear()
                    break
                told.append(teller.submit(next, source, None))
                coming.append(pool.submit(make, each))
            if coming:
                yield coming.popleft().result()

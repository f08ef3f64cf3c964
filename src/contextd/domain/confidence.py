"""How sure a memory is: the mean of a Beta distribution, from a first belief and what came of using it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before anything was seen, as if so many outcomes had been good and bad."""

    good: float
    bad: float


ON_PURPOSE: Final = Prior(8, 2)
"""Somebody decided to keep it."""
DISTILLED: Final = Prior(6, 4)
"""A program made it out of what happened."""


def confidence(prior: Prior, good: int = 0, bad: int = 0) -> float:
    """Between 0 and 1: grows with every good outcome, falls with every bad one, reaches neither end."""
    return (prior.good + good) / (prior.good + prior.bad + good + bad)

"""Leads weighed against each other: what an error may be, and how sure that is."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from contextd.domain.ports import Usage
from contextd.services.patterns import Action

Confidence = Literal["high", "medium", "low"]

MOST: Final = 6
_SUREST: Final = 0.97
"""No evidence that we gather is proof."""
_HIGH, _MEDIUM = 0.75, 0.45
_PRIOR_GOOD, _PRIOR_BAD = 4.0, 1.0
"""What is advised on purpose helps more often than not, until outcomes say otherwise."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something to do, and the pattern or remediation that advises it: None when nothing kept does."""

    action: Action
    subject: str | None = None
    guessed: bool = False
    """A language model made it up."""


@dataclass(frozen=True, slots=True)
class Lead:
    """One explanation with what speaks for it. `strength` is its own, as if it had no rivals."""

    subjects: tuple[str, ...]
    description: str
    category: str
    severity: str
    strength: float
    evidence: tuple[str, ...] = ()
    verification_steps: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    words: frozenset[str] = frozenset()
    """What it is about, to hold against the circumstances."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    lead: Lead
    probability: float


def weigh(leads: Sequence[Lead]) -> list[Hypothesis]:
    """Best first. A lead without rivals keeps its strength; rivals share by their odds.

    That none of them is right always stays possible, at the odds of an even bet: the
    probabilities add up to less than 1.
    """
    strongest = sorted(leads, key=lambda lead: -lead.strength)[:MOST]
    odds = [_odds(lead.strength) for lead in strongest]
    whole = 1.0 + sum(odds)
    return [Hypothesis(lead, odd / whole) for lead, odd in zip(strongest, odds, strict=True)]


def together(strengths: Iterable[float]) -> float:
    """Evidence that points the same way: each closes its share of what the others left open."""
    return min(_SUREST, 1.0 - math.prod(1.0 - min(1.0, max(0.0, strength)) for strength in strengths))


def tempered(strength: float, usage: Usage) -> float:
    """Raised or lowered by how it went before; unchanged while nothing is known."""
    before = _PRIOR_GOOD / (_PRIOR_GOOD + _PRIOR_BAD)
    now = (_PRIOR_GOOD + usage.good) / (_PRIOR_GOOD + _PRIOR_BAD + usage.good + usage.bad)
    return min(_SUREST, strength * now / before)


def confidence(score: float) -> Confidence:
    return "high" if score >= _HIGH else "medium" if score >= _MEDIUM else "low"


def _odds(strength: float) -> float:
    bounded = min(_SUREST, max(0.0, strength))
    return bounded / (1.0 - bounded)

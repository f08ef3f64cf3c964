"""How much each bench does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    rounds: int
    """Alternating rounds, for every ratio."""
    requests: int
    """Calls in one round over HTTP."""
    checkpoints: int
    """Loaded before save and search are timed."""
    calls: int
    """Saves and searches timed, each."""
    sessions: int
    seconds: int
    """How long the sessions work, the warm-up included."""
    warm_up_s: int
    starts: int
    """Cold starts over stdio."""
    turns: int
    """Of a hundred calls in-process."""
    stores: tuple[int, ...]
    """Records of each store that is searched."""
    writes: int
    """Saves at the store port, for each number of writers."""


FULL = Sizes(
    rounds=15,
    requests=1000,
    checkpoints=10_000,
    calls=400,
    sessions=50,
    seconds=60,
    warm_up_s=10,
    starts=7,
    turns=200,
    stores=(1_000, 10_000, 50_000),
    writes=1000,
)

SMALL = Sizes(
    rounds=5,
    requests=300,
    checkpoints=300,
    calls=50,
    sessions=50,
    seconds=8,
    warm_up_s=3,
    starts=3,
    turns=30,
    stores=(1_000,),
    writes=100,
)

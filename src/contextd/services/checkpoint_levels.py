"""How much of a checkpoint a restore answers."""

from typing import Final, Literal

Level = Literal["summary", "context", "full"]

SUMMARY_TOKENS: Final = 200
CONTEXT_TOKENS: Final = 2_000
"""o200k tokens of the whole answer, the envelope included."""

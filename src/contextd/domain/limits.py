"""Lengths, timeouts and allowances. Seed figures; `tests/test_limits.py` holds them to the table."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_SUMMARY_LENGTH: Final = 500
MAX_DESCRIPTION_LENGTH: Final = 5_000
MAX_ERROR_MESSAGE_LENGTH: Final = 10_000
MAX_STACK_TRACE_LENGTH: Final = 50_000
MAX_ERROR_TYPE_LENGTH: Final = 200
MAX_SOLUTION_LENGTH: Final = 20_000
MAX_TAGS: Final = 20
MAX_TAG_LENGTH: Final = 50
MAX_QUERY_LENGTH: Final = 1_000
MAX_CONTEXT_FIELDS: Final = 50
MAX_CONTEXT_VALUE_LENGTH: Final = 1_000
MAX_CONTEXT_KEY_LENGTH: Final = 100
MAX_PATH_LENGTH: Final = 4_096
MAX_ID_LENGTH: Final = 128
MAX_STATE_LENGTH: Final = 1_000_000
"""Characters of a checkpoint's `content`, and of its `state` as JSON: within a 4 MiB request."""
MAX_SKILL_NAME_LENGTH: Final = 200
MAX_SKILL_DESCRIPTION_LENGTH: Final = 2_000
MAX_SKILL_CONTENT_LENGTH: Final = 50_000
MAX_AUTHOR_LENGTH: Final = 200
MAX_CATEGORY_LENGTH: Final = 50
MAX_PREREQUISITES: Final = 50
MAX_PREREQUISITE_LENGTH: Final = 500
MAX_METADATA_LENGTH: Final = 50_000
"""Characters of a skill's `metadata` as JSON."""
MAX_MEMORY_CONTENT_LENGTH: Final = 20_000
MAX_ANCHORS: Final = 20
MAX_SYMBOL_LENGTH: Final = 200
MAX_NOTE_LENGTH: Final = 1_000
MAX_GLOB_LENGTH: Final = 1_000
MAX_GLOBS: Final = 100

MAX_RESULTS: Final = 100
MAX_OFFSET: Final = 1_000_000

DEFAULT_TIMEOUT_S: Final = 30.0

DEFAULT_TOKENS: Final = 2_000
"""Of an answer, unless its tool or its caller says otherwise."""
REFERENCES_TOKENS: Final = 500
"""Of a search that answers by reference."""
WHOLE_TOKENS: Final = 16_000
"""Of an answer whose worth lies in being whole: a skill's steps, a memory."""
MIN_TOKENS: Final = 200
MAX_TOKENS: Final = 32_768
"""What a caller may ask of one answer."""

REF_CHARS: Final = 4_000_000
"""Of everything held under one ref. A checkpoint's content and state fit."""
REF_DAYS: Final = 3
REFS_CHARS: Final = 64_000_000
"""Of all refs of one project: beyond it the oldest go."""

READ_BYTES: Final = 16_000_000
"""Of a file that safe_read reads."""
WRITE_BYTES: Final = 4_000_000
"""Of a file that safe_write changes, before and after: what is replaced fits a ref."""
MAX_FILE_TEXT_LENGTH: Final = 1_000_000
"""Characters that one call writes: within a 4 MiB request."""
SHOWN_CHARS: Final = 200_000
"""Of a file's text or a diff in one answer: more than the greatest budget holds."""
MAX_EDITS: Final = 200
SHOWN_SECRETS_HOURS: Final = 12
"""How long a placeholder can be written back after its file was last read or written."""
SHOWN_SECRETS_FILES: Final = 500
SHOWN_SECRETS_CHARS: Final = 4_000_000
"""Of all secrets that are remembered, for all callers."""

BRANCH_TOKENS: Final = 8_192
MAX_BRANCH_TOKENS: Final = 32_768
BRANCH_S: Final = 600
MAX_BRANCH_S: Final = 3_600
MAX_BRANCH_DEPTH: Final = 3
MAX_CALLER_BRANCHES: Final = 10
MAX_BRANCHES: Final = 100
BRANCH_WARNS_AT: Final = 0.8
BRANCH_MEMORIES: Final = 3
BRANCH_MEMORIES_SHARE: Final = 0.2
MAX_PROMPT_LENGTH: Final = 20_000
MAX_RETURN_LENGTH: Final = 20_000

MAX_COMMAND_LENGTH: Final = 32_768
MAX_STDIN_LENGTH: Final = 1_000_000
MAX_ENV: Final = 100
MAX_ENV_VALUE_LENGTH: Final = 32_768
COMMAND_S: Final = 120.0
MAX_COMMAND_S: Final = 3_600
"""What a policy may give a command; without one it is COMMAND_S."""
KNOWN_FIX_TOKENS: Final = 150
"""Of a fix that is told with a failure."""


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    burst: int


DEFAULT_RATE: Final = Rate(10, 20)
TOOL_RATES: Final = {"troubleshoot": Rate(2, 5), "skill_create": Rate(5, 10)}


class Allowance:
    """Token buckets, one for each caller and tool. Idle ones are forgotten: a full bucket is no memory.

    Buckets are kept in order of last use, so forgetting looks only at the oldest few.
    """

    def __init__(self, override: Rate | None = None) -> None:
        self._override = override
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, key: str, tool: str, now: float) -> float:
        """Take one token. Returns 0.0, or the seconds until one is there."""
        rate = self._override or TOOL_RATES.get(tool, DEFAULT_RATE)
        tokens, at = self._buckets.get((key, tool), (float(rate.burst), now))
        tokens = min(float(rate.burst), tokens + max(0.0, now - at) * rate.per_second)
        wait = 0.0 if tokens >= 1.0 else (1.0 - tokens) / rate.per_second
        self._buckets[key, tool] = (tokens - 1.0 if wait == 0.0 else tokens, now)
        self._buckets.move_to_end((key, tool))
        self._forget_full(now)
        return wait

    def _forget_full(self, now: float) -> None:
        for _ in range(2):
            (key, tool), (tokens, at) = next(iter(self._buckets.items()))
            rate = self._override or TOOL_RATES.get(tool, DEFAULT_RATE)
            if tokens + (now - at) * rate.per_second < rate.burst:
                return
            del self._buckets[key, tool]
            if not self._buckets:
                return

    def __len__(self) -> int:
        return len(self._buckets)

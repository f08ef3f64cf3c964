"""Checkpoints as agents write them, made up from a seed: the same ones in every run."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DID: Final = (
    "Fixed Added Moved Rewrote Split Removed Traced Measured Guarded Renamed Cached Retried Merged Drafted"
    " Reverted Simplified Documented Upgraded Profiled Isolated"
).split()
_PART: Final = (
    "login form|session store|invoice export|search index|job queue|rate limiter|upload handler|"
    "audit trail|billing webhook|cart total|PDF renderer|email digest|feature flag|image resizer|"
    "OAuth callback|password reset|product catalogue|report scheduler|shipping quote|tax rule|"
    "token refresh|user import|metrics exporter|migration runner|notification fan-out|address lookup|"
    "calendar sync|chat transcript|coupon engine|currency table|device registry|error page|geo filter|"
    "health probe|inventory count|keyboard shortcut|ledger posting|map tile|offline mode|plugin loader"
).split("|")
_WHY: Final = (
    "after the timeout in production|for tenants with many rows|because two workers raced|"
    "so that a retry is safe|before the schema changes|to stop the memory growth|"
    "when the cache is cold|without touching the public API|for the nightly run|"
    "once the upstream answered 503|under concurrent writes|as the review asked|"
    "on slow mobile networks|for accounts in arrears|after the vendor's outage|to please the linter|"
    "in right-to-left languages|behind the corporate proxy|with daylight saving time|"
    "for guests who never sign up|during blue-green deploys|on the smallest instance|"
    "where the clock is skewed|since the auditors complained"
).split("|")
_DECIDED: Final = (
    "Chose a unique index over a lock, since writers come from several hosts|"
    "Kept the old column for one release and backfill it in batches|"
    "The client now sends an idempotency key and the server remembers it for a day|"
    "Reads go to the replica unless the same person wrote within two seconds|"
    "Errors are mapped in one place and the message names the remedy|"
    "The parser works on bytes and decodes only what it shows|"
    "Dropped the in-process copy: it was wrong after a release and saved little|"
    "Messages are acknowledged after the commit, so a crash repeats work and loses none|"
    "Moved the arithmetic to integers of cents; floats drifted by a cent in a thousand|"
    "Picked exponential backoff with jitter, capped at half a minute|"
    "The template escapes by default and the two exceptions are listed|"
    "Pinned the compiler, because its minor upgrade broke inlining|"
    "Pagination is by key, as offsets grew slower with depth|"
    "Secrets come from the vault at boot and rotate weekly|"
    "Swapped the regular expression for a small state machine; it backtracked on long paths|"
    "Left the legacy endpoint in place with a deprecation header|"
    "Threads were blocked in DNS, so the resolver got its own pool|"
    "The fixture is generated now; the recorded one held personal data|"
    "Compression is on above one kilobyte and off for images|"
    "Unicode is normalised on entry, never on comparison|"
    "Permissions are checked where rows are fetched rather than in each controller|"
    "Batches shrink when the broker pushes back and grow again slowly|"
    "Wrote a property test first; it found the off-by-one in leap years|"
    "Snapshots are taken hourly and the restore drill took eleven minutes"
).split("|")
_NEXT: Final = (
    "Next: cover the empty case and the one with a duplicate|Open: who owns the alert when it fires|"
    "Next: measure with the large fixture and compare the plans|Left to do: docs and the changelog|"
    "Open: whether older phones send the header at all|Next: remove the flag when the rollout is done|"
    "Blocked on credentials for the staging bucket|Waiting for legal to confirm the retention period|"
    "Next: ask the platform team about quotas|Open: flaky on ARM, passes on the second try|"
    "Left to do: translate the three new strings|Next: delete the shim once telemetry shows no callers"
).split("|")
_FOLDER: Final = "api core billing search web jobs storage auth".split()
_TAGS: Final = (
    "auth billing bug cache database deploy docs http perf queue refactor search security tests ui".split()
)
_ASK: Final = (
    "what did we decide about the|why does it fail: the|how was it fixed, the|where is the code of the|"
    "what is left to do for the|last change to the"
).split("|")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    summary: str
    description: str
    tags: tuple[str, ...]


def checkpoints(count: int, seed: int = 1) -> list[Checkpoint]:
    """A summary of about 60 characters, a description of about 350, two or three tags."""
    chance = random.Random(seed)
    return [_checkpoint(chance) for _ in range(count)]


def questions(seed: int = 2) -> Iterator[str]:
    """Queries without end, hardly ever the same one twice."""
    chance = random.Random(seed)
    while True:
        about = f"{chance.choice(_PART)} {chance.choice(_WHY)}"
        yield f"{chance.choice(_ASK)} {about} #{chance.randrange(10_000)}"


def _checkpoint(chance: random.Random) -> Checkpoint:
    part = chance.choice(_PART)
    summary = f"{chance.choice(_DID)} the {part} {chance.choice(_WHY)}"
    name = part.title().replace(" ", "")
    line = chance.randrange(20, 900)
    file = f"{chance.choice(_FOLDER)}/{part.replace(' ', '_')}.py"
    tests, seconds, issue = chance.randrange(3, 400), chance.randrange(2, 90), chance.randrange(100, 9999)
    description = (
        f"{'. '.join(chance.sample(_DECIDED, 2))}. Changed {file} (handle{name}, line {line}) and its test;"
        f" {tests} tests pass in {seconds} s. Ran make test-{chance.choice(_FOLDER)} and tried it on issue"
        f" {issue}. {chance.choice(_NEXT)}."
    )
    return Checkpoint(summary, description, tuple(chance.sample(_TAGS, chance.randint(2, 3))))

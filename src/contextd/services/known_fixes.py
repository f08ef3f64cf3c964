"""A fix that is known, told with the failure itself; credited when the same command passes later.

Nobody has to ask for it, and nobody has to say that it helped: the machine has seen both.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from contextd.domain.callers import Caller
from contextd.domain.fingerprints import read_error
from contextd.domain.ids import short_hash
from contextd.domain.limits import KNOWN_FIX_TOKENS, MAX_ERROR_MESSAGE_LENGTH
from contextd.domain.ports import Clock, Outcome, OutcomeLog, Store, TokenCounter
from contextd.domain.records import Entry, Filter, Project, Record
from contextd.services.pattern_library import PatternLibrary
from contextd.services.remediations import Match, Remediations
from contextd.services.shortening import Shortener
from contextd.services.shown_errors import shown_errors
from contextd.services.solutions import commands_in, safety_of

KIND: Final = "shown_fix"
_PREFIX: Final = "fix"
_DAYS: Final = 7
"""A command that passes later than that passes for another reason."""
_SURE: Final = 0.8
"""Match of a remediation that is told unasked: a wrong one costs more than none."""
_SPECIFIC: Final = 0.6
"""The same of a pattern's specificity."""
_BESIDE: Final = 50
"""Tokens of the other fields."""
_LAST_LINES: Final = 20
_SWEEP_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class KnownFix:
    id: str
    """Of a remediation or a pattern; troubleshoot and remediation_search tell more of it."""
    source: Literal["remediation", "pattern"]
    solution: str
    score: float
    warning: str = ""
    """What its commands may destroy."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A command as one who runs it again would know it."""

    project: Project
    cwd: str
    command: str

    def id(self, caller: Caller) -> str:
        same = "\0".join((caller.principal.scope, self.cwd, " ".join(self.command.split())))
        return f"{_PREFIX}-{self.project.key}-{short_hash(hashlib.sha256(same.encode()).digest())}"


class KnownFixes:
    def __init__(
        self,
        remediations: Remediations,
        patterns: PatternLibrary,
        outcomes: OutcomeLog,
        store: Store,
        tokens: TokenCounter,
        clock: Clock,
    ) -> None:
        self._remediations = remediations
        self._patterns = patterns
        self._outcomes = outcomes
        self._store = store
        self._shortener = Shortener(tokens)
        self._clock = clock
        self._shown = 0

    async def failed(self, attempt: Attempt, printed: str, caller: Caller) -> KnownFix | None:
        """The fix to tell, if one is known for sure; that it was told is kept. `printed` is scrubbed."""
        error = _error_of(printed)
        if not error:
            return None
        fix = await self._remediation(error, caller) or await self._pattern(error, caller)
        if fix is not None:
            await self._keep(attempt, fix, caller)
        return fix

    async def passed(self, attempt: Attempt, caller: Caller) -> str | None:
        """The fix that was told when this command failed: it is credited once. None if there was none."""
        record = await self._store.get(attempt.project, attempt.id(caller))
        if record is None or record.kind != KIND:
            return None
        # Of several who see it pass at once, one has deleted it, and it is counted once.
        deleted = await self._store.delete(attempt.project, [record.id])
        if not deleted or record.updated_at < self._clock.now() - timedelta(days=_DAYS):
            return None
        subject = str(record.fields["subject"])
        await self._outcomes.note([Outcome(subject, self._clock.now(), good=True, source="machine")])
        return subject

    async def _remediation(self, error: str, caller: Caller) -> KnownFix | None:
        found = await self._remediations.search(error, caller, limit=1, min_score=_SURE)
        exact = read_error(error).fingerprint
        for match in found.matches:
            if match.record.fields["fingerprint"] == exact or match.string_score >= _SURE:
                return self._told(match)
        return None

    async def _pattern(self, error: str, caller: Caller) -> KnownFix | None:
        pack = await self._patterns.pack(caller)
        for pattern, specificity in pack.match(error)[:1]:
            if specificity >= _SPECIFIC:
                return self._fix(pattern.id, "pattern", pattern.solution, specificity)
        return None

    def _told(self, match: Match) -> KnownFix:
        solution = str(match.record.fields["solution"])
        return self._fix(match.record.id, "remediation", solution, match.match_score)

    def _fix(
        self, id: str, source: Literal["remediation", "pattern"], solution: str, score: float
    ) -> KnownFix:
        warning = self._shortener.head(safety_of(commands_in(solution), solution).note, _BESIDE // 2)
        room = KNOWN_FIX_TOKENS - _BESIDE - (self._shortener.cost(warning) if warning else 0)
        return KnownFix(id, source, self._shortener.head(solution, room), score, warning)

    async def _keep(self, attempt: Attempt, fix: KnownFix, caller: Caller) -> None:
        now = self._clock.now()
        id = attempt.id(caller)
        record = Record(id, KIND, attempt.project, "", "", {"subject": fix.id}, now, now)
        await self._store.put([Entry(record)])
        self._shown += 1
        if self._shown % _SWEEP_EVERY == 0:
            await self._forget_old(attempt.project)

    async def _forget_old(self, project: Project) -> None:
        until = self._clock.now() - timedelta(days=_DAYS)
        page = await self._store.page(Filter((KIND,), (project,), until=until), "created_at", 0, 500)
        await self._store.delete(project, [record.id for record in page.records])


def _error_of(printed: str) -> str:
    """The lines that say what went wrong; where none does, the last ones."""
    lines = [error.text for error in shown_errors(printed, newest=False)]
    lines = lines or [line for line in printed.splitlines() if line.strip()][-_LAST_LINES:]
    return "\n".join(lines)[:MAX_ERROR_MESSAGE_LENGTH]

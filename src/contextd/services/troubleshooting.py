"""Troubleshooting: from an error to what it may be and what to do, step by step if wanted.

Patterns and earlier fixes are the evidence. A language model may add to it and is never needed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from contextd.domain.callers import Caller
from contextd.domain.errors import Conflict, MissingField
from contextd.domain.fingerprints import ErrorText, read_error
from contextd.domain.ports import Clock, Outcome, OutcomeLog
from contextd.domain.records import Json, Record
from contextd.services.archive import Archive
from contextd.services.diagnosis import Diagnosis, conclude
from contextd.services.diagnosis_sessions import DiagnosisSessions, Mode, Session, Shown
from contextd.services.diagnostics import checks_for
from contextd.services.hypotheses import Hypothesis, weigh
from contextd.services.leads import Circumstances, Findings, leads_from, text_field
from contextd.services.pattern_library import PatternDraft, PatternLibrary
from contextd.services.patterns import Pattern, PatternPack
from contextd.services.plans import Step, is_last_of, plan
from contextd.services.remediations import Match, Remediations
from contextd.services.second_opinion import Opinion, SecondOpinion, with_opinion

Verdict = Literal["fixed", "not_fixed", "skipped"]

_MOST_KIN: Final = 10


@dataclass(frozen=True, slots=True)
class Ask:
    """None leaves a continued session as it is."""

    error_message: str
    stack_trace: str | None = None
    context: Mapping[str, Json] | None = None
    category: str | None = None
    mode: Mode | None = None
    tags: tuple[str, ...] | None = None
    top_k: int | None = None
    session_id: str | None = None
    outcome: Verdict | None = None
    project_path: str | None = None


class Troubleshooting:
    def __init__(
        self,
        archive: Archive,
        remediations: Remediations,
        library: PatternLibrary,
        outcomes: OutcomeLog,
        opinion: SecondOpinion,
        clock: Clock,
    ) -> None:
        self._archive = archive
        self._remediations = remediations
        self._outcomes = outcomes
        self._opinion = opinion
        self._clock = clock
        self._sessions = DiagnosisSessions(archive)
        self.patterns = library

    async def diagnose(self, ask: Ask, caller: Caller) -> Diagnosis:
        """Open a session, or continue one with what has been learned since.

        Raises NotFound for a session that is not the caller's, Conflict for an outcome of one that
        has ended, Forbidden, StoreUnavailable.
        """
        started = self._clock.monotonic()
        session, kept = await self._session(ask, caller)
        findings = await self._find(session, caller)
        leads = leads_from(findings, _circumstances(session))
        if session.opinion is None or (session.mode == "interactive" and ask.context):
            heard = await self._opinion.on(findings.error, session.context, leads)
            session = replace(session, opinion=heard)
        hypotheses = weigh(with_opinion(leads, session.opinion or Opinion()))
        steps = _steps(session, hypotheses, findings)
        session, _ = await self._sessions.keep(_showing(session, hypotheses, steps), caller, kept)
        diagnosis = await asyncio.to_thread(conclude, session, findings, hypotheses, steps)
        elapsed_ms = (self._clock.monotonic() - started) * 1000
        return replace(diagnosis, time_taken_ms=elapsed_ms, at=self._clock.now())

    async def add_pattern(self, draft: PatternDraft, caller: Caller) -> Pattern:
        """Keep an error and what helped as a pattern; the same error again replaces it."""
        return await self.patterns.save(draft, caller)

    # --- the session ------------------------------------------------------------------

    async def _session(self, ask: Ask, caller: Caller) -> tuple[Session, Record | None]:
        """What is asked about, and how it is kept so far."""
        if ask.session_id is None and ask.outcome is not None:
            raise MissingField("session_id", "session_id is required with outcome", "give the session's")
        if ask.project_path is not None:
            self._archive.project(caller, ask.project_path)
        if ask.session_id is None:
            return _told(Session(ask.error_message), ask), None
        session, kept = await self._sessions.resume(ask.session_id, caller)
        if ask.outcome is not None:
            session, kept = await self._learn(session, kept, ask.outcome, caller)
        return _told(session, ask), kept

    async def _learn(
        self, session: Session, kept: Record, verdict: Verdict, caller: Caller
    ) -> tuple[Session, Record]:
        """Note how it went for whatever advised the steps that were shown.

        The session moves on first: of several calls with this outcome, tried again or at once, one counts.
        """
        if session.ended:
            raise Conflict("this diagnosis has ended", "open another by leaving out session_id")
        good, subjects = verdict == "fixed", _judged(session, verdict)
        failed = session.failed if good else (*session.failed, *subjects)
        tried = (*session.tried, *(step.mark for step in session.shown))
        moved = replace(session, tried=tried, shown=(), ended=good, failed=failed)
        moved, kept = await self._sessions.keep(moved, caller, kept)
        if subjects:
            now = self._clock.now()
            await self._outcomes.note([Outcome(subject, now, good) for subject in subjects])
        return moved, kept

    # --- the evidence -----------------------------------------------------------------

    async def _find(self, session: Session, caller: Caller) -> Findings:
        pack = await self.patterns.pack(caller)
        message, trace = session.error_message, session.stack_trace
        (error, patterns), found = await asyncio.gather(
            asyncio.to_thread(_recognise, pack, message, trace),
            self._remediations.search(message, caller, trace, session.top_k, tags=session.tags),
        )
        kin = await asyncio.to_thread(_kin, pack, found.matches[:_MOST_KIN])
        usage = await self._outcomes.usage([pattern.id for pattern, _ in patterns])
        return Findings(error, patterns, found.matches, kin, {**found.usage, **usage})


def _recognise(
    pack: PatternPack, message: str, trace: str
) -> tuple[ErrorText, Sequence[tuple[Pattern, float]]]:
    return read_error(message, trace), pack.match(f"{message}\n{trace}" if trace else message)


def _kin(pack: PatternPack, matches: Sequence[Match]) -> dict[str, Pattern]:
    """Each remediation's own error, held against the patterns: the best one is its kin."""
    found = {match.record.id: pack.match(text_field(match, "error_message")) for match in matches}
    return {id: patterns[0][0] for id, patterns in found.items() if patterns}


def _judged(session: Session, verdict: Verdict) -> tuple[str, ...]:
    """Whose advice it speaks for or against. Advice of several steps has failed when its last one has;
    until then it is not known."""
    if verdict == "skipped":
        return ()
    judged = (step.subject for step in session.shown if verdict == "fixed" or step.last)
    return tuple(dict.fromkeys(subject for subject in judged if subject))


def _told(session: Session, ask: Ask) -> Session:
    """What this call says counts; the error of a continued session stays its own."""
    return replace(
        session.knowing(ask.context or {}),
        stack_trace=ask.stack_trace or session.stack_trace,
        category=ask.category or session.category,
        mode=ask.mode or session.mode,
        tags=session.tags if ask.tags is None else ask.tags,
        top_k=ask.top_k or session.top_k,
    )


def _circumstances(session: Session) -> Circumstances:
    return Circumstances(session.context, session.category, frozenset(session.failed))


def _steps(session: Session, hypotheses: Sequence[Hypothesis], findings: Findings) -> list[Step]:
    """In order. A guided session goes on with checks when the remedies are used up."""
    if session.ended:
        return []
    checks = checks_for(findings.error)
    if session.mode == "guided":
        return plan(hypotheses, checks, session.tried, session.failed)
    return plan(hypotheses, (), session.tried, session.failed) or plan([], checks, session.tried)


def _showing(session: Session, hypotheses: Sequence[Hypothesis], steps: Sequence[Step]) -> Session:
    """What the next outcome will be about: one step, or all that the best hypothesis advises."""
    if session.mode == "guided":
        shown = [Shown(step.mark, step.subject, is_last_of(step, steps)) for step in steps[:1]]
    else:
        best = plan(hypotheses[:1], (), session.tried, session.failed)
        shown = [Shown(step.mark, step.subject, last=True) for step in best]
    return replace(session, shown=tuple(shown))

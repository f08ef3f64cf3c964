"""A diagnosis: what an error probably is, why, what resembles it and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contextd.domain.fingerprints import ErrorText
from contextd.services.diagnosis_sessions import Session
from contextd.services.diagnostics import checks_for
from contextd.services.hypotheses import Confidence, Hypothesis, Lead, confidence
from contextd.services.leads import UNKNOWN, Findings
from contextd.services.patterns import Action
from contextd.services.plans import Step, judged
from contextd.services.questions import Question, only_looks, questions
from contextd.services.similar_issues import SimilarIssue, similar_issues

_NOT_KNOWN: Final = "Not known: no pattern and no earlier fix matches this error."
_WORTH_SAYING: Final = 0.2
_MOST_DIAGNOSTIC: Final = 8


@dataclass(frozen=True, slots=True)
class Diagnosis:
    session_id: str
    root_cause: str
    confidence: Confidence
    confidence_score: float
    category: str
    severity: str
    hypotheses: tuple[Hypothesis, ...]
    similar: tuple[SimilarIssue, ...]
    steps: tuple[Step, ...]
    diagnostic_steps: tuple[str, ...]
    next_step: Step | None
    questions: tuple[Question, ...]
    llm: str
    time_taken_ms: float = 0.0
    at: datetime = datetime.min


def conclude(
    session: Session, findings: Findings, hypotheses: Sequence[Hypothesis], steps: Sequence[Step]
) -> Diagnosis:
    """Everything put together, for the mode of the session."""
    best = hypotheses[0] if hypotheses else None
    guided = session.mode == "guided"
    shown = judged(steps[:1] if guided else steps)
    return Diagnosis(
        session_id=session.id,
        root_cause=_root_cause(best),
        confidence=confidence(best.probability if best else 0.0),
        confidence_score=best.probability if best else 0.0,
        category=best.lead.category if best else session.category or UNKNOWN,
        severity=best.lead.severity if best else UNKNOWN,
        hypotheses=tuple(hypotheses),
        similar=similar_issues(findings, session.top_k),
        steps=tuple(shown),
        diagnostic_steps=_diagnostic_steps(hypotheses, findings.error),
        next_step=shown[0] if guided and shown else None,
        questions=tuple(questions(hypotheses, session.context)) if session.mode == "interactive" else (),
        llm=session.opinion.state if session.opinion else "off",
    )


def _root_cause(best: Hypothesis | None) -> str:
    if best is None:
        return _NOT_KNOWN
    if best.probability < _WORTH_SAYING:
        return f"Not known. The nearest that is known: {best.lead.description}"
    return best.lead.description


def _diagnostic_steps(hypotheses: Sequence[Hypothesis], error: ErrorText) -> tuple[str, ...]:
    """How to tell what is likely, then where to look anyway. What verifies a fix tells nothing yet."""
    likely = [step for one in hypotheses[:3] for step in _ways_to_tell(one.lead)]
    anyway = [_with_commands(action) for action in checks_for(error)]
    return tuple(dict.fromkeys((*likely, *anyway)))[:_MOST_DIAGNOSTIC]


def _ways_to_tell(lead: Lead) -> list[str]:
    """A model was asked how its idea can be checked; a pattern has actions that only look."""
    if not lead.subjects:
        return list(lead.verification_steps)
    looks = (each.action for each in lead.remedies if not each.guessed and only_looks(each.action))
    return [_with_commands(action) for action in looks]


def _with_commands(action: Action) -> str:
    commands = ", ".join(f"`{command}`" for command in action.commands)
    return f"{action.description} {commands}".strip()

"""What is known that resembles an error: earlier fixes and patterns, side by side."""

from dataclasses import dataclass

from contextd.domain.ports import Usage
from contextd.services.hypotheses import Confidence, confidence, tempered
from contextd.services.leads import (
    UNKNOWN,
    Findings,
    pattern_strength,
    remediation_strength,
    root_cause_of,
    text_field,
)
from contextd.services.patterns import Pattern
from contextd.services.remediations import Match
from contextd.services.solutions import Safety, commands_in, safety_of


@dataclass(frozen=True, slots=True)
class SimilarIssue:
    id: str
    error_pattern: str
    root_cause: str
    solution: str
    match_score: float
    semantic_score: float | None
    """None for a pattern: it matches by its words, not by meaning."""
    success_rate: float | None
    severity: str
    category: str
    tags: tuple[str, ...]
    confidence: Confidence
    safety: Safety


def similar_issues(findings: Findings, most: int) -> tuple[SimilarIssue, ...]:
    """The nearest first."""
    issues = [
        *(_of_remediation(match, findings) for match in findings.matches[:most]),
        *(
            _of_pattern(pattern, specificity, findings.used(pattern.id))
            for pattern, specificity in findings.patterns[:most]
        ),
    ]
    return tuple(sorted(issues, key=lambda issue: -issue.match_score)[:most])


def _of_remediation(match: Match, findings: Findings) -> SimilarIssue:
    used = findings.used(match.record.id)
    kin = findings.kin.get(match.record.id)
    solution = text_field(match, "solution")
    return SimilarIssue(
        id=match.record.id,
        error_pattern=text_field(match, "error_message"),
        root_cause=root_cause_of(match, kin),
        solution=solution,
        match_score=match.match_score,
        semantic_score=match.semantic_score,
        success_rate=used.success_rate,
        severity=text_field(match, "severity") or UNKNOWN,
        category=kin.category if kin else UNKNOWN,
        tags=match.record.tags,
        confidence=confidence(remediation_strength(match, used)),
        safety=safety_of(commands_in(solution), solution),
    )


def _of_pattern(pattern: Pattern, specificity: float, used: Usage) -> SimilarIssue:
    commands = [command for action in pattern.actions for command in action.commands]
    return SimilarIssue(
        id=pattern.id,
        error_pattern=pattern.error_pattern,
        root_cause=pattern.root_cause,
        solution=pattern.solution,
        match_score=specificity,
        semantic_score=None,
        success_rate=used.success_rate,
        severity=pattern.severity,
        category=pattern.category,
        tags=pattern.tags,
        confidence=confidence(tempered(pattern_strength(specificity), used)),
        safety=safety_of(commands, pattern.solution),
    )

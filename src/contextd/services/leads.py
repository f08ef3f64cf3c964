"""From what matched to leads: patterns, the remediations that agree with them, and the circumstances."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextd.domain.fingerprints import ErrorText
from contextd.domain.ports import Usage
from contextd.domain.records import Json
from contextd.domain.words import split_words
from contextd.services.diagnostics import place_of
from contextd.services.error_languages import is_foreign, languages_of
from contextd.services.hypotheses import Lead, Remedy, tempered, together
from contextd.services.patterns import Action, Pattern
from contextd.services.remediations import Match
from contextd.services.solutions import commands_in

UNKNOWN: Final = "unknown"
SOLVED: Final = "the error no longer appears"
_EVEN_MATCH: Final = 0.6
_MATCH_WIDTH: Final = 0.08
"""At this match score an earlier error is as likely of another kind as of the same; the width says how
fast that changes. Held against the pack's own examples, a little on the careful side."""
_NEAR: Final = 0.5
_FOREIGN: Final = 0.05
"""What is left of a lead for another language: less than of the right one that was answered with no."""
_SHOWN: Final = 400
_LONGEST_ACTION: Final = 1_000
_MOST_EVIDENCE: Final = 12
_YES: Final = frozenset(("yes", "y", "true"))
_NO: Final = frozenset(("no", "n", "false"))


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of an error before anything is concluded from it."""

    error: ErrorText
    patterns: Sequence[tuple[Pattern, float]]
    matches: Sequence[Match]
    kin: Mapping[str, Pattern]
    """A remediation's id to the pattern that its own error falls under."""
    usage: Mapping[str, Usage]

    def used(self, subject: str) -> Usage:
        return self.usage.get(subject, Usage())


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the caller knows beside the error, and what was tried in vain."""

    context: Mapping[str, Json]
    category: str | None = None
    failed: frozenset[str] = frozenset()


def leads_from(findings: Findings, circumstances: Circumstances) -> list[Lead]:
    """A remediation whose error falls under a matching pattern speaks for that; others for themselves."""
    matching = {pattern.id for pattern, _ in findings.patterns}
    by_pattern: dict[str, list[Match]] = {}
    alone: list[Match] = []
    for match in findings.matches:
        kin = findings.kin.get(match.record.id)
        if kin is not None and kin.id in matching:
            by_pattern.setdefault(kin.id, []).append(match)
        else:
            alone.append(match)
    leads = [
        _of_pattern(pattern, specificity, by_pattern.get(pattern.id, []), findings)
        for pattern, specificity in findings.patterns
    ]
    leads += [_of_remediation(match, findings) for match in alone]
    foreign = _foreign(findings)
    return [_answered(_under(lead, circumstances, foreign), circumstances) for lead in leads]


def _foreign(findings: Findings) -> Mapping[str, str]:
    """Patterns that an error of this language cannot mean, each with the reason."""
    languages = languages_of(findings.error)
    reason = f"it is of another language: the error is of {' and '.join(sorted(languages))}"
    return {pattern.id: reason for pattern, _ in findings.patterns if is_foreign(pattern, languages)}


def pattern_strength(specificity: float) -> float:
    """Less than its specificity, the more so the more general it is: such a pattern has many causes."""
    return math.pow(specificity, 1.5)


def remediation_strength(match: Match, usage: Usage) -> float:
    """How likely it is of the same kind, with what the stack and the type add."""
    same = 1.0 / (1.0 + math.exp((_EVEN_MATCH - match.match_score) / _MATCH_WIDTH))
    frames = 0.3 if match.stack_trace_match else 0.0
    kind = 0.1 if match.error_type_match else 0.0
    return tempered(together([same, frames, kind]), usage)


def root_cause_of(match: Match, kin: Pattern | None) -> str:
    """A remediation keeps no cause of its own unless its context names one."""
    context = match.record.fields.get("context")
    told = context.get("root_cause") if isinstance(context, dict) else None
    if isinstance(told, str) and told:
        return told[:_SHOWN]
    if kin is not None:
        return kin.root_cause
    kind, message = text_field(match, "error_type") or "error", text_field(match, "error_message")
    return f"The same as an earlier {kind}: {message[:_SHOWN]}"


def _of_pattern(pattern: Pattern, specificity: float, matches: Sequence[Match], findings: Findings) -> Lead:
    own = tempered(pattern_strength(specificity), findings.used(pattern.id))
    supports = [remediation_strength(match, findings.used(match.record.id)) for match in matches]
    actions = pattern.actions or (_action(pattern.solution),)
    near, far = _by_nearness(matches, supports)
    return Lead(
        subjects=(pattern.id, *(match.record.id for match in matches)),
        description=pattern.root_cause,
        category=pattern.category,
        severity=pattern.severity,
        # The nearest one counts, and half: that many were kept makes none of them nearer.
        strength=together([own, 0.5 * max(supports, default=0.0)]),
        evidence=(
            f"pattern {pattern.id} matches: {pattern.error_pattern[:_SHOWN]}",
            *_history(pattern.id, findings),
            *(line for match in matches for line in _evidence(match, findings)),
            *_place(findings.error),
        ),
        verification_steps=pattern.verification_steps,
        remedies=(*near, *(Remedy(action, pattern.id) for action in actions), *far),
        words=frozenset(split_words(" ".join((pattern.ecosystem, pattern.category, *pattern.tags)))),
    )


def _of_remediation(match: Match, findings: Findings) -> Lead:
    kin = findings.kin.get(match.record.id)
    severity = text_field(match, "severity")
    return Lead(
        subjects=(match.record.id,),
        description=root_cause_of(match, kin),
        category=kin.category if kin else UNKNOWN,
        severity=severity or (kin.severity if kin else UNKNOWN),
        strength=remediation_strength(match, findings.used(match.record.id)),
        evidence=(*_evidence(match, findings), *_place(findings.error)),
        verification_steps=kin.verification_steps if kin else (),
        remedies=(_remedy(match),),
        words=frozenset(split_words(" ".join(match.record.tags))),
    )


def _under(lead: Lead, circumstances: Circumstances, foreign: Mapping[str, str]) -> Lead:
    """The same lead under what is known beside the error: facts raise or lower it."""
    strength, evidence = lead.strength, list(lead.evidence)
    if circumstances.category:
        same = circumstances.category.lower() == lead.category.lower()
        strength = together([strength, 0.3]) if same else strength * 0.6
    if shared := sorted(lead.words & _words(circumstances.context)):
        strength = together([strength, *[0.15] * min(2, len(shared))])
        evidence.append(f"the context names {', '.join(shared[:5])}")
    # An earlier fix that agrees was found in practice, and knows better than the table of languages.
    if len(lead.subjects) == 1 and (reason := foreign.get(lead.subjects[0])):
        strength *= _FOREIGN
        evidence.append(reason)
    return replace(lead, strength=strength, evidence=tuple(evidence))


def _answered(lead: Lead, circumstances: Circumstances) -> Lead:
    """The same lead after what was answered and tried in this session."""
    strength, evidence = lead.strength, list(lead.evidence)
    for subject in lead.subjects:
        answer = _plain(circumstances.context.get(subject, ""))
        if answer in _YES:
            strength = together([strength, 0.7])
            evidence.append("its check was answered with yes")
        elif answer in _NO:
            strength *= 0.15
            evidence.append("its check was answered with no")
    if lead.subjects[0] in circumstances.failed:
        strength *= 0.15
        evidence.append("its remedy was tried in this session and did not help")
    return replace(lead, strength=strength, evidence=tuple(evidence[:_MOST_EVIDENCE]))


def _words(context: Mapping[str, Json]) -> frozenset[str]:
    """Of the facts; a plain yes or no belongs to its question and says nothing else."""
    facts = {name: str(value) for name, value in context.items() if isinstance(value, str | int | float)}
    texts = [f"{name} {fact}" for name, fact in facts.items() if _plain(fact) not in _YES | _NO]
    return frozenset(word for word in split_words(" ".join(texts)) if not word.isdigit())


def _plain(answer: object) -> str:
    return str(answer).strip().lower()


def _evidence(match: Match, findings: Findings) -> list[str]:
    reasons = [f"match {match.match_score:.2f}"]
    if match.stack_trace_match:
        reasons.append("a stack frame in common")
    if match.error_type_match:
        reasons.append("the same error type")
    return [f"remediation {match.record.id}: {', '.join(reasons)}", *_history(match.record.id, findings)]


def _history(subject: str, findings: Findings) -> list[str]:
    used = findings.used(subject)
    known = used.good + used.bad
    return [f"{subject} helped {used.good} of {known} times"] if known else []


def _place(error: ErrorText) -> list[str]:
    place = place_of(error)
    return [f"it happened in {place}"] if place else []


def _by_nearness(matches: Sequence[Match], supports: Sequence[float]) -> tuple[list[Remedy], list[Remedy]]:
    """What helped with nearly this error is tried before the general advice, the rest after it."""
    pairs = [(_remedy(match), support >= _NEAR) for match, support in zip(matches, supports, strict=True)]
    return [remedy for remedy, near in pairs if near], [remedy for remedy, near in pairs if not near]


def _remedy(match: Match) -> Remedy:
    return Remedy(_action(text_field(match, "solution")), match.record.id)


def _action(solution: str) -> Action:
    return Action(solution[:_LONGEST_ACTION], commands_in(solution), SOLVED)


def text_field(match: Match, name: str) -> str:
    value = match.record.fields.get(name)
    return value if isinstance(value, str) else ""

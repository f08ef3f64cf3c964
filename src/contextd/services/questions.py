"""What to ask when the error alone does not decide: whether a cause is the one, then plain facts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.command_risk import assess
from contextd.domain.records import Json
from contextd.services.hypotheses import Hypothesis, Lead, confidence
from contextd.services.patterns import Action

MOST: Final = 3
_CAUSES: Final = 2
_WORTH_ASKING: Final = 0.05
_LOOK: Final = re.compile(
    r"(?!.*\bthen\b)(?:[^.]{1,200}\?|(?:if [^,.;]{1,80}, )?"
    r"(?:ask|check|compare|count|find|list|look|print|read|see|show|test|time|walk)\b[^.;]{0,200}\.?)",
    re.IGNORECASE,
)
"""How an action is described that only looks. What looks first and then mends is none."""


@dataclass(frozen=True, slots=True)
class Question:
    """Answered in `context`, under its name."""

    name: str
    question: str


_FACTS: Final = (
    Question("recent_change", "What changed last before it failed (code, versions, configuration)?"),
    Question(
        "environment", "Where does it fail (this machine, CI, a container, production), and where not?"
    ),
    Question("command", "Which command was run, exactly?"),
    Question("versions", "Which versions of the language, the tool and the operating system are in use?"),
)


def questions(hypotheses: Sequence[Hypothesis], context: Mapping[str, Json]) -> list[Question]:
    """At most three that were not answered yet. When the case is clear, only whether that is so."""
    causes = [_cause(one.lead) for one in _worth_asking(hypotheses)]
    unasked = [one for one in causes if one.name not in context]
    if hypotheses and confidence(hypotheses[0].probability) == "high":
        return [one for one in unasked[:1] if one.name in hypotheses[0].lead.subjects]
    facts = [one for one in _FACTS if one.name not in context]
    return [*unasked[:_CAUSES], *facts][:MOST]


def _worth_asking(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The best in any case, and others that are not far-fetched. One without a name cannot be answered."""
    likely = [one for place, one in enumerate(hypotheses) if not place or one.probability >= _WORTH_ASKING]
    return [one for one in likely if one.lead.subjects]


def _cause(lead: Lead) -> Question:
    """About the cause. Steps that verify a fix must not be asked about: before the fix they say no."""
    look = next(
        (remedy.action for remedy in lead.remedies if not remedy.guessed and only_looks(remedy.action)),
        None,
    )
    how = f" To tell: {_shown(look)}" if look else ""
    return Question(lead.subjects[0], f"Is this the cause (yes or no)? {lead.description}{how}")


def only_looks(action: Action) -> bool:
    described = _LOOK.fullmatch(action.description) is not None
    return (
        described
        and bool(action.commands)
        and not any(assess(each).destructive for each in action.commands)
    )


def _shown(action: Action) -> str:
    return f"{action.description} {', '.join(f'`{command}`' for command in action.commands)}"

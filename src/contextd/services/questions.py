"""What to ask when the error alone does not decide: checks that tell hypotheses apart, then plain facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.records import Json
from contextd.services.hypotheses import Hypothesis, confidence

MOST: Final = 3
_CHECKS: Final = 2


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
    """At most three that were not answered yet; none when the case is clear."""
    if hypotheses and confidence(hypotheses[0].probability) == "high":
        return []
    checks = [_check(one) for one in hypotheses if one.lead.subjects]
    asked = [*[one for one in checks if one.name not in context][:_CHECKS], *_FACTS]
    return [one for one in asked if one.name not in context][:MOST]


def _check(hypothesis: Hypothesis) -> Question:
    lead = hypothesis.lead
    how = f" Check: {lead.verification_steps[0]}" if lead.verification_steps else ""
    return Question(lead.subjects[0], f"Is this so (yes or no)? {lead.description}{how}")

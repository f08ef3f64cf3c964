"""What to do, step by step: the remedies of the hypotheses, or how to look for the cause oneself."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextd.services.hypotheses import Hypothesis, Remedy
from contextd.services.patterns import Action
from contextd.services.solutions import SAFE, Safety, code_in, safety_of

MOST_STEPS: Final = 10
_WORTH_A_STEP: Final = 0.1
_FROM_A_MODEL: Final = "Suggested by a language model: check it before you run it."


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    action: Action
    subject: str | None
    """Whose advice it is, for the outcome; None for what nothing kept advises."""
    guessed: bool = False
    """A language model made it up."""
    safety: Safety = SAFE
    """Judged when it is shown; never kept."""

    @property
    def mark(self) -> str:
        """The same step has the same mark in every process, so that it is not given twice."""
        text = "\n".join((self.action.description, *self.action.commands))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]

    @property
    def safety_notes(self) -> str:
        return " ".join(part for part in (self.safety.note, _FROM_A_MODEL if self.guessed else "") if part)


def plan(
    hypotheses: Sequence[Hypothesis],
    checks: Sequence[Action],
    tried: Collection[str] = (),
    failed: Collection[str] = (),
) -> list[Step]:
    """The remedies of what is likely, the likeliest first, then the checks; without what did not help."""
    likely = [one for place, one in enumerate(hypotheses) if not place or one.probability >= _WORTH_A_STEP]
    steps = [
        _step(remedy) for one in likely for remedy in one.lead.remedies if remedy.subject not in failed
    ]
    steps += [Step(0, check, None) for check in checks]
    fresh: dict[str, Step] = {}
    for step in steps:
        if step.mark not in tried:
            fresh.setdefault(step.mark, step)
    numbered = enumerate(list(fresh.values())[:MOST_STEPS], len(tried) + 1)
    return [replace(step, number=number) for number, step in numbered]


def judged(steps: Iterable[Step]) -> list[Step]:
    """The steps with what is dangerous about them."""
    return [replace(step, safety=_safety(step.action)) for step in steps]


def _safety(action: Action) -> Safety:
    prose = f"{action.description}\n{action.expected_outcome}"
    return safety_of((*action.commands, *code_in(prose)), prose)


def is_last_of(step: Step, steps: Iterable[Step]) -> bool:
    """Whether no other step comes from the same advice: until then it is not known to have failed."""
    return not any(other.subject == step.subject and other.mark != step.mark for other in steps)


def _step(remedy: Remedy) -> Step:
    return Step(0, remedy.action, remedy.subject, remedy.guessed)
